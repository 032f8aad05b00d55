"""Speed against what the machine can do at best, and against other packages: ``python -m benchmarks``.

Every row is a ratio of two times of the same run, taken in turns, so that a slower or a busier machine
changes both. Nothing here fails because of a time.
"""
