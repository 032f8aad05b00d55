"""What a loss says to the self-tuning learner: densities that are densities, implicit steps that are minimisers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit

from redescend import losses
from redescend.losses import likelihood
from tests.catalogue import name_of

SCALES = [1e-6, 0.3, 1.0, 40.0, 1e6]
REGRESSION = [
    losses.Squared(),
    losses.Absolute(),
    losses.EpsilonInsensitive(0.5),
    losses.EpsilonInsensitive(0.0),
    losses.Pinball(0.5),
    losses.Pinball(0.9),
]
LABELS = [losses.Hinge(), losses.Logistic()]


def densities_of(loss: losses.LinearLoss, r: float, s: float, unit: float = 1.0) -> tuple[float, float]:
    """For the prediction r of the target 0; for labels r is the margin."""
    size = r if loss.margin else abs(r)
    return likelihood.densities(loss.kind, loss.setting, float(loss.of_prediction(r, 1.0 * loss.margin)), size, s, unit)


@pytest.mark.parametrize("s", SCALES)
@pytest.mark.parametrize("loss", REGRESSION, ids=name_of)
def test_clean_records_have_a_density(loss, s):
    """Its integral over all targets is 1; past 60 scales from the kink nothing is left."""
    edge = loss.setting if isinstance(loss, losses.EpsilonInsensitive) else 0.0
    reach = 400.0 * s

    def height(r: float) -> float:
        return densities_of(loss, r, s)[0]

    pieces = [(-edge - reach, -edge), (-edge, edge), (edge, edge + reach)]
    total = sum(quad(height, low, high, points=[low, high], limit=500)[0] for low, high in pieces)
    assert total == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("margin", [-1e300, -800.0, -1.0, 0.0, 1e-9, 3.0, 800.0, 1e300])
@pytest.mark.parametrize("s", [0.25, 1.0, 64.0])
@pytest.mark.parametrize("loss", LABELS, ids=name_of)
def test_a_label_is_clean_or_flipped(loss, s, margin):
    clean, flipped = densities_of(loss, margin, s)
    other, kept = densities_of(loss, -margin, s)
    assert clean == pytest.approx(expit(margin / s), rel=1e-14)
    assert clean + flipped == 1.0
    assert clean + other == pytest.approx(1.0, abs=1e-15)
    assert kept == pytest.approx(clean, abs=1e-15)


@pytest.mark.parametrize("r", [1.0, -2.5, 1e3, -1e8])
@pytest.mark.parametrize("loss", REGRESSION, ids=name_of)
def test_an_outlier_is_as_likely_under_every_smaller_scale(loss, r):
    """Were it less likely under a large scale, outliers would drive the scale to 0."""
    width = abs(r) - (loss.setting if isinstance(loss, losses.EpsilonInsensitive) else 0.0)
    found = {densities_of(loss, r, s)[1] for s in (1e-9 * width, 0.1 * width, 0.9 * width)}
    assert len(found) == 1
    assert found.pop() == pytest.approx(0.25 / abs(r), rel=1e-14)
    assert densities_of(loss, r, 2.0 * abs(r))[1] < 0.25 / abs(r)


@pytest.mark.parametrize("loss", REGRESSION, ids=name_of)
def test_a_record_far_away_is_an_outlier_and_one_at_hand_is_clean(loss):
    clean, outlier = densities_of(loss, 200.0, 1.0)
    assert clean < 1e-2 * outlier
    clean, outlier = densities_of(loss, 0.0, 1.0)
    assert clean > 0.3 * outlier


@pytest.mark.parametrize("r", [0.0, 1e-300, -1e-150, 1e150, -1e150])
@pytest.mark.parametrize("s", [1e-270, 1e-150, 1e-100, 1.0, 1e100, 1e270])
@pytest.mark.parametrize("loss", [*REGRESSION, *LABELS], ids=name_of)
def test_densities_of_any_size_are_finite_in_their_unit(loss, s, r):
    with np.errstate(all="ignore"):
        pair = densities_of(loss, r, s, unit=max(abs(r), s) if not loss.margin else 1.0)
    assert np.isfinite(pair).all()
    assert min(pair) >= 0.0
    assert max(pair) > 0.0


@pytest.mark.parametrize("loss", REGRESSION, ids=name_of)
def test_the_unit_multiplies_both_densities(loss):
    plain, scaled = densities_of(loss, 0.7, 0.4), densities_of(loss, 0.7, 0.4, unit=8.0)
    np.testing.assert_allclose(scaled, 8.0 * np.array(plain), rtol=1e-14)


def test_both_sides_of_the_sigmoid_have_all_their_digits():
    z = np.concatenate([np.linspace(-700.0, 700.0, 2001), [-1e-300, 0.0, 1e-300, 1e300]])
    np.testing.assert_allclose(likelihood.sigmoid(z), expit(z), rtol=1e-15, atol=0.0)
    with np.errstate(under="ignore"):
        assert likelihood.sigmoid(-1e300) == 0.0
    assert likelihood.sigmoid(1e300) == 1.0


@pytest.mark.parametrize("a", [0.0, 1e-300, 1e-8, 0.5, 1.0, 20.0, 1e4, 1e8, 1e100])
@pytest.mark.parametrize("m", [-1e100, -1e4, -50.0, -1.0, 0.0, 1e-12, 2.0, 50.0, 600.0])
def test_the_pull_of_a_label_solves_its_equation(m, a):
    """z = m + a·σ(−z), as well as z can be written: to some ulps of the largest of its three numbers."""
    pull = float(likelihood.logistic_pull(m, a))
    assert 0.0 <= pull <= 1.0
    z = m + a * pull
    if min(pull, 1.0 - pull) > 1e-300:
        # z from the pull itself; the equation is steep in z where a is large.
        from_pull = np.log1p(-pull) - np.log(pull) if pull < 0.5 else np.log((1.0 - pull) / pull)
        steep = 1.0 + a * pull * (1.0 - pull)
        ulps = np.spacing(max(abs(m), a * pull, 1.0)) * steep + 1e-15 / min(pull, 1.0 - pull)
        assert abs(from_pull - z) <= 1e-12 * steep * (1.0 + abs(z)) + 100.0 * ulps
    assert pull <= expit(-m) * (1.0 + 1e-12)


MOVES = [
    (loss, p, y) for loss in REGRESSION for p, y in ((0.0, 1.0), (2.0, -1.0), (1.0, 1.2), (3.0, 3.0), (-5.0, 90.0))
]
MOVES += [(loss, p, y) for loss in LABELS for p in (-4.0, 0.0, 0.7, 9.0) for y in (-1.0, 1.0)]


@pytest.mark.parametrize("xx", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("e", [1e-3, 0.4, 16.0])
@pytest.mark.parametrize(("loss", "p", "y"), MOVES, ids=str)
def test_an_implicit_step_is_a_minimiser(loss, p, y, e, xx):
    """θ + μ·x minimises f + ‖· − θ‖²/(2e): along x, φ(p + μ·xx) + μ²·xx/(2e). Hinge moves as the logistic loss does."""
    paid = losses.Logistic() if loss.margin else loss
    move = likelihood.implicit_move(loss.kind, loss.setting, p, y, e, xx, 1.0)

    def objective(mu: float) -> float:
        return float(paid.of_prediction(p + mu * xx, y)) + mu * mu * xx / (2.0 * e)

    reach = 2.0 * (abs(p - y) / xx + e)
    found = minimize_scalar(objective, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-12 * reach})
    assert objective(move) <= found.fun + 1e-12 * (1.0 + found.fun)
    # A minimum is known to the root of the precision of its value.
    curvature = xx / e
    assert abs(move - found.x) <= 1e-6 * reach + np.sqrt(4e-15 * (1.0 + found.fun) / curvature)


@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("loss", REGRESSION[1:], ids=name_of)
def test_steps_of_losses_that_grow_linearly_are_in_units_of_the_spread(loss, spread):
    scaled = losses.EpsilonInsensitive(loss.setting * spread) if loss.kind == losses.EpsilonInsensitive.kind else loss
    move = likelihood.implicit_move(loss.kind, loss.setting, 2.0, -1.0, 0.1, 3.0, 1.0)
    other = likelihood.implicit_move(scaled.kind, scaled.setting, 2.0 * spread, -spread, 0.1, 3.0, spread)
    assert other == pytest.approx(move * spread, rel=1e-14)


@pytest.mark.parametrize("loss", [*REGRESSION, *LABELS], ids=name_of)
def test_information_is_what_a_record_says_of_its_prediction(loss):
    """Squared loss: 1 by definition. Labels: the curvature of the loss at the new margin. Others: Fisher's."""
    s, pull = 0.7, 0.2
    found = likelihood.information(loss.kind, loss.setting, pull, s)
    if isinstance(loss, losses.Squared):
        assert found == 1.0
    elif loss.margin:
        z, h = -np.log(pull / (1.0 - pull)), 1e-4
        f = losses.Logistic().of_prediction
        assert found == pytest.approx((f(z + h, 1.0) - 2.0 * f(z, 1.0) + f(z - h, 1.0)) / h**2, rel=1e-6)
    else:

        def density(r: float) -> float:
            if isinstance(loss, losses.Pinball):  # the density of which the loss is the negative logarithm
                return loss.quantile * (1.0 - loss.quantile) / s * np.exp(-loss.of_prediction(r, 0.0) / s)
            return densities_of(loss, r, s)[0]

        def score2(r: float) -> float:
            return density(r) * (loss.slope(r, 0.0) / s) ** 2

        edge = loss.setting if isinstance(loss, losses.EpsilonInsensitive) else 0.0
        fisher = sum(quad(score2, *ends, limit=200)[0] for ends in ((-edge - 90.0, -edge), (edge, edge + 90.0)))
        assert found == pytest.approx(fisher * s**2, rel=1e-6)


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.8])
def test_members_of_a_quantile_are_compared_by_what_they_pay(quantile):
    """By the density of which the loss is the negative logarithm, at the scale 2τ(1 − τ)·s: its integral is 1."""
    loss, s = losses.Pinball(quantile), 0.7

    def density(r: float) -> float:
        f = float(loss.of_prediction(r, 0.0))
        return likelihood.member_density(loss.kind, loss.setting, f, s, 1.0, np.nan)

    total = quad(density, -300.0, 0.0, limit=500)[0] + quad(density, 0.0, 300.0, limit=500)[0]
    assert total == pytest.approx(1.0, rel=1e-6)
    assert likelihood.member_density(losses.Squared.kind, 0.0, 1.0, s, 1.0, 0.123) == 0.123
