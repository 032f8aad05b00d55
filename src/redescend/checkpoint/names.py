"""The classes that a file may name; there is no way to name another.

A class is listed under the name that users import it by, so that files outlive a move from one module to another. Its
module is imported only when a file names it. A class that has been in a release stays listed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from redescend.errors import DataError, MissingExtraError

KNOWN = {
    "redescend": (
        *("OGD", "Learn", "Robust", "TopK", "Oracle", "NormalisedOGD", "ClippedOGD", "Descent"),
        *("LearnWithExperts", "Ader", "JacobsenCutkosky", "SelfTuning"),
    ),
    "redescend.losses": ("Squared", "Hinge", "Logistic", "Absolute", "EpsilonInsensitive", "Pinball"),
    "redescend.transforms": (*("Identity", "Learn", "Huber", "Cauchy", "Welsch", "GemanMcClure", "Tukey", "Barron"),),
    "redescend.domains": ("Reals", "Ball", "Box", "L1Ball", "Simplex", "Intersection"),
    "redescend.steps": (
        *("Constant", "Horizon", "Anytime", "StronglyConvex", "AdaptiveNorm", "Theorem", "Normalised"),
    ),
    "redescend.gates": ("Always", "Robust", "TopK", "Oracle", "Clip"),
    "redescend.sklearn": ("RedescendingRegressor", "RedescendingClassifier", "MedianScaler"),
    "redescend.river": ("RedescendingRegressor", "RedescendingClassifier", "RedescendingFilter"),
    "redescend.streaming": ("ModelStore", "StreamModel"),
}


def name_of(kind: type) -> str | None:
    """The name by which a file may call this class, or None; a class of a user's own has none."""
    for module, names in KNOWN.items():
        if kind.__name__ in names and getattr(sys.modules.get(module), kind.__name__, None) is kind:
            return f"{module}.{kind.__name__}"
    return None


def class_of(name: Any) -> Any:
    """The class that a file calls so.

    Examples
    --------
    >>> class_of("redescend.losses.Squared")()
    Squared(l2=0.0)
    >>> class_of("os.system")
    Traceback (most recent call last):
        ...
    redescend.errors.DataError: it names 'os.system', which is no model of this version of redescend.
    """
    module, _, last = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if last not in KNOWN.get(module, ()):
        raise DataError(f"it names {name!r}, which is no model of this version of redescend.")
    try:
        return getattr(import_module(module), last)
    except MissingExtraError:
        raise
    except ImportError as error:
        extra = module.rpartition(".")[2]
        raise MissingExtraError(
            f"A {last} needs more than redescend itself ({error}); try: pip install 'redescend[{extra}]'"
        ) from None
