"""The suite: every learner in hundreds of settings, against an oracle with the best step in hindsight.

`settings` chooses the settings, `games` makes their streams, `players` makes the learners and the tasks, and `ratios`
reads the results.
"""
