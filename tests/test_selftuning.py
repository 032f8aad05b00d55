"""The self-tuning learner against its slow reference, and what it promises: no units, no record that breaks it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import redescend as rd
from redescend import errors, losses
from redescend.kernels.selftuning import layout
from tests import reference, reference_selftuning
from tests.catalogue import name_of, quartic_gradient, quartic_value
from tests.games import sample
from tests.refusals import refusal, refused_unchanged
from tests.selftuning_games import LABELS, PLAIN, REGRESSION, every_loss, every_order, played, records, sound

SHRUNK = [
    losses.Squared(l2=1e-2),
    losses.Absolute(l2=1e-3),
    losses.EpsilonInsensitive(0.3, l2=0.1),
    losses.Pinball(0.8, l2=1e-2),
    losses.Hinge(l2=1e-2),
    losses.Logistic(l2=0.1),
]
PATTERNS = ["clean", "outliers", "leverage", "zeros", "jump", "burst", "late features", "scales", "levels"]

PLACES = ["x", "y", "both", "all x", "all y", "all", "first", "mixed"]

NUMBERS = [name for name in layout.State._fields if name != "ring"]
COUNTS = [
    layout.ROUNDS,
    layout.LAST,
    layout.SEEN,
    layout.AGE,
    layout.STORED_AGE,
    layout.OUT,
    layout.DUE,
    layout.KNOWN,
    layout.CREDIT,
]
POSITIVES = [
    layout.TARGET,
    layout.LOW,
    layout.TYPICAL,
    layout.SIZE,
    layout.RATE,
    layout.MIRRORED,
    layout.CLEAN,
    layout.COMMON,
    layout.VARIANCE,
    layout.INFORMATION,
    layout.STRETCH,
    layout.USUALLY_FLIPPED,
    layout.POSITIVE,
]


def apart(one: Any, two: Any) -> np.ndarray:
    """How far two games are apart up to each round, in units of the largest numbers of the first."""
    gaps = [
        np.max(np.abs(one.actions - two.actions) / np.max(np.abs(one.actions), axis=0), axis=1),
        np.abs(one.losses - two.losses) / np.maximum.accumulate(np.maximum(one.losses, 1e-300)),
        np.abs(one.weights - two.weights),
    ]
    return np.maximum.accumulate(np.max(gaps, axis=0))


# --- the reference ---


CHANGED = [(losses.Squared(), pattern, order) for pattern in ("grown", "negated") for order in (1, 2)]


@pytest.mark.parametrize(
    ("loss", "pattern", "order"), [*sample([*PLAIN, *SHRUNK], PATTERNS, [1, 2], every=5), *CHANGED], ids=str
)
def test_every_round_is_as_stated(loss, pattern, order):
    """To 1e-9; or as near as the reference is to itself where records differ in their last digits."""
    X, y = records(loss, pattern, 150, 3, seed=1)
    expected = reference_selftuning.play(X, y, loss=loss, order=order)
    trace = played(rd.SelfTuning(3, loss=loss, order=order), X, y, keep_actions=True)
    gap = apart(expected, trace)
    if gap[-1] > 1e-9:
        chaos = apart(expected, reference_selftuning.play(X * (1.0 + 4e-16), y, loss=loss, order=order))
        assert chaos[-1] < 1e-6
        assert (gap <= 1e-9 + 100.0 * chaos).all()


@every_order
@pytest.mark.parametrize("loss", LABELS, ids=name_of)
def test_logits_that_are_longer_or_shorter_are_as_stated(loss, order, monkeypatch):
    """Labels that a plane separates, and then noisier and noisier ones: the posterior is doubled, and halved."""
    factors, resize = set(), reference_selftuning.Reference.resize

    def watched(self: Any) -> None:
        before = self.stretch
        resize(self)
        factors.add(before / self.stretch)

    monkeypatch.setattr(reference_selftuning.Reference, "resize", watched)
    X, y = records(loss, "clean", 400, 2, seed=3)
    truth = np.linalg.lstsq(X[:80], y[:80], rcond=None)[0]
    chance = 1.0 / (1.0 + np.exp(-np.linspace(4.0, 0.7, 320) * (X[80:] @ truth) / np.linalg.norm(truth)))
    y[80:] = np.where(np.random.default_rng(1).random(320) < chance, 1.0, -1.0)
    expected = reference_selftuning.play(X, y, loss=loss, order=order)
    assert apart(expected, played(rd.SelfTuning(2, loss=loss, order=order), X, y, keep_actions=True))[-1] <= 1e-9
    assert factors >= {0.5, 2.0}


@every_order
@pytest.mark.parametrize("dim", [1, 8])
@every_loss
def test_games_of_other_widths(loss, dim, order):
    X, y = records(loss, "outliers", 150, dim, seed=2)
    expected = reference_selftuning.play(X, y, loss=loss, order=order)
    trace = played(rd.SelfTuning(dim, loss=loss, order=order), X, y, keep_actions=True)
    assert apart(expected, trace)[-1] <= 1e-7


# --- the game ---


@every_order
@pytest.mark.parametrize("loss", [losses.Squared(l2=1e-3), losses.Pinball(0.3), losses.Hinge()], ids=name_of)
def test_play_update_and_any_cut_give_the_same_bits(loss, order):
    X, y = records(loss, "outliers", 150, 3, seed=3)
    one, two, three = (rd.SelfTuning(3, loss=loss, order=order) for _ in range(3))
    trace = played(one, X, y, keep_actions=True)
    for row, (x, target) in enumerate(zip(X, y, strict=True)):
        np.testing.assert_array_equal(two.theta, trace.actions[row])
        assert two.update(x, target) == (trace.losses[row], trace.weights[row])
    for cut in (slice(0, 1), slice(1, 70), slice(70, 71), slice(71, 150)):
        played(three, X[cut], y[cut])
        three = pickle.loads(pickle.dumps(three)) if cut.stop == 70 else copy.deepcopy(three)
        fresh = rd.SelfTuning(3, loss=loss, order=order)
        fresh.restore(three.state())
        three = fresh
    assert reference.same_state(one.state(), two.state())
    assert reference.same_state(one.state(), three.state())
    np.testing.assert_array_equal(one.theta, three.theta)


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 1.0], [1.0], [[1.0, 2.0]], "text", None])
def test_a_bad_record_changes_nothing(bad):
    learner = rd.SelfTuning(2, loss=losses.Squared(), order=2)
    learner.update([0.5, 0.1], 1.0)
    refused_unchanged(errors.DataError, learner, learner.update, bad, 1.0)


@pytest.mark.parametrize("bad", [np.nan, -np.inf, 0.0, 0.5, 2.0, "yes", None])
def test_a_bad_label_changes_nothing(bad):
    learner = rd.SelfTuning(2, loss=losses.Hinge(), order=2)
    learner.update([0.5, 0.1], 1.0)
    refused_unchanged(errors.DataError, learner, learner.update, [1.0, 2.0], bad)


def test_bad_rows_are_skipped_and_listed():
    X, y = records(losses.Squared(), "clean", 30, 2, seed=4)
    X[3, 1], y[9] = np.nan, np.inf
    learner = rd.SelfTuning(2, loss=losses.Squared())
    trace = played(learner, X, y, bad_rows="skip")
    assert trace.skipped.tolist() == [3, 9]
    assert learner.rounds == 30
    assert np.isfinite(trace.theta).all()


@pytest.mark.parametrize(
    ("parameter", "changed"),
    [
        ("order", {"order": 3}),
        ("order", {"order": True}),
        ("order", {"order": "2"}),
        ("loss", {"loss": losses.Custom(quartic_value, quartic_gradient)}),
        ("loss", {"loss": "squared"}),
        ("dim", {"dim": 0}),
        ("dim", {"dim": 1.5}),
    ],
    ids=str,
)
def test_bad_settings_get_one_sentence(parameter, changed):
    message = refusal(errors.ParameterError, rd.SelfTuning, **{"dim": 2, "loss": losses.Squared(), **changed})
    assert f"'{parameter}' parameter of SelfTuning" in message


def altered(place: int, value: float) -> Any:
    """Change a scalar."""

    def alter(state: dict[str, Any]) -> dict[str, Any]:
        scalar = state["scalar"].copy()
        scalar[place] = value
        return {**state, "scalar": scalar}

    return alter


def changed(name: str, row: int, value: float) -> Any:
    """Change a row of an array."""

    def alter(state: dict[str, Any]) -> dict[str, Any]:
        array = state[name].copy()
        array[row] = value
        return {**state, name: array}

    return alter


FORGED = {
    **{f"{name} is nan": (lambda state, name=name: {**state, name: state[name] * np.nan}) for name in NUMBERS},
    **{f"{name} is huge": (lambda state, name=name: {**state, name: state[name] * 0.0 + 1e308}) for name in NUMBERS},
    **{f"{name} is short": (lambda state, name=name: {**state, name: state[name][..., :-1]}) for name in NUMBERS},
    **{f"count {place}": altered(place, 0.5) for place in COUNTS},
    **{f"negative {place}": altered(place, -2.0) for place in (*COUNTS, layout.CONSTANT)},
    **{f"scalar {place}": altered(place, -1.0) for place in POSITIVES},
    **{
        f"feature {row}": changed("feature", row, -1.0)
        for row in (layout.UNIT, layout.SQUARE, layout.COUNT, layout.PRIOR)
    },
    "leader": altered(layout.LEAD, layout.MEMBERS),
    "constant": altered(layout.CONSTANT, 2.0),
    "known": altered(layout.KNOWN, 3.0),
    "rate": altered(layout.RATE, 0.9),
    "clean": altered(layout.CLEAN, 1.5),
    "range": altered(layout.BOTTOM, 1e20),
    "stored": changed("stored", 0, -1.0),
    "weight": lambda state: {**state, "weight": state["weight"] * 0.0},
    "variance": changed("P", 0, -1.0),
    "ring": lambda state: {**state, "ring": state["ring"] + np.inf},
    "text": lambda state: {**state, "scale": "all"},
    "other": lambda state: {**state, "learner": "OGD"},
    "missing": lambda state: {"learner": state["learner"]},
    "none": lambda state: None,
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_state_is_refused(forgery):
    learner = rd.SelfTuning(2, loss=losses.Squared(), order=2)
    played(learner, *records(losses.Squared(), "clean", 20, 2, seed=30))
    refused_unchanged(errors.DataError, learner, learner.restore, FORGED[forgery](learner.state()))


# --- no units ---


@every_order
@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
@every_loss
def test_units_change_no_weight(loss, unit, order):
    """Nor do they change a loss, but for the unit of the target itself. A band is in the units of the target."""
    X, y = records(loss, "outliers", 800, 3, seed=5)
    X[::50] *= 100.0
    plain = played(rd.SelfTuning(3, loss=loss, order=order), X, y)
    other = played(rd.SelfTuning(3, loss=loss, order=order), unit * X, y)
    np.testing.assert_allclose(other.weights, plain.weights, atol=1e-6)
    np.testing.assert_allclose(other.losses, plain.losses, rtol=1e-6, atol=1e-6 * np.median(plain.losses))
    if not loss.margin:
        banded = losses.EpsilonInsensitive(unit * 0.3) if isinstance(loss, losses.EpsilonInsensitive) else loss
        scaled = played(rd.SelfTuning(3, loss=banded, order=order), X, unit * y)
        power = 2 if isinstance(loss, losses.Squared) else 1
        np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-6)
        np.testing.assert_allclose(
            scaled.losses / unit**power, plain.losses, rtol=1e-6, atol=1e-6 * np.median(plain.losses)
        )


@every_order
@pytest.mark.parametrize("unit", [1e-8, 1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("dim", [1, 3, 30])
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Absolute(), losses.Pinball(0.8)], ids=name_of)
def test_a_cold_start_moves_at_once(loss, dim, unit, order):
    """After five rounds a feature, half of what zero would lose is gone; all but the first record move the model."""
    X, y = records(loss, "clean", 10 * dim + 20, dim, seed=6)
    learner = rd.SelfTuning(dim, loss=loss, order=order)
    trace = played(learner, X, unit * y, keep_actions=True)
    assert np.abs(trace.actions[1]).max() == 0.0 < np.abs(trace.actions[2]).max()
    zero = loss.of_prediction(0.0, unit * y)
    assert trace.losses[5 * dim :].mean() < 0.5 * zero[5 * dim :].mean()


# --- nothing breaks it ---

SIZES = [1e-320, 1e-200, 1e-100, 1e30, 1e100, 1e149, 1e160, 1e308]


@pytest.mark.parametrize(("loss", "where", "order"), sample([*PLAIN, *SHRUNK], PLACES, [1, 2], every=5), ids=str)
def test_no_finite_record_breaks_it(loss, where, order):
    for size in SIZES:
        random = np.random.default_rng([7, SIZES.index(size)])
        X, y = np.clip(random.normal(size=(100, 2)), -1.7, 1.7), random.choice([-1.0, 1.0], 100)
        rows = random.random(100) < (1.0 if "all" in where else 0.15)
        if where == "first":
            rows = np.arange(100) < 30
        if where in ("x", "both", "all x", "all", "first"):
            X[rows] *= size
        if where == "mixed":
            X *= random.choice([*SIZES, 1.0], (100, 1))
        if not loss.margin:
            if where in ("y", "both", "all y", "all", "first"):
                y[rows] *= size
            if where == "mixed":
                y *= random.choice([1e-320, 1e-250, 1e-140, 1e-100, 1e-30, 1.0, 1e30, 1e100, 1e149, 1e160, 1e308], 100)
        learner = rd.SelfTuning(2, loss=loss, order=order)
        assert sound(learner, played(learner, X, y)), size


@every_order
@every_loss
def test_a_record_without_features_does_not_set_the_scale(loss, order):
    """It is followed by targets of 0, from which there is nothing to learn either; then the stream begins."""
    X, y = records(loss, "outliers", 400, 3, seed=21)
    X[0] = 0.0
    if not loss.margin:
        y[1:9] = 0.0
    learner = rd.SelfTuning(3, loss=loss, order=order)
    trace = played(learner, X, y)
    assert sound(learner, trace)
    assert learner.theta.any()


@every_loss
@every_order
def test_records_without_features_teach_nothing(loss, order):
    learner = rd.SelfTuning(2, loss=loss, order=order)
    trace = played(learner, np.zeros((40, 2)), np.ones(40))
    assert (learner.theta == 0.0).all()
    assert (trace.weights == 1.0).all()
    assert learner.rounds == 40


@every_order
@pytest.mark.parametrize("loss", REGRESSION, ids=name_of)
def test_targets_that_are_all_zero_are_met(loss, order):
    X, _ = records(loss, "clean", 60, 2, seed=8)
    learner = rd.SelfTuning(2, loss=loss, order=order)
    assert (played(learner, X, np.zeros(60)).losses == 0.0).all()


@every_order
@pytest.mark.parametrize("loss", REGRESSION, ids=name_of)
def test_a_constant_target_is_learned(loss, order):
    X = np.ones((400, 1))
    learner = rd.SelfTuning(1, loss=loss, order=order)
    trace = played(learner, X, np.full(400, 7.0))
    assert sound(learner, trace)
    assert learner.theta[0] == pytest.approx(7.0, abs=0.31)
    assert trace.losses[-100:].mean() < 1e-2 * trace.losses[0]


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic()], ids=name_of)
def test_a_lattice_without_weight_is_refused(loss):
    learner = rd.SelfTuning(2, loss=loss)
    for x in np.random.default_rng(0).normal(size=(30, 2)):
        learner.update(x, 1.0 if x[0] > 0.0 else -1.0)
    state = learner.state()
    learner.restore(state)
    with pytest.raises(errors.DataError, match="lattice without weight"):
        learner.restore(state | {"cells": np.zeros_like(state["cells"])})


@every_order
def test_labels_in_two_columns_are_all_learned_from(order):
    """Records with equal targets that differ in two columns of labels are no repetition of each other."""
    random = np.random.default_rng(0)
    places = np.column_stack([random.integers(0, 14, 600), random.integers(14, 18, 600)])
    learner = rd.SelfTuning(18, loss=losses.Squared(), order=order)
    before = places[0]
    for row, target in zip(places, np.arange(600) // 12, strict=True):
        x = np.zeros(18)
        x[row] = 1.0
        seen = learner.state()["scalar"][layout.LAST]
        learner.update(x, 1875.0 + target)
        if (row != before).any():
            assert learner.state()["scalar"][layout.LAST] == seen + 1
        before = row
    assert np.isfinite(learner.theta).all()


@every_order
@pytest.mark.parametrize("loss", REGRESSION, ids=name_of)
def test_targets_that_are_mostly_zero(loss, order):
    X, y = records(loss, "clean", 600, 3, seed=9)
    y[np.random.default_rng(9).random(600) < 0.8] = 0.0
    learner = rd.SelfTuning(3, loss=loss, order=order)
    trace = played(learner, X, y)
    assert sound(learner, trace)
    assert trace.losses[300:].mean() <= 1.5 * np.mean(loss.of_prediction(0.0, y[300:]))
