"""Online learning that outliers cannot move.

In a round the learner plays θ, the loss f is revealed, the gate gives it a weight in [0, 1], and the learner takes a
step of weight × gradient and projects on its domain: θ ← Π_Θ(θ − α_t·w_t·∇f_t(θ)).

>>> import redescend as rd
>>> stream = rd.adversaries.UniformResponse(0, 1).corrupt(rd.streams.ridge(1000, seed=0, dim=5), k=100, seed=1)
>>> learner = rd.Learn(5, loss=rd.losses.Squared(), a=0.01, b=0.01, step=rd.steps.Anytime())
>>> rd.play(learner, stream)
Trace(1000 rounds, ...)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redescend import (
        adversaries,
        belief,
        bounds,
        domains,
        errors,
        gates,
        losses,
        regret,
        steps,
        streams,
        transforms,
    )
    from redescend.checkpoint import load, save
    from redescend.exports.onnx import to_onnx
    from redescend.game import Originals, Stream, Trace, play
    from redescend.learners.descent import Descent
    from redescend.learners.experts import Ader, JacobsenCutkosky, LearnWithExperts
    from redescend.learners.learner import Learner, Round
    from redescend.learners.recipes import OGD, ClippedOGD, Learn, NormalisedOGD, Oracle, Robust, TopK
    from redescend.learners.selftuning import SelfTuning
    from redescend.streaming import ModelStore, StreamModel, fit_stream

__version__ = "0.1.0"

_HOMES = {
    "checkpoint": ("load", "save"),
    "exports.onnx": ("to_onnx",),
    "game": ("Originals", "Stream", "Trace", "play"),
    "learners.learner": ("Learner", "Round"),
    "learners.descent": ("Descent",),
    "learners.experts": ("Ader", "JacobsenCutkosky", "LearnWithExperts"),
    "learners.recipes": ("OGD", "ClippedOGD", "Learn", "NormalisedOGD", "Oracle", "Robust", "TopK"),
    "learners.selftuning": ("SelfTuning",),
    "streaming": ("ModelStore", "StreamModel", "fit_stream"),
}
"""The module of each name. It is imported on first use, so that `redescend --help` does not wait for the compiler."""


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is not None:
        globals()[name] = value = getattr(import_module(f"redescend.{home}"), name)
        return value
    if name in __all__:
        return import_module(f"redescend.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "OGD",
    "Ader",
    "ClippedOGD",
    "Descent",
    "JacobsenCutkosky",
    "Learn",
    "LearnWithExperts",
    "Learner",
    "ModelStore",
    "NormalisedOGD",
    "Oracle",
    "Originals",
    "Robust",
    "Round",
    "SelfTuning",
    "Stream",
    "StreamModel",
    "TopK",
    "Trace",
    "adversaries",
    "belief",
    "bounds",
    "domains",
    "errors",
    "fit_stream",
    "gates",
    "load",
    "losses",
    "play",
    "regret",
    "save",
    "steps",
    "streams",
    "to_onnx",
    "transforms",
]
