"""Models for River: a regressor, a classifier, a filter, and LEARN as a loss for River's own models.

They learn from dicts and from frames, in which features may come and go, and work in pipelines:

>>> from river import preprocessing
>>> model = preprocessing.StandardScaler() | RedescendingRegressor()
>>> model.learn_one({"depth": 2.0, "flow": 0.5}, 1.5)
"""

from redescend.errors import needs_extra

with needs_extra("redescend.river needs River", "river"):
    from redescend.river.filter import RedescendingFilter
    from redescend.river.learn_loss import LearnLoss
    from redescend.river.linear_model import RedescendingClassifier, RedescendingRegressor

__all__ = ["LearnLoss", "RedescendingClassifier", "RedescendingFilter", "RedescendingRegressor"]
