"""Every file of this folder defines a claim: a function with the name of the file that returns (measured, bound).

The decorator `claim` declares the direction of the inequality and the arguments to try:

- tight: measured ≤ bound, and equal to it up to rounding or to a limit that the file names;
- upper: measured ≤ bound;
- refuted: measured > bound. The statement is false as printed, and the file is its counter-example.

`python examples/theorems/_claim.py` measures all of them and prints the rows of the table in README.md.
"""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from math import isclose
from pathlib import Path
from typing import Any

KINDS = ("tight", "upper", "refuted")

Pair = tuple[float, float]


def claim(kind: str, *cases: dict[str, Any]) -> Callable[[Callable[..., Pair]], Any]:
    """Declare a function as a claim of this kind, to be tried with each of these sets of arguments."""
    if kind not in KINDS:
        raise ValueError(f"The kind of a claim must be one of {', '.join(KINDS)}. Got {kind!r} instead.")

    def declare(function: Any) -> Any:
        function.kind, function.cases = kind, cases or ({},)
        return function

    return declare


def load(name: str) -> Any:
    """The claim of a file of this folder."""
    module = import_module(name)
    function = getattr(module, name, None)
    if getattr(function, "kind", None) not in KINDS:
        raise TypeError(f"{name}.py must define {name}() and declare it with @claim(kind), kind one of {KINDS}.")
    return function


def names() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def format_case(case: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in case.items())


def show(function: Any) -> None:
    """Measure a claim and print one line for each case."""
    for case in function.cases:
        measured, bound = function(**case)
        sign = "=" if isclose(measured, bound, rel_tol=1e-7) else "≤" if measured <= bound else ">"
        label = f"{function.__name__}({format_case(case)})"
        print(
            f"{label} {function.kind}: measured {measured:.6g} {sign} bound {bound:.6g}, ratio {measured / bound:.3g}"
        )


def rows() -> Iterator[str]:
    """Make the table of README.md: one row for each file."""
    for name in names():
        function = load(name)
        title = (sys.modules[name].__doc__ or "").strip().splitlines()[0].rstrip(".")
        ratios = []
        for case in function.cases:
            measured, bound = function(**case)
            ratios.append(f"{measured / bound:.3g}" + (f" ({format_case(case)})" if case else ""))
        yield f"| {title} | [{name}]({name}.py) | {function.kind} | {'; '.join(ratios)} |"


if __name__ == "__main__":
    print(*rows(), sep="\n")
