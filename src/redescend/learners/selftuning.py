r"""LEARN that learns its own scale and step: nothing to tune."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from redescend import losses
from redescend.kernels.layout import Outcomes
from redescend.kernels.selftuning import layout, rounds, single
from redescend.kernels.selftuning.novelty import NEWNESS
from redescend.learners.base import Ensemble, Round, read_state
from redescend.losses import likelihood
from redescend.numeric import Array
from redescend.parameters import bad_parameter, check_instance
from redescend.state import ArraySpec

RATES = (0.01, 0.05, 0.1, 0.17, 0.25, 0.33)
BELIEFS = (0.5, 0.1, 0.1, 0.1, 0.1, 0.1)
"""Shares of outliers that a cell may expect, and the prior of each."""

OCTAVES, LABEL_OCTAVES = 24, range(-2, 7)
"""Scales are powers of 2: a window that floats with the residuals, or for labels a fixed one."""

DRIFT, LABEL_DRIFT = 1e-4, 1e-5
"""The share of the prior that is mixed into the noise posterior in each round."""

INGREDIENTS = (
    "gate",
    "zero",
    "snapshots",
    "copying",
    "steps",
    "diagonal",
    "rates",
    "scales",
    "length",
    "temperature",
    "novelty",
)

_COUNT = ArraySpec("scalars", kind="count")

STATE_SPECS = (
    ArraySpec("thetas", ("members", "dim")),
    ArraySpec("weights", ("members",), kind="share"),
    ArraySpec("cells", ("scales", "rates"), kind="share"),
    ArraySpec("norms", (layout.NORMS,), low=0.0),
    ArraySpec("squares", ("dim",), low=0.0),
    ArraySpec("counts", ("dim",), low=0.0),
    ArraySpec("news", (2, "dim"), low=0.0, parts={NEWNESS: ArraySpec("news", low=0.0, high=1.0)}),
    ArraySpec("P", ("second", "second")),
    ArraySpec(
        "scalars",
        (layout.SCALARS,),
        low=0.0,
        parts={
            layout.ROUNDS: _COUNT,
            layout.SEEN: _COUNT,
            layout.SLOT: ArraySpec("scalars", kind="index", high=2),
            layout.TEMPERATURE: ArraySpec("scalars", low=1.0),
            layout.AGE: _COUNT,
            layout.NEW: ArraySpec("scalars", low=0.0, high=1.0),
        },
    ),
)
"""The arrays of the state, in the order of `layout.State`."""


class SelfTuning(Ensemble):
    r"""LEARN with nothing to tune: it learns the scale of clean records, the share of outliers and the step size.

    A posterior over LEARN losses, each with a scale s of clean records and a share ε of outliers, gives the probability
    that a record is clean: its weight. Followers take implicit steps behind that gate, from short to long ones, with
    one length for all features and with one for each; zero and two snapshots stay fixed; Bayes' rule with a fixed share
    decides how much of each is played. After a jump a follower leads, after a burst of outliers a snapshot does.

    Without l2, multiplying all features or all targets by a constant changes no weight.

    Parameters
    ----------
    dim : int
        Number of features.
    loss : LinearLoss
        A loss of the prediction, such as ``losses.Squared()`` or ``losses.Hinge(l2=1e-4)``.
    order : 1 or 2
        2 adds a second-order follower: O(d²) a round instead of O(d).
    without : iterable of str
        Ingredients to leave out, for ablations: gate, zero, snapshots, copying, steps, diagonal, rates, scales, length,
        temperature and novelty.

    Examples
    --------
    >>> from redescend import adversaries, play, streams
    >>> stream = adversaries.UniformResponse(0, 1).corrupt(streams.ridge(2000, seed=0, dim=5), k=200, seed=1)
    >>> trace = play(SelfTuning(5, loss=losses.Squared()), stream)
    >>> suspects = np.argsort(trace.weights[200:])[:150] + 200
    >>> bool(np.mean(~stream.clean[suspects]) > 0.9)
    True
    """

    order: int
    loss: losses.LinearLoss

    def __init__(
        self,
        dim: int,
        *,
        loss: losses.LinearLoss,
        order: Literal[1, 2] = 1,
        without: Iterable[str] = (),
    ) -> None:
        super().__init__(dim, loss)
        name = type(self).__name__
        check_instance(name, "loss", loss, losses.LinearLoss, "a loss of the prediction, such as Squared()")
        likelihood.check_likelihood(name, loss)
        if order not in (1, 2) or isinstance(order, bool):
            raise bad_parameter(name, "order", "1 or 2", order)
        self.order = int(order)
        if isinstance(without, str) or not isinstance(without, Iterable):
            raise bad_parameter(name, "without", f"a list of names among {', '.join(INGREDIENTS)}", without)
        for ingredient in (left_out := list(without)):
            if ingredient not in INGREDIENTS:
                raise bad_parameter(name, "without", f"names among {', '.join(INGREDIENTS)}", ingredient)
        self.without = tuple(sorted(set(left_out)))
        self._settings = self._make_settings()
        self._prior, self._rates = self._make_prior()
        self._arrays = self._make_arrays()

    def _make_settings(self) -> Array:
        numbers = np.ones(layout.SETTINGS)
        numbers[[layout.LOSS, layout.LOSS_C, layout.L2]] = self.loss.kind, self.loss.setting, self.loss.l2
        numbers[layout.LABELS] = self.loss.margin
        numbers[layout.SHARE_CELLS] = LABEL_DRIFT if self.loss.margin else DRIFT
        switches = {
            "gate": layout.GATED,
            "copying": layout.COPYING,
            "length": layout.TEMPERED,
            "temperature": layout.WARMED,
            "novelty": layout.CURIOUS,
        }
        for ingredient, place in switches.items():
            numbers[place] = ingredient not in self.without
        return numbers

    def _make_prior(self) -> tuple[Array, Array]:
        """The prior of the noise posterior, a row for each scale and a column for each rate."""
        rates, beliefs = (
            (np.array(RATES), np.array(BELIEFS)) if "rates" not in self.without else (np.array([0.1]), np.ones(1))
        )
        scales = np.ones(len(LABEL_OCTAVES) if self.loss.margin else OCTAVES)
        if "scales" in self.without and self.loss.margin:
            scales[LABEL_OCTAVES.index(0)] = 1e12
        return np.outer(scales / scales.sum(), beliefs), rates

    def _make_arrays(self) -> dict[str, Array]:
        followers, second = 2 * layout.FOLLOWERS, self.order - 1
        members = followers + second + 3
        weights = np.ones(members)
        weights[-2:] = 0.0
        if "zero" in self.without:
            weights[followers + second] = 0.0
        if "diagonal" in self.without:
            weights[layout.FOLLOWERS : followers] = 0.0
        if "steps" in self.without:
            weights[[i for i in range(followers) if i % layout.FOLLOWERS != 1]] = 0.0
        scalars = np.zeros(layout.SCALARS)
        scalars[[layout.DUE, layout.TEMPERATURE, layout.NEW]] = layout.FIRST_SNAPSHOT, 1.0, 1.0
        if "snapshots" in self.without:
            scalars[layout.DUE] = 1e300
        if self.loss.margin:
            scalars[layout.LOWEST] = 2.0 ** LABEL_OCTAVES[0]
        size = self.dim if second else 0
        return {
            "thetas": np.zeros((members, self.dim)),
            "weights": weights / weights.sum(),
            "cells": self._prior.copy(),
            "norms": np.zeros(layout.NORMS),
            "squares": np.zeros(self.dim),
            "counts": np.zeros(self.dim),
            "news": np.outer([1.0, 0.0], np.ones(self.dim)),
            "P": np.zeros((size, size)),
            "scalars": scalars,
        }

    def __repr__(self) -> str:
        without = f", without={self.without}" if self.without else ""
        return f"{type(self).__name__}({self.dim}, {self.loss}, order={self.order}{without})"

    @property
    def kernel_state(self) -> layout.State:
        """The arrays of its state that the compiled loop changes; not copies."""
        return layout.State(*self._arrays.values())

    @property
    def kernel_config(self) -> layout.Config:
        """The settings, prior and rates that the compiled loop takes."""
        return layout.Config(self._settings, self._prior, self._rates)

    def move_to_row(self) -> Array:
        """Move the state to one row of floats for `kernels.selftuning.single`; the learner keeps using it."""
        row, self._arrays = single.in_one_row(self._arrays, *self.kernel_config)
        return row

    @property
    def rounds(self) -> int:
        return int(self._arrays["scalars"][layout.ROUNDS])

    @property
    def theta(self) -> Array:
        return rounds.action(self._arrays["thetas"], self._arrays["weights"], self._arrays["scalars"])

    def skip(self) -> None:
        self._arrays["scalars"][layout.ROUNDS] += 1

    def _play(self, X: Array, y: Array, out: Outcomes) -> int:
        rows, config = (X, y, np.ones(len(y))), (self._settings, self._prior, self._rates)
        return rounds.run_tuples(rows, tuple(self._arrays.values()), config, tuple(out))

    def _play_safely(self, x: Array, y: float) -> Round:
        """Count a record that is too large to be clean; it has weight 0."""
        self.skip()
        return Round(self.loss.value(self.theta, x, y), 0.0)

    def _read_state(self, state: dict[str, Any]) -> dict[str, Array]:
        members, _ = self._arrays["thetas"].shape
        scales, rates = self._prior.shape
        size = len(self._arrays["P"])
        return read_state(
            STATE_SPECS, state, repr(self), dim=self.dim, members=members, scales=scales, rates=rates, second=size
        )
