"""Exported models predict the same as their originals."""

from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import redescend as rd
from redescend.cli import app
from redescend.errors import DataError
from redescend.sklearn import RedescendingClassifier, RedescendingRegressor

onnxruntime = pytest.importorskip("onnxruntime")

ROWS = 400


def run(graph, inputs):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip((one.name for one in session.get_outputs()), session.run(None, inputs), strict=True))


@pytest.fixture(scope="module")
def table():
    """Numbers, a boolean and texts; one number and one text are missing now and then from the start, others later."""
    random = np.random.default_rng(0)
    x, z = random.normal(size=(2, ROWS))
    frame = pd.DataFrame({"x": x, "z": 1e3 * z, "on": random.random(ROWS) < 0.3})
    frame["town"] = random.choice(["Rome", "Ulm", "Łódź"], ROWS)
    frame["shape"] = random.choice(["round", "square"], ROWS)
    frame["y"] = 2 * x + z + frame["on"] + frame["town"].map({"Rome": 1.0, "Ulm": 5.0, "Łódź": -3.0})
    frame["label"] = np.select([frame["y"] > 3, frame["y"] > 0], ["high", "middle"], "low")
    frame.loc[::7, "z"] = np.nan
    frame.loc[::11, "town"] = None
    frame.loc[ROWS - 40 :: 9, "x"] = np.nan
    frame.loc[ROWS - 40 :: 13, "shape"] = None
    return frame


def as_inputs(schema, frame):
    """The columns as the graph takes them."""
    found = {}
    for feature in schema.features:
        column = frame[feature.name]
        if feature.how == "levels":
            found[feature.name] = column.fillna("").to_numpy(dtype=object)[:, None]
        else:
            found[feature.name] = column.astype(float).to_numpy()[:, None]
    return found


def fit(frame, target, **options):
    model, rounds = rd.fit_stream(frame.drop(columns={"y", "label"} - {target}), target, linear=True, **options)
    rounds.run()
    return model


@pytest.mark.parametrize("options", [{}, {"transform": rd.transforms.Huber(5.0)}], ids=["self-tuning", "transform"])
def test_a_stream_model_of_numbers_predicts_the_same(table, options):
    model = fit(table, "y", **options)
    predicted = run(rd.to_onnx(model), as_inputs(model.schema, table))["prediction"]
    np.testing.assert_allclose(predicted[:, 0], model.predict(table), rtol=1e-9, atol=1e-9)
    far = table.assign(z=1e12)  # beyond the range of predictions
    predicted = run(rd.to_onnx(model), as_inputs(model.schema, far))["prediction"]
    np.testing.assert_allclose(predicted[:, 0], model.predict(far), rtol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"transform": rd.transforms.Learn(2.0, 0.1)}], ids=["self-tuning", "transform"]
)
@pytest.mark.parametrize("labels", [2, 3])
def test_a_stream_model_of_labels_predicts_the_same(table, labels, options):
    frame = table if labels == 3 else table.assign(label=table["label"].replace("middle", "low"))
    model = fit(frame, "label", **options)
    out = run(rd.to_onnx(model), as_inputs(model.schema, frame))
    assert list(out["label"]) == list(model.predict(frame))
    if options:
        np.testing.assert_allclose(out["probabilities"], model.predict_proba(frame), atol=1e-9)
    else:
        assert "probabilities" not in out  # they are calibrated by more than margins


def test_an_unknown_text_counts_as_none_of_the_values(table):
    model = fit(table, "y")
    new = table[:1].assign(town="Oslo", x=1.0, z=0.0)
    coefficients, _ = model.coefficients()
    bucket = model.schema.encoded.index("town is another (1)")
    assert not coefficients[0, bucket : bucket + 8].any()
    predicted = run(rd.to_onnx(model), as_inputs(model.schema, new))["prediction"]
    np.testing.assert_allclose(predicted[:, 0], model.predict(new))


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_regressor_predicts_the_same(outputs):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    Y = X @ random.normal(size=(3, outputs)) + 5.0
    model = RedescendingRegressor(features="linear", max_iter=1).fit(X, Y if outputs > 1 else Y[:, 0])
    predicted = run(rd.to_onnx(model), {"X": 100 * X})["prediction"]
    np.testing.assert_allclose(predicted, model.predict(100 * X).reshape(200, outputs), rtol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("classes", [["no", "yes"], [3, 5, 9], [False, True], [1.0, 2.0]])
def test_a_classifier_predicts_the_same(classes, loss):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    y = np.array(classes)[np.digitize(X @ [1.0, -1.0, 0.5], [0.0, 1.0][: len(classes) - 1])]
    model = RedescendingClassifier(features="linear", loss=loss, max_iter=1).fit(X, y)
    out = run(rd.to_onnx(model), {"X": X})
    assert list(out["label"]) == list(model.predict(X))
    assert "probabilities" not in out  # they are calibrated by more than margins
    margins = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(out["margins"].squeeze(), margins.squeeze(), rtol=1e-9)


def test_a_classifier_with_a_transform_has_probabilities():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = RedescendingClassifier(transform=rd.transforms.Huber(1.0), max_iter=1).fit(X, X[:, 0] > 0)
    np.testing.assert_allclose(run(rd.to_onnx(model), {"X": X})["probabilities"], model.predict_proba(X), atol=1e-9)


def test_what_cannot_be_exported_is_refused(table):
    with pytest.raises(DataError, match="ModelStore cannot be exported"):
        rd.to_onnx(fit(table, "y", by="shape"))
    with pytest.raises(DataError, match="SelfTuning cannot be exported"):
        rd.to_onnx(rd.SelfTuning(2, loss=rd.losses.Squared()))
    dated = table.assign(day=pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(ROWS), unit="D"))
    with pytest.raises(DataError, match="column 'day': dates cannot be exported"):
        rd.to_onnx(fit(dated, "y"))
    hashed = table.assign(code=[f"{i % 300}" + "x" for i in range(ROWS)])
    with pytest.raises(DataError, match="column 'code': its texts are hashed"):
        rd.to_onnx(fit(hashed, "y", features=["x", "code"]))

    trees = RedescendingRegressor(features="auto").fit(table[["y"]].to_numpy(), table["y"].to_numpy())
    with pytest.raises(DataError, match="not linear; make it with features='linear'"):
        rd.to_onnx(trees)


def test_the_command(table, tmp_path):
    model = fit(table, "y")
    saved, graph = tmp_path / "m.safetensors", tmp_path / "m.onnx"
    rd.save(model, saved)
    done = CliRunner().invoke(app, ["export", str(saved), "--onnx", str(graph)])
    assert done.exit_code == 0
    assert "outputs: prediction" in done.stderr
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (predicted,) = session.run(None, as_inputs(model.schema, table))
    np.testing.assert_allclose(predicted[:, 0], model.predict(table), rtol=1e-9, atol=1e-9)
    refused = CliRunner().invoke(app, ["export", str(saved), "--onnx", str(saved)])
    assert refused.exit_code == 2
    assert "would overwrite the model" in refused.stderr
    assert rd.load(saved).records == model.records


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="needs MLflow")
def test_a_model_in_mlflow_predicts_the_same(table, tmp_path):
    import mlflow

    from redescend.exports.mlflow import save_model

    model = fit(table, "y")
    save_model(model, tmp_path / "model")
    again = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
