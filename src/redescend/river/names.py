"""Names of features and labels: any value that a dict takes as a key, and a plain value in a state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import numpy as np


def getter(names: list[Any]) -> Callable[[Any], Iterable[Any]]:
    """What takes the values of these names, all of them, from a dict."""
    return itemgetter(*names) if len(names) > 1 else lambda x: [x[name] for name in names]


def plain(name: Any) -> Any:
    """The name of a feature or a label as a plain value; a tuple as a list."""
    if isinstance(name, tuple):
        return [plain(part) for part in name]
    return name.item() if isinstance(name, np.generic) else name


def unplain(name: Any) -> Any:
    return tuple(unplain(part) for part in name) if isinstance(name, list) else name
