"""What the theory guarantees for a run of LEARN: its certificate, and Theorem 3.3 with sharp and printed constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redescend.bounds.certificate import certificate_of
from redescend.bounds.measurements import occurred
from redescend.bounds.setting import setting_of
from redescend.bounds.theorems import clean_dynamic
from redescend.experiments.problems import Problem
from redescend.game import Stream, Trace
from redescend.learners.descent import Descent

MEASURES = ("measured", "convexity", "certificate", "sharp bound", "printed bound")
"""In the order in which they must not fall."""


def guarantees(here: dict[str, Any], problem: Problem, trace: Trace, stream: Stream, learner: Descent) -> Iterator[Any]:
    """A block for each of the measures, after the last round."""
    game = occurred(trace, stream, learner)
    certificate, setting = certificate_of(game, trace, stream, learner), setting_of(game, learner)
    step = learner.step.settings[0]
    sharp, printed = (clean_dynamic(setting, problem.a, problem.b, sharp, step).value for sharp in (True, False))
    values = (certificate.measured, certificate.convexity, certificate.value, sharp, printed)
    for measure, value in zip(MEASURES, values, strict=True):
        yield {**here, "round": np.array([problem.rounds]), "measure": measure, "value": np.array([value])}
