"""Estimators for scikit-learn: a regressor and a classifier that outliers cannot move, and a robust online scaler.

>>> from redescend.sklearn import RedescendingRegressor
>>> RedescendingRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0]).predict([[4.0]]).round()
array([9.])
"""

from redescend.errors import needs_extra

with needs_extra("redescend.sklearn needs scikit-learn", "sklearn"):
    from redescend.sklearn.classifier import RedescendingClassifier
    from redescend.sklearn.regressor import RedescendingRegressor
    from redescend.sklearn.scaler import MedianScaler

__all__ = ["MedianScaler", "RedescendingClassifier", "RedescendingRegressor"]
