"""The tests of the core, of scikit-learn's estimators and of the command line pass with the oldest versions of the
dependencies, those of constraints-oldest.txt. `make soak` installs them.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-oldest" / "bin" / "python"

PARTS = {
    "core": [
        *(f"tests/test_{name}.py" for name in ("cache", "domains", "files", "game", "gates", "learners")),
        *(f"tests/test_{name}.py" for name in ("losses", "selftuning", "state", "steps", "transforms")),
    ],
    "compiler": [f"tests/test_{name}.py" for name in ("belief", "fleet", "forest", "kernels", "translation", "views")],
    "scikit-learn": ["tests/test_sklearn.py", "tests/test_sklearn_checks.py", "tests/test_sklearn_tools.py"],
    "files": ["tests/sources"],
    "streams": [f"tests/streaming/test_{name}.py" for name in ("checkpoints", "fit", "model", "writers")],
    "command": ["tests/cli"],
}


def test_the_oldest_versions_are_those_that_are_declared():
    """Every dependency that has a lower bound and a pin is pinned to the bound."""
    pins = dict(re.findall(r"^(\S+?)==(\S+)$", (ROOT / "constraints-oldest.txt").read_text().lower(), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = dict(
        re.match(r"([\w-]+)[^>]*>=([\d.]+)", one.lower()).groups()
        for one in [*project["dependencies"], *extras["cli"], *extras["sklearn"]]
    )
    assert {name: version_of(pins[name]) for name in declared} == {
        name: version_of(bound) for name, bound in declared.items()
    }


def version_of(text: str) -> tuple[int, ...]:
    numbers = [int(part) for part in text.split(".")]
    while numbers[-1] == 0 and len(numbers) > 1:
        numbers.pop()
    return tuple(numbers)


@pytest.mark.soak
@pytest.mark.parametrize("part", PARTS)
def test_the_oldest_versions_work(part, record_property):
    if not PYTHON.exists():
        pytest.skip("The oldest versions are not installed; make soak installs them.")
    command = [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", *PARTS[part]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    record_property("tried", {"tests with the oldest versions of the dependencies": passed})
