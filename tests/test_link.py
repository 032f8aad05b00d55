"""Logits of all classes together, learned from the scores of each class against the rest."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from redescend import losses
from redescend.engines import Engine, ModelConfig, SelfTuningEngine, Shape
from redescend.engines.fleet import Fleet
from redescend.engines.labels import apply_link, count_losses, encode_labels, label_probabilities, learn_scores
from redescend.errors import DataError
from redescend.kernels.link import new_link, read_link
from tests.reference_link import play_link

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_numbers():
    """Every test draws the same numbers, in whatever order the tests run."""
    RANDOM.bit_generator.state = np.random.default_rng(0).bit_generator.state


def draw_scores(rows=400, classes=4):
    """Scores of ordered classes, of which those in the middle say nothing, and labels of which a tenth are wrong."""
    place = RANDOM.normal(size=rows)
    labels = np.clip(np.floor(place + classes / 2), 0, classes - 1).astype(int)
    scores = np.where(np.arange(classes) == 0, -3.0, np.where(np.arange(classes) == classes - 1, 3.0, 0.1))
    wrong = RANDOM.random(rows) < 0.1
    given = np.where(wrong, RANDOM.integers(0, classes, rows), labels)
    return scores * place[:, None] + 0.5 * RANDOM.normal(size=(rows, classes)) - 1.0, given


def draw_rows(rows=600, classes=3):
    X = RANDOM.normal(size=(rows, 4))
    labels = np.clip(np.floor(2.0 * X[:, 0] + 0.3 * X[:, 1] + classes / 2), 0, classes - 1).astype(int)
    return X, encode_labels(labels, classes), labels


def make_engine(order=2, classes=3, features="linear") -> Engine:
    config = ModelConfig.from_parameters("test", "classification", loss="logistic", order=order, features=features)
    return config.make_engine(4, classes)


@pytest.mark.parametrize("classes", [3, 4, 7])
def test_link_agrees_with_the_slow_reference(classes):
    scores, labels = draw_scores(classes=classes)
    scores[::50] *= 40.0  # long ones are shortened
    weights = RANDOM.choice([0.0, 0.5, 1.0, 3.0], len(labels))
    link, said = new_link(classes), np.ascontiguousarray(scores.T)
    learn_scores(link, encode_labels(labels, classes), weights, said)
    logits, A, P, flips = play_link(scores, labels, weights)
    parts = read_link(link, classes)
    np.testing.assert_allclose(said.T, logits, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parts["A"], A, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parts["P"], P[np.tril_indices(classes + 1)], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parts["flips"], flips, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("order", "features"), [(1, "linear"), (2, "linear"), (2, "auto")])
def test_any_cut_and_a_restored_state_give_equal_bits(order, features):
    X, Y, _ = draw_rows()
    whole, parts = make_engine(order, features=features), make_engine(order, features=features)
    at_once = whole.learn_rounds(X, Y).predictions
    said = []
    for first, last in ((0, 1), (1, 40), (40, 41), (41, 333), (333, 600)):
        said.append(parts.learn_rounds(X[first:last], np.ascontiguousarray(Y[:, first:last])).predictions)
        restored = make_engine(order, features=features)
        restored.restore(parts.state())
        parts = restored
    assert np.concatenate(said, axis=1).tobytes() == at_once.tobytes()
    assert parts.predict(X).tobytes() == whole.predict(X).tobytes()
    one_by_one = np.column_stack([whole.predict(X[[i]])[:, 0] for i in range(50)])
    assert one_by_one.tobytes() == whole.predict(X)[:, :50].copy().tobytes()


def test_predictions_of_an_engine_are_linked_and_linear():
    X, Y, _ = draw_rows()
    linked, plain = make_engine(), SelfTuningEngine(Shape(4, 3, losses.Logistic()), 2)
    before, after = plain.learn_rounds(X, Y).predictions, linked.learn_rounds(X, Y).predictions
    learn_scores(link := new_link(3), Y, np.ones(len(X)), before)
    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(linked.link, link)
    np.testing.assert_allclose(linked.predict(X), apply_link(link, plain.predict(X)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(linked.contributions(X).sum(axis=2), linked.predict(X), rtol=1e-9, atol=1e-9)


def test_contributions_of_trees_add_up_to_linked_predictions():
    X, Y, _ = draw_rows(900)
    engine = make_engine(features="auto")
    engine.learn_rounds(X, Y)
    total = engine.contributions(X[:20]).sum(axis=2)
    np.testing.assert_allclose(total, engine.predict(X[:20]), rtol=1e-9, atol=1e-9)


def test_sparse_rows_and_keys_learn_the_same_link():
    X, Y, _ = draw_rows()
    dense, sparse, fleet = make_engine(1), make_engine(1), Fleet(make_engine(1), [])
    ones = np.ones(len(X))
    dense.learn(X, Y, ones)
    sparse.learn(csr_array(X), Y, ones)
    np.testing.assert_allclose(sparse.link, dense.link, rtol=1e-9, atol=1e-12)
    fleet.grow(2)
    said, _ = fleet.learn(X, Y, np.array([0, 250, 600]), np.array([1, 0]))
    for place, rows in ((1, slice(0, 250)), (0, slice(250, 600))):
        alone = make_engine(1)
        assert alone.learn_rounds(X[rows], Y[:, rows].copy()).predictions.tobytes() == said[:, rows].tobytes()
        assert fleet.engine(place).link.tobytes() == alone.link.tobytes()


def test_a_class_between_two_others_is_learned():
    random = np.random.default_rng(1)
    X = random.normal(size=(4000, 4))
    labels = np.digitize(X[:, 0] + 0.1 * random.normal(size=4000), [-1.0, -0.4, 0.4, 1.0])
    Y, scores = encode_labels(labels, 5), []
    for engine in (make_engine(classes=5), SelfTuningEngine(Shape(4, 5, losses.Logistic()), 2)):
        engine.learn_rounds(X[:2000], Y[:, :2000].copy())
        scores.append(float(np.mean(engine.predict(X[2000:]).argmax(axis=0) == labels[2000:])))
    assert scores[0] > 0.85
    assert scores[1] < scores[0] - 0.1  # without a link


def test_wrong_labels_do_not_move_it():
    scores, labels = draw_scores(4000, 3)
    parts = []
    for given in (labels, np.where(RANDOM.random(4000) < 0.2, RANDOM.integers(0, 3, 4000), labels)):
        link = new_link(3)
        learn_scores(link, encode_labels(given, 3), np.ones(4000), np.ascontiguousarray(scores.T))
        parts.append(read_link(link, 3))
    shares = np.array([0.001, 0.01, 0.03, 0.1, 0.2, 0.3])
    assert parts[1]["flips"] @ shares > parts[0]["flips"] @ shares + 0.05
    logits = [part["A"] @ np.column_stack([scores, np.ones(4000)]).T for part in parts]
    assert np.mean(logits[0].argmax(axis=0) == logits[1].argmax(axis=0)) > 0.95


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e30, 1.7e308])
def test_no_score_makes_it_non_finite(size):
    classes = 3
    said = size * RANDOM.choice([-1.0, 0.0, 1.0], (classes, 200))
    link = new_link(classes)
    Y, weights = encode_labels(RANDOM.integers(0, classes, 200), classes), RANDOM.choice([0.0, 1.0, 1e300], 200)
    learn_scores(link, Y, weights, said)
    assert np.isfinite(link).all()
    assert np.isfinite(said).all()
    assert np.isfinite(apply_link(link, said)).all()
    assert np.isfinite(label_probabilities(said)).all()
    assert np.isfinite(count_losses(losses.Logistic(), said, Y)).all()


def test_losses_are_those_of_the_given_label():
    _, Y, labels = draw_rows(50)
    said = RANDOM.normal(size=(3, 50))
    expected = -np.log(label_probabilities(said)[labels, np.arange(50)])
    np.testing.assert_allclose(count_losses(losses.Logistic(), said, Y), expected, rtol=1e-12)
    both = count_losses(losses.Hinge(), said, Y)
    np.testing.assert_allclose(both, np.maximum(1.0 - Y * said, 0.0).sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize(("name", "place", "value"), [("P", 0, -0.1), ("flips", 0, 2.0), ("A", (0, 0), np.nan)])
def test_a_forged_link_is_refused(name, place, value):
    engine = make_engine()
    state = engine.state()
    read_link(state["link"], 3)[name][place] = value
    with pytest.raises(DataError, match="corrupt"):
        make_engine().restore(state)
