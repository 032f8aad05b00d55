"""Regret against slow references: loops, and SciPy on tiny problems written out as smooth programs."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import redescend as rd
from redescend import domains, losses, regret, transforms
from redescend.errors import DataError, ParameterError
from tests.catalogue import LINEAR_LOSSES, TRANSFORMS, name_of, quartic_gradient, quartic_value
from tests.reference import loss_pair

DIM = 3
QUARTIC = losses.Custom(quartic_value, quartic_gradient)
PLAIN_DOMAINS = [
    None,
    domains.Reals(),
    domains.Ball(0.4),
    domains.Ball(50.0),
    domains.Box(-0.2, [0.3, 0.5, 0.1]),
    domains.L1Ball(0.6),
    domains.Simplex(0.8),
]
DOMAINS = [*PLAIN_DOMAINS, domains.Intersection(domains.Ball(0.4), domains.Box(-0.1, 0.35))]
# Every kind of loss, with and without ridge in turn.
EACH_LOSS = [loss for place, loss in enumerate(LINEAR_LOSSES) if loss.l2 == (0.0, 2.5)[place // 3 % 2]]
by_name = {"ids": name_of}


def records(loss, rounds, seed=0, dim=DIM):
    """Records without a perfect fit, some with x = 0."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rounds, dim))
    X[::5] = 0.0
    y = X @ random.standard_normal(dim) + random.standard_normal(rounds)
    return X, np.where(y >= 0, 1.0, -1.0) if getattr(loss, "margin", False) else y


def pieces(loss, p, y):
    """The linear functions of the prediction whose maximum is the loss."""
    match loss:
        case losses.Hinge():
            return [0 * p, 1 - y * p]
        case losses.Absolute():
            return [y - p, p - y]
        case losses.EpsilonInsensitive():
            return [0 * p, y - p - loss.epsilon, p - y - loss.epsilon]
        case losses.Pinball():
            return [loss.quantile * (y - p), (loss.quantile - 1) * (y - p)]
    return []


def membership(domain, theta):
    """Numbers that are all at least 0 if and only if θ is in the domain."""
    match domain:
        case domains.Ball():
            return [domain.radius**2 - theta @ theta]
        case domains.Box():
            return [*(theta - domain.low), *(domain.high - theta)]
        case domains.L1Ball():
            return [domain.radius - np.dot(signs, theta) for signs in itertools.product((-1, 1), repeat=len(theta))]
        case domains.Simplex():
            return [*theta, theta.sum() - domain.total, domain.total - theta.sum()]
        case domains.Intersection():
            return [number for part in domain.parts for number in membership(part, theta)]
    return []


def total(loss, X, y, theta):
    value, _ = loss_pair(loss)
    return sum(value(theta, x, response) for x, response in zip(X, y, strict=True))


