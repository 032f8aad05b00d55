"""Every claim is decided by the results: a made-up world in which all hold, and changes that turn each one over."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from redescend.experiments import claims, problems
from redescend.experiments.pictures import PICTURES
from redescend.experiments.results import COUNTS, Results, join_blocks, p_value

RUNS = 6
SCALES = {"ridge": 1.0, "svm": 0.9}
PAIRS = {"ridge": (10.0, 10.0), "svm": (1e4, 10.0)}
ROUNDS = {"ridge": 100_000, "svm": 10_000}
CLASSIC = "Cauchy, c = 1"
STEEP = ("OGD, 1/(m·t)", "Top-k, 1/(m·t)")

# Final regret at k = 0, √T, T^⅔ and T/4; everything is in thousandths of the level that the paper names.
FINALS = {
    "LEARN": (1000.0, 1020.0, 1050.0, 4000.0),
    "OGD": (100.0, 500.0, 2000.0, 9000.0),
    "Top-k": (100.0, 600.0, 2500.0, 9500.0),
    "Uncertain Top-k": (100.0, 550.0, 2200.0, 9300.0),
    "OGD, step/11": (1000.0, 1020.0, 1050.0, 4000.0),
    CLASSIC: (300.0, 320.0, 330.0, 900.0),
    STEEP[0]: (np.inf,) * 4,
    STEEP[1]: (1e5,) * 4,
    "oracle": (90.0,) * 4,
}
LATE = {"LEARN": 0.1, "OGD": 0.9}
WEIGHTS = {"clean": (0.09,) * 4, "corrupted": (0.0, 0.08, 0.08, 0.08)}
ANGLES = dict.fromkeys(problems.PAPER, (1.0, 3.0, 6.0, 20.0)) | {"LEARN": (1.0, 1.5, 2.0, 3.0)}


def regret_blocks(problem, finals, late, random):
    T = ROUNDS[problem]
    for place, (count, k) in enumerate(problems_counts(problem).items()):
        here = {"experiment": problem, "problem": problem, "rounds": T, "count": count, "k": k}
        noise = 1.0 + 0.001 * random.standard_normal(RUNS)
        for name, row in finals.items():
            for run in range(RUNS):
                own = {**here, "run": run, "learner": name}
                final = row[place] * SCALES[problem] * noise[run] * (1.0 + 1e-5 * random.standard_normal())
                if np.isinf(final):
                    yield {**own, "round": np.array([7]), "measure": "diverged", "value": np.ones(1)}
                    continue
                early = final * (1.0 - np.resize(late.get(name, 0.3), 4)[place])
                yield {**own, "round": np.array([T // 2, T]), "measure": "regret", "value": np.array([early, final])}


def problems_counts(problem):
    rounds = getattr(problems, problem)().rounds
    return {count: problems.resolve_outlier_count(count, rounds) for count in COUNTS}


def weight_blocks(problem, weights):
    for kind, row in weights.items():
        for place, (count, k) in enumerate(problems_counts(problem).items()):
            if kind == "clean" or k:
                here = {"experiment": problem, "problem": problem, "run": 0, "rounds": ROUNDS[problem], "count": count}
                value = np.full(9, row[place])
                yield {
                    **here,
                    "k": k,
                    "learner": "LEARN",
                    "round": np.arange(9),
                    "measure": f"weight {kind}",
                    "value": value,
                }


def boundary_blocks(angles):
    for name, row in {**angles, "truth": (0.0,) * 4}.items():
        for count, angle in zip(COUNTS, row, strict=True):
            turn = np.radians(angle + 40.0)
            theta = np.zeros(2) if np.isnan(angle) else 3.0 * np.array([np.cos(turn), np.sin(turn)])
            for place in (0, 1):
                here = {"experiment": "boundaries", "problem": "svm", "run": 0, "rounds": 9, "count": count, "k": 0}
                own = {"learner": name, "round": np.array([9]), "measure": f"theta {place}"}
                yield {**here, **own, "value": np.array([theta[place]])}


def sweep_blocks(problem, exponents, best):
    here = {
        "experiment": "sweep",
        "run": np.arange(RUNS),
        "count": "T^⅔",
        "k": 1,
        "measure": "final regret",
        "learner": "LEARN",
    }
    for T in (100, 1000, 10_000):
        value = T ** np.resize(exponents, RUNS) * (1.0 + 0.001 * np.arange(RUNS))
        yield {**here, "problem": f"{problem}-T", "rounds": T, "round": T, "value": value}
    for (a, b), mean in {PAIRS[problem]: 1000.0, (1.0, 1.0): best, (2.0, 1.0): 3000.0}.items():
        value = mean + np.linspace(-1.0, 1.0, RUNS) * mean / 1000.0
        yield {**here, "problem": f"{problem}-ab", "rounds": 99, "round": 99, "a": a, "b": b, "value": value}


def world(finals=None, late=None, weights=None, angles=None, exponents=(0.5, 0.51), best=100.0):
    """Results in which every claim holds, but for what is given."""
    random = np.random.default_rng(0)
    blocks = list(boundary_blocks(ANGLES | (angles or {})))
    for problem in SCALES:
        blocks += regret_blocks(problem, FINALS | (finals or {}), LATE | (late or {}), random)
        blocks += weight_blocks(problem, WEIGHTS | (weights or {}))
        blocks += sweep_blocks(problem, exponents, best)
    return Results(join_blocks(blocks))


def verdicts(results):
    return {judgement.claim.name: judgement.verdict for judgement in claims.judge(results)}


ROWS = [
    ("cautious", "partly", {"finals": {"Top-k": (2000.0, 2100.0, 2500.0, 9500.0)}}),
    ("cautious", "contradicted", {"finals": {"LEARN": (50.0, 1020.0, 1050.0, 4000.0)}}),
    ("levels-off", "partly", {"late": {"LEARN": (0.1, 0.5, 0.1, 0.5)}}),
    ("levels-off", "contradicted", {"late": {"LEARN": 0.5}}),
    ("same", "partly", {"finals": {"LEARN": (1000.0, 1200.0, 2000.0, 4000.0)}}),
    ("same", "contradicted", {"finals": {"LEARN": (100.0, 1200.0, 3000.0, 4000.0)}}),
    ("near", "partly", {"finals": {"LEARN": (700.0, 900.0, 1300.0, 4000.0)}}),
    ("near", "contradicted", {"finals": {"LEARN": (100.0, 100.0, 100.0, 4000.0)}}),
    ("deteriorate", "partly", {"finals": {"OGD": (100.0, 120.0, 150.0, 9000.0)}}),
    (
        "deteriorate",
        "contradicted",
        {"finals": dict.fromkeys(problems.PAPER, (100.0,) * 4) | {"LEARN": (100.0, 200.0, 300.0, 400.0)}},
    ),
    ("fastest", "partly", {"finals": {"Top-k": (100.0, 600.0, 9000.0, 9500.0)}}),
    ("fastest", "contradicted", {"late": {"OGD": 0.01}}),
    ("best", "partly", {"finals": {"LEARN": (1000.0, 1020.0, 2100.0, 4000.0)}}),
    ("best", "contradicted", {"finals": {"LEARN": (1000.0, 1020.0, 2100.0, 9400.0)}}),
    ("sublinear", "partly", {"exponents": (0.9, 1.1)}),
    ("sublinear", "contradicted", {"exponents": (1.1, 1.11)}),
    ("constant", "partly", {"finals": {"LEARN": (1000.0, 1020.0, 1050.0, 1100.0)}}),
    ("constant", "contradicted", {"finals": dict.fromkeys(problems.PAPER, (100.0,) * 4)}),
    ("step-size", "partly", {"finals": {STEEP[0]: (1.0, 1.0, 1.0, 1.0)}}),
    ("step-size", "contradicted", {"finals": dict.fromkeys(STEEP, (1.0,) * 4)}),
    ("weights", "partly", {"weights": {"corrupted": (0.0, 0.09, 0.01, 0.01)}}),
    ("weights", "contradicted", {"weights": {"corrupted": (0.0, 0.01, 0.01, 0.01)}}),
    ("smaller-step", "partly", {"finals": {"OGD, step/11": (900.0, 1020.0, 1050.0, 6000.0)}}),
    ("smaller-step", "contradicted", {"finals": {"OGD, step/11": (1100.0, 1200.0, 1300.0, 6000.0)}}),
    ("classic", "partly", {"finals": {CLASSIC: (2000.0, 320.0, 330.0, 900.0)}}),
    ("classic", "contradicted", {"finals": {CLASSIC: (9999.0,) * 4}}),
    ("tuned", "partly", {"best": 800.0}),
    ("tuned", "contradicted", {"best": 980.0}),
    ("recovered", "partly", {"angles": {"Top-k": (20.0, 20.0, 20.0, 20.0)}}),
    ("recovered", "contradicted", {"angles": dict.fromkeys(problems.PAPER, (6.0, 1.0, 1.0, 1.0))}),
    ("stays-close", "partly", {"angles": {"LEARN": (1.0, 1.0, 1.0, 20.0)}}),
    ("stays-close", "contradicted", {"angles": {"LEARN": (1.0, 6.0, np.nan, -20.0)}}),
    ("deviate", "partly", {"angles": {"OGD": (1.0, 1.0, 1.0, 2.0)}}),
    ("deviate", "contradicted", {"angles": {"LEARN": (1.0, 1.0, 1.0, 21.0)}}),
]  # fmt: skip


def test_in_the_papers_world_every_claim_is_supported():
    assert set(verdicts(world()).values()) == {"supported"}


@pytest.mark.parametrize(("name", "verdict", "change"), ROWS)
def test_other_results_turn_a_claim_over(name, verdict, change):
    found = {claim: own for claim, own in verdicts(world(**change)).items() if claim.startswith(name)}
    assert set(found.values()) == {verdict}
    assert len(found) in (1, 2)


def test_every_claim_is_turned_over_both_ways():
    turned = {(name, verdict) for name, verdict, _ in ROWS}
    bases = {claim.name.removesuffix("-ridge").removesuffix("-svm") for claim in claims.CLAIMS}
    assert turned == {(base, verdict) for base in bases for verdict in ("partly", "contradicted")}


@pytest.mark.parametrize("rows", ["none", "one run", "no count"])
def test_without_its_results_a_claim_was_not_run(rows):
    full = world()
    if rows == "none":
        assert set(verdicts(Results(join_blocks([]))).values()) == {"not run"}
        return
    kept = full.select(run=0) if rows == "one run" else full.select(count="0")
    found = verdicts(kept)
    assert found["best-ridge"] == found["best-svm"] == found["same-svm"] == found["sublinear-ridge"] == "not run"
    assert found["cautious-svm"] == ("not run" if rows == "one run" else "supported")


def test_the_papers_number_is_asked_only_at_the_papers_length():
    here = {"experiment": "svm", "problem": "svm", "run": np.arange(3), "k": 0, "learner": "LEARN", "measure": "regret"}
    last = {"rounds": 4, "round": 4, "value": 900.0 + np.arange(3)}
    shorter = [{**here, **last, "count": count} for count in COUNTS]
    near = next(own for own in claims.judge(Results(join_blocks(shorter))) if own.claim.name == "near-svm")
    assert near.verdict == "not run"
    assert "T = 10,000" in near.measured


def test_a_difference_that_is_not_clear_neither_supports_nor_contradicts():
    here = {"experiment": "svm", "problem": "svm", "run": np.arange(3), "rounds": 4, "count": "0", "k": 0, "round": 4}
    values = dict.fromkeys(problems.PAPER, (1.0, 3.0, 2.0)) | {"LEARN": (2.0, 2.0, 3.3)}
    blocks = [{**here, "learner": name, "measure": "regret", "value": np.array(row)} for name, row in values.items()]
    assert verdicts(Results(join_blocks(blocks)))["cautious-svm"] == "partly"


@pytest.mark.parametrize("huge", [1e160, 1e300, np.nan, np.inf])
def test_a_regret_beyond_arithmetic_counts_as_infinite(huge):
    found = verdicts(world(finals={"LEARN": (1000.0, huge, huge, huge), STEEP[0]: (huge,) * 4}))
    assert found["step-size-svm"] == "supported"
    assert found["best-ridge"] == "contradicted"
    assert found["fastest-ridge"] == "contradicted"


@pytest.mark.parametrize("exponent", [np.inf, -np.inf])
def test_no_exponent_is_fitted_to_a_regret_without_logarithm(exponent):
    assert verdicts(world(exponents=(0.5, exponent)))["sublinear-svm"] == "not run"


def test_every_claim_names_a_picture_that_is_drawn_and_has_its_own_name():
    assert {claim.picture for claim in claims.CLAIMS} <= PICTURES.keys()
    assert len({claim.name for claim in claims.CLAIMS}) == len(claims.CLAIMS)


@pytest.mark.parametrize("seed", range(5))
def test_the_paired_test_is_scipys(seed):
    random = np.random.default_rng(seed)
    one, two = random.normal([[0.0], [0.7]], 1.0, (2, 9))
    assert p_value(one, two) == pytest.approx(scipy.stats.ttest_rel(one, two).pvalue, rel=1e-9)


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1.0),
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 0.0),
        ([np.inf, np.inf], [1.0, 2.0], 0.0),
        ([np.inf, np.inf], [np.inf, np.inf], 1.0),
        ([np.inf, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0], 0.125),
    ],
)
def test_the_paired_test_where_there_is_no_variance(one, two, expected):
    assert p_value(np.array(one), np.array(two)) == pytest.approx(expected, abs=1e-12)


def test_one_run_is_not_tested():
    assert np.isnan(p_value(np.ones(1), np.zeros(1)))
