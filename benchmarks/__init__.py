"""Speed against the limits of the machine and against other packages: ``python -m benchmarks``.

Every row is a ratio of two times of the same run, measured in turns, so that a slower or a busier machine
changes both. Nothing here fails because of a time.
"""
