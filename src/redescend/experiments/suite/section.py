"""What the report says of the suite."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.experiments.problems import YARDSTICK
from redescend.experiments.results import Results
from redescend.experiments.statistics import number
from redescend.experiments.suite.players import BEST, UNTUNED
from redescend.experiments.suite.ratios import GROUPS, ORACLE, Cell, Loss, Ratios, ablation, gather


def section(results: Results) -> dict[str, Any] | None:
    """The table of ratios and the settings in which the subject does worst, or nothing without results."""
    ratios = gather(results)
    if not ratios.settings:
        return None
    shown = [learner for learner in ratios.learners if learner != ORACLE]
    kinds = {
        "no step to set": [learner for learner in shown if learner in UNTUNED],
        "step 1/√T": [learner for learner in shown if learner not in UNTUNED and not learner.endswith(BEST)],
        "best step in hindsight": [learner for learner in shown if learner.endswith(BEST)],
    }
    cells = {(learner, group): ratios.cell(learner, own) for learner in shown for group, own in GROUPS.items()}
    groups = {group: cells[shown[0], group] for group in GROUPS}
    untold = [learner for learner in shown if not learner.startswith(YARDSTICK)]
    subject = ratios.subject()
    rounds = results.select(experiment="suite").column("rounds")
    return {
        "answer": _answer(ratios, untold),
        "settings": len(ratios.settings),
        "rounds": int(rounds.max()),
        "columns": {group: cell.settings for group, cell in groups.items() if cell is not None},
        "kinds": {kind: members for kind, members in kinds.items() if members},
        "cells": {place: told(cell) for place, cell in cells.items() if cell is not None},
        "best": {
            (min(untold, key=lambda learner: cells[learner, group].mean), group)  # type: ignore[union-attr]
            for group, cell in groups.items()
            if cell is not None
        },
        "ablation": [
            (one.name, number(one.regression), number(one.classification), f"{one.within_15:.0%}", number(one.worst))
            for one in ablation(results)
        ],
        "subject": subject,
        "losses": [sentence(loss) for loss in ratios.losses(subject)],
    }


def _answer(ratios: Ratios, learners: list[str]) -> str:
    """The suite in a sentence: the subject, and the best of the others."""
    within = {learner: float(np.mean(ratios.of(learner) <= 1.5)) for learner in learners}
    subject = ratios.subject()
    family = subject.partition(",")[0]
    best = max((learner for learner in learners if not learner.startswith(family)), key=lambda learner: within[learner])
    return (
        f"In a suite of {len(ratios.settings)} settings of adversity, {subject} is within 1.5 times an oracle with the "
        f"best step in {within[subject]:.0%} of them, and the best of the others, {best}, in {within[best]:.0%}."
    )


def told(cell: Cell) -> tuple[str, str]:
    """A cell of the table: its mean, and what stands below it.

    Examples
    --------
    >>> told(Cell(settings=8, mean=1.234, within_12=0.5, within_15=0.75, worst=float("inf")))
    ('1.23', '50 / 75 %, diverged')
    """
    shares = f"{100.0 * cell.within_12:.0f} / {100.0 * cell.within_15:.0f} %"
    return number(cell.mean), f"{shares}, {number(cell.worst)}"


def sentence(loss: Loss) -> str:
    """A bad setting in words."""
    ratio = f"{number(loss.ratio)} times the oracle" if loss.ratio < float("inf") else "diverged"
    return f"{loss.setting.words}: {ratio} (lowest there: {loss.best}, {number(loss.best_ratio)})"
