r"""What came out: the regret of every learner in every setting, divided by that of the oracle with the best step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from redescend.experiments.problems import YARDSTICK
from redescend.experiments.results import Results
from redescend.experiments.suite.design import ADAPTIVE, SYNTHETIC, Setting
from redescend.experiments.suite.players import BEST, PEERS, UNTUNED
from redescend.numeric import Array

ORACLE = f"{YARDSTICK}{BEST}"
WHOLE = "self-tuning, order 1"
"""The learner whose ingredients are left out in turn."""

CAP = 1_000.0
"""A larger ratio, and divergence, counts as this in a geometric mean, and so does its inverse."""

GROUPS: dict[str, Callable[[Setting], bool]] = {
    "all": lambda setting: True,
    "regression": lambda setting: setting.task == "regression",
    "classification": lambda setting: setting.task == "classification",
    "k ≤ T/10": lambda setting: setting.count != "T/4",
    "k = T/4": lambda setting: setting.count == "T/4",
    "adaptive": lambda setting: setting.when == ADAPTIVE,
    "real": lambda setting: setting.source != SYNTHETIC,
}
"""The columns of the table."""


class Cell(NamedTuple):
    """A learner's ratios in a group of settings: geometric mean, share within 1.2 and 1.5, and the worst."""

    settings: int
    mean: float
    within_12: float
    within_15: float
    worst: float


class Loss(NamedTuple):
    """A setting in which a learner does badly, and who does best there without being told which rounds are clean."""

    setting: Setting
    ratio: float
    best: str
    best_ratio: float


class Ablation(NamedTuple):
    """The ratios of one variant: geometric means by task, share within 1.5, and the worst."""

    name: str
    regression: float
    classification: float
    within_15: float
    worst: float


@dataclass(frozen=True, eq=False)
class Ratios:
    """Ratios to the oracle with the best step: rows are settings, columns are learners; infinite where one diverged."""

    settings: list[Setting]
    learners: list[str]
    values: Array

    def of(self, learner: str) -> Array:
        return self.values[:, self.learners.index(learner)]

    def cell(self, learner: str, group: Callable[[Setting], bool]) -> Cell | None:
        """A learner in a group, or nothing if the group has no setting."""
        own = self.of(learner)[[bool(group(setting)) for setting in self.settings]]
        if not len(own):
            return None
        within = [float(np.mean(own <= bound)) for bound in (1.2, 1.5)]
        return Cell(len(own), geometric_mean(own), within[0], within[1], float(own.max()))

    def subject(self) -> str:
        """The learner that the page is about: the first that has no step, or LEARN."""
        return next((name for name in UNTUNED if name in self.learners), "LEARN")

    def losses(self, learner: str, number: int = 10) -> list[Loss]:
        """The settings with a learner's largest ratios, the worst first."""
        others = [place for place, name in enumerate(self.learners) if not name.startswith(YARDSTICK)]
        found = []
        for row in np.argsort(-self.of(learner), kind="stable")[:number]:
            best = min(others, key=lambda place: float(self.values[row, place]))
            ratio = float(self.of(learner)[row])
            found.append(Loss(self.settings[row], ratio, self.learners[best], float(self.values[row, best])))
        return found


def geometric_mean(ratios: Array) -> float:
    """With ratios beyond `CAP` taken as `CAP`.

    Examples
    --------
    >>> round(geometric_mean(np.array([1.0, 10.0, np.inf])), 3)
    21.544
    """
    return float(np.exp(np.log(np.clip(ratios, 1.0 / CAP, CAP)).mean()))


def profile(ratios: Array, within: Array) -> Array:
    """The share of settings whose ratio is at most each of these.

    Examples
    --------
    >>> profile(np.array([0.9, 1.0, 3.0, np.inf]), np.array([0.5, 1.0, 10.0]))
    array([0.  , 0.5 , 0.75])
    """
    return np.searchsorted(np.sort(ratios), within, side="right") / len(ratios)


def gather(results: Results) -> Ratios:
    """The ratios in every setting that all learners have finished, in the order of the results.

    Examples
    --------
    >>> from redescend.experiments.tasks import table
    >>> here = dict(experiment="suite", problem="regression; nox; its own; its own; its own; none; none; 0", run=0, k=0)
    >>> here |= dict(rounds=9, count="0", round=9, measure="final regret")
    >>> blocks = [{**here, "learner": name, "value": np.array([x])} for name, x in (("OGD", 6.0), (ORACLE, 4.0))]
    >>> gather(Results(table(blocks))).values
    array([[1.5, 1. ]])
    """
    rows = results.select(experiment="suite")
    regrets: dict[Setting, dict[str, float]] = {}
    for measure in ("final regret", "diverged"):
        for row in rows.select(measure=measure).table.to_pylist():
            setting = Setting.parsed(row["problem"], row["count"])
            regrets.setdefault(setting, {})[row["learner"]] = row["value"] if measure == "final regret" else np.inf
    learners = _in_order({name for own in regrets.values() for name in own})
    whole = {setting: own for setting, own in regrets.items() if len(own) == len(learners) and own[ORACLE] < np.inf}
    values = [[own[name] / own[ORACLE] for name in learners] for own in whole.values()]
    return Ratios(list(whole), learners, np.array(values).reshape(len(values), len(learners)))


def ablation(results: Results) -> list[Ablation]:
    """What the self-tuning learner of order 1 is without each of its ingredients, and whole, in the same settings."""
    ratios = gather(results)
    rows = results.select(experiment="suite", measure="ablated regret").table.to_pylist()
    known = dict(zip(ratios.settings, ratios.of(WHOLE), strict=True)) if WHOLE in ratios.learners else {}
    oracle = results.select(experiment="suite", learner=ORACLE, measure="final regret").table.to_pylist()
    least = {(row["problem"], row["count"]): row["value"] for row in oracle}
    found: dict[str, dict[Setting, float]] = {}
    for row in rows:
        setting = Setting.parsed(row["problem"], row["count"])
        if setting in known:
            found.setdefault(row["learner"], {})[setting] = row["value"] / least[row["problem"], row["count"]]
    if not found:
        return []
    whole = {setting: known[setting] for setting in next(iter(found.values()))}
    return [_ablation(name, own) for name, own in {"whole": whole, **found}.items()]


def _ablation(name: str, own: dict[Setting, float]) -> Ablation:
    values = np.array(list(own.values()))
    regression = np.array([setting.task == "regression" for setting in own])
    one, other = (geometric_mean(values[mask]) if mask.any() else np.nan for mask in (regression, ~regression))
    return Ablation(name, one, other, float(np.mean(values <= 1.5)), float(values.max()))


def _in_order(learners: set[str]) -> list[str]:
    """Those without a step, then peers at 1/√T, then with the best step, each in the order of the registries."""
    known = [*UNTUNED, *PEERS, *(f"{name}{BEST}" for name in PEERS)]
    return [*(name for name in known if name in learners), *sorted(learners - {*known})]
