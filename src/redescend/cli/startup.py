"""What the command does first, so that a short run takes about a second."""

from __future__ import annotations

import atexit
import gc
import sys
from importlib.abc import MetaPathFinder
from typing import Any


class _NoPandas(MetaPathFinder):
    """Acts as if pandas were not installed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("The command does not use pandas.", name=name)


def start_fast() -> None:
    """Leave out work that has no use in a process of our own."""
    # The many objects of imported modules are no garbage, and need not be searched for it again and again.
    gc.set_threshold(100_000, 20, 20)
    atexit.register(_skip_last_search)
    # Where pandas is installed, PyArrow would import it to recognize its objects.
    allow_pandas()
    sys.meta_path.insert(0, _NoPandas())


def _skip_last_search() -> None:
    """Do not search for garbage when the process ends; DuckDB would complain about what it then leaves behind."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def allow_pandas() -> None:
    """Let pandas be imported again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandas)]
