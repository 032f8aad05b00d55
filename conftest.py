"""Code in the README and in docs/ is run as it stands, the blocks of a page in their order."""

import platform
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

# PyTorch is large: `make test-torch` installs it and runs what needs it.
collect_ignore = [] if find_spec("torch") else ["src/redescend/torch", "docs/pytorch.md", "tests_torch"]

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"]).pytest()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Tests come in random order, but a page is read from the top: what one block defines, the next may use."""
    places = {}
    for place, item in enumerate(items):
        if item.path.suffix == ".md":
            places.setdefault(item.path, []).append(place)
    for mixed in places.values():
        blocks = sorted((items[place] for place in mixed), key=lambda item: item.example.line)
        for place, block in zip(mixed, blocks, strict=True):
            items[place] = block


# --- the table of a run of the long tests ---

SOAK = Path(__file__).parent / "results" / "soak.md"
_reports = []


def pytest_runtest_logreport(report):
    if report.when == "call" or report.failed:
        _reports.append(report)


def pytest_sessionfinish(session):
    """After `make soak`: what was tried, what was lost, and how long it took."""
    config = session.config
    if config.option.markexpr != "soak" or hasattr(config, "workerinput") or not _reports:
        return
    rows = []
    for report in sorted(_reports, key=lambda report: report.nodeid):
        said = dict(report.user_properties)
        outcome = said.get("lost", "nothing") if report.passed else "FAILED"
        name = report.nodeid.rpartition("/")[2].replace("|", "/")
        rows.append(f"| {said.get('tried', name)} | {outcome} | {report.duration:.0f} s |")
    failed = sum(report.failed for report in _reports)
    SOAK.parent.mkdir(exist_ok=True)
    machine = f"Python {platform.python_version()}, {platform.machine()}"
    SOAK.write_text(
        f"# The long tests\n\nWritten by `make soak` on {time.strftime('%Y-%m-%d')}, {machine}: {len(_reports)} tests, "
        f"{failed} failed.\n\n| tried | lost | time |\n|---|---|---|\n" + "\n".join(rows) + "\n",
        encoding="utf-8",
    )
