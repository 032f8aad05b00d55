"""The recipes of CONTRIBUTING add a loss, a gate, a transform and a command option to a copy of the package.

Compiled rounds choose a formula by its code, so a new one is written into the package; its diff is the recipe.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import redescend

PACKAGE = Path(redescend.__file__).parent
ROOT = PACKAGE.parents[1]
RECIPES = re.findall(
    r"^## To add a (loss|gate|transform|command option)$.*?^```diff\n(.*?)^```$",
    (ROOT / "CONTRIBUTING.md").read_text(),
    re.M | re.S,
)

PROGRAM = """
import numpy as np
import redescend as rd
from redescend.registry import GATES, LOSSES, TRANSFORMS

random = np.random.default_rng(0)
X = random.standard_normal((200, 3))
stream = rd.adversaries.ShiftResponse(50.0).corrupt(rd.Stream(X, X @ [1.0, -2.0, 0.5]), k=20, seed=1)
rounds, always = np.arange(200), rd.gates.Always()

def play(loss, step, gate=always):
    learner = rd.Descent(3, loss=loss, gate=gate, step=rd.steps.Constant(step))
    return learner, rd.play(learner, stream, keep_actions=True)

# the loss: half of the squared loss at twice the step is the same game
half = LOSSES.parse("half_squared")
learner, trace = play(half, 0.02)
_, squared = play(rd.losses.Squared(), 0.01)
assert np.array_equal(trace.theta, squared.theta) and np.array_equal(2.0 * trace.losses, squared.losses)
ours, theirs = (rd.regret.clean_dynamic(t, stream, f) for t, f in ((trace, half), (squared, rd.losses.Squared())))
np.testing.assert_allclose(2.0 * ours, theirs, rtol=1e-12)
rd.save(learner, "model.redescend")
assert np.array_equal(rd.load("model.redescend").theta, learner.theta)
try:
    rd.SelfTuning(3, loss=half)
except rd.errors.ParameterError as error:
    assert "a likelihood" in str(error)
else:
    raise AssertionError("self-tuning needs a likelihood")

# the gate: the mean length of the rounds so far
_, trace = play(rd.losses.Squared(), 0.01, GATES.parse("mean"))
residuals = np.einsum("ij,ij->i", stream.X, trace.actions) - stream.y
lengths = np.abs(2.0 * residuals) * np.linalg.norm(stream.X, axis=1)
means = np.cumsum(lengths)[:-1] / rounds[1:]
np.testing.assert_allclose(trace.weights, [1.0, *np.minimum(1.0, means / lengths[1:])], rtol=1e-9)
assert trace.weights.min() < 0.5

# the transform: Barron's with alpha = 1
_, ours = play(half, 0.1, rd.gates.Robust(TRANSFORMS.parse("pseudo_huber(c=1.5)")))
_, theirs = play(half, 0.1, rd.gates.Robust(rd.transforms.Barron(1.0, 1.5)))
np.testing.assert_allclose(ours.theta, theirs.theta, rtol=1e-9)
np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-9)
"""

OPTION_PROGRAM = """
import numpy as np
import redescend as rd

def fit(**settings):
    model, rounds = rd.fit_stream("records.csv", "y", linear=True, **settings)
    rounds.run()
    return model

stored, plain, penalized = rd.load("model.safetensors"), fit(), fit(alpha=100.0)
assert stored.config.loss.l2 == stored.get_params()["alpha"] == 100.0
assert np.array_equal(stored.coefficients()[0], penalized.coefficients()[0])
assert np.abs(penalized.coefficients()[0]).sum() < 0.9 * np.abs(plain.coefficients()[0]).sum()
run = {"checkpoint": "checkpoint", "alpha": 1.0}
fit(**run)
for bad, message in (({"alpha": -1.0}, "alpha"), (run | {"resume": True, "alpha": 2.0}, "alpha = 1.0")):
    try:
        fit(**bad)
    except rd.errors.ParameterError as error:
        assert message in str(error)
    else:
        raise AssertionError(bad)
"""


def apply(diff: str, root: Path) -> set[str]:
    """Apply a diff whose hunks are found by their text, and return the files that it touches."""
    files = re.split(r"^--- (.*)\n", diff, flags=re.MULTILINE)[1:]
    for name, hunks in zip(files[::2], files[1::2], strict=True):
        text = (root / name).read_text()
        for hunk in re.split(r"^@@.*\n", hunks, flags=re.MULTILINE):
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] for line in lines if line[0] in " -")
            assert text.count(old) == 1, f"CONTRIBUTING's diff of {name} has lines that are not there once:\n{old}"
            text = text.replace(old, "".join(line[1:] for line in lines if line[0] in " +"))
        (root / name).write_text(text)
    return set(files[::2])


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Path:
    """A copy with another loss, gate and transform."""
    root = tmp_path_factory.mktemp("extended")
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "files"))
    assert [name for name, _ in RECIPES] == ["loss", "gate", "transform", "command option"]
    for _, diff in RECIPES[:3]:
        assert len(apply(diff, root)) <= 3
    return root


def run(root: Path, *arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    done = subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_what_the_recipes_add_is_played_end_to_end(extended):
    run(extended, "-c", PROGRAM)


def test_what_the_recipes_add_passes_the_tests_of_its_kind(extended):
    files = [f"tests/test_{name}.py" for name in ("losses", "transforms", "gates", "parameters", "registry")]
    names = "HalfSquared or Mean or PseudoHuber or public_class or derivative or invex"
    run(extended, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *files, "-k", names)


def test_the_option_reaches_the_model_the_file_and_the_checkpoint(tmp_path):
    # With what was compiled from the same formulas before.
    shutil.copytree(PACKAGE, tmp_path / "src" / "redescend")
    assert len(apply(RECIPES[3][1], tmp_path)) <= 3
    numbers = np.random.default_rng(0).normal(size=(300, 3))
    lines = "".join(f"{a:.6f},{b:.6f},{3 * a - b + noise:.6f}\n" for a, b, noise in numbers)
    (tmp_path / "records.csv").write_text("a,b,y\n" + lines)
    command = "fit records.csv --target y --passes 1 --no-shuffle --no-report -q --model model.safetensors --alpha 100"
    run(tmp_path, "-m", "redescend", *command.split())
    run(tmp_path, "-c", OPTION_PROGRAM)


def read_section(title: str) -> str:
    found = re.search(rf"^## {title}$(.*?)(?=^## )", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S)
    assert found is not None
    return found[1]


def test_each_task_of_the_table_touches_at_most_three_files_which_exist():
    rows = [line.strip("|").split("|") for line in read_section("Where to change what").splitlines() if "`" in line]
    assert len(rows) >= 8
    for task, *cells, count in rows:
        assert max(int(number) for number in re.findall(r"\d+", count)) <= 3, task
        folder = Path()
        for name in re.findall(r"`([\w/.]+)`", " ".join(cells)):
            places = (PACKAGE / name, ROOT / name, folder / name)
            found = next((place for place in places if place.exists()), None)
            assert found is not None, f"{task}: there is no {name}"
            folder = found if found.is_dir() else found.parent


def test_the_map_names_every_package_and_module_at_the_top():
    words = set(re.findall(r"\w+", read_section("The map")))
    here = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert here - words <= {"__init__", "__main__"}
