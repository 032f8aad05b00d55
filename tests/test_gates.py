"""Gates against slow lists that follow their statements, round by round as a kernel plays them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redescend import gates
from redescend.gates import Always, Clip, Gate, Oracle, Robust, TopK
from tests.catalogue import GATES, TRANSFORMS, name_of

# few distinct lengths, so that ties abound, and 0: a round without a gradient
LENGTHS = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0, 2.5, 4.0, 5.0, 1e300]) | st.floats(0, 1e3), max_size=60)


def weigh(gate: Gate, memory: np.ndarray, t: int, f: float, length: float) -> float:
    transform, c, b = gate.settings
    with np.errstate(over="ignore"):  # a kernel does not warn of exp(f/a)
        return float(gates.weigh(gate.kind, transform, c, b, memory, t, np.float64(f), length))


def weights(gate: Gate, lengths: list[float], f: float = 1.0) -> list[float]:
    """The weight that the gate gives every round."""
    memory, out = gate.fresh_memory(), []
    for t, length in enumerate(lengths):
        out.append(weigh(gate, memory, t, f, length))
        gates.remember(gate.kind, memory, length)
    return out


def top_k_filter(lengths: list[float], k: int) -> Iterator[float]:
    """van Erven's filter: a list of k + 1 zeros; replace its smallest entry, then compare with twice the smallest."""
    largest = [0.0] * (k + 1)
    for length in lengths:
        if length > min(largest):
            largest.remove(min(largest))
            largest.append(length)
        yield 0.0 if length > 2 * min(largest) else 1.0


def clipped(lengths: list[float], quantile: float, window: int) -> Iterator[float]:
    """min(1, Q/‖g‖): Q is the smallest of the last lengths that at least this share of them does not exceed."""
    for t, length in enumerate(lengths):
        before = np.sort(lengths[max(0, t - window) : t])
        if not len(before):
            yield 1.0
            continue
        limit = next(entry for entry in before if np.mean(before <= entry) >= quantile)
        yield limit / length if length > limit else 1.0


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 7, 20, 100])
@given(lengths=LENGTHS)
def test_top_k_follows_the_list(k, lengths):
    assert weights(TopK(k), lengths) == list(top_k_filter(lengths, k))


def test_top_k_on_a_long_stream():
    lengths = np.random.default_rng(0).pareto(1.5, 1200).tolist()
    for k in (0, 10, 63, 64, 1199, 5000):
        assert weights(TopK(k), lengths) == list(top_k_filter(lengths, k))


def test_top_k_leaves_out_the_first_k_gradients_and_none_without_k():
    assert weights(TopK(3), [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]) == [0.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    assert weights(TopK(0), [1.0, 1e300, 1e-300]) == [1.0, 1.0, 1.0]


def test_top_k_keeps_a_gradient_of_exactly_twice():
    assert weights(TopK(1), [1.0, 1.0, 2.0]) == [0.0, 1.0, 1.0]
    assert weights(TopK(1), [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 16.1])[-1] == 0.0


@given(lengths=LENGTHS, k=st.integers(0, 9))
def test_top_k_remembers_the_largest(lengths, k):
    memory = TopK(k).fresh_memory()
    for length in lengths:
        gates.remember(gates.TOP_K, memory, length)
    assert sorted(memory) == sorted([0.0] * (k + 1) + lengths)[-(k + 1) :]


@pytest.mark.parametrize("window", [1, 2, 5, 8, 100])
@pytest.mark.parametrize("quantile", [1e-9, 0.25, 0.5, 0.875, 1.0])
@settings(max_examples=40)
@given(lengths=LENGTHS)
def test_clip_follows_the_sorted_list(quantile, window, lengths):
    computed = weights(Clip(quantile, window), lengths)
    np.testing.assert_allclose(computed, list(clipped(lengths, quantile, window)), rtol=1e-15)


def test_clip_on_a_long_stream():
    lengths = np.random.default_rng(1).pareto(1.0, 600).tolist()
    np.testing.assert_allclose(weights(Clip(0.75, 101), lengths), list(clipped(lengths, 0.75, 101)), rtol=1e-15)


def test_clip_takes_the_ninth_of_ten_at_nine_tenths():
    """0.9·10 rounds to 9: the quantile is the one a person would name."""
    lengths = [float(length) for length in range(1, 11)]
    assert weights(Clip(0.9, 10), [*lengths, 90.0])[-1] == 9.0 / 90.0


def test_clip_shortens_to_the_quantile_exactly():
    random = np.random.default_rng(2)
    lengths = random.exponential(size=60)
    computed = np.array(weights(Clip(0.5, 21), lengths.tolist()))
    assert computed[0] == 1.0
    for t in range(1, 60):
        median = np.quantile(lengths[max(0, t - 21) : t], 0.5, method="inverted_cdf")
        assert computed[t] * lengths[t] == pytest.approx(min(lengths[t], median), rel=1e-15)


def test_clip_lets_a_gradient_through_after_rounds_without_any():
    """Zeros are lengths like any other: a window of them shuts the gate."""
    assert weights(Clip(0.5, 3), [0.0, 0.0, 1.0]) == [1.0, 1.0, 0.0]


def test_oracle_believes_the_clean_rounds_and_knows_no_more():
    gate = Oracle([True, False, True])
    assert weights(gate, [1.0, 1e300, 0.0]) == [1.0, 0.0, 1.0]
    assert np.isnan(weigh(gate, gate.fresh_memory(), 3, 1.0, 1.0))


def test_oracle_keeps_its_own_list():
    told = np.array([True, False])
    gate = Oracle(told)
    told[:] = True
    assert weights(gate, [1.0, 1.0]) == [1.0, 0.0]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=name_of)
def test_robust_is_the_weight_of_its_transform(transform):
    gate = Robust(transform)
    for f in (0.0, 1e-9, 0.3, 1.0, 50.0):
        assert weigh(gate, gate.fresh_memory(), 0, f, 7.0) == transform.weight(f)


def test_always_believes():
    assert weights(Always(), [0.0, 1e-300, 1e308]) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("gate", GATES, ids=name_of)
class TestEveryGate:
    def test_believing_changes_nothing(self, gate):
        random = np.random.default_rng(3)
        memory = gate.fresh_memory()
        for t in range(50):
            kept = memory.copy()
            f, length = random.exponential(size=2)
            first = weigh(gate, memory, t, f, length)
            assert weigh(gate, memory, t, f, length) == first
            np.testing.assert_array_equal(memory, kept)
            gates.remember(gate.kind, memory, length)

    def test_weights_are_between_zero_and_one(self, gate):
        random = np.random.default_rng(4)
        memory = gate.fresh_memory()
        for t, (f, length) in enumerate(random.pareto(0.5, (150, 2))):
            assert 0.0 <= weigh(gate, memory, t, f, length) <= 1.0
            gates.remember(gate.kind, memory, length)

    def test_a_fresh_memory_is_fresh(self, gate):
        memory = gate.fresh_memory()
        memory += 5.0
        assert not np.shares_memory(memory, gate.fresh_memory())
        np.testing.assert_array_equal(memory - 5.0, gate.fresh_memory())

    def test_settings_are_plain_numbers(self, gate):
        transform, c, b = gate.settings
        assert (type(transform), type(c), type(b)) == (int, float, float)
