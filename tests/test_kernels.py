"""The compiled rounds: their cache, what importing them brings in, and what an interruption leaves."""

from __future__ import annotations

import ast
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import njit

import redescend as rd
from redescend import domains, game, gates, losses, steps, transforms
from redescend.kernels import compiler, descent, projected
from redescend.kernels.selftuning import tables
from redescend.losses import linear
from tests import reference
from tests.catalogue import LINEAR_LOSSES, STEPS, TRANSFORMS

PACKAGE = Path(rd.__file__).parent


def in_a_process(program: str, path: Path = PACKAGE.parent, **environment: str) -> Any:
    """What the program prints, run by a Python of its own that finds the package under `path`."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- the formulas live once ---


@njit
def compiled_transform(kind: int, c: float, b: float, f: float) -> tuple[float, float]:
    return transforms.value(kind, c, b, f), transforms.weight(kind, c, b, f)


@njit
def compiled_loss(kind: int, c: float, p: float, y: float) -> tuple[float, float]:
    return linear.value(kind, c, p, y), linear.slope(kind, c, p, y)


@njit
def compiled_step(kind: int, scale: float, normalised: float, t: float, travelled: float, length: float) -> float:
    return steps.size(kind, scale, normalised, t, travelled, length)


# exp and log of the two libraries differ in the last digit, and Barron's powers amplify that a hundredfold
ALMOST = {"rtol": 1e-13, "atol": 1e-300}


def test_a_kernel_and_python_compute_the_same_transforms():
    for transform in TRANSFORMS:
        for f in (0.0, 1e-12, 0.1, 1.0, 30.0, 1e5, 1e100):
            found = compiled_transform(transform.kind, *transform.settings, f)
            np.testing.assert_allclose(found, [transform.value(f), transform.weight(f)], **ALMOST)


def test_a_kernel_and_python_compute_the_same_losses():
    for loss in LINEAR_LOSSES:
        for p in (-30.0, -1.0, -0.5, 0.0, 0.5, 1.0, 800.0):
            for y in (-1.0, 1.0):
                found = compiled_loss(loss.kind, loss.setting, p, y)
                np.testing.assert_allclose(found, [loss.of_prediction(p, y), loss.slope(p, y)], **ALMOST)


def test_a_kernel_and_python_compute_the_same_steps():
    for step in STEPS:
        for t, travelled, length in ((1.0, 0.0, 0.0), (1.0, 2.0, 2.0), (9.0, 10.0, 0.5)):
            expected = reference.step_size(step)(t, travelled**2, length)
            for size in (steps.size, compiled_step):
                found = size(step.kind, *step.settings, t, travelled, length)
                np.testing.assert_allclose(found, expected, **ALMOST)


# --- the cache ---


def test_kernels_are_cached_under_the_hash_of_the_files_they_use():
    for kernel in (descent.run, descent.run_one, descent.action, projected.run, projected.run_one, tables.learn):
        stamp = kernel._cache.files._impl.locator.get_source_stamp()
        assert stamp == compiler.module_digest(Path(inspect.getfile(kernel.py_func)))


def test_the_imports_of_kernels_are_those_that_python_parses():
    for file in compiler._kernel_sources():
        names = set()
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ImportFrom):
                names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
        folders = [PACKAGE.joinpath(*name.split(".")[1:]) for name in names if name.startswith("redescend.")]
        expected = {path for each in folders for path in (each.with_suffix(".py"), each / "__init__.py")}
        assert {path for path in compiler._imports(file) if path.exists()} == {
            path for path in expected if path.exists()
        }


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """The sources of kernels in a place where they may be changed, and a function that hashes them."""
    sources = [file.relative_to(PACKAGE) for file in compiler._kernel_sources()]
    for source in sources:
        (tmp_path / source).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(PACKAGE / source, tmp_path / source)
    monkeypatch.setattr(compiler, "__file__", str(tmp_path / "kernels" / "compiler.py"))
    modules = [tmp_path / Path(str(module.__file__)).relative_to(PACKAGE) for module in compiler.MODULES]
    monkeypatch.setattr(compiler, "MODULES", [SimpleNamespace(__file__=file) for file in modules])

    def digests() -> dict[str, str]:
        for cached in (compiler._imports, compiler.module_digest, compiler.source_digest):
            cached.cache_clear()
        found = {str(source): compiler.module_digest(tmp_path / source) for source in sources}
        return {**found, "all": compiler.source_digest()}

    yield tmp_path, sources, digests
    monkeypatch.undo()
    compiler._imports.cache_clear()
    compiler.module_digest.cache_clear()
    compiler.source_digest.cache_clear()


def test_a_changed_source_changes_the_digests_of_those_who_import_it(copied):
    folder, sources, digests = copied
    imported = {
        "gates.py": ["kernels/descent.py", "kernels/projected.py", "kernels/tabular/fleet.py"],
        "domains.py": ["kernels/projected.py", "kernels/experts.py"],
        "losses/linear.py": ["kernels/selftuning/tables.py", "kernels/tabular/sparse.py"],
        "kernels/compiler.py": [str(source) for source in sources],
        "kernels/selftuning/noise.py": ["kernels/selftuning/rounds.py", "kernels/selftuning/sparse.py"],
    }
    apart = {
        "gates.py": ["kernels/record_ends.py", "kernels/quantiles.py"],
        "domains.py": ["kernels/descent.py", "kernels/record_ends.py"],
        "kernels/selftuning/noise.py": ["kernels/descent.py"],
    }
    before = digests()
    assert digests() == before
    for source in imported:
        with (folder / source).open("a") as file:
            file.write("\n# a change\n")
        after = digests()
        assert after[source] != before[source]
        assert after["all"] != before["all"]
        assert all(after[name] != before[name] for name in imported[source])
        assert all(after[name] == before[name] for name in apart.get(source, []))
        before = after


USE = """
import json, logging, redescend as rd
from redescend.kernels import compiler
from redescend.kernels import descent
logging.basicConfig(level="INFO", handlers=[handler := logging.NullHandler()])
logged, messages = [], []
handler.handle = logged.append
with compiler.on_compile(messages.append):
    learner = rd.OGD(2, loss=rd.losses.Squared(), step=rd.steps.Constant(0.25), start=[1.0, 2.0])
    theta = learner.theta
