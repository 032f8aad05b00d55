"""A suite of adversity: every learner on some hundreds of settings, against an oracle with the best step in hindsight.

`design` says what is played, `games` makes the streams, `players` the learners, `compute` the tasks, and `ratios`
reads what came out.
"""
