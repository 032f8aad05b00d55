"""Predictions of a served model without HTTP: numbers, columns and keys."""

import json

import numpy as np
import pyarrow as pa
import pytest

from redescend.errors import DataError
from redescend.serve.calls import infer
from tests.serve.models import make_model, send
from tests.serve.servers import make_records


def dump(inputs) -> bytes:
    return json.dumps({"inputs": inputs}).encode()


@pytest.mark.parametrize("missing", [True, False])
def test_numbers_take_the_short_way_to_the_same_predictions(tmp_path, missing):
    random = np.random.default_rng(0)
    records = [dict(zip("abc", row, strict=True)) for row in random.normal(size=(200, 3)).tolist()]
    for number, record in enumerate(records):
        record["price"] = record["a"] - record["b"]
        if missing and number % 3 == 0:
            record["c"] = None
    model = make_model(tmp_path)
    send(model, records)
    columns = {name: [record[name] for record in records if record["c"] is not None] for name in model.schema.inputs}
    count = len(columns["a"])
    tensors = [{"name": name, "shape": [count], "datatype": "FP64", "data": data} for name, data in columns.items()]
    rows = [value for row in zip(*columns.values(), strict=True) for value in row]
    whole = [{"name": "all", "shape": [count, 3], "datatype": "FP64", "data": rows}]
    texts = [tensor | {"data": list(map(repr, tensor["data"])), "datatype": "BYTES"} for tensor in tensors]
    expected = infer(model, dump(texts), b"")[0]["outputs"][:-1]
    assert [output["name"] for output in expected] == ["prediction", "low", "high"]
    assert model.numeric.inputs.read(dump(texts)) is None
    for inputs in (tensors, whole):
        assert model.numeric.inputs.read(dump(inputs)) is not None
        answer, records = infer(model, dump(inputs), b"")
        assert records == count
        assert answer["outputs"][:-1] == expected
        _, make, place = model.labels.take(answer["outputs"][-1]["data"][7])
        assert json.loads(make(place)) == {name: values[7] for name, values in columns.items()}
    for value in (1e300, None, "1", [1.0], {}):
        inputs = [tensors[0] | {"data": [value] * count}, *tensors[1:]]
        assert model.numeric.inputs.read(dump(inputs)) is None


def test_columns_of_different_lengths_are_refused(tmp_path):
    model = make_model(tmp_path)
    send(model, [{"a": a, "b": b, "price": a - b} for a, b in np.random.default_rng(0).normal(size=(50, 2)).tolist()])
    # Four numbers in all, which would fill two rows.
    columns = {"a": [1.0, 2.0, 3.0], "b": [4.0]}
    inputs = [{"name": name, "shape": [len(data)], "datatype": "FP64", "data": data} for name, data in columns.items()]
    assert model.numeric.inputs.read(dump(inputs)) is None
    with pytest.raises(DataError, match="different numbers of records"):
        infer(model, dump(inputs), b"")


def test_models_of_keys_have_intervals(tmp_path):
    records = [record for record in make_records(400) if isinstance(record["area"], float)]
    model = make_model(tmp_path, by="town")
    send(model, records)
    columns = {name: [record[name] for record in records[:20]] for name in ("area", "age", "town")}
    kinds = {"area": "FP64", "age": "FP64", "town": "BYTES"}
    inputs = [{"name": name, "shape": [20], "datatype": kinds[name], "data": data} for name, data in columns.items()]
    prediction, low, high, _ = (output["data"] for output in infer(model, dump(inputs), b"")[0]["outputs"])
    with model.read() as served:
        table = pa.Table.from_pydict(columns)
        np.testing.assert_array_equal(prediction, served.predict(table))
        np.testing.assert_array_equal([low, high], served.predict_interval(table))
    assert (np.array(low) < prediction).all()
