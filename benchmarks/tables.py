"""The precision at k of lists of suspects: ``python -m benchmarks.tables --split held``, in ten minutes.

Errors are injected into real tables. The first k records of the final list of `redescend fit` are compared with those
of other methods, where k is the number of errors. Labels are compared with cleanlab, if that is installed.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.table_errors import KINDS, Case, encode, flip_labels, make_cases
from redescend.numeric import Array
from redescend.streaming.config import FitConfig
from redescend.streaming.fit import start_run

FOLDS, WITHIN = 5, 0.02
"""Folds of boosted trees; the margin within which a method counts as best."""

Method = Callable[[Case], Array]
"""Ranks the rows of a table with errors, most suspicious first."""


def fit(case: Case, linear: bool = True) -> Array:
    """Our list, with the settings of the command."""
    target, frame = case.table.target, case.frame
    settings: dict[str, Any] = {"passes": None, "shuffle": None, "final_look": True, "top": len(frame)}
    config = FitConfig(target=target, linear=linear, **settings)
    with start_run(pa.Table.from_pandas(frame, preserve_index=False), config) as run:
        run.run()
        assert run.final is not None
        return run.final.rounds.rows - 1


def rank(scores: Array) -> Array:
    return np.argsort(-scores, kind="stable")


def residuals(model: Any, case: Case) -> Array:
    X, y = encode(case.frame, case.table.target), case.frame[case.table.target].to_numpy(np.float64)
    return rank(np.abs(y - model.fit(X, y).predict(X)))


def boost(case: Case) -> Array:
    """Boosted trees, fitted to the other rows."""
    model = import_module("sklearn.ensemble").HistGradientBoostingRegressor(loss="absolute_error")
    X, y = encode(case.frame, case.table.target), case.frame[case.table.target].to_numpy(np.float64)
    folds = import_module("sklearn.model_selection").KFold(FOLDS, shuffle=True, random_state=0)
    return rank(np.abs(y - import_module("sklearn.model_selection").cross_val_predict(model, X, y, cv=folds)))


def huber(case: Case) -> Array:
    return residuals(import_module("sklearn.linear_model").HuberRegressor(max_iter=1000), case)


def least_squares(case: Case) -> Array:
    return residuals(import_module("sklearn.linear_model").LinearRegression(), case)


def with_target(case: Case) -> Array:
    y = case.frame[case.table.target].to_numpy(np.float64)
    return np.column_stack([encode(case.frame, case.table.target), (y - y.mean()) / y.std()])


def isolate(case: Case) -> Array:
    forest = import_module("sklearn.ensemble").IsolationForest(random_state=0)
    return rank(-forest.fit(X := with_target(case)).score_samples(X))


def local_outliers(case: Case) -> Array:
    model = import_module("sklearn.neighbors").LocalOutlierFactor()
    model.fit(with_target(case))
    return rank(-model.negative_outlier_factor_)


def clean_lab(case: Case, boosted: bool) -> Array:
    """The labels with the lowest self-confidence, by logistic regression or boosted trees."""
    if boosted:
        model = import_module("sklearn.ensemble").HistGradientBoostingClassifier()
    else:
        model = import_module("sklearn.linear_model").LogisticRegression(max_iter=1000)
    X = encode(case.frame, case.table.target)
    _, codes = np.unique(case.frame[case.table.target].astype(str), return_inverse=True)
    chosen = import_module("sklearn.model_selection")
    folds = chosen.StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    told = chosen.cross_val_predict(model, X, codes, cv=folds, method="predict_proba")
    return rank(-import_module("cleanlab.rank").get_label_quality_scores(codes, told))


NUMBERS: dict[str, Method] = {
    "linear": fit,
    "trees": lambda case: fit(case, linear=False),
    "Huber": huber,
    "least squares": least_squares,
    "boosting": boost,
    "isolation": isolate,
    "LOF": local_outliers,
}
LABELS: dict[str, Method] = {
    "linear": fit,
    "trees": lambda case: fit(case, linear=False),
    "cleanlab, logistic": lambda case: clean_lab(case, boosted=False),
    "cleanlab, boosting": lambda case: clean_lab(case, boosted=True),
}
OURS = ("linear", "trees")


def compare(cases: Iterable[Case], methods: dict[str, Method], shown: bool) -> dict[str, dict[str, list[float]]]:
    """The precision at k of every method, by kind of error."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        count = int(case.bad.sum())
        for name, method in methods.items():
            found[case.kind][name].append(float(case.bad[method(case)[:count]].mean()))
        if shown:
            told = "  ".join(f"{found[case.kind][name][-1]:.2f}" for name in methods)
            print(f"{case.kind:12s}{case.share:5.0%}  {told}  {case.table.name}", flush=True)
    return found


def print_table(found: dict[str, dict[str, list[float]]], methods: Iterable[str]) -> None:
    """Print means as a Markdown table; the best of each row, and those within `WITHIN` of it, are bold."""
    names = list(methods)
    print(f"| errors | {' | '.join(names)} | first |\n|---|{'---|' * (len(names) + 1)}")
    for kind, values in found.items():
        means = [float(np.mean(values[name])) for name in names]
        best = max(means)
        cells = (f"**{mean:.2f}**" if mean >= best - WITHIN else f"{mean:.2f}" for mean in means)
        first = any(mean >= best - WITHIN for name, mean in zip(names, means, strict=True) if name in OURS)
        print(f"| {kind} | {' | '.join(cells)} | {'yes' if first else 'no'} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--split", choices=["tune", "held"], default="tune")
    parser.add_argument("--kinds", nargs="*", default=[*KINDS, "labels"], help="of errors")
    parser.add_argument("--methods", nargs="*", help="names of methods; default: all")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    chosen, began = parser.parse_args(), time.perf_counter()
    kinds = tuple(kind for kind in KINDS if kind in chosen.kinds)
    numbers = {name: method for name, method in NUMBERS.items() if not chosen.methods or name in chosen.methods}
    print_table(compare(make_cases(chosen.split, kinds), numbers, chosen.verbose), numbers)
    if "labels" in chosen.kinds:
        able = {name: method for name, method in LABELS.items() if "cleanlab" not in name or find_spec("cleanlab")}
        labels = {name: method for name, method in able.items() if not chosen.methods or name in chosen.methods}
        print()
        print_table(compare(flip_labels(chosen.split), labels, chosen.verbose), labels)
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
