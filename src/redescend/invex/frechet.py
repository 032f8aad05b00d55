r"""The Fréchet mean of points of a space: of a batch, of a stream, and of a stream with outliers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from redescend import gates, steps
from redescend.invex.losses import SquaredDistance
from redescend.invex.manifold_descent import GatedLearner, Move
from redescend.invex.noise_posterior import DistanceDensities, NoisePosterior
from redescend.invex.space import Geodesic, Space
from redescend.learners.learner import Round, read_state
from redescend.numeric import Array
from redescend.parameters import check_instance
from redescend.state import ArraySpec, Stateful, require

ITERATIONS, TOLERANCE = 1_000, 1e-13

MEMORIES = np.array([np.inf, 32.0, 4.0])  # number of records that each follower remembers
START = 0.5  # initial share of the start: the first record may be an outlier
SHARE = 1e-3  # the fixed share of the weight that followers get in each round
LUCK = 30.0  # the largest factor that a member gains on the leader by one record
TIED = 1.0 - 1e-9  # members with this part of the leader's share are as good as the leader
FLOOR = 2.0 * SHARE / len(MEMORIES)  # a member with a smaller share is replaced by the leader


def frechet_mean(space: Space, points: Iterable[Any]) -> Array:
    r"""Compute the point with the least mean squared distance.

    Gradient descent with the step 1/ζ, which cannot overshoot.

    Parameters
    ----------
    space : Space
        Such as ``SPD(5)``.
    points : iterable of points
        At least one.

    Returns
    -------
    array
        The mean.

    Examples
    --------
    >>> from redescend import invex
    >>> frechet_mean(invex.SPD(1), [[[1.0]], [[4.0]], [[16.0]]]).round(12)
    array([[4.]])
    """
    stack = SquaredDistance(space).check(list(points))
    mean = stack[0]
    for _ in range(ITERATIONS):
        pulls = [space.log(mean, point) for point in stack]
        widest = max(space.norm(mean, pull) for pull in pulls)
        pull = sum(pulls, np.zeros(space.shape)) / len(pulls)
        if space.norm(mean, pull) <= TOLERANCE * widest:
            break
        mean = space.exp(mean, pull / space.distortion(widest))
    return mean


class FrechetMean(GatedLearner):
    r"""The running Fréchet mean with a gate: θ moves w/Σw of the way to every record.

    With weights of 1 these are the steps 1/(μt) of a strongly convex loss with μ = 1.

    Parameters
    ----------
    space : Space
        Space of the records, such as ``SPD(5)``.
    gate : Gate, default=Always()
        Weighs a record by f = Δ²/2. ``Robust(transforms.Learn(a, b))`` is LEARN with constants; see
        `RobustFrechetMean` for a gate without constants.
    start : point, optional
        The action before the first record; it has no weight. By default the origin of the space.

    Examples
    --------
    >>> from redescend import invex
    >>> mean = FrechetMean(invex.SPD(1))
    >>> [mean.update([[x]]).weight for x in (1.0, 4.0, 16.0)]
    [1.0, 1.0, 1.0]
    >>> mean.theta.round(12)
    array([[4.]])
    """

    def __init__(self, space: Space, *, gate: gates.Gate = gates.Always(), start: Any = None) -> None:  # noqa: B008
        loss = SquaredDistance(space)
        first = space.origin if start is None else space.check("start", start)
        super().__init__(loss, gate, steps.StronglyConvex(1.0), first)
        self._total_weight = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space}, {self.gate})"

    def advance(self, record: Any) -> Move:
        point = self.space.check("The record", record)
        distance, at = self.space.geodesic(self._theta, point)
        f = 0.5 * distance**2
        weight = self._schedule.weigh(f, distance)
        total = self._total_weight + weight
        if weight > 0.0 and distance > 0.0:
            self._theta = at(weight / total)
        self._total_weight = total
        return self._schedule.finish(f, weight, distance, 1.0 / total if total > 0.0 else 0.0)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "total_weight": self._total_weight}

    def restore(self, state: dict[str, Any]) -> None:
        self._total_weight = float(self._read_state(state, ArraySpec("total_weight", low=0.0))["total_weight"])


class RobustFrechetMean(Stateful):
    r"""An online Fréchet mean that outliers cannot move, without constants to tune.

    LEARN over squared distances, with a scale inferred from the stream and steps that follow drift. `NoisePosterior`
    computes the probability that a record is clean. Three followers with long, medium and short memories move part of
    the way to every record, in proportion to that probability; the start is a fourth member at first. Bayes' rule with
    a fixed share weighs the members, and their mean along geodesics is played. A record counts by its weight over the
    square of the distance that was typical when it came, so records seen before the scale was known count little.

    The weights depend only on ratios of distances.

    Parameters
    ----------
    space : Space
        Space of the records, such as ``SPD(5)``.
    start : point, optional
        The action before the first record; by default the origin of the space.

    Examples
    --------
    >>> from redescend import invex
    >>> space, generator = invex.SPD(3), np.random.default_rng(0)
    >>> mean = RobustFrechetMean(space)
    >>> for t in range(300):
    ...     played = mean.update((100.0 if t % 10 == 9 else 1.0) * space.random(generator, 0.1))
    >>> space.distance(mean.theta, space.origin) < 0.05, played.weight < 1e-3
    (True, True)
    """

    def __init__(self, space: Space, *, start: Any = None) -> None:
        self.space = check_instance(type(self).__name__, "space", space, Space, "a space, such as SPD(5)")
        first = space.origin if start is None else space.check("start", start)
        followers = len(MEMORIES)
        self._points = [first] * (followers + 1)
        self._shares = np.array([(1.0 - START) / followers] * followers + [START])
        self._counts = np.zeros(followers)
        self._noise = NoisePosterior(space.dim)
        self._theta: Array = first
        self.rounds = 0

    @property
    def typical(self) -> float:
        """Typical distance of clean records from the mean; NaN before the first record away from it."""
        return self._noise.typical

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space})"

    @property
    def theta(self) -> Array:
        """A copy of the current action."""
        return self._theta.copy()

    def update(self, record: Any) -> Round:
        """Learn from one record.

        Parameters
        ----------
        record : point
            A point of the space.

        Returns
        -------
        Round
            The loss of the action on this record, and the probability that the record is clean.
        """
        point = self.space.check("The record", record)
        geodesics = [self.space.geodesic(member, point) for member in self._points]
        played = self.space.distance(self._theta, point)
        self.rounds += 1
        distances = np.array([*(geodesic.length for geodesic in geodesics), played])
        if not distances.any():
            return Round(0.0, 1.0)
        densities = self._noise.compute_densities(distances)
        weights = self._noise.weigh(densities)
        self._update_shares(densities)
        if distances[self._leader] > 0.0:
            # Not the mean's distances, which are wider while members disagree.
            self._noise.learn(densities, self._leader)
        self._move_followers(geodesics, weights)
        self._theta = self._mean_of_members()
        return Round(0.5 * played**2, float(weights[-1]))

    @property
    def _leader(self) -> int:
        return int((self._shares >= TIED * self._shares.max()).argmax())

    def _update_shares(self, densities: DistanceDensities) -> None:
        """Bayes' rule with a fixed share for followers; none gains more than `LUCK` on the leader by one record.

        The start gets no fixed share, so that later outliers near it cannot bring it back.
        """
        gains = self._noise.likelihood_ratios(densities, self._leader)[:-1]
        shares = self._shares * np.minimum(gains, LUCK)
        shares *= (1.0 - SHARE) / shares.sum()
        shares[:-1] += SHARE / len(MEMORIES)
        self._shares = shares

    def _move_followers(self, geodesics: list[Geodesic], weights: Array) -> None:
        worth = self._noise.typical**-2
        leader = self._leader
        for i, memory in enumerate(MEMORIES):
            gained = weights[i] * worth
            self._counts[i] = min(self._counts[i] + gained, memory * worth)
            if gained > 0.0:
                self._points[i] = geodesics[i].at(gained / self._counts[i])
        for i, memory in enumerate(MEMORIES):
            if self._shares[i] < FLOOR:
                self._points[i] = self._points[leader]
                count = self._counts[leader] if leader < len(MEMORIES) else 0.0
                self._counts[i] = min(count, memory * worth)

    def _mean_of_members(self) -> Array:
        """The weighted mean along geodesics of the members above the floor, starting at the leader."""
        order = np.argsort(-self._shares, kind="stable")
        mean, total = self._points[order[0]], self._shares[order[0]]
        for i in order[1:]:
            if self._shares[i] >= FLOOR:
                total += self._shares[i]
                mean = self.space.between(mean, self._points[i], self._shares[i] / total)
        return mean

    def state(self) -> dict[str, Any]:
        return {
            "learner": repr(self),
            "points": np.array(self._points),
            "shares": self._shares.copy(),
            "counts": self._counts.copy(),
            "theta": self.theta,
            "rounds": self.rounds,
            "cells": self._noise.cells.copy(),
            "lowest": self._noise.lowest if self._noise.ready else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        members, lowest = len(MEMORIES) + 1, state.get("lowest") if isinstance(state, dict) else None
        specs = (
            ArraySpec("points", (members, *self.space.shape)),
            ArraySpec("shares", (members,), kind="share"),
            ArraySpec("counts", (len(MEMORIES),), low=0.0),
            ArraySpec("theta", self.space.shape),
            ArraySpec("rounds", kind="count"),
            ArraySpec("cells", self._noise.cells.shape, kind="share"),
        )
        arrays = read_state(specs, state, repr(self), others=["lowest"])
        require(lowest is None or math.isfinite(lowest), repr(self), f"a 'lowest' of {lowest}")
        points = [self.space.check("A point of the state", point) for point in arrays["points"]]
        self._theta = self.space.check("The 'theta' of the state", arrays["theta"])
        self._points, self._shares, self._counts = points, arrays["shares"], arrays["counts"]
        self.rounds, self._noise.cells = int(arrays["rounds"]), arrays["cells"]
        self._noise.lowest = math.nan if lowest is None else float(lowest)
