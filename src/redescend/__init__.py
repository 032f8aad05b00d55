"""Online learning that outliers cannot move.

A round: the learner plays θ, the loss f is revealed, the gate says how much of it to believe, and the learner takes a
step of weight × gradient and projects on its domain: θ ← Π_Θ(θ − α_t·w_t·∇f_t(θ)).

>>> import redescend as rd
>>> stream = rd.adversaries.UniformResponse(0, 1).corrupt(rd.streams.ridge(1000, seed=0, dim=5), k=100, seed=1)
>>> learner = rd.Learn(5, loss=rd.losses.Squared(), a=0.01, b=0.01, step=rd.steps.Anytime())
>>> rd.play(learner, stream)
Trace(1000 rounds, ...)
"""

from importlib import import_module
from typing import Any

from redescend import adversaries, bounds, domains, errors, gates, losses, regret, steps, streams, transforms
from redescend.checkpoint import load, save
from redescend.game import Originals, Stream, Trace, play
from redescend.learners.base import Learner, Round
from redescend.learners.descent import Descent
from redescend.learners.experts import LearnWithExperts
from redescend.learners.peers import Ader, JacobsenCutkosky
from redescend.learners.recipes import OGD, ClippedOGD, Learn, NormalisedOGD, Oracle, Robust, TopK
from redescend.learners.selftuning import SelfTuning

__version__ = "0.1.0"

_OF_STREAMING = ("StreamModel", "fit_stream")
"""Names that need PyArrow, which is imported only when one of them is asked for."""


def __getattr__(name: str) -> Any:
    if name in _OF_STREAMING:
        return getattr(import_module("redescend.streaming"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_OF_STREAMING])


__all__ = [
    "OGD",
    "Ader",
    "ClippedOGD",
    "Descent",
    "JacobsenCutkosky",
    "Learn",
    "LearnWithExperts",
    "Learner",
    "NormalisedOGD",
    "Oracle",
    "Originals",
    "Robust",
    "Round",
    "SelfTuning",
    "Stream",
    "TopK",
    "Trace",
    "adversaries",
    "bounds",
    "domains",
    "errors",
    "gates",
    "load",
    "losses",
    "play",
    "regret",
    "save",
    "steps",
    "streams",
    "transforms",
]
