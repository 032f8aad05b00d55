"""River's classifier: labels of every kind, their probabilities, one label and many."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from river import datasets, evaluate, metrics, multiclass, preprocessing

from redescend.errors import DataError
from redescend.river import RedescendingClassifier
from tests import river_streams as streams
from tests.refusals import refusal


@pytest.mark.parametrize(
    ("negative", "positive"),
    [(False, True), (0, 1), ("ham", "spam"), (-1, 1), (np.False_, np.True_), ((1, "a"), (1, "b"))],
)
def test_labels_of_every_kind(negative, positive):
    model, bools = RedescendingClassifier(), RedescendingClassifier()
    assert model.predict_proba_one({}) == pytest.approx({False: 0.5, True: 0.5})
    for x, y in sorted(streams.stream(100, seed=11, labels=True), key=lambda record: record[1])[30:70]:
        model.learn_one(x, positive if y else negative)
        bools.learn_one(x, y)
        assert sum(model.predict_proba_one(x).values()) == pytest.approx(1.0)
    assert list(model.predict_proba_one(x)) == [negative, positive]
    assert model.predict_proba_one(x)[positive] == bools.predict_proba_one(x)[True]
    assert model.predict_one(x) == positive
    assert "OneVsRestClassifier" in refusal(DataError, model.learn_one, x, "third")


def test_the_probability_of_either_label_is_never_0_and_symmetric():
    spam, ham = RedescendingClassifier(), RedescendingClassifier()
    for t in range(200):
        x = {"a": 1.0 if t % 2 else -1.0}
        spam.learn_one(x, "spam" if t % 2 else "ham")
        ham.learn_one(x, "ham" if t % 2 else "spam")
    far = {"a": 100.0 / spam.weights["a"]}
    assert 0.0 < spam.predict_proba_one(far)["ham"] < 1e-3
    assert spam.predict_proba_one(far)["ham"] == pytest.approx(ham.predict_proba_one(far)["spam"], rel=1e-6)
    one, many = spam.predict_proba_one(far)["ham"], spam.predict_proba_many(pd.DataFrame([far]))["ham"][0]
    assert many == pytest.approx(one, rel=1e-12)


def test_one_label_so_far():
    model = RedescendingClassifier()
    model.learn_one({"a": 1.0}, "ham")
    assert model.predict_proba_one({"a": 1.0}) == {"ham": 1.0}
    assert model.predict_one({"a": 1.0}) == "ham"
    assert model.predict_proba_many(pd.DataFrame({"a": [1.0, 2.0]}))["ham"].tolist() == [1.0, 1.0]


def test_many_labels_by_one_against_the_rest():
    model = preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(RedescendingClassifier())
    accuracy = evaluate.progressive_val_score(datasets.ImageSegments().take(400), model, metrics.Accuracy())
    assert accuracy.get() > 0.7  # seven labels, so guessing gives 0.14
