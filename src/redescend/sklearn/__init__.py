"""Estimators for scikit-learn: a regressor and a classifier that outliers cannot move, and a robust online scaler.

>>> from redescend.sklearn import RedescendingRegressor
>>> RedescendingRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round()
array([7.])
"""

from redescend.errors import MissingExtraError

try:
    from redescend.sklearn.classifier import RedescendingClassifier
    from redescend.sklearn.regressor import RedescendingRegressor
    from redescend.sklearn.scaler import MedianScaler
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "sklearn":
        raise
    raise MissingExtraError(
        "redescend.sklearn needs scikit-learn; install it with: pip install 'redescend[sklearn]'"
    ) from None

__all__ = ["MedianScaler", "RedescendingClassifier", "RedescendingRegressor"]
