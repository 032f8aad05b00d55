"""Models for River: a regressor, a classifier, a filter, and LEARN as a loss for River's own models.

They learn from dicts and from frames, in which features may come and go, and work in pipelines:

>>> from river import preprocessing
>>> model = preprocessing.StandardScaler() | RedescendingRegressor()
>>> model.learn_one({"depth": 2.0, "flow": 0.5}, 1.5)
"""

from redescend.errors import MissingExtraError

try:
    import river as _river
except ImportError:
    raise MissingExtraError("redescend.river needs River; install it with: pip install 'redescend[river]'") from None

from redescend.river.classifier import RedescendingClassifier
from redescend.river.filter import RedescendingFilter
from redescend.river.learn_loss import LearnLoss
from redescend.river.regressor import RedescendingRegressor

del _river

__all__ = ["LearnLoss", "RedescendingClassifier", "RedescendingFilter", "RedescendingRegressor"]