with compiler.on_compile(messages.append):
    learner.theta
stats = descent.action.stats
print(json.dumps([theta.tolist(), sum(stats.cache_hits.values()), messages, len(logged)]))
"""


def test_a_second_process_loads_what_the_first_compiled_until_a_formula_changes(tmp_path):
    """What has to be compiled is announced once; what is loaded is not."""
    copy = tmp_path / "redescend"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    compiles, loads = [[1.0, 2.0], 0, [compiler.COMPILING], 1], [[1.0, 2.0], 1, [], 0]
    assert in_a_process(USE, tmp_path, **cache) == compiles
    assert in_a_process(USE, tmp_path, **cache) == loads
    for changed, expected in (("losses/linear.py", compiles), ("domains.py", loads)):
        with (copy / changed).open("a") as source:
            source.write("\n# a change\n")
        assert in_a_process(USE, tmp_path, **cache) == expected


# --- what an import brings in ---

NEIGHBOURS = ["sklearn", "river", "torch", "matplotlib", "dask", "distributed", "joblib", "pandas", "rich", "typer"]


def test_importing_brings_in_no_neighbour():
    loaded = in_a_process("import json, sys, redescend; print(json.dumps(sorted(sys.modules)))")
    assert not {module.partition(".")[0] for module in loaded} & {*NEIGHBOURS, "numba", "numpy"}
    used = in_a_process("import json, sys, redescend; redescend.Learn; print(json.dumps(sorted(sys.modules)))")
    assert "redescend.kernels.descent" in used
    assert not {module.partition(".")[0] for module in used} & set(NEIGHBOURS)


COMMAND = """
import json, sys
from redescend.cli import app
try:
    app(["schema", "-"])
except SystemExit as done:
    print(json.dumps([done.code, "pandas" in sys.modules]), file=sys.stderr)
