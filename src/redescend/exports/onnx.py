"""`to_onnx`: convert a model to an ONNX graph with the same predictions, in double precision."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from redescend import __version__
from redescend.engines.engine import LinearForm
from redescend.errors import DataError, needs_extra
from redescend.files import replace_file
from redescend.numeric import Array

with needs_extra("Exports to ONNX need onnx", "onnx"):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

OPSET, ML_OPSET, IR_VERSION = 17, 3, 9  # versions that ONNX Runtime knows since 1.16

DOUBLE, TEXT, WHOLE = TensorProto.DOUBLE, TensorProto.STRING, TensorProto.INT64

REASONS = {"hashed": "its texts are hashed, which ONNX cannot do; ", "date": "dates cannot be exported; "}
"""Why columns with these encodings cannot be exported."""


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None) -> Any:
    """Convert a linear model to an ONNX graph that predicts the same.

    Parameters
    ----------
    model : StreamModel, RedescendingRegressor or RedescendingClassifier
        A stream model of numbers, booleans and texts, without keys; or an estimator of `redescend.sklearn`.
    path : path-like or None
        A file to write the graph to. None: it is only returned.

    Returns
    -------
    onnx.ModelProto
        Its inputs are the columns of a stream model, each of shape [records, 1], with doubles (booleans are 0 and 1,
        NaN is missing) or texts ('' is missing); or ``X`` of shape [records, features] of an estimator. Its outputs are
        ``prediction`` of shape [records, outputs]; or ``label`` of shape [records], ``margins`` of shape [records, 1]
        (two labels) or [records, labels], and ``probabilities`` of shape [records, labels], except of a self-tuning
        classifier, which calibrates them by more than margins.

    Raises
    ------
    DataError
        If the model is not linear, has keys, or has columns of dates or of hashed texts.

    Notes
    -----
    A text that the model has no column for counts as none of its values; `redescend` hashes such texts into a few
    columns, which ONNX cannot.

    Examples
    --------
    >>> from redescend.sklearn import RedescendingRegressor
    >>> graph = to_onnx(RedescendingRegressor(features="linear").fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]))
    >>> [one.name for one in graph.graph.input]
    ['X']
    """
    form = _read_form(model)
    graph = Graph()
    labels, with_probabilities = _read_labels(model)
    margins = _add_columns(graph, model.schema, form) if hasattr(model, "schema") else _add_table(graph, form)
    margins = graph.clip(margins, form.low, form.high)
    if labels is None:
        graph.add_output("prediction", margins, DOUBLE, [None, len(form.intercepts)])
    else:
        graph.add_labels(margins, labels, with_probabilities)
    exported = graph.finish(type(model).__name__, {"redescend": __version__})
    if path is not None:
        with replace_file(Path(path)) as file:
            file.write(exported.SerializeToString())
    return exported


def _read_form(model: Any) -> LinearForm:
    """The linear form of a stream model or an estimator; raises for models without one."""
    owner = type(model).__name__
    holder = getattr(model, "engine", model)
    if not hasattr(holder, "linear_form"):
        raise DataError(
            f"A {owner} cannot be exported; models of redescend.sklearn and of redescend.fit_stream without keys can."
        )
    try:
        return holder.linear_form()
    except AttributeError:
        raise DataError(
            f"This {owner} cannot be exported, because it is not linear; make it with features='linear', or with "
            "redescend fit --linear."
        ) from None


def _read_labels(model: Any) -> tuple[Array | None, bool]:
    """The labels that the model predicts, if any, and whether it has probabilities."""
    # A self-tuning classifier calibrates its probabilities by a belief, which the graph does not have.
    if hasattr(model, "schema"):
        if len(model.schema.labels) == 1:
            raise DataError("The model cannot be exported, because it has seen only one label.")
        return (model.schema.label_values, model.belief is None) if model.schema.classifies else (None, False)
    has_transform = hasattr(model, "predict_proba") and model.get_params()["transform"] is not None
    return getattr(model, "classes_", None), has_transform


def _add_table(graph: Graph, form: LinearForm) -> str:
    """The predictions of an estimator, for a table without missing values."""
    X = graph.add_input("X", DOUBLE, form.coefficients.shape[1])
    product = graph.apply("MatMul", X, graph.constant(form.coefficients.T))
    return graph.apply("Add", product, graph.constant(form.intercepts[None, :]))


def _add_columns(graph: Graph, schema: Any, form: LinearForm) -> str:
    """The predictions of a stream model: an input for each column."""
    terms = [graph.constant(form.intercepts[None, :])]
    numbers: list[str] = []
    places: list[int] = []
    missing_elsewhere: list[str] = []
    for feature, span in zip(schema.features, schema.spans, strict=True):
        if feature.lag:
            raise DataError("The model cannot be exported, because it has lags, which look back at earlier records.")
        if feature.how in ("number", "boolean"):
            value = graph.add_input(feature.name, DOUBLE, 1)
            missing = graph.apply("IsNaN", value)
            centre = graph.constant(form.centres[span.start : span.start + 1][None, :])
            numbers.append(graph.apply("Where", missing, centre, value))
            places.append(span.start)
        elif feature.how == "levels":
            term, missing = _add_texts(graph, feature, form.coefficients[:, span.start :])
            terms.append(term)
        else:
            raise DataError(
                f"The model cannot be exported, because of column '{feature.name}': {REASONS.get(feature.how, '')}"
                "fit a model that ignores this column."
            )
        if feature.missing:
            numbers.append(graph.apply("Cast", missing, to=DOUBLE))
            places.append(span.stop - 1)
        else:
            missing_elsewhere.append(missing)
    if missing_elsewhere:
        together = missing_elsewhere[0]
        for one in missing_elsewhere[1:]:
            together = graph.apply("Or", together, one)
        numbers.append(graph.apply("Cast", together, to=DOUBLE))
        places.append(schema.dim - 1)
    table = graph.apply("Concat", *numbers, axis=1)
    terms.append(graph.apply("MatMul", table, graph.constant(form.coefficients[:, places].T)))
    return graph.sum_all(terms)


def _add_texts(graph: Graph, feature: Any, coefficients: Array) -> tuple[str, str]:
    """The contribution of the texts of a column to each output, and which of them are missing."""
    count = len(feature.levels)
    values = graph.add_input(feature.name, TEXT, 1)
    keys = [*feature.levels, ""] if "" not in feature.levels else feature.levels
    numbers = {"values_int64s": list(range(len(keys))), "default_int64": count + 1}
    place = graph.apply("LabelEncoder", values, ml=True, keys_strings=keys, **numbers)
    table = np.zeros((count + 2, len(coefficients)))  # behind the levels: missing, and any other text
    table[:count] = coefficients[:, :count].T
    term = graph.apply("Gather", graph.constant(table), graph.apply("Squeeze", place, graph.constant(np.array([1]))))
    return term, graph.apply("Equal", place, graph.constant(np.array(count)))


class Graph:
    """Nodes in order of addition; each operator returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def _new_name(self) -> str:
        return f"_{len(self.nodes) + len(self.constants)}"

    def constant(self, values: Any) -> str:
        """A constant of numbers or booleans; floats are doubles."""
        name = self._new_name()
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def apply(self, operator: str, *arguments: str, ml: bool = False, **attributes: Any) -> str:
        """Add an operator, with `ml` one of those for machine learning."""
        name = self._new_name()
        domain = "ai.onnx.ml" if ml else ""
        self.nodes.append(helper.make_node(operator, list(arguments), [name], domain=domain, **attributes))
        return name

    def add_input(self, name: str, kind: int, width: int) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, [None, width]))
        return name

    def add_output(self, name: str, value: str, kind: int, shape: Sequence[int | None]) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))

    # --- shared parts of models ---

    def clip(self, value: str, low: Array, high: Array) -> str:
        """Clip every column to its range."""
        if np.isfinite(low).any():
            value = self.apply("Max", value, self.constant(low[None, :]))
        if np.isfinite(high).any():
            value = self.apply("Min", value, self.constant(high[None, :]))
        return value

    def sum_all(self, values: Sequence[str]) -> str:
        total = values[0]
        for value in values[1:]:
            total = self.apply("Add", total, value)
        return total

    def add_labels(self, margins: str, labels: Array, with_probabilities: bool) -> None:
        """The outputs for labels, from one margin for two labels or a margin for each of more."""
        if len(labels) == 2:
            place = self.apply("Cast", self.apply("Greater", margins, self.constant(0.0)), to=WHOLE)
            place = self.apply("Squeeze", place, self.constant(np.array([1])))
            both = self.apply("Concat", self.apply("Neg", margins), margins, axis=1)
            chances = self.apply("Sigmoid", both)
        else:
            place = self.apply("ArgMax", margins, axis=1, keepdims=0)
            chances = self.apply("Softmax", margins, axis=1)
        if labels.dtype.kind in "biu":
            values, kind = labels.astype(np.int64), WHOLE
        elif labels.dtype.kind == "f":
            values, kind = labels.astype(np.float64), DOUBLE
        else:
            values, kind = np.array([str(label) for label in labels], dtype=object), TEXT
        self.add_output("label", self.apply("Gather", self.constant(values), place), kind, [None])
        self.add_output("margins", margins, DOUBLE, [None, len(labels) if len(labels) > 2 else 1])
        if with_probabilities:
            self.add_output("probabilities", chances, DOUBLE, [None, len(labels)])

    def finish(self, name: str, properties: dict[str, str]) -> Any:
        """The model, checked."""
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="redescend", ir_version=IR_VERSION)
        helper.set_model_props(model, properties)
        onnx.checker.check_model(model)
        return model
