"""Adversaries: what is corrupted, when, and what the stream remembers."""

import numpy as np
import pytest

import redescend as rd
from redescend import adversaries
from redescend.errors import DataError, DivergenceError, ParameterError
from tests.games import sample

T, DIM, K = 40, 3, 11

RESPONSES = [
    adversaries.LabelFlip(),
    adversaries.UniformResponse(-3, 4),
    adversaries.ShiftResponse(2.5),
    adversaries.ScaleResponse(-3.0),
]
DRAWN_RESPONSES = [adversaries.ReplaceResponse()]
FEATURES = [adversaries.ReplaceFeatures(), adversaries.ReplaceFeatures(0.1), adversaries.ScaleFeatures(-7.0)]
RECORDS = [adversaries.ReplaceRecord(), adversaries.ReplaceRecord(scale=5.0, response_scale=-2.0)]
ALL = [*RESPONSES, *DRAWN_RESPONSES, *FEATURES, *RECORDS]
DRAWN = [each for each in ALL if type(each).__name__[:7] in ("Uniform", "Replace")]
WORDS = ["random", "burst", "periodic", "first", "last"]


def labelled(seed=0, dtype=np.float64):
    stream = rd.streams.svm(T, seed=seed, dim=DIM)
    return rd.Stream(stream.X.astype(dtype), stream.y.astype(dtype), truth=stream.truth)


def corrupted_rows(stream):
    return np.flatnonzero(~stream.clean)