"""


def test_a_command_does_not_wait_for_pandas():
    command = [sys.executable, "-c", COMMAND]
    done = subprocess.run(command, input="a,b\n1,2020-01-01\n2,2020-01-02\n", capture_output=True, text=True)
    assert json.loads(done.stderr.splitlines()[-1]) == [0, False], done.stderr


def test_the_loading_of_a_kernel_does_not_wait_for_all_that_numba_can_compile():
    program = (
        "import json, sys, redescend as rd\n"
        "rd.OGD(2, loss=rd.losses.Squared(), step=rd.steps.Constant(0.25)).theta\n"
        "print(json.dumps('numba.np.linalg' in sys.modules))"
    )
    in_a_process(program)  # may compile
    assert not in_a_process(program)


def test_playing_brings_in_no_neighbour():
    loaded = in_a_process(
        "import json, sys, redescend as rd\n"
        "learner = rd.Learn(2, loss=rd.losses.Squared(), a=1.0, b=0.1, step=rd.steps.Anytime())\n"
        "rd.play(learner, rd.streams.ridge(10, seed=0, dim=2))\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert not {module.partition(".")[0] for module in loaded} & set(NEIGHBOURS)


def test_importing_compiles_nothing():
    counts = in_a_process(
        "import json, redescend\n"
        "from redescend.kernels import descent, projected\n"
        "kernels = (descent.run, descent.run_one, descent.action, projected.run, projected.run_one)\n"
        "print(json.dumps([len(kernel.signatures) for kernel in kernels]))"
    )
    assert counts == [0, 0, 0, 0, 0]


# --- few compilations ---


def frozen(array: np.ndarray) -> np.ndarray:
    out = array.copy()
    out.flags.writeable = False
    return out


def test_two_precisions_are_all_the_compilations_there_are():
    """Every loss, gate, step, domain and form of array is played by the same two machine codes a kernel."""
    for dtype in (np.float32, np.float64):
        X, y = reference.records(20, 3, seed=1)
        X = X.astype(dtype)
        for domain in (domains.Ball(0.5), domains.Box(-0.5, 0.5)):
            for gate in (gates.Always(), gates.TopK(3), gates.Clip(), gates.Robust(transforms.Tukey(1.0))):
                learner = rd.Descent(3, loss=losses.Absolute(), gate=gate, step=steps.Anytime(), domain=domain)
                for rows in (X, np.asfortranarray(X), X[::-1], X.astype(X.dtype.newbyteorder()), frozen(X)):
                    for targets in (y, y[::-1], y.astype(np.float32), frozen(y)):
                        rd.play(learner, rd.Stream(rows, targets), keep_actions=True)
                        learner.update(rows[0], targets[0])
                        learner.update(rows[0].tolist(), 1)
    for kernel in (descent.run, descent.run_one, descent.action, projected.run, projected.run_one):
        assert len(kernel.signatures) <= 2, kernel.signatures


# --- interruption ---


class Interrupted(rd.OGD):
    """Is interrupted before its fourth chunk."""

    chunks = 0

    def learn_rows(self, *arguments: Any) -> Any:
        self.chunks += 1
        if self.chunks == 4:
            raise KeyboardInterrupt
        return super().learn_rows(*arguments)


@pytest.mark.parametrize("domain", [domains.Ball(0.5), domains.L1Ball(0.5)])
@pytest.mark.parametrize("dim", [3, 600])
def test_an_interrupted_game_can_be_gone_on_with(dim, domain, monkeypatch):
    monkeypatch.setattr(game, "FIRST_ROWS", 10)
    monkeypatch.setattr(game, "CHUNK_SECONDS", 0.0)
    X, y = reference.records(100, dim, seed=2)
    common = {"loss": losses.Squared(l2=0.1), "step": steps.Anytime(), "domain": domain}
    learner, other = Interrupted(dim, **common), rd.OGD(dim, **common)
    with pytest.raises(KeyboardInterrupt):
        rd.play(learner, rd.Stream(X, y))
    assert learner.rounds == 30
    rest = rd.play(learner, rd.Stream(X[30:], y[30:]), keep_actions=True)
    expected = rd.play(other, rd.Stream(X, y), keep_actions=True)
    np.testing.assert_array_equal(rest.actions, expected.actions[30:])
    np.testing.assert_array_equal(rest.theta, expected.theta)
