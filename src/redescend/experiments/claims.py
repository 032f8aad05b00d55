"""The claims of the paper's experiments, and what they leave out: one entry per claim, decided by `claim_rules`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from redescend.experiments import claim_rules as rules
from redescend.experiments.problems import PAPER, PROBLEMS
from redescend.experiments.results import Finals, MissingResultsError, Results

_TITLES = {"ridge": "Ridge", "svm": "SVM"}


@dataclass(frozen=True)
class Claim:
    """A sentence, the rule that decides it, the picture that shows it, and whether the paper makes it."""

    name: str
    picture: str
    check: rules.Rule
    statement: str
    rule: str
    in_paper: bool = True
    problem: str = "svm"


class Judgement(NamedTuple):
    """A claim, its verdict, and the measured numbers in one sentence."""

    claim: Claim
    verdict: rules.Verdict
    measured: str


def judge(results: Results) -> list[Judgement]:
    """Decide every claim by these results."""
    finals = {problem: Finals(results, problem) for problem in PROBLEMS}
    judged = []
    for claim in CLAIMS:
        try:
            judged.append(Judgement(claim, *claim.check(results, finals[claim.problem])))
        except MissingResultsError as missing:
            judged.append(Judgement(claim, "not run", str(missing)))
    return judged


def _specialise(problem: str, claim: Claim) -> Claim:
    """The claim about one of the problems."""
    level = f"{rules.LEVELS[problem]:.0f}"
    return replace(
        claim,
        name=f"{claim.name}-{problem}",
        picture=f"{problem}-{claim.picture}",
        statement=f"{_TITLES[problem]}: {claim.statement.format(level=level)}",
        rule=claim.rule.format(level=level),
        problem=problem,
    )


_BOTH_PROBLEMS = (
    Claim(
        "cautious", "regret", rules.is_cautious,
        "without outliers there is ‘a significant gap’: LEARN, being cautious, has more regret than every baseline.",
        "With k = 0 LEARN's final regret is clearly higher than that of OGD, Top-k and Uncertain Top-k.",
    ),
    Claim(
        "levels-off", "regret", rules.levels_off,
        "LEARN's regret ‘levels off after the initial few rounds’ and keeps ‘a flat region’ up to k = T^⅔.",
        "In the second half LEARN's regret per round is less than half its average, at k = 0, √T and T^⅔.",
    ),
    Claim(
        "same", "regret", rules.stays_the_same,
        "LEARN ‘maintains roughly the same regret until k = T^⅔’.",
        "Supported if LEARN's final regret at T^⅔ is at most 1.25 times that at 0; "
        "partly if it is more, but grows by a smaller factor than that of every baseline.",
    ),
    Claim(
        "near", "regret", rules.is_near_level,
        "up to k = T^⅔ LEARN's maximum regret is ‘around {level}’.",
        "LEARN's final regret is within 20 % of {level} at k = 0, √T and T^⅔, at the paper's T.",
    ),
    Claim(
        "deteriorate", "regret", rules.grows("0", "T^⅔", rules.BASELINES, 2.0, spared=("LEARN",)),
        "with outliers ‘the performance of all methods, except LEARN, deteriorates significantly’.",
        "From k = 0 to T^⅔ the final regret of OGD, Top-k and Uncertain Top-k clearly more than doubles; "
        "LEARN's does not.",
    ),
    Claim(
        "fastest", "regret", rules.grows_fastest,
        "OGD's ‘growth rate is the largest, implying that it will eventually surpass other methods’.",
        "In the second half OGD has clearly more regret per round than each of LEARN, Top-k and Uncertain Top-k, "
        "at k = √T, T^⅔ and T/4.",
    ),
    Claim(
        "best", "regret", rules.is_best,
        "with many outliers LEARN has the least regret of the paper's four methods.",
        "At k = T^⅔ and T/4 LEARN's final regret is clearly lower than that of each of the three others.",
    ),
    Claim(
        "sublinear", "growth", rules.is_sublinear,
        "LEARN's regret is sublinear in T when the number of outliers is.",
        "The exponent of LEARN's final regret in T at k = T^⅔, fitted in every run, is below 1 by more than two "
        "standard errors; contradicted if it is above 1 by as much.",
    ),
    Claim(
        "constant", "regret", rules.grows("T^⅔", "T/4", PAPER, 1.5),
        "‘a constant proportion of outliers proves detrimental for all methods’.",
        "From k = T^⅔ to T/4 the final regret of each of the paper's four clearly grows by more than half.",
    ),
    Claim(
        "step-size", "regret", rules.needs_the_larger_step,
        "for the baselines the step 1/√T ‘yields smaller regret’ than 1/(m·t).",
        "At every k OGD and Top-k have clearly more regret at 1/(m·t) than at 1/√T; divergence is infinite regret.",
    ),
    Claim(
        "weights", "weights", rules.weighs_outliers,
        "at the paper's settings LEARN gives a corrupted round nearly the weight of a clean one.",
        "At k = √T, T^⅔ and T/4, in one run, the median weight of a corrupted round is more than half a clean one's.",
        in_paper=False,
    ),
    Claim(
        "smaller-step", "regret", rules.equals_a_smaller_step,
        "at the paper's settings LEARN is no better than plain OGD at a step 11 times smaller.",
        "LEARN's final regret is not clearly lower, by more than 1 %, than that of OGD at α/11, at every k.",
        in_paper=False,
    ),
    Claim(
        "classic", "regret", rules.loses_to_a_classic,
        "a classic redescending transform at a fixed constant does better than LEARN.",
        "One of Cauchy, Welsch and Tukey, the same at every k, has clearly less final regret than LEARN at every k.",
        in_paper=False,
    ),
    Claim(
        "tuned", "grid", rules.is_poorly_tuned,
        "the paper's a and b, from ‘a grid search across a small range’, leave most of LEARN's strength unused.",
        "Supported if some (a, b) of a coarse grid has clearly less than half the regret of the paper's at k = T^⅔; "
        "partly if it has at least a tenth less.",
        in_paper=False,
    ),
)  # fmt: skip

_BOUNDARIES = (
    Claim(
        "recovered", "boundaries", rules.all_recover,
        "SVM: without outliers ‘all methods accurately learn’ the true decision boundary.",
        "With k = 0 the boundary of each of the paper's four is within 5° of the truth, in one run.",
    ),
    Claim(
        "stays-close", "boundaries", rules.learn_stays_close,
        "SVM: with outliers LEARN keeps ‘a decision boundary close to the optimal configuration’.",
        "LEARN's boundary is within 5° of the truth at k = √T, T^⅔ and T/4, in one run.",
    ),
    Claim(
        "deviate", "boundaries", rules.baselines_deviate,
        "SVM: with outliers ‘the decision boundaries for other baselines gradually deviate’.",
        "At T/4 each baseline's boundary is more than 5° off, further than at k = 0 and than LEARN's, in one run.",
    ),
)  # fmt: skip

_BY_PROBLEM = [_specialise(problem, claim) for claim in _BOTH_PROBLEMS for problem in PROBLEMS]

CLAIMS: tuple[Claim, ...] = (
    *(claim for claim in _BY_PROBLEM if claim.in_paper),
    *_BOUNDARIES,
    *(claim for claim in _BY_PROBLEM if not claim.in_paper),
)
"""The paper's claims first, then what it leaves out."""