def assert_same(left, right):
    for name in ("X", "y", "clean", "truth"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    for one, other in zip(left.originals, right.originals, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("adversary", ALL, ids=repr)
def test_corrupts_k_rounds_and_remembers_them(adversary, dtype):
    stream = labelled(dtype=dtype)
    X, y = stream.X.copy(), stream.y.copy()
    spoiled = adversary.corrupt(stream, k=K, seed=1)
    assert spoiled.corrupted == K
    assert spoiled.X.dtype == spoiled.y.dtype == dtype
    np.testing.assert_array_equal(spoiled.truth, stream.truth)
    np.testing.assert_array_equal(spoiled.X[spoiled.clean], X[spoiled.clean])
    np.testing.assert_array_equal(spoiled.y[spoiled.clean], y[spoiled.clean])
    np.testing.assert_array_equal(spoiled.uncorrupted().X, X)
    np.testing.assert_array_equal(spoiled.uncorrupted().y, y)
    np.testing.assert_array_equal(spoiled.originals.rows, corrupted_rows(spoiled))
    np.testing.assert_array_equal(stream.X, X)
    np.testing.assert_array_equal(stream.y, y)
    assert stream.clean.all()


@pytest.mark.parametrize("adversary", ALL, ids=repr)
def test_changes_what_its_name_says(adversary):
    stream = labelled()
    spoiled = adversary.corrupt(stream, k=K, seed=1)
    rows = corrupted_rows(spoiled)
    if adversary in [*RESPONSES, *DRAWN_RESPONSES]:
        assert spoiled.X is stream.X
    else:
        assert (spoiled.X[rows] != stream.X[rows]).all()
    if adversary in FEATURES:
        assert spoiled.y is stream.y
    elif adversary in RESPONSES:
        assert (spoiled.y[rows] != stream.y[rows]).all()


def test_formulas():
    stream = rd.streams.ridge(2000, seed=0, dim=DIM)
    rows = np.arange(2000)

    def spoiled(adversary):
        return adversary.corrupt(stream, k=2000, seed=1)

    np.testing.assert_array_equal(spoiled(adversaries.ShiftResponse(2.5)).y, stream.y + 2.5)
    np.testing.assert_array_equal(spoiled(adversaries.ScaleResponse(-7.0)).y, stream.y * -7.0)
    np.testing.assert_array_equal(spoiled(adversaries.ScaleFeatures(-7.0)).X, stream.X * -7.0)
    uniform = spoiled(adversaries.UniformResponse(-3, 4)).y
    assert uniform.min() >= -3
    assert uniform.max() <= 4
    # Means of 2000 and 6000 draws: five standard errors.
    assert abs(uniform.mean() - 0.5) < 5 * 7 / np.sqrt(12 * 2000)
    for adversary in (adversaries.ReplaceFeatures(0.1), adversaries.ReplaceRecord(scale=0.1)):
        X = spoiled(adversary).X
        assert abs(X.std() / 0.1 - 1) < 5 / np.sqrt(2 * X.size)
        assert abs(X.mean()) < 5 * 0.1 / np.sqrt(X.size)
    drawn = spoiled(adversaries.ReplaceRecord(response_scale=-2.0)).y
    assert np.isin(drawn, -2.0 * stream.y).all()
    assert (drawn != -2.0 * stream.y)[rows].mean() > 0.9
    others = spoiled(adversaries.ReplaceResponse()).y
    assert np.isin(others, stream.y).all()
    # Of 2000 draws with replacement a share of 1 − 1/e of the responses is drawn, and about one stays in its place.
    assert abs(len(np.unique(others)) / 2000 - (1 - np.exp(-1))) < 0.05
    assert (others == stream.y).sum() < 10
    flipped = adversaries.LabelFlip().corrupt(labelled(), k=T, seed=0)
    np.testing.assert_array_equal(flipped.y, -labelled().y)


def test_a_replaced_record_keeps_labels_labels():
    for adversary in (adversaries.ReplaceRecord(), adversaries.ReplaceResponse(), adversaries.ScaleResponse(-1.0)):
        spoiled = adversary.corrupt(labelled(), k=T, seed=0)
        np.testing.assert_array_equal(np.unique(spoiled.y), [-1.0, 1.0])


@pytest.mark.parametrize("when", WORDS)
@pytest.mark.parametrize("adversary", ALL, ids=repr)
def test_a_seed_is_a_corruption(adversary, when):
    stream = labelled()
    first, second = (adversary.corrupt(stream, k=K, seed=5, when=when) for _ in range(2))
    assert_same(first, second)
    other = adversary.corrupt(stream, k=K, seed=6, when=when)
    differs = not (np.array_equal(first.X, other.X) and np.array_equal(first.y, other.y))
    assert differs == (adversary in DRAWN or when in ("random", "burst"))


@pytest.mark.parametrize("when", WORDS)
@pytest.mark.parametrize("k", [0, 1, 2, 7, 20, 39, 40])
def test_rounds(when, k):
    rows = adversaries.chosen_rounds("Test", T, k, when, np.random.default_rng(k))
    assert len(rows) == k
    assert np.isin(rows, np.arange(T)).all()
    assert (np.diff(rows) > 0).all()
    if when in ("burst", "first", "last"):
        assert (np.diff(rows) == 1).all()
    if when == "periodic" and k:
        gaps = np.diff(rows, prepend=-1, append=T)
        # The ends get half a period each; whole rounds cannot be spaced closer to even than by one.
        assert np.ptp(gaps[1:-1]) <= 1 if k > 1 else True
        assert abs(gaps[0] - gaps[-1]) <= 1
    if k and when in ("first", "last"):
        assert rows[0] == 0 if when == "first" else rows[-1] == T - 1


@pytest.mark.parametrize("when", ["random", "burst"])
def test_every_place_is_as_likely(when):
    total, k, draws = 6, 2, 3000
    random = np.random.default_rng(0)
    counts = np.zeros(total)
    for _ in range(draws):
        counts[adversaries.chosen_rounds("Test", total, k, when, random)] += 1
    # A burst of 2 in 6 starts at one of 5 places: the ends are in one of them, the others in two.
    share = np.full(total, k / total) if when == "random" else np.array([1, 2, 2, 2, 2, 1]) / 5
    assert (np.abs(counts / draws - share) < 5 * np.sqrt(share * (1 - share) / draws)).all()


@pytest.mark.parametrize("k", [K, None])
@pytest.mark.parametrize("kind", [np.array, list])
def test_a_mask_says_when(k, kind):
    mask = np.isin(np.arange(T), np.random.default_rng(1).choice(T, K, replace=False))
    spoiled = adversaries.LabelFlip().corrupt(labelled(), k=k, seed=0, when=kind(mask.tolist()))
    np.testing.assert_array_equal(spoiled.clean, ~mask)


@pytest.mark.parametrize("adversary", ALL, ids=repr)
def test_none_to_corrupt(adversary):
    stream = labelled()
    for when, k in (*((word, 0) for word in WORDS), (np.zeros(T, dtype=bool), None)):
        spoiled = adversary.corrupt(stream, k=k, seed=0, when=when)
        for name in ("X", "y", "clean", "truth"):
            np.testing.assert_array_equal(getattr(spoiled, name), getattr(stream, name))


@pytest.mark.parametrize("second", ALL, ids=repr)
@pytest.mark.parametrize("first", [RESPONSES[0], FEATURES[0], RECORDS[0]], ids=repr)
def test_corrupting_twice_keeps_the_first_original(first, second):
    stream = labelled()
    once = first.corrupt(stream, k=15, seed=1, when="first")
    if second == adversaries.LabelFlip() and not (np.abs(once.y) == 1).all():
        with pytest.raises(DataError, match="LabelFlip needs labels of -1 and 1"):
            second.corrupt(once, k=15, seed=2, when="burst")
        return
    before = (once.X.copy(), once.y.copy(), once.originals.X.copy(), once.originals.y.copy())
    mask = np.isin(np.arange(T), np.arange(10, 20))
    twice = second.corrupt(once, k=None, seed=2, when=mask)
    np.testing.assert_array_equal(twice.clean, np.arange(T) >= 20)
    np.testing.assert_array_equal(twice.uncorrupted().X, stream.X)
    np.testing.assert_array_equal(twice.uncorrupted().y, stream.y)
    for now, then in zip((once.X, once.y, once.originals.X, once.originals.y), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_what_was_lost_stays_lost():
    clean = np.arange(T) > 0
    stream = rd.Stream(labelled().X, labelled().y, clean)
    spoiled = adversaries.LabelFlip().corrupt(stream, k=2, seed=0, when="last")
    assert spoiled.corrupted == 3
    assert spoiled.originals is None
    with pytest.raises(DataError, match="not their originals"):
        spoiled.uncorrupted()


@pytest.mark.parametrize(
    ("k", "when", "message"),
    [
        (-1, "random", "The 'k' parameter of LabelFlip.corrupt must be a whole number in [0, 40]. Got -1 instead."),
        (41, "burst", "The 'k' parameter of LabelFlip.corrupt must be a whole number in [0, 40]. Got 41 instead."),
        (None, "last", "The 'k' parameter of LabelFlip.corrupt must be a whole number in [0, 40]. Got None instead."),
        (1.0, "first", "The 'k' parameter of LabelFlip.corrupt must be a whole number in [0, 40]. Got 1.0 instead."),
        (
            3,
            "often",
            "must be one of 'random', 'burst', 'periodic', 'first', 'last', or 40 bools. Got 'often' instead.",
        ),
        (3, [True, False], "must be a word or 40 bools, one for each round. Got [True, False] instead."),
        (1, np.arange(T), "must be a word or 40 bools, one for each round."),
        (
            3,
            [True] * T,
            "The 'k' parameter of LabelFlip.corrupt must be None or the 40 rounds that 'when' marks. Got 3",
        ),
    ],
)
def test_bad_budgets_are_refused(k, when, message):
    with pytest.raises(ParameterError) as caught:
        adversaries.LabelFlip().corrupt(labelled(), k=k, seed=0, when=when)
    assert message in str(caught.value)


def test_label_flip_needs_labels():
    stream = rd.Stream([[1.0], [1.0]], [1.0, 0.5])
    with pytest.raises(DataError, match=r"^LabelFlip needs labels of -1 and 1\. Got 0\.5 in row 1 instead\.$"):
        adversaries.LabelFlip().corrupt(stream, k=1, seed=0)


def test_an_adversary_needs_a_stream():
    with pytest.raises(ParameterError, match=r"The 'stream' parameter of ShiftResponse\.corrupt must be a Stream"):
        adversaries.ShiftResponse(1.0).corrupt(np.ones((2, 2)), k=1, seed=0)


@pytest.mark.parametrize(
    ("kind", "settings", "name"),
    [
        (adversaries.UniformResponse, {"low": 1.0, "high": 0.0}, "high"),
        (adversaries.UniformResponse, {"low": np.nan, "high": 0.0}, "low"),
        (adversaries.UniformResponse, {"low": 0.0, "high": np.inf}, "high"),
        (adversaries.ShiftResponse, {"by": np.inf}, "by"),
        (adversaries.ShiftResponse, {"by": "1"}, "by"),
        (adversaries.ScaleFeatures, {"by": np.nan}, "by"),
        (adversaries.ReplaceFeatures, {"scale": 0.0}, "scale"),
        (adversaries.ReplaceRecord, {"scale": -1.0}, "scale"),
        (adversaries.ReplaceRecord, {"response_scale": None}, "response_scale"),
        (adversaries.Adaptive, {"loss": "squared"}, "loss"),
        (adversaries.Adaptive, {"loss": rd.losses.Squared(), "smallest": 0.0}, "smallest"),
        (adversaries.Adaptive, {"loss": rd.losses.Squared(), "smallest": 2.0, "largest": 1.0}, "largest"),
        (adversaries.Adaptive, {"loss": rd.losses.Squared(), "sizes": 0}, "sizes"),
        (adversaries.Adaptive, {"loss": rd.losses.Squared(), "x_scales": ()}, "x_scales"),
        (adversaries.Adaptive, {"loss": rd.losses.Squared(), "x_scales": (np.inf,)}, "x_scales"),
        (adversaries.Adaptive, {"loss": rd.losses.Squared(), "x_scales": [1.0]}, "x_scales"),
    ],
)
def test_bad_settings_are_refused(kind, settings, name):
    with pytest.raises(ParameterError, match=rf"^The '{name}' parameter of {kind.__name__} must be .* instead\.$"):
        kind(**settings)


def learners(loss, dim, rounds):
    step = rd.steps.Anytime(0.1)
    return {
        "OGD": lambda: rd.OGD(dim, loss=loss, step=step),
        "Learn": lambda: rd.Learn(dim, loss=loss, a=0.5, b=0.01, step=step),
        "Tukey": lambda: rd.Robust(dim, loss=loss, transform=rd.transforms.Tukey(2.0), step=step),
        "TopK": lambda: rd.TopK(dim, loss=loss, k=5, step=step),
        "Ball": lambda: rd.OGD(dim, loss=loss, step=step, domain=rd.domains.Ball(2.0)),
        "Oracle": lambda: rd.Oracle(dim, loss=loss, clean=np.arange(rounds) >= 10, step=step),
    }


PROBLEMS = {
    "regression": (rd.losses.Squared(l2=1e-3), rd.streams.ridge(60, seed=0, dim=DIM), (1.0,)),
    "quantile": (rd.losses.Pinball(0.8), rd.streams.ridge(60, seed=0, dim=DIM), (1.0, -1.0, 10.0)),
    "labels": (rd.losses.Logistic(), rd.streams.svm(60, seed=0, dim=DIM), (0.1, 1.0)),
}


NAMES = ["OGD", "Learn", "Tukey", "TopK", "Ball", "Oracle"]


@pytest.mark.parametrize(("name", "problem", "dtype"), sample(NAMES, PROBLEMS, [np.float32, np.float64], every=5))
def test_adaptive_leaves_the_learner_where_its_stream_leads(name, problem, dtype):
    loss, stream, x_scales = PROBLEMS[problem]
    stream = rd.Stream(stream.X.astype(dtype), stream.y.astype(dtype), truth=stream.truth)
    make = learners(loss, DIM, len(stream))[name]
    learner, fresh = make(), make()
    adversary = adversaries.Adaptive(loss, x_scales=x_scales)
    trace, played = adversary.play(learner, stream, k=10, seed=0, when="first", keep_actions=True)
    replayed = rd.play(fresh, played, keep_actions=True)
    for field in ("actions", "losses", "weights", "theta"):
        np.testing.assert_array_equal(getattr(trace, field), getattr(replayed, field))
    np.testing.assert_array_equal(learner.theta, fresh.theta)
    assert trace.actions.dtype == dtype
    np.testing.assert_array_equal(played.clean, np.arange(60) >= 10)
    np.testing.assert_array_equal(played.uncorrupted().X, stream.X)
    np.testing.assert_array_equal(played.uncorrupted().y, stream.y)
    if problem == "labels":
        np.testing.assert_array_equal(played.y[:10], -stream.y[:10])


def test_adaptive_takes_the_worst_of_its_candidates():
    loss = rd.losses.Squared()
    stream = rd.streams.ridge(1, seed=0, dim=DIM)
    x, y = stream.X[0], stream.y[0]

    def make():
        # Weight 0 from a residual of 2 on: the worst record is not the farthest.
        return rd.Robust(
            DIM, loss=loss, transform=rd.transforms.Tukey(2.0), step=rd.steps.Constant(0.2), start=[0.1, 0.0, -0.1]
        )

    prediction = make().theta @ x
    left = {}
    for residual in np.geomspace(0.1, 10.0, 5):
        for response in (prediction + residual, prediction - residual):
            learner = make()
            learner.update(x, response)
            left[response] = (learner.theta @ x - y) ** 2
    worst = max(left, key=left.get)
    assert abs(worst - prediction) < 2.0
    adversary = adversaries.Adaptive(loss, smallest=0.1, largest=10.0, sizes=5)
    played = adversary.play(make(), stream, k=1, seed=0)[1]
    # The prediction may be summed in another order.
    np.testing.assert_allclose(played.y, [worst], rtol=1e-14)


@pytest.mark.parametrize("name", ["OGD", "Learn", "Tukey"])
def test_adaptive_hurts_more_than_chance(name):
    loss = rd.losses.Squared()
    stream = rd.streams.ridge(2000, seed=0, dim=5)
    make = learners(loss, 5, len(stream))[name]
    trace, played = adversaries.Adaptive(loss, largest=10.0).play(make(), stream, k=100, seed=1)
    chance = adversaries.UniformResponse(-10.0, 10.0).corrupt(stream, k=100, seed=1)
    np.testing.assert_array_equal(played.clean, chance.clean)
    adaptive, random = (
        rd.regret.clean_dynamic(*game, loss)[-1] for game in ((trace, played), (rd.play(make(), chance), chance))
    )
    # Twice the mean residual of chance, and always away from the truth: more than twice for one that believes it all.
    assert adaptive > (2.0 if name == "OGD" else 1.0) * random


def test_adaptive_counts_loss_on_what_nature_made():
    loss = rd.losses.Squared()
    stream = rd.Stream([[1.0]], [2.0])
    shifted = adversaries.ShiftResponse(-100.0).corrupt(stream, k=1, seed=0)
    adversary = adversaries.Adaptive(loss, largest=8.0)
    played = adversary.play(rd.OGD(1, loss=loss, step=rd.steps.Constant(0.25)), shifted, k=1, seed=0)[1]
    np.testing.assert_array_equal(played.y, [-8.0])
    np.testing.assert_array_equal(played.originals.y, [2.0])


def test_adaptive_with_no_budget_only_plays():
    loss, stream, _ = PROBLEMS["regression"]
    make = learners(loss, DIM, len(stream))["OGD"]
    trace, played = adversaries.Adaptive(loss).play(make(), stream, k=0, seed=0)
    np.testing.assert_array_equal(trace.losses, rd.play(make(), stream).losses)
    np.testing.assert_array_equal(played.y, stream.y)
    assert trace.actions is None
    assert played.corrupted == 0


def test_adaptive_shuns_records_that_the_learner_refuses():
    loss = rd.losses.Squared()
    stream = rd.Stream([[1e100]], [1.0])
    learner = rd.OGD(1, loss=loss, step=rd.steps.Constant(1e60))
    with pytest.raises(DivergenceError, match=r"^Every record that Adaptive could play makes the action overflow"):
        adversaries.Adaptive(loss).play(learner, stream, k=1, seed=0)
    np.testing.assert_array_equal(learner.theta, [0.0])
    trace, played = adversaries.Adaptive(loss, x_scales=(1.0, 1e-50)).play(learner, stream, k=1, seed=0)
    assert played.X[0, 0] == pytest.approx(1e50)
    assert np.isfinite(trace.theta).all()


def test_adaptive_names_the_bad_row_and_takes_the_game_back():
    loss = rd.losses.Squared()
    stream = rd.Stream([[1.0], [np.nan]], [1.0, 1.0])
    learner = rd.OGD(1, loss=loss, step=rd.steps.Constant(0.1))
    with pytest.raises(DataError, match=r"^Row 1: x must be finite"):
        adversaries.Adaptive(loss).play(learner, stream, k=1, seed=0, when="first")
    assert learner.rounds == 0
    with pytest.raises(DataError, match="The learner has 1 features and the stream has 2"):
        adversaries.Adaptive(loss).play(learner, rd.Stream([[1.0, 1.0]], [1.0]), k=1, seed=0)
    with pytest.raises(ParameterError, match=r"The 'learner' parameter of Adaptive\.play must be a learner"):
        adversaries.Adaptive(loss).play("OGD", stream, k=1, seed=0)
