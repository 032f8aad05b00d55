r"""Problems to play: clean streams, seeded, and real ones.

`ridge` and `svm` are the paper's. `regression` and `classification` add a truth that moves, noise that is not normal,
and features in units far apart. `real.load` gives streams that come inside Python packages.

>>> regression(100, seed=0, dim=3, drift="jump", noise="student")
Stream(100 rounds, 3 features, 0 corrupted)
"""

from redescend.streams import real
from redescend.streams.paper import ridge, svm
from redescend.streams.synthetic import classification, regression

__all__ = ["classification", "real", "regression", "ridge", "svm"]
