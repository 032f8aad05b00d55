"""scikit-learn's own checks, all of them."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

import redescend as rd
from redescend.sklearn import MedianScaler, RedescendingClassifier, RedescendingRegressor

REPEATED = "a row of weight 2 is one longer step, not two rows: as for SGDRegressor and SGDClassifier"


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, MedianScaler):
        return {}
    return dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"), REPEATED
    )


@parametrize_with_checks(
    [
        RedescendingRegressor(),
        RedescendingRegressor(transform=rd.transforms.Huber(1.0)),
        RedescendingClassifier(),
        RedescendingClassifier("hinge", transform=rd.transforms.Learn(1.0, 0.01)),
        MedianScaler(),
    ],
    expected_failed_checks=expected_failed_checks,
)
def test_conforms(estimator: Any, check: Any) -> None:
    check(estimator)
