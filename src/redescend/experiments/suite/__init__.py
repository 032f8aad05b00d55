"""The suite: every learner in hundreds of settings, against an oracle with the best step in hindsight.

`settings` chooses the settings and makes their games, `players` makes the learners and the tasks, and `ratios` reads
the results.
"""
