"""ONNX graphs in double precision: a few operators, and the shared parts of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from redescend.errors import needs_extra
from redescend.numeric import Array

with needs_extra("Exports to ONNX need onnx", "onnx"):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

OPSET, ML_OPSET, IR_VERSION = 17, 3, 9
"""Versions that ONNX Runtime knows since 1.16."""

DOUBLE, TEXT, WHOLE = TensorProto.DOUBLE, TensorProto.STRING, TensorProto.INT64


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
