"""How estimators go back to a state: all of it is read and checked, and only then takes the place of the old."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from redescend.errors import DataError


def renewed(estimator: Any, state: Any, learned: Iterable[str], read: Callable[[dict[str, Any]], Any]) -> None:
    """Give an estimator the attributes that `read` finds in a state, and none of those that it had `learned`."""
    if not isinstance(state, dict) or not isinstance(state.get("fitted"), bool):
        raise DataError(f"The state of {type(estimator).__name__} must be a dict that its state() gave.")
    found = read(state) if state["fitted"] else {}
    for name in learned:
        estimator.__dict__.pop(name, None)
    estimator.__dict__.update(found)


@contextmanager
def reading(owner: str) -> Iterator[None]:
    """Whatever goes wrong with a state is told in one sentence."""
    try:
        yield
    except DataError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DataError(f"The state of {owner} lacks or garbles something ({error}); it has been altered.") from None


def names_of(names: Any, dim: int) -> dict[str, Any]:
    """The names of the features, if they had any."""
    if names is None:
        return {}
    if not isinstance(names, list) or len(names) != dim or not all(isinstance(name, str) for name in names):
        raise DataError(f"The state must name its {dim} features with texts, or none of them; it has been altered.")
    return {"feature_names_in_": np.array(names, dtype=object)}
