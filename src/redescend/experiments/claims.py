"""Each claim of the paper's experiments: what it says, the rule that decides it, and what was measured.

Most rules compare paired runs: learners, and outlier counts, share the clean stream of a run, so that what differs
within a run is due to them. A difference is clear if a two-sided paired t-test gives p < 0.01. A claim about several
learners or counts is supported if its rule holds for all of them and contradicted if for none. It is partly supported
if the rule holds for some, or if the means are as claimed but not clearly so. If the results that a rule needs are
missing, the claim was not run.

>>> from redescend.experiments.tasks import table
>>> {judgement.verdict for judgement in judge(Results(table([])))}
{'not run'}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from redescend.experiments.problems import PAPER, ridge, svm
from redescend.experiments.results import Results
from redescend.experiments.statistics import CLEAR, COUNTS, Finals, MissingResultsError, mean_and_error, number, p_value
from redescend.numeric import Array

Verdict = Literal["supported", "partly", "contradicted", "not run"]

_PROBLEMS = {"ridge": ridge(), "svm": svm()}
_TITLES = {"ridge": "Ridge", "svm": "SVM"}
_LEVELS = {"ridge": 1000.0, "svm": 900.0}
_BASELINES = tuple(name for name in PAPER if name != "LEARN")


class Judgement(NamedTuple):
    """What became of a claim, and the numbers in one sentence."""

    claim: Claim
    verdict: Verdict
    measured: str


@dataclass(frozen=True)
class Claim:
    """A sentence, who says it, the rule that decides it, and the picture that shows it."""

    name: str
    picture: str
    check: Callable[[Results, dict[str, Finals]], tuple[Verdict, str]]
    says: str
    rule: str
    papers: bool = True

    def judge(self, results: Results, finals: dict[str, Finals]) -> Judgement:
        try:
            return Judgement(self, *self.check(results, finals))
        except MissingResultsError as missing:
            return Judgement(self, "not run", str(missing))


def judge(results: Results) -> list[Judgement]:
    """Every claim, decided by these results."""
    finals = {problem: Finals(results, problem) for problem in _PROBLEMS}
    return [claim.judge(results, finals) for claim in CLAIMS]


def _verdict(holds: Iterable[float]) -> Verdict:
    each = list(holds)
    return "supported" if min(each) == 1.0 else "contradicted" if max(each) == 0.0 else "partly"


def _above(high: Array, low: Array, factor: float = 1.0) -> float:
    """1 if the first is higher, by more than the factor, and clearly so; ½ if it is higher, but not clearly; else 0."""
    if not np.mean(high) > factor * np.mean(low):
        return 0.0
    return 1.0 if p_value(high, factor * low) < CLEAR else 0.5


def _ratio(high: float, low: float) -> float:
    return float(high / low) if np.isfinite(high) else float("inf")


def _cautious(_: Results, finals: Finals) -> tuple[Verdict, str]:
    holds, parts = [], []
    for name in _BASELINES:
        learn, other = finals.pair(("0", "LEARN"), ("0", name))
        holds.append(_above(learn, other))
        parts.append(f"{name} {number(other.mean())}")
    return _verdict(holds), f"With k = 0: LEARN {number(learn.mean())}; {', '.join(parts)}."


def _levels_off(_: Results, finals: Finals) -> tuple[Verdict, str]:
    holds, parts = [], []
    for count in COUNTS[:3]:
        (final,) = finals.pair((count, "LEARN"))
        share = _ratio(finals.late(count, "LEARN").mean(), final.mean() / finals.rounds)
        holds.append(bool(share < 0.5))
        parts.append(f"{share:.0%} at k = {count}")
    return _verdict(holds), f"LEARN's growth in the second half, against its average: {', '.join(parts)}."


def _same(_: Results, finals: Finals) -> tuple[Verdict, str]:
    growth = {}
    for name in PAPER:
        before, after = finals.pair(("0", name), ("T^⅔", name))
        growth[name] = _ratio(after.mean(), before.mean())
    learn = growth.pop("LEARN")
    verdict: Verdict = "supported" if learn <= 1.25 else "partly" if learn < min(growth.values()) else "contradicted"
    others = ", ".join(f"{name}'s {value:.2f}" for name, value in growth.items())
    return verdict, f"From k = 0 to T^⅔ LEARN's regret grows by a factor of {learn:.2f}; {others}."


def _near(_: Results, finals: Finals) -> tuple[Verdict, str]:
    problem, level = _PROBLEMS[finals.problem], _LEVELS[finals.problem]
    if finals.rounds != problem.rounds:
        raise MissingResultsError(
            f"The number belongs to T = {problem.rounds:,}; these runs have T = {finals.rounds:,}."
        )
    means = {count: finals.pair((count, "LEARN"))[0].mean() for count in COUNTS[:3]}
    parts = ", ".join(f"{number(mean)} at k = {count}" for count, mean in means.items())
    return _verdict(abs(mean - level) <= 0.2 * level for mean in means.values()), f"LEARN has {parts}."


def _grows(
    before: str, after: str, names: tuple[str, ...], factor: float, spared: tuple[str, ...] = ()
) -> Callable[..., tuple[Verdict, str]]:
    def check(_: Results, finals: Finals) -> tuple[Verdict, str]:
        holds, parts = [], []
        for name in (*names, *spared):
            low, high = finals.pair((before, name), (after, name))
            grew = _above(high, low, factor)
            holds.append(1.0 - grew if name in spared else grew)
            parts.append(f"{name} {number(low.mean())} → {number(high.mean())}")
        return _verdict(holds), f"From k = {before} to k = {after}: {'; '.join(parts)}."

    return check


def _fastest(_: Results, finals: Finals) -> tuple[Verdict, str]:
    holds, parts = [], []
    for count in COUNTS[1:]:
        rates = {name: finals.late(count, name) for name in PAPER}
        holds.append(min(_above(rates["OGD"], rates[name]) for name in PAPER if name != "OGD"))
        own = rates.pop("OGD").mean()
        other = max(rates, key=lambda name: float(rates[name].mean()))
        parts.append(f"{own:.3g} at k = {count} (others up to {rates[other].mean():.3g}, {other})")
    return _verdict(holds), f"Regret a round in the second half, OGD: {'; '.join(parts)}."


def _best(_: Results, finals: Finals) -> tuple[Verdict, str]:
    holds, parts = [], []
    for count in COUNTS[2:]:
        learn, *others = finals.pair(*((count, name) for name in PAPER))
        holds.append(min(_above(other, learn) for other in others))
        listed = ", ".join(f"{name} {number(other.mean())}" for name, other in zip(_BASELINES, others, strict=True))
        parts.append(f"k = {count}: LEARN {number(learn.mean())}, {listed}")
    return _verdict(holds), f"{'; '.join(parts)}."


def _smaller_step(_: Results, finals: Finals) -> tuple[Verdict, str]:
    name = next(iter(finals.learner("OGD, step/")), "OGD, step/11")
    holds, parts = [], []
    for count in COUNTS:
        learn, smaller = finals.pair((count, "LEARN"), (count, name))
        holds.append(1.0 - _above(smaller, learn, 1.01))
        parts.append(f"{number(learn.mean())} against {number(smaller.mean())} at k = {count}")
    shows = [count for count, same in zip(COUNTS, holds, strict=True) if same == 0.0]
    gate = f" The gate itself shows at k = {', '.join(shows)}." if shows else " The gate itself shows nowhere."
    return _verdict(holds), f"LEARN {', '.join(parts)}.{gate}"


def _step_size(_: Results, finals: Finals) -> tuple[Verdict, str]:
    holds, parts = [], []
    for name in ("OGD", "Top-k"):
        pairs = [finals.pair((count, f"{name}, 1/(m·t)"), (count, name)) for count in COUNTS]
        holds += [_above(steep, level) for steep, level in pairs]
        steep, level = (" | ".join(number(pair[place].mean()) for pair in pairs) for place in (0, 1))
        parts.append(f"{name} has {steep} at 1/(m·t) against {level} at 1/√T")
    return _verdict(holds), f"For k = {' | '.join(COUNTS)}: {'; '.join(parts)}."


def _classic(_: Results, finals: Finals) -> tuple[Verdict, str]:
    names = [name for kind in ("Cauchy", "Welsch", "Tukey") for name in finals.learner(f"{kind}, c")]
    if not names:
        raise MissingResultsError(f"{finals.problem} has no results of a classic redescending transform.")
    wins = {}
    for name in names:
        pairs = [finals.pair((count, "LEARN"), (count, name)) for count in COUNTS]
        wins[name] = [_above(learn, other) for learn, other in pairs]
    best = max(names, key=lambda name: sum(wins[name]))
    parts = []
    for count in COUNTS:
        own, learn = finals.pair((count, best), (count, "LEARN"))
        parts.append(f"{number(own.mean())} against LEARN's {number(learn.mean())} at k = {count}")
    return _verdict(wins[best]), f"{best} has {', '.join(parts)}."


def _weights(results: Results, finals: Finals) -> tuple[Verdict, str]:
    rows = results.select(experiment=finals.problem, learner="LEARN")
    holds, parts = [], []
    for count in COUNTS[1:]:
        clean, corrupted = (
            rows.select(count=count, measure=f"weight {kind}").column("value") for kind in ("clean", "corrupted")
        )
        if not len(clean) or not len(corrupted):
            raise MissingResultsError(f"{finals.problem} has no weights of LEARN at k = {count}.")
        holds.append(bool(np.median(corrupted) > 0.5 * np.median(clean)))
        parts.append(f"{number(np.median(corrupted))} against {number(np.median(clean))} at k = {count}")
    return _verdict(holds), f"Median weight of a corrupted round against a clean one: {', '.join(parts)}."


def _angles(results: Results) -> dict[tuple[str, str], float]:
    rows = results.select(experiment="boundaries")
    found = {}
    for count in COUNTS:
        for name in (*PAPER, "truth"):
            cell = rows.select(count=count, learner=name)
            theta = [cell.select(measure=f"theta {place}").column("value") for place in (0, 1)]
            if not all(len(values) for values in theta):
                raise MissingResultsError(f"There is no boundary of {name} at k = {count}.")
            found[count, name] = complex(theta[0][0], theta[1][0])
    # An action of 0 has no boundary: it is as far from the truth as a boundary can be.
    return {
        (count, name): abs(np.degrees(np.angle(theta / found[count, "truth"]))) if theta else 180.0
        for (count, name), theta in found.items()
        if name != "truth"
    }


def _recovered(results: Results, _: dict[str, Finals]) -> tuple[Verdict, str]:
    angles = _angles(results)
    parts = ", ".join(f"{name} {angles['0', name]:.1f}°" for name in PAPER)
    return _verdict(angles["0", name] <= 5.0 for name in PAPER), f"Angle to the truth with k = 0: {parts}."


def _stays(results: Results, _: dict[str, Finals]) -> tuple[Verdict, str]:
    angles = _angles(results)
    parts = ", ".join(f"{angles[count, 'LEARN']:.1f}° at k = {count}" for count in COUNTS[1:])
    return _verdict(angles[count, "LEARN"] <= 5.0 for count in COUNTS[1:]), f"LEARN's angle to the truth: {parts}."


def _deviate(results: Results, _: dict[str, Finals]) -> tuple[Verdict, str]:
    angles = _angles(results)
    holds = [angles["T/4", name] > max(5.0, angles["0", name], angles["T/4", "LEARN"]) for name in _BASELINES]
    parts = ", ".join(f"{name} {angles['0', name]:.1f}° → {angles['T/4', name]:.1f}°" for name in PAPER)
    return _verdict(holds), f"Angle to the truth from k = 0 to T/4: {parts}."


def _sublinear(results: Results, finals: Finals) -> tuple[Verdict, str]:
    rows = results.select(problem=f"{finals.problem}-T", learner="LEARN", measure="final regret")
    run, lengths, regret = rows.column("run"), rows.column("rounds"), rows.column("value")
    each = [run == one for one in np.unique(run)]
    if len(each) < 2 or any(len(np.unique(lengths[own])) < 2 for own in each):
        raise MissingResultsError(f"{finals.problem} has not been run at two lengths T in two runs or more.")
    if not (np.isfinite(regret) & (regret > 0.0)).all():
        raise MissingResultsError(f"LEARN's regret on {finals.problem} has no logarithm at every T.")
    slopes = np.array([np.polyfit(np.log(lengths[own]), np.log(regret[own]), 1)[0] for own in each])
    mean, error = mean_and_error(slopes)
    low, high = mean - 2 * error, mean + 2 * error
    verdict: Verdict = "supported" if high < 1.0 else "contradicted" if low >= 1.0 else "partly"
    return (
        verdict,
        f"LEARN's regret at k = T^⅔ grows like T^{mean:.2f} (± {error:.1g}); the theorem's √T + k like T^0.67.",
    )


def _tuned(results: Results, finals: Finals) -> tuple[Verdict, str]:
    problem = _PROBLEMS[finals.problem]
    rows = results.select(problem=f"{finals.problem}-ab", count="T^⅔", measure="final regret").table.to_pylist()
    cells: dict[tuple[float, float], dict[int, float]] = {}
    for row in rows:
        cells.setdefault((row["a"], row["b"]), {})[row["run"]] = row["value"]
    own = next((cell for cell in cells if np.allclose(cell, (problem.a, problem.b))), None)
    if own is None or len(cells[own]) < 2:
        raise MissingResultsError(f"{finals.problem} has no two runs of the grid of a and b at k = T^⅔.")
    full = {
        cell: np.array([runs[run] for run in cells[own]])
        for cell, runs in cells.items()
        if runs.keys() >= cells[own].keys()
    }
    best = min(full, key=lambda cell: float(full[cell].mean()))
    theirs, ours = full[own], full[best]
    verdict: Verdict = "contradicted"
    if _above(theirs, ours, 1.1):
        verdict = "supported" if _above(theirs, ours, 2.0) == 1.0 else "partly"
    where = f"a = {best[0]:g}, b = {best[1]:g}"
    length = f"T = {rows[0]['rounds']:,}"
    regrets = f"has {number(ours.mean())}; the paper's pair has {number(theirs.mean())}."
    return verdict, f"At k = T^⅔ and {length} the best of {len(full)} pairs, {where}, {regrets}"


class _Template(NamedTuple):
    """A claim that is made of both problems."""

    name: str
    picture: str
    check: Callable[[Results, Finals], tuple[Verdict, str]]
    says: str
    rule: str
    papers: bool = True

    def of(self, problem: str) -> Claim:
        check, title, level = self.check, _TITLES[problem], f"{_LEVELS[problem]:.0f}"
        return Claim(
            f"{self.name}-{problem}",
            self.picture.format(problem=problem),
            lambda results, finals: check(results, finals[problem]),
            f"{title}: {self.says.format(level=level)}",
            self.rule.format(level=level),
            self.papers,
        )


_TEMPLATES = (
    _Template(
        "cautious", "{problem}-regret", _cautious,
        "without outliers there is ‘a significant gap’: LEARN, being cautious, has more regret than every baseline.",
        "With k = 0 LEARN's final regret is clearly higher than that of OGD, Top-k and Uncertain Top-k.",
    ),
    _Template(
        "levels-off", "{problem}-regret", _levels_off,
        "LEARN's regret ‘levels off after the initial few rounds’ and keeps ‘a flat region’ up to k = T^⅔.",
        "In the second half LEARN gains less than half its average regret a round, at k = 0, √T and T^⅔.",
    ),
    _Template(
        "same", "{problem}-regret", _same,
        "LEARN ‘maintains roughly the same regret until k = T^⅔’.",
        "Supported if LEARN's final regret at T^⅔ is at most 1.25 times that at 0; "
        "partly if it is more, but grows by a smaller factor than that of every baseline.",
    ),
    _Template(
        "near", "{problem}-regret", _near,
        "up to k = T^⅔ LEARN's maximum regret is ‘around {level}’.",
        "LEARN's final regret is within 20 % of {level} at k = 0, √T and T^⅔, at the paper's T.",
    ),
    _Template(
        "deteriorate", "{problem}-regret", _grows("0", "T^⅔", _BASELINES, 2.0, spared=("LEARN",)),
        "with outliers ‘the performance of all methods, except LEARN, deteriorates significantly’.",
        "From k = 0 to T^⅔ the final regret of OGD, Top-k and Uncertain Top-k more than doubles, clearly; "
        "LEARN's does not.",
    ),
    _Template(
        "fastest", "{problem}-regret", _fastest,
        "OGD's ‘growth rate is the largest, implying that it will eventually surpass other methods’.",
        "In the second half OGD gains clearly more regret a round than each of LEARN, Top-k and Uncertain Top-k, "
        "at k = √T, T^⅔ and T/4.",
    ),
    _Template(
        "best", "{problem}-regret", _best,
        "with many outliers LEARN has the least regret of the paper's four methods.",
        "At k = T^⅔ and T/4 LEARN's final regret is clearly lower than that of each of the three others.",
    ),
    _Template(
        "sublinear", "{problem}-growth", _sublinear,
        "LEARN's regret is sublinear in T when the number of outliers is.",
        "The exponent of LEARN's final regret in T at k = T^⅔, fitted in every run, is below 1 by more than two "
        "standard errors; contradicted if it is above 1 by as much.",
    ),
    _Template(
        "constant", "{problem}-regret", _grows("T^⅔", "T/4", PAPER, 1.5),
        "‘a constant proportion of outliers proves detrimental for all methods’.",
        "From k = T^⅔ to T/4 the final regret of each of the paper's four grows by more than half, clearly.",
    ),
    _Template(
        "step-size", "{problem}-regret", _step_size,
        "for the baselines the step 1/√T ‘yields smaller regret’ than 1/(m·t).",
        "At every k OGD and Top-k have clearly more regret at 1/(m·t) than at 1/√T; to diverge is infinite regret.",
    ),
    _Template(
        "weights", "{problem}-weights", _weights,
        "at the paper's settings LEARN believes a corrupted round nearly as much as a clean one.",
        "At k = √T, T^⅔ and T/4, in one run, the median weight of a corrupted round is more than half a clean one's.",
        papers=False,
    ),
    _Template(
        "smaller-step", "{problem}-regret", _smaller_step,
        "at the paper's settings LEARN is no better than plain OGD at a step 11 times smaller.",
        "LEARN's final regret is not clearly lower, by more than 1 %, than that of OGD at α/11, at every k.",
        papers=False,
    ),
    _Template(
        "classic", "{problem}-regret", _classic,
        "a classic redescending transform at a fixed constant does better than LEARN.",
        "One of Cauchy, Welsch and Tukey, the same at every k, has clearly less final regret than LEARN at every k.",
        papers=False,
    ),
    _Template(
        "tuned", "{problem}-grid", _tuned,
        "the paper's a and b, from ‘a grid search across a small range’, leave most of LEARN's strength unused.",
        "Supported if some (a, b) of a coarse grid has clearly less than half the regret of the paper's at k = T^⅔; "
        "partly if it has at least a tenth less.",
        papers=False,
    ),
)  # fmt: skip

_BOUNDARIES = (
    Claim(
        "recovered", "boundaries", _recovered,
        "SVM: without outliers ‘all methods accurately learn’ the true decision boundary.",
        "With k = 0 the boundary of each of the paper's four is within 5° of the truth, in one run.",
    ),
    Claim(
        "stays-close", "boundaries", _stays,
        "SVM: with outliers LEARN keeps ‘a decision boundary close to the optimal configuration’.",
        "LEARN's boundary is within 5° of the truth at k = √T, T^⅔ and T/4, in one run.",
    ),
    Claim(
        "deviate", "boundaries", _deviate,
        "SVM: with outliers ‘the decision boundaries for other baselines gradually deviate’.",
        "At T/4 each baseline's boundary is more than 5° off, further than at k = 0 and than LEARN's, in one run.",
    ),
)  # fmt: skip

_BY_PROBLEM = [template.of(problem) for template in _TEMPLATES for problem in _PROBLEMS]

CLAIMS: tuple[Claim, ...] = (
    *(claim for claim in _BY_PROBLEM if claim.papers),
    *_BOUNDARIES,
    *(claim for claim in _BY_PROBLEM if not claim.papers),
)
"""The paper's claims first, then what it leaves out."""
