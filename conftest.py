"""Code in the README and in docs/ is run as it stands, the blocks of a page in their order."""

import platform
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.guides import make_pages

# PyTorch is large: `make test-torch` installs it and runs what needs it.
collect_ignore = [] if find_spec("torch") else ["src/redescend/torch", "docs/pytorch.md", "tests_torch"]

if not find_spec("mlflow"):
    collect_ignore += ["src/redescend/exports/mlflow.py", "src/redescend/exports/mlflow_code.py"]

pytest_collect_file = make_pages().pytest()


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


class SoakTable:
    """Written by `make soak`: what was tried, what was lost, and how long it took; also if it is interrupted."""

    def __init__(self):
        self.reports, self.ended = [], False

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            self.reports.append(report)
            self.write()

    def pytest_sessionfinish(self, session, exitstatus):
        self.ended = exitstatus in (0, 1)
        self.write()

    def write(self):
        rows = []
        for report in sorted(self.reports, key=lambda report: report.nodeid):
            said = dict(report.user_properties)
            outcome = said.get("lost", "nothing") if report.passed else "skipped" if report.skipped else "FAILED"
            name = report.nodeid.rpartition("/")[2].replace("|", "/")
            rows.append(f"| {said.get('tried', name)} | {outcome} | {report.duration:.0f} s |")
        failed = sum(report.failed for report in self.reports)
        machine = f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {platform.machine()}"
        ended = "" if self.ended else ", and it has not ended"
        SOAK.parent.mkdir(exist_ok=True)
        SOAK.write_text(
            f"# The long tests\n\nWritten by the run itself, {machine}: {len(rows)} tests, {failed} failed{ended}.\n\n"
            "| tried | lost | time |\n|---|---|---|\n" + "\n".join(rows) + "\n",
            encoding="utf-8",
        )


def pytest_configure(config):
    if config.option.markexpr == "soak" and not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(SoakTable())
