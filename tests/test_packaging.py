"""The wheel and the source distribution: what is in them, and that they install and import."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import redescend

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

IMPORTS = {
    "sklearn": "redescend.sklearn",
    "river": "redescend.river",
    "torch": "redescend.torch",
    "data": "redescend.streams.real",
    "experiments": "redescend.experiments.report",
    "cli": "redescend.cli, redescend.streaming",
    "serve": "redescend.serve.server",
    "onnx": "redescend.exports.onnx",
    "tables": "python_calamine, duckdb",
    "redis": "redis",
    "mqtt": "paho.mqtt.client",
}
"""What each extra is for."""


def run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder with the wheel and the source distribution, built from the repository."""
    folder = tmp_path_factory.mktemp("dist")
    code = "import sys; from hatchling import build\nbuild.build_wheel(sys.argv[1]); build.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, folder], cwd=ROOT, check=True, capture_output=True)
    return folder


def files_of(path: Path) -> set[str]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return set(wheel.namelist())
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_the_wheel_installs_and_imports_without_a_warning(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-index"]
    run(*pip, "--disable-pip-version-check", "--target", tmp_path, wheel)
    code = "import redescend, sys; print(redescend.__file__); assert 'sklearn' not in sys.modules"
    found = run(sys.executable, "-W", "error", "-c", code, PYTHONPATH=str(tmp_path))
    assert Path(found.strip()).is_relative_to(tmp_path)


def test_the_wheel_has_all_of_the_package_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    names = files_of(wheel)
    inside = {name for name in names if ".dist-info/" not in name}
    package = Path(redescend.__file__).parent
    kept = {
        str(path.relative_to(package.parent))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".nbi", ".nbc", ".pyc")
    }
    assert inside == kept
    assert "redescend/py.typed" in inside
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_source_distribution_has_what_builds_and_explains_it(built):
    (archive,) = built.glob("*.tar.gz")
    expected = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "CITATION.cff"}
    assert expected | {"src/redescend/py.typed"} <= files_of(archive)


def test_the_citation_has_the_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {redescend.__version__}" in text
    assert "cff-version: 1.2.0" in text


def test_every_extra_is_explained():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    extras = PROJECT["optional-dependencies"]
    assert extras.keys() == IMPORTS.keys()
    assert [name for name in extras if f"| `{name}` |" not in page] == []


def test_the_support_matrix_has_the_oldest_versions():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| (\S+) \| ([\d.]+) \| [\d., ]+ \|$", page, re.MULTILINE))
    required = [
        *PROJECT["dependencies"],
        *(one for extra in PROJECT["optional-dependencies"].values() for one in extra),
    ]
    oldest = dict(re.match(r"([\w-]+)[^>]*>=([\d.]+)", one).groups() for one in required)
    names = {"NumPy": "numpy", "PyTorch": "torch", "scikit-learn": "scikit-learn"}
    assert table.pop("Python") == PROJECT["requires-python"].removeprefix(">=")
    assert table == {name: oldest[names.get(name, name.lower())] for name in table}


def install_in_empty_environment(folder: Path, *packages: object) -> Path:
    """A new Python with these packages alone, not even pip."""
    venv.create(folder / "empty")
    python = folder / "empty" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--no-compile", "--constraint", ROOT / "constraints.txt", *packages, PYTHONPATH="")
    return python


@pytest.mark.soak
@pytest.mark.parametrize("extra", sorted(IMPORTS))
def test_an_extra_alone_is_enough(built, tmp_path, extra, record_property):
    record_property("tried", {"extras alone, each in an empty environment": 1})
    (wheel,) = built.glob("*.whl")
    python = install_in_empty_environment(tmp_path, f"redescend[{extra}] @ {wheel.as_uri()}")
    run(python, "-c", f"import {IMPORTS[extra]}", PYTHONPATH="")


@pytest.mark.soak
def test_the_source_distribution_installs_in_an_empty_environment_with_types(built, tmp_path, record_property):
    record_property("tried", {"source distributions in an empty environment, with a typed consumer": 1})
    (archive,) = built.glob("*.tar.gz")
    python = install_in_empty_environment(tmp_path, archive, "mypy")
    run(python, "-W", "error", "-c", "import redescend", PYTHONPATH="")
    consumer = tmp_path / "consumer.py"
    consumer.write_text((ROOT / "tests" / "typed_consumer.py").read_text())
    run(python, "-m", "mypy", "--strict", "--config-file=", consumer, PYTHONPATH="")
