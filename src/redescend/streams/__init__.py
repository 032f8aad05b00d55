r"""Clean streams to play: seeded synthetic ones, and real ones.

`ridge` and `svm` are the paper's. `regression` and `classification` add drift, heavy-tailed noise and features of very
different scales. `real.load` loads streams that come inside Python packages.

>>> regression(100, seed=0, dim=3, drift="jump", noise="student")
Stream(100 rounds, 3 features, 0 corrupted)
"""

from redescend.streams import real
from redescend.streams.synthetic import classification, regression, ridge, svm

__all__ = ["classification", "real", "regression", "ridge", "svm"]
