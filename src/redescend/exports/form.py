"""What is exported of a model: its linear form, and the names of what it predicts."""

from __future__ import annotations

from typing import Any

from redescend.engines.engine import LinearForm
from redescend.errors import DataError


def read_form(model: Any) -> LinearForm:
    """The linear form of a stream model or an estimator; the one place that refuses models without one."""
    owner = type(model).__name__
    holder = getattr(model, "engine", model)
    if not hasattr(holder, "linear_form"):
        raise DataError(
            f"A {owner} cannot be exported; models of redescend.sklearn and of redescend.fit_stream without keys can."
        )
    try:
        return holder.linear_form()
    except AttributeError:
        raise DataError(
            f"This {owner} cannot be exported, because it is not linear; make it with features='linear'."
        ) from None