def slow_minimum(loss, X, y, domain):
    """The least total loss, by sequential quadratic programming; a kink is a bound on one more variable."""
    count, dim = X.shape
    kinked = bool(pieces(loss, np.zeros(1), np.ones(1)))

    def split(z):
        return z[:dim], z[dim:]

    def objective(z):
        theta, bounds = split(z)
        return bounds.sum() + count * loss.l2 / 2 * theta @ theta if kinked else total(loss, X, y, theta)

    def feasible(z):
        theta, bounds = split(z)
        above = [bounds - piece for piece in pieces(loss, X @ theta, y)]
        return np.concatenate([np.zeros(1), membership(domain, theta), *above])

    start = np.zeros(dim) if domain is None else domain.project(np.zeros(dim))
    tops = np.max(pieces(loss, X @ start, y), axis=0) if kinked else np.empty(0)
    found = minimize(
        objective,
        np.concatenate([start, tops]),
        method="SLSQP",
        constraints={"type": "ineq", "fun": feasible},
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return total(loss, X, y, found.x[:dim])


def played(stream, loss, keep_actions=False, bad_rows="raise"):
    learner = rd.OGD(stream.dim, loss=loss, step=rd.steps.Anytime(0.001 if loss is QUARTIC else 0.1))
    return rd.play(learner, stream, keep_actions=keep_actions, bad_rows=bad_rows)


def game(loss, rounds=30, k=8, seed=0):
    X, y = records(loss, rounds, seed)
    truth = np.random.default_rng(seed + 1).standard_normal(DIM)
    adversary = rd.adversaries.LabelFlip() if getattr(loss, "margin", False) else rd.adversaries.ShiftResponse(3.0)
    stream = adversary.corrupt(rd.Stream(X, y, truth=truth), k=k, seed=seed)
    return played(stream, loss, keep_actions=True), stream


@pytest.mark.parametrize("loss", [*LINEAR_LOSSES, QUARTIC], **by_name)
@pytest.mark.parametrize("which", ["truth", "action", "path"])
def test_regret_to_given_comparators_is_a_sum(loss, which):
    trace, stream = game(loss)
    random = np.random.default_rng(3)
    comparator = {
        "truth": "truth",
        "action": random.standard_normal(DIM).tolist(),
        "path": random.standard_normal((len(stream), DIM)),
    }[which]
    path = np.broadcast_to(stream.truth if which == "truth" else comparator, (len(stream), DIM))
    value = loss.value if loss is QUARTIC else loss_pair(loss)[0]
    expected, sums = [], 0.0
    for t in range(len(stream)):
        if stream.clean[t]:
            x, y = stream.X[t], stream.y[t]
            sums += value(trace.actions[t], x, y) - value(path[t], x, y)
        expected.append(sums)
    # Rounding of a few dozen terms, the largest of which is about 1e3.
    np.testing.assert_allclose(regret.clean_dynamic(trace, stream, loss, comparator), expected, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("domain", PLAIN_DOMAINS, ids=repr)
@pytest.mark.parametrize("loss", EACH_LOSS, **by_name)
def test_regret_to_the_minimizers_of_each_round(loss, domain):
    trace, stream = game(loss, rounds=6, k=2)
    least = [
        slow_minimum(loss, stream.X[t : t + 1], stream.y[t : t + 1], domain) if stream.clean[t] else trace.losses[t]
        for t in range(len(stream))
    ]
    curve = regret.clean_dynamic(trace, stream, loss, domain=domain)
    # The reference stops at a relative change of 1e-13, which leaves it within about 1e-6 of the minimum.
    np.testing.assert_allclose(curve, np.cumsum(trace.losses - least), atol=1e-5)


@pytest.mark.parametrize("domain", [None, domains.Ball(0.3), domains.Simplex()], ids=repr)
def test_regret_to_the_minimizers_of_a_custom_loss(domain):
    trace, stream = game(QUARTIC, rounds=6, k=2)
    squared = losses.Custom(
        lambda theta, x, y: float((x @ theta - y) ** 2 + 0.5 * theta @ theta),
        lambda theta, x, y: 2 * (x @ theta - y) * x + theta,
    )
    trace = played(stream, squared)
    # The same loss in closed form.
    expected = regret.clean_dynamic(trace, stream, losses.Squared(l2=1.0), domain=domain)
    np.testing.assert_allclose(regret.clean_dynamic(trace, stream, squared, domain=domain), expected, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("l2", [0.0, 1e-12, 1e-4, 2.5])
def test_squared_minimum_is_its_closed_form(l2, dtype):
    stream = rd.streams.ridge(500, seed=0, dim=7)
    stream = rd.Stream(stream.X.astype(dtype), stream.y.astype(dtype))
    trace = rd.Trace(np.zeros(500), np.zeros(500), None, np.zeros(7), np.empty(0, int))
    X, y = stream.X.astype(np.float64), stream.y.astype(np.float64)
    expected = np.cumsum(l2 * y**2 / (l2 + 2 * (X**2).sum(axis=1)))
    # Without l2 the minimum is 0; what is left is the square of a rounding error.
    np.testing.assert_allclose(
        -regret.clean_dynamic(trace, stream, losses.Squared(l2)), expected, rtol=1e-12, atol=1e-26
    )


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
def test_invex_regret_counts_every_round(transform):
    loss = losses.Squared(l2=0.1)
    trace, stream = game(loss)
    least = [loss.l2 * y**2 / (loss.l2 + 2 * x @ x) for x, y in zip(stream.X, stream.y, strict=True)]
    expected, sums = [], 0.0
    for f, minimum in zip(trace.losses, least, strict=True):
        sums += transform.value(f) - transform.value(minimum)
        expected.append(sums)
    np.testing.assert_allclose(
        regret.invex_dynamic(trace, stream, loss, transform), expected, rtol=1e-9, atol=1e-12 * max(expected)
    )


def test_invex_regret_on_a_domain():
    loss, ball = losses.Absolute(), domains.Ball(0.3)
    trace, stream = game(loss, rounds=8, k=3)
    least = np.array([slow_minimum(loss, stream.X[t : t + 1], stream.y[t : t + 1], ball) for t in range(8)])
    huber = transforms.Huber(0.5)
    expected = np.cumsum(huber.value(trace.losses) - huber.value(least))
    np.testing.assert_allclose(regret.invex_dynamic(trace, stream, loss, huber, domain=ball), expected, atol=1e-5)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("loss", EACH_LOSS, **by_name)
def test_best_fixed_action_loses_least(loss, domain):
    X, y = records(loss, 14, seed=2)
    theta = regret.best_fixed(rd.Stream(X, y), loss, domain)
    assert domain is None or domain.contains(theta)
    reached, reference = total(loss, X, y, theta), slow_minimum(loss, X, y, domain)
    # Never above a reference that may itself be outside the domain by its own tolerance, and not below it by more.
    assert reached <= reference * (1 + 1e-8)
    assert reached >= reference - 1e-4 * max(1.0, reference)


def linear_program(loss, X, y):
    """The least total of a loss with kinks: minimize Σtᵢ with every piece below its tᵢ."""
    count, dim = X.shape
    at_zero = pieces(loss, np.zeros(count), y)
    along = [np.array([pieces(loss, x, y)[i] for x in X.T]).T - at_zero[i][:, None] for i in range(len(at_zero))]
    A = np.vstack([np.hstack([slope, -np.eye(count)]) for slope in along])
    b = -np.concatenate(at_zero)
    cost = np.concatenate([np.zeros(dim), np.ones(count)])
    return linprog(cost, A_ub=A, b_ub=b, bounds=(None, None)).fun


KINKED = [loss for loss in LINEAR_LOSSES if pieces(loss, np.zeros(1), np.ones(1)) and loss.l2 == 0.0]
SHAPES = ["plain", "few", "one feature", "whole numbers", "twice the same feature", "units far apart", "empty feature"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", KINKED, **by_name)
def test_best_fixed_action_solves_the_linear_program(loss, shape):
    X, y = records(loss, 12 if shape == "few" else 80, seed=4, dim=1 if shape == "one feature" else 6)
    X = np.round(X) if shape == "whole numbers" else X
    y = np.sign(np.round(y) + 0.1) if loss.margin else np.round(y) if shape == "whole numbers" else y
    X = np.hstack([X, X]) if shape == "twice the same feature" else X
    X = X * np.geomspace(1e-3, 1e3, X.shape[1]) if shape == "units far apart" else X
    X = X * (np.arange(X.shape[1]) > 0) if shape == "empty feature" else X
    theta = regret.best_fixed(rd.Stream(X, y), loss)
    # The program's own tolerance is 1e-7.
    assert total(loss, X, y, theta) == pytest.approx(linear_program(loss, X, y), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("l2", [1e-12, 1e-8, 1e-3, 10.0])
@pytest.mark.parametrize("kind", [losses.Hinge, losses.Absolute])
def test_best_fixed_action_has_a_subgradient_that_vanishes(kind, l2):
    loss = kind(l2)
    X, y = records(loss, 200, seed=5)
    theta = regret.best_fixed(rd.Stream(X, y), loss)
    # n·l2·θ = Σ uᵢ·xᵢ, with uᵢ known away from the kinks and anywhere between its ends on them.
    low, high = (np.min, np.max)
    slack = 1.0 - y * (X @ theta) if kind is losses.Hinge else y - X @ theta
    ends = (
        np.stack([np.where(slack > 1e-9, y, 0.0 * y), np.where(slack < -1e-9, 0.0 * y, y)])
        if kind is losses.Hinge
        else np.stack([np.where(slack < 1e-9, -1.0, 1.0), np.where(slack > -1e-9, 1.0, -1.0)])
    )
    lowest, highest = low(ends, axis=0), high(ends, axis=0)
    found = linprog(np.zeros(200), A_eq=X.T, b_eq=200 * l2 * theta, bounds=np.stack([lowest, highest], axis=1))
    # A feasible program: the subgradients that are open can be chosen to meet the equation, to 1e-7.
    assert found.status == 0
    assert (lowest < highest).sum() <= np.count_nonzero(~X.any(axis=1)) + DIM


def test_squared_best_fixed_action_is_that_of_least_squares():
    stream = rd.streams.ridge(400, seed=1, dim=9)
    theta = regret.best_fixed(stream, losses.Squared())
    np.testing.assert_allclose(theta, np.linalg.lstsq(stream.X, stream.y)[0], rtol=1e-11)
    ridge = np.sqrt(400 * 0.3 / 2) * np.eye(9)
    expected = np.linalg.lstsq(np.vstack([stream.X, ridge]), np.append(stream.y, np.zeros(9)))[0]
    np.testing.assert_allclose(regret.best_fixed(stream, losses.Squared(0.3)), expected, rtol=1e-11)


def test_best_fixed_action_of_a_custom_loss():
    X, y = records(QUARTIC, 20)
    theta = regret.best_fixed(rd.Stream(X, y), QUARTIC)
    gradient = sum(quartic_gradient(theta, x, response) for x, response in zip(X, y, strict=True))
    # BFGS stops at a gradient of 1e-5.
    np.testing.assert_allclose(gradient, 0.0, atol=2e-5)


def test_best_fixed_action_of_separable_labels_loses_next_to_nothing():
    stream = rd.streams.svm(200, seed=0)
    for loss in (losses.Logistic(), losses.Hinge()):
        theta = regret.best_fixed(stream, loss)
        assert np.isfinite(theta).all()
        assert total(loss, stream.X, stream.y, theta) < 1e-9


def test_best_fixed_action_sees_clean_rounds_only():
    trace, stream = game(losses.Absolute())
    only = rd.Stream(stream.X[stream.clean], stream.y[stream.clean])
    for domain in (None, domains.Ball(0.3)):
        theta = regret.best_fixed(stream, losses.Absolute(), domain)
        np.testing.assert_array_equal(theta, regret.best_fixed(only, losses.Absolute(), domain))
        expected = regret.clean_dynamic(trace, stream, losses.Absolute(), theta)
        np.testing.assert_array_equal(regret.clean_static(trace, stream, losses.Absolute(), domain), expected)
    none = rd.Stream(stream.X, stream.y, np.zeros(len(stream), dtype=bool))
    np.testing.assert_array_equal(regret.best_fixed(none, losses.Absolute()), np.zeros(DIM))
    assert domains.Simplex().contains(regret.best_fixed(none, losses.Absolute(), domains.Simplex()))


@pytest.mark.parametrize("domain", [None, domains.Ball(0.3), domains.Box(-0.2, 0.3)], ids=repr)
@pytest.mark.parametrize("loss", EACH_LOSS, **by_name)
def test_path_and_deviation_are_those_of_the_minimizers(loss, domain):
    _, stream = game(loss, rounds=12, k=4)
    nature = stream.uncorrupted()
    before = [loss.minimum(nature.X[t], nature.y[t], domain)[0] for t in range(12)]
    after = [loss.minimum(stream.X[t], stream.y[t], domain)[0] for t in range(12)]
    expected = [0.0]
    for here, there in itertools.pairwise(before):
        expected.append(expected[-1] + np.linalg.norm(here - there))
    np.testing.assert_allclose(regret.path_length(stream, loss, domain), expected, rtol=1e-12)
    farthest = max(np.linalg.norm(after[t] - before[t]) for t in np.flatnonzero(~stream.clean))
    assert regret.deviation(stream, loss, domain) == pytest.approx(farthest, rel=1e-12)


def test_path_is_the_same_in_one_block_and_in_many(monkeypatch):
    stream = rd.streams.ridge(101, seed=0, dim=4)
    whole = regret.path_length(stream, losses.Squared(0.1))
    for block in (1, 8, 400):
        monkeypatch.setattr(regret, "BLOCK", block)
        np.testing.assert_array_equal(regret.path_length(stream, losses.Squared(0.1)), whole)


def test_a_still_stream_has_no_path():
    stream = rd.Stream(np.ones((10, 3)) / 3, np.full(10, 0.7))
    np.testing.assert_array_equal(regret.path_length(stream, losses.Squared(0.1)), np.zeros(10))
    assert regret.path_length(rd.Stream([[1.0]], [1.0]), losses.Squared()).tolist() == [0.0]
    assert regret.deviation(stream, losses.Squared()) == 0.0


def test_skipped_rows_count_nothing():
    loss = losses.Squared()
    X, y = records(loss, 12)
    X[3], y[7] = np.nan, np.inf
    whole = rd.Stream(X, y)
    trace = played(whole, loss, bad_rows="skip")
    assert trace.skipped.tolist() == [3, 7]
    kept = np.delete(np.arange(12), [3, 7])
    part = rd.Stream(X[kept], y[kept])
    short = rd.Trace(trace.losses[kept], trace.weights[kept], None, trace.theta, np.empty(0, int))
    curves = [
        lambda *game: regret.clean_dynamic(*game, loss),
        lambda *game: regret.clean_dynamic(*game, loss, comparator=[1.0, 2.0, 3.0]),
        lambda *game: regret.clean_dynamic(*game, loss, domain=domains.Box(-0.1, 0.1)),
        lambda *game: regret.clean_static(*game, loss),
        lambda *game: regret.invex_dynamic(*game, loss, transforms.Cauchy(1.0)),
    ]
    for curve in curves:
        full = curve(trace, whole)
        np.testing.assert_allclose(full[kept], curve(short, part), rtol=1e-14)
        np.testing.assert_array_equal(np.diff(full)[[2, 6]], 0.0)


@pytest.mark.parametrize("loss", LINEAR_LOSSES, **by_name)
def test_huge_records_leave_regret_finite(loss):
    X, y = np.array([[1e200, 0.0], [1e-200, 0.0], [1e150, 1e150], [1.0, 1.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    trace = rd.Trace(np.array([1e308, 1e308, 1.0, 1.0]), np.ones(4), None, np.zeros(2), np.empty(0, int))
    for comparator in ("round", np.full(2, 1e200), np.zeros((4, 2))):
        assert np.isfinite(regret.clean_dynamic(trace, rd.Stream(X, y), loss, comparator)).all()


def test_bad_arguments_are_refused_in_one_sentence():
    loss = losses.Squared()
    trace, stream = game(loss)
    bare = rd.Stream(stream.X, stream.y, stream.clean)
    longer = rd.streams.ridge(31, seed=0, dim=DIM)
    broken = rd.Stream(np.where(np.arange(30)[:, None] == 4, np.nan, stream.X), stream.y)
    where = r"must be 'round', 'truth', or finite numbers of shape \(3,\) or \(30, 3\)\. Got "
    for message, call in {
        "^The trace has 30 rounds and the stream has 31; they must be of one game": lambda: regret.clean_dynamic(
            trace, longer, loss
        ),
        "^The stream has no truth to compare with": lambda: regret.clean_dynamic(trace, bare, loss, "truth"),
        "corrupted rounds but not their originals": lambda: regret.path_length(bare, loss),
        "rounds but not their originals": lambda: regret.deviation(bare, loss),
        r"^The records must be finite\. Got row 4 instead": lambda: regret.best_fixed(broken, loss),
        r"^The records must be finite\. Got row 4": lambda: regret.path_length(broken, loss),
    }.items():
        with pytest.raises(DataError, match=message):
            call()
    for message, call in {
        f"^The 'comparator' parameter of clean_dynamic {where}'best'": lambda: regret.clean_dynamic(
            trace, stream, loss, "best"
        ),
        rf"{where}\[1.0, 2.0\]": lambda: regret.clean_dynamic(trace, stream, loss, [1.0, 2.0]),
        f"{where}.*nan": lambda: regret.clean_dynamic(trace, stream, loss, [np.nan] * 3),
        f"{where}None": lambda: regret.clean_dynamic(trace, stream, loss, None),
        "^The 'trace' parameter of clean_static must be a Trace": lambda: regret.clean_static(None, stream, loss),
        "^The 'stream' parameter of invex_dynamic must be": lambda: regret.invex_dynamic(trace, None, loss, None),
        "^The 'loss' parameter of path_length must be a loss": lambda: regret.path_length(stream, "squared"),
        "^The 'domain' parameter of deviation must be a domain": lambda: regret.deviation(stream, loss, "ball"),
        "^The 'transform' parameter of invex_dynamic must": lambda: regret.invex_dynamic(trace, stream, loss, "learn"),
    }.items():
        with pytest.raises(ParameterError, match=message):
            call()
