"""A model file in words: each of them true of the stream that was learned from."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pyarrow as pa
import pytest

import redescend as rd
from redescend.errors import DataError
from redescend.streaming import fit_stream
from redescend.streaming.importance import rank_features
from redescend.streaming.report import describe


def shops(count=3000):
    """Prices that fall with the days and rise in Rome, with noise 0.5; 5 % of them are wrong."""
    random = np.random.default_rng(4)
    days = random.integers(0, 1000, count)
    shop = random.choice(["Rome", "Oslo", "Bonn"], count, p=[0.2, 0.4, 0.4])
    price = 20.0 - 0.01 * days + 6.0 * (shop == "Rome") + 0.5 * random.normal(size=count)
    price[random.random(count) < 0.05] = 1000.0
    when = [datetime.datetime(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in days]
    size = pa.array(random.normal(size=count), mask=random.random(count) < 0.1)
    table = {"when": pa.array(when, pa.timestamp("us")), "shop": shop, "size": size, "open": random.random(count) < 0.5}
    return pa.table({**table, "id": [f"n{place}" for place in range(count)], "price": price})


def learned(table, target, **settings):
    model, rounds = fit_stream(table, target, **settings)
    rounds.run()
    return model


def test_a_regression_in_words(tmp_path):
    model = learned(shops(), "price", linear=True)
    rd.save(model, tmp_path / "m.safetensors")
    said = describe.inspect(tmp_path / "m.safetensors")
    size = (tmp_path / "m.safetensors").stat().st_size
    assert said["File"].endswith(
        f"m.safetensors: {size / 1024:.1f} KiB, format 1, written by redescend {rd.__version__}"
    )
    assert said["Task"] == "regression of the number 'price'"
    assert said["Learned from"] == "3,000 records"
    assert said["Method"] == "Squared(l2=0.0), self-tuning of order 2"
    assert "Clean labels" not in said
    assert 0.2 < float(re.fullmatch(r"about ([\d.]+) .*", said["Noise scale"])[1]) < 1.0
    assert said["Columns"] == [
        "'when': date, in days since 1970-01-01, with the day of the week and the day of the year",
        "'shop': text with 3 values: 'Bonn', 'Oslo', 'Rome'",
        "'size': number; with a missing-value indicator",
        "'open': true or false",
    ]
    assert [line.partition(":")[0] for line in said["Excluded"]] == ["'id'"]
    strongest = said["Most important columns"]
    assert {line.partition(":")[0] for line in strongest[:2]} == {"'when'", "'shop'"}
    assert "(later: lower)" in " ".join(strongest)
    assert "(Rome: higher · " in " ".join(strongest)
    assert describe.describe(model) == {heading: content for heading, content in said.items() if heading != "File"}


def test_a_classification_in_words():
    random = np.random.default_rng(5)
    size = random.normal(size=2000)
    table = pa.table({"size": size, "noise": random.normal(size=2000), "kind": np.where(size > 0, "big", "small")})
    model = learned(table, "kind", transform=rd.transforms.Huber(1.0), step=rd.steps.Constant(0.01))
    said = describe.describe(model)
    assert said["Task"] == "classification of 'kind' with 2 labels"
    assert said["Labels"] == "'big', 'small'"
    assert said["Method"] == "Logistic(l2=0.0) with the fixed gate Huber(c=1.0) and Constant(alpha=0.01)"
    assert said["Most important columns"][0].startswith("'size'")
    assert said["Most important columns"][0].endswith("(more: big)")
    assert "Noise scale" not in said
    table = table.set_column(2, "kind", pa.array(np.array(["low", "mid", "top"])[np.digitize(size, [-0.5, 0.5])]))
    (first, *_) = rank_features(learned(table, "kind"))
    assert first.column == "size"
    assert first.direction in ("more: top", "more: not low")


def test_a_model_that_has_learned_nothing_and_one_of_another_kind(tmp_path):
    model, _ = fit_stream(shops(50), "price")
    said = describe.describe(model)
    assert said["Learned from"] == "0 records"
    assert not {"Most important columns", "Noise scale", "Clean labels"} & said.keys()
    path = tmp_path / "other.safetensors"
    rd.save(rd.OGD(2, loss=rd.losses.Squared(), step=rd.steps.Constant(0.1)), path)
    assert re.fullmatch(r"OGD\(.*\)", describe.inspect(path)["Model"])
    path.write_bytes(b"no model")
    with pytest.raises(DataError, match="was not written by"):
        describe.inspect(path)


def test_names_of_columns_are_in_quotes_without_what_a_terminal_obeys():
    odd = "ci\x1b]0;ty"
    table = pa.table({odd: ["Rome", "Oslo"] * 50, "x": np.arange(100.0), "y": np.arange(100.0)})
    for settings in ({}, {"by": odd}):
        said = describe.describe(learned(table, "y", **settings))
        text = "\n".join(part if isinstance(part, str) else "\n".join(part) for part in said.values())
        assert "\x1b" not in text
        assert repr(odd) in text


def test_many_labels_and_long_ones_stay_short():
    labels = [f"{place:02d}" + "x" * 300 for place in range(30)]
    table = pa.table({"x": np.arange(600.0), "kind": labels * 20})
    model, _ = fit_stream(table, "kind")
    said = describe.describe(model)["Labels"]
    assert said.endswith(f"…' and {30 - describe.MAX_LISTED} more")
    assert len(said) < 220 * describe.MAX_LISTED
