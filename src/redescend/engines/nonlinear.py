"""The non-linear engine: the linear one, rolling forests beside it, a stack of their predictions, and a mixture."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NoReturn

import numpy as np

from redescend import losses
from redescend.engines import labels
from redescend.engines.engine import DENSE_ROWS, Engine, RowOutcomes, Shape
from redescend.engines.selftuning import SelfTuningEngine
from redescend.engines.uncertainty import leave_out_logits
from redescend.errors import ParameterError
from redescend.kernels.forest import layout, mixture, rounds
from redescend.kernels.forest.growing import SHRINKAGE
from redescend.kernels.forest.layout import BUILT, HAVE, State
from redescend.kernels.layout import Table
from redescend.kernels.link import read_link
from redescend.kernels.tabular.fleet import Runs
from redescend.kernels.tabular.standardize import all_finite
from redescend.numeric import Array
from redescend.state import read_arrays, require

MEMBERS = ("linear", "trees", "linear + trees", "stack")  # names of the members, in the order of their weights

LINEAR = (1.0, 0.0, 1.0)  # which of the predictions that the stack learns from have the linear one as a term

SMALLEST = 1e-3
"""The least size of a residual, in medians of those that are not 0: no logarithm is infinite."""

EQUAL = 1e-9
"""A prediction that differs from its target by less than this share of it is exact."""

NO_COEFFICIENTS = (
    "A model with trees has no coefficients, because it need not be linear. Make it with features='linear' to get them."
)

_learn: Any = rounds.learn
_predict: Any = rounds.predict
_mix: Any = mixture.mix


class NonlinearEngine(Engine):
    """`SelfTuningEngine` with two forests of rolling boosted trees and a stack for every output.

    Each member, among them the linear one, predicts a record before it learns from it; the prediction is their mean,
    weighted by Bayes' rule. The weight of a record is that of the stack. The loss is squared or logistic, and `order`
    that of the linear member. NaN may be a `missing` value: for trees it is below all others.
    """

    def __init__(
        self, dim: int, outputs: int, loss: losses.LinearLoss, order: Literal[1, 2], missing: bool = False
    ) -> None:
        super().__init__(Shape(dim, outputs, loss))
        self.order, self.missing = order, missing
        self.linear = SelfTuningEngine(Shape(dim, outputs, loss), order, missing)
        self.link = labels.make_link(outputs, loss)
        self.begin_pass()

    def begin_pass(self) -> None:
        """Reset forests, stacks and weights: trees would predict the noise of rows that they have seen."""
        self.stacks = [SelfTuningEngine(Shape(rounds.STACKED, 1, self.loss), 2) for _ in range(self.outputs)]
        self.forests = layout.new_state(self.dim, self.outputs, self.loss.margin)
        self.mixture = mixture.new_mixture(self.outputs)
        self._work: layout.Work | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_work": None}

    @property
    def row_count(self) -> int:
        return self.linear.row_count

    # --- learning ---

    def _learn_table(
        self, rows: Table, weights: Array, predictions: Array | None, *, unchecked: bool = False, first: int = 0
    ) -> bool:
        if unchecked and not all_finite(rows.X, rows.Y):
            return False
        linear, counts = self.linear.learn_counted(rows)
        members = self._grow_beside(rows, linear, weights)
        self._weigh(members, rows, counts, np.empty(rows.Y.shape) if predictions is None else predictions)
        return True

    def _grow_beside(self, rows: Table, linear: RowOutcomes, weights: Array, seen: Array | None = None) -> Array:
        """Let forests and stacks learn from rows that the linear member has predicted.

        Writes the weights of rows; returns what members predict before, as `predict_members`. If the linear member
        predicted rows without them, `seen` are its predictions with them, of which the stack learns: what a model says
        without a row is the higher the lower its target is, and the stack would learn to read the target from it.
        """
        X, Y, sample_weight = rows
        written = np.empty((self.outputs, len(X), rounds.STACKED))
        judged = rounds.Rows(X, Y, sample_weight, linear.predictions, linear.weights)
        row = self._learn_forests(judged, 0, written)
        while row < len(X):
            self.forests, self._work = layout.grow_state(self.forests), None
            row = self._learn_forests(judged, row, written)
        last = np.empty(Y.shape)
        for k, stack in enumerate(self.stacks):
            told = written[k] if seen is None else written[k] + np.outer(seen[k] - linear.predictions[k], LINEAR)
            outcome = stack.learn_rounds(told, Y[k : k + 1], sample_weight)
            last[k] = outcome.predictions[0] if seen is None else stack.predict(written[k])[0]
            weights[k] = outcome.weights[0]
        return _join_members(written, last)

    def _weigh(self, members: Array, rows: Table, counts: Array, out: Array) -> None:
        """Weigh members by what they predict for rows, and learn the link; writes what both predict before each row."""
        _mix(self.mixture, members, rows.Y, rows.sample_weight, counts, self.loss.margin, out)
        labels.learn_scores(self.link, rows.Y, rows.sample_weight, out)

    def learn_packed(self, rows: Array, spans: Mapping[str, slice], indicators: Array, runs: Runs) -> NoReturn:
        raise ParameterError("Models of keys are linear: features must be 'linear'.")

    def packed_row_counts(self, rows: Array, spans: Mapping[str, slice]) -> NoReturn:
        raise ParameterError("Models of keys are linear: features must be 'linear'.")

    def _learn_forests(self, rows: rounds.Rows, first: int, written: Array) -> int:
        """Learn from rows until the capacity is exhausted; returns the next row."""
        if self._work is None:
            self._work = layout.new_work(self.forests)
        most = layout.most_records(self.dim, self.outputs, layout.count_leaves(self.loss.margin, self.outputs))
        return int(_learn(self.forests, rows, first, most, self.loss.margin, written, self._work))

    # --- predicting and scoring ---

    def _compute_coefficients(self) -> NoReturn:
        raise AttributeError(NO_COEFFICIENTS)

    def _centres(self) -> Array:
        return self.linear._centres()

    def predict_members(self, X: Array) -> Array:
        """The predictions of every member for the rows of a table, of shape (outputs, rows, members)."""
        X = np.require(X, np.float64, ["C", "A", "W"])
        written = self._predict_stack_inputs(X)
        last = [stack.predict(part) for stack, part in zip(self.stacks, written, strict=True)]
        return _join_members(written, np.concatenate(last))

    def predict(self, X: Any) -> Array:
        out = np.empty((self.outputs, X.shape[0]))
        for rows, table in _split_into_tables(X):
            out[:, rows] = self._mix_members(self.predict_members(table))
        return out

    def conclude(self, X: Array, Y: Array, sample_weight: Array, weights: Array | None = None) -> Array:
        """Grow the trees anew along a table that the linear member knows, weigh members by rows unseen by them, and
        predict all rows in this way.

        Trees are grown along the rows in this order and in the opposite one; those of the first stay. A row is
        predicted before it is learned from where it comes later, by trees that were grown on half of the others or
        more, and by the linear member without what the row has told: otherwise it would look better than it is, all the
        more the more features it has.
        """
        rows, written = _to_table(X, Y, sample_weight), np.zeros((2, *Y.shape))
        linear, seen, other = self._predict_linear_unseen(rows), self.linear.predict(X), copy.deepcopy(self)
        forward = self._regrow(rows, linear, written[0], seen)
        turned = _to_table(X[::-1], Y[:, ::-1], sample_weight[::-1])
        opposite = RowOutcomes(*(np.ascontiguousarray(part[:, ::-1]) for part in linear))
        backward = other._regrow(turned, opposite, written[1], seen[:, ::-1])[:, ::-1]
        earlier = 2 * np.arange(len(X)) < len(X)
        members = np.where(earlier[:, None], backward, forward)
        if weights is not None:
            weights[...] = np.where(earlier, written[1, :, ::-1], written[0])
        self._weigh(members, rows, self.linear.count_rows(X), np.empty(Y.shape))
        out = self._mix_members(members)
        # A difference in the last digits is a rounding error, not a residual.
        return out if self.loss.margin else np.where(np.abs(Y - out) <= EQUAL * np.abs(Y), Y, out)

    def predict_unseen(self, X: Array, Y: Array, sample_weight: Array) -> Array:
        return copy.deepcopy(self).conclude(X, Y, sample_weight)

    def _predict_linear_unseen(self, rows: Table) -> RowOutcomes:
        """What the linear member, which knows all rows, predicts for each of them without it, and their weights."""
        X, Y, sample_weight = rows
        predictions, believed = self.linear.predict_unseen(*rows), np.ascontiguousarray(self.linear.score(X, Y))
        if self.loss.margin:
            filled = np.where(np.isnan(X), self._centres(), X)
            predictions = leave_out_logits(filled, Y, predictions, sample_weight * believed)
        return RowOutcomes(predictions, believed)

    def _regrow(self, rows: Table, linear: RowOutcomes, weights: Array, seen: Array) -> Array:
        """Let new forests and stacks learn from rows, as `_grow_beside`."""
        self.begin_pass()
        return self._grow_beside(rows, linear, weights, seen)

    def _mix_members(self, members: Array) -> Array:
        return labels.apply_link(self.link, np.einsum("koi,ki->ko", members, self.mixture.played))

    def fit_sizes(self, X: Array, residuals: Array, sample_weight: Array) -> tuple[NonlinearEngine, Array]:
        """Learn the logarithm of the size of residuals around each row.

        Returns a model that predicts it for any row, without the records that it has learned from, and what is
        predicted for each row by trees that were grown without it.
        """
        sizes = np.minimum(np.abs(residuals), mixture.BOUND)
        known, engine = sizes[(sizes > 0.0) & (sample_weight > 0.0)], self.make_size_engine()
        if not len(known):
            return engine, np.zeros(len(X))
        logs = np.log(np.maximum(sizes, max(SMALLEST * float(np.median(known)), np.finfo(float).tiny)))[None]
        engine.linear.learn_rounds(X, logs, sample_weight)
        found = engine.conclude(X, logs, sample_weight)[0]
        engine._forget_records()
        return engine, found

    def make_size_engine(self) -> NonlinearEngine:
        """A new model of the sizes of residuals."""
        return NonlinearEngine(self.dim, 1, losses.Squared(), self.order, self.missing)

    def _forget_records(self) -> None:
        """Forget the stored records, which only growing trees and explanations need."""
        empty, trees = layout.new_state(self.dim, self.outputs), ("output", "feature", "threshold", "value", "scalar")
        self.forests = empty._replace(**{name: getattr(self.forests, name) for name in trees})
        self._work = None

    def member_weights(self) -> dict[str, Array]:
        """The weight that each member has in the prediction of every output."""
        return dict(zip(MEMBERS, self.mixture.played.T.copy(), strict=True))

    def _predict_stack_inputs(self, X: Array) -> Array:
        """The predictions that the stack combines; see `kernels.forest.rounds`."""
        out = np.empty((self.outputs, len(X), rounds.STACKED))
        linear = np.ascontiguousarray(self.linear.predict(X))
        _predict(self.forests, X, linear, self.loss.margin, out, rounds.new_leaves(self.forests))
        return out

    def contributions(self, X: Array) -> Array:
        """Compute the contribution of every feature to each prediction; the last column is a constant.

        Rows add up to the prediction before members are clipped to the range of believed targets.
        """
        X = np.require(X, np.float64, ["C", "A", "W"])
        known = zip(self.linear.contributions(X), self.predict_members(X), strict=True)
        parts = np.stack([self._contributions_before_link(X, k, *one) for k, one in enumerate(known)])
        if not len(self.link):
            return parts
        total = labels.apply_link(self.link, parts.reshape(self.outputs, -1), constant=0.0).reshape(parts.shape)
        total[:, :, -1] += read_link(self.link, self.outputs)["A"][:, -1:]
        return total

    def _contributions_before_link(self, X: Array, output: int, linear: Array, members: Array) -> Array:
        """The same of one output before the link; `members` are the predictions of its members."""
        trees, rest = (_explain_forest(self.forests, layout.FORESTS * output + i, X) for i in range(layout.FORESTS))
        trees[:, -1] += self.forests.output[layout.START, output]
        parts = np.stack([linear, trees, linear + rest])
        slopes, constant = self.stacks[output].coefficients()
        stack = np.einsum("i,inj->nj", slopes[0], parts)
        stack[:, -1] += constant[0]
        # Where the stack is clipped to the range of the others, it is one of them.
        *others, last = members.T
        for member, prediction in zip(parts, others, strict=True):
            stack = np.where((last == prediction)[:, None], member, stack)
        return np.einsum("i,inj->nj", self.mixture.played[output], [*parts, stack])

    def recent_records(self, most: int) -> Array:
        """At most this many of the last records that were learned from, spread over those that are stored."""
        stored = self.forests.X[: self.forests.clock[layout.HAVE]]
        return stored[:: max(1, -(-len(stored) // most))].copy()

    def score(self, X: Any, Y: Array) -> Array:
        out = np.ones(Y.shape)
        for rows, table in _split_into_tables(X):
            for k, part in enumerate(self._predict_stack_inputs(table)):
                out[k, rows] = self.stacks[k].score(part, np.ascontiguousarray(Y[k : k + 1, rows]))[0]
        return out

    def score_features(self, X: Any) -> Array:
        return self.linear.score_features(X)

    def scales(self) -> Array:
        return self.linear.scales()

    def estimate_noise(self) -> tuple[Array, Array]:
        """The scale of the noise and the share of outliers that the stack of every output assumes."""
        found = [stack.estimate_noise() for stack in self.stacks]
        return np.concatenate([scale for scale, _ in found]), np.concatenate([share for _, share in found])

    # --- persistence ---

    def state(self) -> dict[str, Any]:
        forests = {name: array.copy() for name, array in self.forests._asdict().items()}
        mixed = {name: array.copy() for name, array in self.mixture._asdict().items()}
        learned = {"linear": self.linear.state(), "stacks": [stack.state() for stack in self.stacks]}
        shape = {"dim": self.dim, "outputs": self.outputs}
        return shape | learned | {"forests": forests, "mixture": mixed, "link": self.link.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        owner = type(self).__name__
        parts = ("dim", "outputs", "linear", "stacks", "forests", "mixture")
        linked = read_arrays([labels.LINK], state, {"linked": len(self.link)}, owner, parts)["link"]
        labels.check_link(linked, self.outputs, owner)
        stacks = state["stacks"]
        require(isinstance(stacks, list) and len(stacks) == self.outputs, owner, "another number of stacks")
        stored: Any = state["forests"].get("X") if isinstance(state["forests"], dict) else None
        records = np.shape(stored)[0] if np.ndim(stored) else 0
        leaves = layout.count_leaves(self.loss.margin, self.outputs)
        require(records in layout.sizes(self.dim, self.outputs, leaves), owner, f"room for {records} records")
        dims = layout.dims_of(self.dim, self.outputs, records, leaves)
        forests = read_arrays(layout.SPECS, state["forests"], dims, owner)
        clock = forests["clock"]
        full = clock[layout.HAVE] == records
        require(full or clock[layout.NEXT] == clock[layout.HAVE], owner, "a gap in its records")
        require(clock[layout.SEEN] >= clock[layout.HAVE], owner, "more records than it has seen")
        edges = forests["edges"]
        require((edges[:, :-1] <= edges[:, 1:]).all(), owner, "edges of bins that are not sorted")
        bins = np.count_nonzero(edges < np.inf, axis=1)
        require((forests["code"] <= bins).all(), owner, "records in bins that have no edges")
        mixed = read_arrays(mixture.SPECS, state["mixture"], dims, owner)
        require((mixed["weight"].sum(axis=1) > 0.0).all(), owner, "members without weight")
        restored = NonlinearEngine(self.dim, self.outputs, self.loss, self.order, self.missing)
        restored.linear.restore(state["linear"])
        for stack, saved in zip(restored.stacks, stacks, strict=True):
            stack.restore(saved)
        counts = {stack.row_count for stack in restored.stacks}
        require(len(counts) == 1 and max(counts) <= restored.linear.row_count, owner, "members with other rows")
        self.linear, self.stacks = restored.linear, restored.stacks
        self.forests, self.mixture, self.link = layout.State(**forests), mixture.Mixture(**mixed), linked
        self._work = None  # it may be too small


def _join_members(written: Array, last: Array) -> Array:
    """Join the predictions of all members; that of the stack is clipped to the range of the others."""
    last = np.clip(last, written.min(axis=2), written.max(axis=2))
    return np.concatenate([written, last[..., None]], axis=2)


def _to_table(*parts: Array) -> Table:
    return Table(*(np.ascontiguousarray(part) for part in parts))


def _split_into_tables(X: Any) -> Iterator[tuple[slice, Array]]:
    """Parts of a table, or of sparse rows, as tables."""
    if isinstance(X, np.ndarray):
        yield slice(None), np.require(X, np.float64, ["C", "A", "W"])
        return
    for first in range(0, X.shape[0], DENSE_ROWS):
        rows = slice(first, first + DENSE_ROWS)
        yield rows, np.ascontiguousarray(X[rows].toarray(), dtype=np.float64)


def _explain_forest(state: State, g: int, X: Array) -> Array:
    """Compute the contribution of each feature to forest g, of shape (rows, features + 1); the last is a constant.

    A split contributes the value of the child that the record goes to less that of the node, where the value of a node
    is the mean of its leaves over the stored records (Saabas 2014).
    """
    out, rows, depth = np.zeros((len(X), X.shape[1] + 1)), np.arange(len(X)), state.value.shape[2].bit_length() - 1
    for m in range(int(state.scalar[BUILT, g])):
        values = SHRINKAGE * _average_nodes(state, g, m)
        at = np.zeros(len(X), np.int64)
        out[:, -1] += values[0]
        for _ in range(depth):
            feature = state.feature[g, m, at]
            child = 2 * at + 1 + (X[rows, feature] > state.threshold[g, m, at])
            out[rows, feature] += values[child] - values[at]
            at = child
    return out


def _average_nodes(state: State, g: int, m: int) -> Array:
    """The mean of the leaves below every node of a tree over the stored records; a leaf is the mean of itself."""
    nodes, leaves = state.feature.shape[2], state.value.shape[2]
    values, counts = np.zeros((2, nodes + leaves))
    values[nodes:] = state.value[g, m]
    counts[nodes:] = np.bincount(state.leaf[g, : state.clock[HAVE], m], minlength=leaves)
    for node in range(nodes - 1, -1, -1):
        left, right = 2 * node + 1, 2 * node + 2
        counts[node] = counts[left] + counts[right]
        # Where nothing is split, all go to the left.
        share = counts[left] / counts[node] if counts[node] > 0.0 else 0.5
        share = 1.0 if state.threshold[g, m, node] == np.inf else share
        values[node] = share * values[left] + (1.0 - share) * values[right]
    return values
