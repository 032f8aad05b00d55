"""Partial dependence of models with trees, and its pictures in the report."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest

from redescend.engines.labels import label_probabilities
from redescend.streaming import fit_stream
from redescend.streaming.importance import rank_features
from redescend.streaming.report.dependence_plots import RECENT, compute_dependence, draw_dependences


def records(count=900, classes=0):
    random = np.random.default_rng(7)
    x, z = random.uniform(-1, 1, count), random.normal(size=count)
    day = np.datetime64("2024-01-01") + np.arange(count)
    y = 4 * x**2 + 0.5 * z + np.cos(2 * np.pi * np.arange(count) / 365.2425) + 0.05 * random.normal(size=count)
    holes = pa.array(z, mask=random.random(count) < 0.1)
    columns = {"<x>": x, "z": holes, "day": pa.array(day), "kind": np.where(random.random(count) < 0.5, "a", "b")}
    target = np.array(["no", "yes", "very"])[np.digitize(y, [1.0, 2.0][: classes - 1])] if classes else y
    return pa.table(columns | {"y": target})


def learned(classes=0, linear=False):
    model, run = fit_stream(records(classes=classes), "y", linear=linear)
    run.run()
    return model


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_it_is_what_predicting_every_record_with_every_value_says(classes):
    model = learned(classes)
    schema, recent = model.schema, model.engine.recent_records(RECENT)
    for column in ("<x>", "z", "day"):
        one = compute_dependence(model, column)
        place = [feature.name for feature in schema.features].index(column)
        feature, span = schema.features[place], schema.spans[place]
        for at in (0, len(one.values) // 2, -1):
            told = []
            for record in recent:
                changed, day = record.copy(), one.values[at : at + 1] if at >= 0 else one.values[at:]
                written = [day, *(feature.waves(day) if column == "day" else [])]
                changed[span.start : span.start + len(written)] = np.concatenate(written)
                if feature.missing:
                    changed[span.stop - 1] = 0.0
                scores = model.engine.predict(changed[None])
                told.append(label_probabilities(scores)[schema.labels.index(one.label), 0] if classes else scores[0, 0])
            assert one.mean[at] == pytest.approx(np.mean(told))
            assert (one.low[at], one.high[at]) == pytest.approx(tuple(np.quantile(told, [0.25, 0.75])))
    assert compute_dependence(model, "kind") is None
    assert compute_dependence(model, "nothing") is None


def test_the_shape_is_found_and_drawn():
    model = learned()
    one = compute_dependence(model, "<x>")
    middle = one.mean[np.abs(one.values).argmin()]
    assert one.mean[0] > middle + 2.0 < one.mean[-1]
    pictures = draw_dependences(model, [feature.column for feature in rank_features(model)])
    assert {picture.title for picture in pictures} == {"<x>", "z", "day"}
    assert "lowest" in pictures[0].caption
    assert all("<x>" not in picture.svg for picture in pictures)
    day = next(picture for picture in pictures if picture.title == "day")
    assert "2025-" in day.svg


def test_linear_models_have_none():
    model = learned(linear=True)
    assert draw_dependences(model, ["<x>", "z"]) == []


def test_a_model_that_has_seen_one_label_depends_on_nothing():
    text = "x,y\n" + "".join(f"{x},one\n" for x in np.random.default_rng(0).normal(size=1200))
    model, run = fit_stream(io.BytesIO(text.encode()), "y", linear=False)
    run.run()
    assert list(model.schema.labels) == ["one"]
    assert compute_dependence(model, "x") is None
