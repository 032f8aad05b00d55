"""Models, runs and estimators in notebooks: tables with the figures, escaped, without links."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

from redescend.sklearn import RedescendingRegressor
from redescend.streaming import fit_stream

VOID = {"br", "meta", "input"}


class Reader(HTMLParser):
    """Reads the cells of tables; every tag must be closed, and none may lead elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "a", "img", "iframe")
        if tag in ("td", "th"):
            self.cells.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def make_table() -> pa.Table:
    random = np.random.default_rng(5)
    x, town = random.normal(size=600), random.choice(["<b>", "Rome"], 600)
    y = 2.0 * x + 0.1 * random.normal(size=600)
    y[300] = 77.0
    return pa.table({"x": x, "town": town, "y": y})


@pytest.mark.parametrize("by", [None, "town"])
def test_models_and_runs_are_tables(by):
    model, run = fit_stream(make_table(), "y", final_look=True, by=by)
    assert "not finished" in run._repr_html_()
    run.run()
    told = Reader(model._repr_html_()).cells
    assert told[told.index("Learned from") + 1] == "600 records"
    told = Reader(run._repr_html_()).cells
    suspects = run.summary.suspect_count
    assert told[told.index("Suspects") + 1].startswith(f"{suspects} record")
    first = told.index("row")
    width = 4 + len(model.schema.inputs)
    assert told[first + width : first + width + 2] == ["301", "77"]
    assert "not finished" not in run._repr_html_()


def test_an_empty_model_is_a_table():
    model, _ = fit_stream(make_table(), "y")
    assert "0 records" in Reader(model._repr_html_()).cells


def test_estimators_are_shown_by_scikit_learn():
    model = RedescendingRegressor()
    assert "RedescendingRegressor" in model._repr_html_()
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert "RedescendingRegressor" in model.fit(X, X[:, 0])._repr_html_()
