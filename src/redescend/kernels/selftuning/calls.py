"""Calls of the compiled loops from Python: the settings of a loss, and arguments that are made once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof

from redescend.kernels import layout as table
from redescend.kernels.layout import Table
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.layout import INSENSITIVE, LABELS, QUANTILE, SQUARED, Config, Covariance, Loss
from redescend.kernels.selftuning.tables import Models, Outcomes, learn
from redescend.losses import linear
from redescend.losses.linear import LinearLoss
from redescend.numeric import Array
from redescend.parameters import bad_parameter

FAMILIES: dict[int, Any] = {
    linear.SQUARED: lambda c: Loss(SQUARED, 0.0),
    linear.ABSOLUTE: lambda c: Loss(QUANTILE, 0.5),
    linear.PINBALL: lambda c: Loss(QUANTILE, c),
    linear.EPSILON_INSENSITIVE: lambda c: Loss(INSENSITIVE, c),
    linear.LOGISTIC: lambda c: Loss(LABELS, 0.0),
    linear.HINGE: lambda c: Loss(LABELS, 1.0),
}

EMPTY, NO_ACTIONS = np.empty((0, 0)), np.empty((0, 0, 0))
FIRST, ONE = np.zeros(1, np.int64), np.array([0, 1])


def make_config(
    owner: str,
    loss: LinearLoss,
    dim: int,
    order: int,
    *,
    missing: bool = False,
    intercept: bool = False,
    limited: bool = True,
    offset: int = 0,
) -> Config:
    """The settings of the compiled loops; raises if there is no likelihood for the loss."""
    if loss.kind not in FAMILIES:
        raise bad_parameter(owner, "loss", "a loss with a likelihood in kernels/selftuning/calls.py", loss)
    c, length = float(loss.setting), layout.row_size(dim, order)
    family, covariance = FAMILIES[loss.kind](c), Covariance(order, dim)
    if family.family not in (SQUARED, QUANTILE, INSENSITIVE, LABELS):
        raise ValueError(f"{family.family} is no family of kernels/selftuning/layout.py.")
    # Numbers pass from part to part more easily than booleans.
    flags = int(missing), int(intercept), int(limited)
    return Config(family, covariance, float(loss.l2), *flags, loss.kind, c, offset, length)


def compile_for(kernel: Any, *arguments: Any) -> Any:
    """The compiled function for arguments of these types, which Python calls faster than the dispatcher."""
    return kernel.compile(tuple(typeof(argument) for argument in arguments))


def read_actions(memory: Array, config: Config, outputs: int, dim: int) -> Array:
    """The actions of the outputs in one row of memory, in the units of the caller: what a row of weight 0 is told."""
    rows = Table(np.zeros((1, dim)), np.ones((outputs, 1)), np.zeros(1))
    actions, told = np.empty((outputs, 1, config.covariance.dim)), np.empty((outputs, 1))
    out = Outcomes(told, told, EMPTY, actions, EMPTY, EMPTY, EMPTY)
    learn(Models(memory, ONE, FIRST), rows, config, out, new_work(config))
    return actions[:, 0]


def judge(memory: Array, X: Array, Y: Array, config: Config) -> Array:
    """What `Outcomes.judged` says of records, by the states in the first row of memory; nothing is learned."""
    out = np.empty((2 * len(Y), len(X)))
    models = Models(memory, np.array([0, len(X)]), FIRST)
    outcomes = Outcomes(EMPTY, EMPTY, EMPTY, NO_ACTIONS, EMPTY, out, EMPTY)
    learn(models, Table(X, Y, np.zeros(len(X))), config, outcomes, new_work(config))
    return out


def new_work(config: Config) -> Array:
    """Buffers of a round."""
    return np.zeros(layout.work_size(config.covariance.dim))


class Caller:
    """The compiled round of one output, with a record that is written in place: `x`, `y` and `sample_weight`.

    `prediction` is what was predicted for it before it was learned from.
    """

    def __init__(self, config: Config, row: Array) -> None:
        dim = config.covariance.dim
        self.record, self.sample_weight, self.outcome = np.zeros(1 + dim), np.ones(1), np.zeros(2)
        self.y, self.x = self.record[:1], self.record[1:]
        self._config, self._row, self._work = config, row, new_work(config)
        self.prediction = np.zeros((1, 1))
        records = Table(self.x.reshape(1, dim), self.y.reshape(1, 1), self.sample_weight)
        weights, losses = self.outcome[1:].reshape(1, 1), self.outcome[:1].reshape(1, 1)
        out = Outcomes(weights, self.prediction, losses, NO_ACTIONS, EMPTY, EMPTY, EMPTY)
        self._arguments = Models(row.reshape(1, -1), ONE, FIRST), records, config, out, self._work
        self._learn: Any = None

    def learn(self) -> bool:
        """Learn from the record; returns False, and changes nothing, if it is not finite."""
        if self._learn is None:
            self._learn = compile_for(learn, *self._arguments)
        return bool(self._learn(*self._arguments))

    def predict(self) -> float:
        """The prediction for the record, NaN if it is not finite; nothing is learned."""
        before, self.sample_weight[0], self.y[0] = self.sample_weight[0], 0.0, 1.0
        told = self.learn()
        self.sample_weight[0] = before
        return float(self.prediction[0, 0]) if told else np.nan

    def clean_probability(self) -> float:
        """The probability that the record is clean; nothing is learned. NaN if the record is not finite."""
        models, records, config, _, _ = self._arguments
        judged = judge(models.memory, records.X, records.Y, config)
        return float(judged[0, 0]) if np.isfinite(self.record).all() else np.nan

    def learn_rows(self, X: Array, y: Array, out: table.Outcomes) -> int:
        """Learn from rows in turn; returns the number of rows before the first that is not finite."""
        count = len(y)
        predictions = out.predictions if len(out.predictions) else np.empty(count)
        rows = Table(X, y.reshape(1, -1), np.ones(count))
        written = Outcomes(
            *(out.weights.reshape(1, -1), predictions.reshape(1, -1), out.losses.reshape(1, -1)),
            *(out.actions.reshape(1, len(out.actions), X.shape[1]), EMPTY, EMPTY, EMPTY),
        )
        models = Models(self._arguments[0].memory, np.array([0, count]), FIRST)
        return int(learn(models, rows, self._config, written, self._work))

    def action(self) -> Array:
        """The action, in the units of the caller."""
        return read_actions(self._arguments[0].memory, self._config, 1, self.x.size)[0]
