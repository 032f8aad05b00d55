"""Every file of examples/theorems is a claim whose inequality goes the way that the file says."""

import re
import subprocess
import sys
from functools import cache, partial
from importlib import import_module
from math import isfinite
from pathlib import Path

import numpy as np
import pytest

import redescend as rd

FOLDER = Path(__file__).parent.parent / "examples" / "theorems"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


@pytest.fixture(autouse=True)
def _found_as_by_a_script(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


@cache
def measured(name):
    """The claim of a file, and (measured, bound) of each of its cases."""
    function = import_module("_claim").load(name)
    return function, [function(**case) for case in function.cases]


def holds(kind, value, bound):
    if not (isfinite(value) and isfinite(bound) and value > 0.0):
        return False
    if kind == "refuted":
        return value > 1.01 * bound
    # Rounding errors of a sum of some hundred terms, and of a search that stops at 1e-10 of the action.
    return value <= bound * (1.0 + 1e-9) and (kind == "upper" or value >= bound * (1.0 - 1e-8))


@pytest.mark.parametrize("name", NAMES)
def test_a_claim_holds_in_the_direction_that_it_declares(name):
    function, pairs = measured(name)
    assert pairs
    for case, (value, bound) in zip(function.cases, pairs, strict=True):
        assert holds(function.kind, value, bound), (function.kind, case, value, bound)


@pytest.mark.parametrize("name", NAMES)
def test_a_claim_says_what_it_is(name):
    function, _ = measured(name)
    text = sys.modules[name].__doc__
    assert re.search(r"^Claim\. ", text, re.MULTILINE)
    assert re.search(rf"^Kind: {function.kind}\b.*Source: ", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("kind", "value", "bound"),
    [
        ("upper", 1.001, 1.0),
        ("upper", float("nan"), 1.0),
        ("upper", 1.0, float("inf")),
        ("upper", 0.0, 1.0),
        ("tight", 0.999, 1.0),
        ("tight", 1.001, 1.0),
        ("refuted", 1.0, 1.0),
    ],
)
def test_the_wrong_direction_is_seen(kind, value, bound):
    assert not holds(kind, value, bound)


@pytest.mark.parametrize(
    "text",
    [
        "def {name}():\n    return 1.0, 2.0\n",
        "from _claim import claim\n\n\n@claim('upper')\ndef another():\n    return 1.0, 2.0\n",
        "from _claim import claim\n\n\n@claim('loose')\ndef {name}():\n    return 1.0, 2.0\n",
    ],
    ids=["no kind", "another name", "unknown kind"],
)
def test_a_file_without_a_declared_kind_fails(text, tmp_path, monkeypatch, request):
    name = f"undeclared_{request.node.callspec.id.replace(' ', '_')}"
    (tmp_path / f"{name}.py").write_text(text.replace("{name}", name))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises((TypeError, ValueError), match="kind"):
        import_module("_claim").load(name)


def test_a_script_prints_a_line_for_each_case():
    name = "expert_lemma_as_printed"
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert re.fullmatch(rf"{name}\(\) refuted: measured \S+ > bound \S+, ratio 1\.\d+\n", done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_says_what_is_measured_now(name):
    function, pairs = measured(name)
    rows = [
        line.split("|")[1:-1] for line in (FOLDER / "README.md").read_text().splitlines() if f"]({name}.py)" in line
    ]
    (row,) = [[cell.strip() for cell in row] for row in rows if len(row) == 4]
    assert row[2] == function.kind
    printed = [float(part.split()[0]) for part in row[3].split("; ")]
    # A search may end elsewhere with another SciPy, and long steps amplify the last digits of another machine.
    np.testing.assert_allclose([value / bound for value, bound in pairs], printed, rtol=0.1)


def test_the_game_of_a_theorem_is_played_at_the_step_that_it_prescribes():
    games = import_module("_games")
    stream, ball = games.regression(60, k=6), rd.domains.Ball(games.RADIUS)
    learner = partial(rd.Learn, 3, loss=games.LOSS, a=4.0, b=0.1, domain=ball)
    theorem = partial(rd.bounds.clean_dynamic, a=4.0, b=0.1, sharp=True)
    trace, bound = games.play_at_prescribed_step(lambda step: learner(step=step), stream, theorem, D=games.RADIUS)
    again = rd.play(learner(step=rd.steps.Constant(bound.step)), stream)
    np.testing.assert_array_equal(trace.losses, again.losses)


def test_the_experts_that_are_played_alone_are_all_there_are():
    # Algorithm 2 with every expert written out: 60 radii with 4 steps, none of them merged.
    games = import_module("_games")
    stream = games.waves(60, 5)
    learner, _ = games.play_with_experts(stream, reach=16.0 / np.sqrt(60.0))
    steps = [2.0**i / np.sqrt(60.0) for i in range(1, 5)]
    assert games.count_experts(learner) == len(steps) * 60
    largest = np.zeros(60)
    for step in steps:
        for radius in [2.0**j / 60.0 for j in range(1, 61)]:
            theta = 0.0
            for t, y in enumerate(stream.y):
                f = (theta - y) ** 2
                largest[t] = max(largest[t], f)
                theta = np.clip(theta - step * 2.0 * (theta - y) / (1.0 + np.exp(f)), -radius, radius)
    np.testing.assert_allclose(games.play_experts(learner, stream).max(axis=0), largest, rtol=1e-9)
