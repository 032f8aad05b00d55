"""The claims of the paper's experiments, and what they leave out: each with the rule that decides it.

A rule measures a claim on the results, and gives a verdict with a sentence. Most rules compare paired runs: learners
and outlier counts share the clean stream of a run, so differences within a run are due to them. A difference is clear
if a two-sided paired t-test gives p < 0.01. A claim about several learners or counts is supported if its rule holds for
all of them, contradicted if it holds for none, and otherwise partly supported; also if the means are as claimed but not
clearly so. A rule without results raises `MissingResultsError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from redescend.experiments.problems import PAPER, PROBLEMS
from redescend.experiments.results import (
    COUNTS,
    Finals,
    MissingResultsError,
    Results,
    exceeds,
    format_number,
    mean_and_error,
    read_angles,
)
from redescend.numeric import Array

Verdict = Literal["supported", "partly", "contradicted", "not run"]
Measured = tuple[Verdict, str]
Rule = Callable[[Results, Finals], Measured]
Case = tuple[float, str]  # the degree to which a rule holds (1, ½ or 0) for one learner or count, and its numbers
LEVELS = {"ridge": 1000.0, "svm": 900.0}  # the paper's 'around …' for LEARN's regret

BASELINES = tuple(name for name in PAPER if name != "LEARN")


@dataclass(frozen=True)
class Claim:
    """A sentence, the rule that decides it, the picture that shows it, and whether the paper makes it."""

    name: str
    picture: str
    check: Rule
    statement: str
    rule: str
    in_paper: bool
    problem: str


class Judgement(NamedTuple):
    """A claim, its verdict, and the measured numbers in one sentence."""

    claim: Claim
    verdict: Verdict
    measured: str


_CLAIMS: list[Claim] = []


def claim(
    name: str, statement: str, rule: str, *, picture: str = "regret", in_paper: bool = True
) -> Callable[[Rule], Rule]:
    """Register a claim, which the decorated function decides: about both problems, or about boundaries of the SVM."""

    def register(check: Rule) -> Rule:
        if picture == "boundaries":
            _CLAIMS.append(Claim(name, picture, check, f"SVM: {statement}", rule, in_paper, "svm"))
            return check
        for problem, title in {"ridge": "Ridge", "svm": "SVM"}.items():
            level = f"{LEVELS[problem]:.0f}"
            texts = f"{title}: {statement.format(level=level)}", rule.format(level=level)
            _CLAIMS.append(Claim(f"{name}-{problem}", f"{problem}-{picture}", check, *texts, in_paper, problem))
        return check

    return register


omission = partial(claim, in_paper=False)  # registers a claim that the paper does not make


def judge(results: Results) -> list[Judgement]:
    """Decide every claim by these results."""
    finals = {problem: Finals(results, problem) for problem in PROBLEMS}
    judged = []
    for one in CLAIMS:
        try:
            judged.append(Judgement(one, *one.check(results, finals[one.problem])))
        except MissingResultsError as missing:
            judged.append(Judgement(one, "not run", str(missing)))
    return judged


def _decide(holds: Sequence[float]) -> Verdict:
    return "supported" if min(holds) == 1.0 else "contradicted" if max(holds) == 0.0 else "partly"


def _judge(cases: list[Case], sentence: str, separator: str = ", ") -> Measured:
    return _decide([hold for hold, _ in cases]), f"{sentence}{separator.join(part for _, part in cases)}."


def _ratio(high: float, low: float) -> float:
    return float(high / low) if np.isfinite(high) else float("inf")


def _mean(values: Array) -> str:
    return format_number(values.mean())


def _grows(before: str, after: str, names: tuple[str, ...], factor: float, spared: tuple[str, ...] = ()) -> Rule:
    def check(_: Results, finals: Finals) -> Measured:
        cases = []
        for name in (*names, *spared):
            low, high = finals.select_paired_runs((before, name), (after, name))
            grew = exceeds(high, low, factor)
            cases.append((1.0 - grew if name in spared else grew, f"{name} {_mean(low)} → {_mean(high)}"))
        return _judge(cases, f"From k = {before} to k = {after}: ", "; ")

    return check


@claim(
    "cautious",
    "without outliers there is ‘a significant gap’: LEARN, being cautious, has more regret than every baseline.",
    "With k = 0 LEARN's final regret is clearly higher than that of OGD, Top-k and Uncertain Top-k.",
)
def is_cautious(_: Results, finals: Finals) -> Measured:
    pairs = {name: finals.select_paired_runs(("0", "LEARN"), ("0", name)) for name in BASELINES}
    cases = [(exceeds(learn, other), f"{name} {_mean(other)}") for name, (learn, other) in pairs.items()]
    return _judge(cases, f"With k = 0: LEARN {_mean(pairs[BASELINES[-1]][0])}; ")


@claim(
    "levels-off",
    "LEARN's regret ‘levels off after the initial few rounds’ and keeps ‘a flat region’ up to k = T^⅔.",
    "In the second half LEARN's regret per round is less than half its average, at k = 0, √T and T^⅔.",
)
def levels_off(_: Results, finals: Finals) -> Measured:
    cases: list[Case] = []
    for count in COUNTS[:3]:
        (final,) = finals.select_paired_runs((count, "LEARN"))
        share = _ratio(finals.compute_late_rate(count, "LEARN").mean(), final.mean() / finals.rounds)
        cases.append((bool(share < 0.5), f"{share:.0%} at k = {count}"))
    return _judge(cases, "LEARN's regret per round in the second half, relative to its average: ")


@claim(
    "same",
    "LEARN ‘maintains roughly the same regret until k = T^⅔’.",
    "Supported if LEARN's final regret at T^⅔ is at most 1.25 times that at 0; "
    "partly if it is more, but grows by a smaller factor than that of every baseline.",
)
def stays_the_same(_: Results, finals: Finals) -> Measured:
    growth = {}
    for name in PAPER:
        before, after = finals.select_paired_runs(("0", name), ("T^⅔", name))
        growth[name] = _ratio(after.mean(), before.mean())
    learn = growth.pop("LEARN")
    verdict: Verdict = "supported" if learn <= 1.25 else "partly" if learn < min(growth.values()) else "contradicted"
    others = ", ".join(f"{name}'s by {value:.2f}" for name, value in growth.items())
    return verdict, f"From k = 0 to T^⅔ LEARN's regret grows by a factor of {learn:.2f}; {others}."


@claim(
    "near",
    "up to k = T^⅔ LEARN's maximum regret is ‘around {level}’.",
    "LEARN's final regret is within 20 % of {level} at k = 0, √T and T^⅔, at the paper's T.",
)
def is_near_level(_: Results, finals: Finals) -> Measured:
    paper, level = PROBLEMS[finals.problem]().rounds, LEVELS[finals.problem]
    if finals.rounds != paper:
        raise MissingResultsError(f"The claim is about T = {paper:,}; these runs have T = {finals.rounds:,}.")
    means = {count: finals.select_paired_runs((count, "LEARN"))[0].mean() for count in COUNTS[:3]}
    cases: list[Case] = [
        (abs(mean - level) <= 0.2 * level, f"{format_number(mean)} at k = {count}") for count, mean in means.items()
    ]
    return _judge(cases, "LEARN has ")


claim(
    "deteriorate",
    "with outliers ‘the performance of all methods, except LEARN, deteriorates significantly’.",
    "From k = 0 to T^⅔ the final regret of OGD, Top-k and Uncertain Top-k clearly more than doubles; LEARN's does not.",
)(_grows("0", "T^⅔", BASELINES, 2.0, spared=("LEARN",)))


@claim(
    "fastest",
    "OGD's ‘growth rate is the largest, implying that it will eventually surpass other methods’.",
    "In the second half OGD has clearly more regret per round than each of LEARN, Top-k and Uncertain Top-k, "
    "at k = √T, T^⅔ and T/4.",
)
def grows_fastest(_: Results, finals: Finals) -> Measured:
    cases = []
    for count in COUNTS[1:]:
        rates = {name: finals.compute_late_rate(count, name) for name in PAPER}
        ogd = rates.pop("OGD")
        other = max(rates, key=lambda name: float(rates[name].mean()))
        text = f"{ogd.mean():.3g} at k = {count} (others up to {rates[other].mean():.3g}, {other})"
        cases.append((min(exceeds(ogd, rate) for rate in rates.values()), text))
    return _judge(cases, "OGD's regret per round in the second half: ", "; ")


@claim(
    "best",
    "with many outliers LEARN has the least regret of the paper's four methods.",
    "At k = T^⅔ and T/4 LEARN's final regret is clearly lower than that of each of the three others.",
)
def is_best(_: Results, finals: Finals) -> Measured:
    cases = []
    for count in COUNTS[2:]:
        learn, *others = finals.select_paired_runs(*((count, name) for name in PAPER))
        listed = ", ".join(f"{name} {_mean(other)}" for name, other in zip(BASELINES, others, strict=True))
        cases.append((min(exceeds(other, learn) for other in others), f"k = {count}: LEARN {_mean(learn)}, {listed}"))
    return _judge(cases, "", "; ")


@claim(
    "sublinear",
    "LEARN's regret is sublinear in T when the number of outliers is.",
    "The exponent of LEARN's final regret in T at k = T^⅔, fitted in every run, is below 1 by more than two "
    "standard errors; contradicted if it is above 1 by as much.",
    picture="growth",
)
def is_sublinear(results: Results, finals: Finals) -> Measured:
    rows = results.select(problem=f"{finals.problem}-T", learner="LEARN", measure="final regret")
    run, lengths, regret = rows.column("run"), rows.column("rounds"), rows.column("value")
    each = [run == one for one in np.unique(run)]
    if len(each) < 2 or any(len(np.unique(lengths[rows_of])) < 2 for rows_of in each):
        raise MissingResultsError(f"{finals.problem} needs at least two lengths T in at least two runs.")
    if not (np.isfinite(regret) & (regret > 0.0)).all():
        raise MissingResultsError(f"LEARN's regret on {finals.problem} is not positive and finite at every T.")
    slopes = np.array([np.polyfit(np.log(lengths[rows_of]), np.log(regret[rows_of]), 1)[0] for rows_of in each])
    mean, error = mean_and_error(slopes)
    low, high = mean - 2 * error, mean + 2 * error
    verdict: Verdict = "supported" if high < 1.0 else "contradicted" if low >= 1.0 else "partly"
    grows = f"LEARN's regret at k = T^⅔ grows like T^{mean:.2f} (± {error:.1g})"
    return verdict, f"{grows}; the theorem's √T + k grows like T^0.67."


claim(
    "constant",
    "‘a constant proportion of outliers proves detrimental for all methods’.",
    "From k = T^⅔ to T/4 the final regret of each of the paper's four clearly grows by more than half.",
)(_grows("T^⅔", "T/4", PAPER, 1.5))


@claim(
    "step-size",
    "for the baselines the step 1/√T ‘yields smaller regret’ than 1/(m·t).",
    "At every k OGD and Top-k have clearly more regret at 1/(m·t) than at 1/√T; divergence is infinite regret.",
)
def needs_the_larger_step(_: Results, finals: Finals) -> Measured:
    holds, parts = [], []
    for name in ("OGD", "Top-k"):
        pairs = [finals.select_paired_runs((count, f"{name}, 1/(m·t)"), (count, name)) for count in COUNTS]
        holds += [exceeds(steep, level) for steep, level in pairs]
        steep, level = (" | ".join(_mean(pair[place]) for pair in pairs) for place in (0, 1))
        parts.append(f"{name} has {steep} at 1/(m·t) against {level} at 1/√T")
    return _decide(holds), f"For k = {' | '.join(COUNTS)}: {'; '.join(parts)}."


def _are_close(cells: Iterable[tuple[str, str]], sentence: str, part: str) -> Rule:
    """Whether the boundaries of these (count, learner) are within 5° of the truth; `part` formats one of them."""

    def check(results: Results, _: Finals) -> Measured:
        angles = {cell: read_angles(results, PAPER)[cell] for cell in cells}
        texts = [part.format(count=count, learner=name, angle=angle) for (count, name), angle in angles.items()]
        return _judge([(angle <= 5.0, text) for angle, text in zip(angles.values(), texts, strict=True)], sentence)

    return check


claim(
    "recovered",
    "without outliers ‘all methods accurately learn’ the true decision boundary.",
    "With k = 0 the boundary of each of the paper's four is within 5° of the truth, in one run.",
    picture="boundaries",
)(_are_close([("0", name) for name in PAPER], "Angle to the truth with k = 0: ", "{learner} {angle:.1f}°"))

claim(
    "stays-close",
    "with outliers LEARN keeps ‘a decision boundary close to the optimal configuration’.",
    "LEARN's boundary is within 5° of the truth at k = √T, T^⅔ and T/4, in one run.",
    picture="boundaries",
)(_are_close([(count, "LEARN") for count in COUNTS[1:]], "LEARN's angle to the truth: ", "{angle:.1f}° at k = {count}"))


@claim(
    "deviate",
    "with outliers ‘the decision boundaries for other baselines gradually deviate’.",
    "At T/4 each baseline's boundary is more than 5° off, further than at k = 0 and than LEARN's, in one run.",
    picture="boundaries",
)
def baselines_deviate(results: Results, _: Finals) -> Measured:
    angles = read_angles(results, PAPER)
    holds = [angles["T/4", name] > max(5.0, angles["0", name], angles["T/4", "LEARN"]) for name in BASELINES]
    parts = ", ".join(f"{name} {angles['0', name]:.1f}° → {angles['T/4', name]:.1f}°" for name in PAPER)
    return _decide(holds), f"Angle to the truth from k = 0 to T/4: {parts}."


@omission(
    "weights",
    "at the paper's settings LEARN gives a corrupted round nearly the weight of a clean one.",
    "At k = √T, T^⅔ and T/4, in one run, the median weight of a corrupted round is more than half a clean one's.",
    picture="weights",
)
def weighs_outliers(results: Results, finals: Finals) -> Measured:
    rows = results.select(experiment=finals.problem, learner="LEARN")
    cases: list[Case] = []
    for count in COUNTS[1:]:
        clean, corrupted = (
            rows.select(count=count, measure=f"weight {kind}").column("value") for kind in ("clean", "corrupted")
        )
        if not len(clean) or not len(corrupted):
            raise MissingResultsError(f"{finals.problem} has no weights of LEARN at k = {count}.")
        low, high = np.median(corrupted), np.median(clean)
        cases.append((bool(low > 0.5 * high), f"{format_number(low)} against {format_number(high)} at k = {count}"))
    return _judge(cases, "Median weight of a corrupted round against a clean one: ")


@omission(
    "smaller-step",
    "at the paper's settings LEARN is no better than plain OGD at a step 11 times smaller.",
    "LEARN's final regret is not clearly lower, by more than 1 %, than that of OGD at α/11, at every k.",
)
def equals_a_smaller_step(_: Results, finals: Finals) -> Measured:
    name = next(iter(finals.find_learners("OGD, step/")), "OGD, step/11")
    cases = []
    for count in COUNTS:
        learn, smaller = finals.select_paired_runs((count, "LEARN"), (count, name))
        text = f"{_mean(learn)} against {_mean(smaller)} at k = {count}"
        cases.append((1.0 - exceeds(smaller, learn, 1.01), text))
    shows = [count for count, (same, _) in zip(COUNTS, cases, strict=True) if same == 0.0]
    verdict, measured = _judge(cases, "LEARN has ")
    where = f"at k = {', '.join(shows)}" if shows else "nowhere"
    return verdict, f"{measured} The gate itself makes a difference {where}."


@omission(
    "classic",
    "a classic redescending transform at a fixed constant does better than LEARN.",
    "One of Cauchy, Welsch and Tukey, the same at every k, has clearly less final regret than LEARN at every k.",
)
def loses_to_a_classic(_: Results, finals: Finals) -> Measured:
    names = [name for kind in ("Cauchy", "Welsch", "Tukey") for name in finals.find_learners(f"{kind}, c")]
    if not names:
        raise MissingResultsError(f"{finals.problem} has no results of a classic redescending transform.")
    cases: dict[str, list[Case]] = {}
    for name in names:
        pairs = {count: finals.select_paired_runs((count, "LEARN"), (count, name)) for count in COUNTS}
        cases[name] = [
            (exceeds(learn, classic), f"{_mean(classic)} against LEARN's {_mean(learn)} at k = {count}")
            for count, (learn, classic) in pairs.items()
        ]
    best = max(names, key=lambda name: sum(hold for hold, _ in cases[name]))
    return _judge(cases[best], f"{best} has ")


@omission(
    "tuned",
    "the paper's a and b, from ‘a grid search across a small range’, leave most of LEARN's strength unused.",
    "Supported if some (a, b) of a coarse grid has clearly less than half the regret of the paper's at k = T^⅔; "
    "partly if it has at least a tenth less.",
    picture="grid",
)
def is_poorly_tuned(results: Results, finals: Finals) -> Measured:
    problem = PROBLEMS[finals.problem]()
    rows = results.select(problem=f"{finals.problem}-ab", count="T^⅔", measure="final regret").table.to_pylist()
    cells: dict[tuple[float, float], dict[int, float]] = {}
    for row in rows:
        cells.setdefault((row["a"], row["b"]), {})[row["run"]] = row["value"]
    papers = next((cell for cell in cells if np.allclose(cell, (problem.a, problem.b))), None)
    if papers is None or len(cells[papers]) < 2:
        raise MissingResultsError(f"{finals.problem} needs at least two runs of the grid of a and b at k = T^⅔.")
    full = {
        cell: np.array([runs[run] for run in cells[papers]])
        for cell, runs in cells.items()
        if runs.keys() >= cells[papers].keys()
    }
    best = min(full, key=lambda cell: float(full[cell].mean()))
    theirs, ours = full[papers], full[best]
    verdict: Verdict = "contradicted"
    if exceeds(theirs, ours, 1.1):
        verdict = "supported" if exceeds(theirs, ours, 2.0) == 1.0 else "partly"
    where = f"a = {best[0]:g}, b = {best[1]:g}"
    regrets = f"has {_mean(ours)}; the paper's pair has {_mean(theirs)}."
    return verdict, f"At k = T^⅔ and T = {rows[0]['rounds']:,} the best of {len(full)} pairs, {where}, {regrets}"


CLAIMS = (*(one for one in _CLAIMS if one.in_paper), *(one for one in _CLAIMS if not one.in_paper))
"""The paper's claims first, then what it leaves out."""
