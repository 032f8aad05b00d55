"""The table of the long tests, `results/soak.md`: what was tried, what was lost, and the time it took.

A test says what it tried with ``record_property("tried", {"kills": 1000})``, and what was lost with
``record_property("lost", "no record")``; the numbers of a test with several parameters are added. The table is written
after every test, so it is there even if the run is interrupted. Tests that are run by themselves replace their rows,
and their time is added; `make soak` begins a new table.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "results"

HEAD = """# The long tests

Written by `make soak` (Python {python}, {machine}, {cores} cores, {date}): {count:,} tests, {failed} failed.
They took {elapsed:.0f} minutes, and {minutes:.0f} minutes of processor time. A row without numbers is one case for each
test.

| tried | lost | tests | processor time |
|---|---|---|---|
"""


class ProcessorTime:
    """Measures the processor time of tests."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        before = processor_seconds()
        try:
            return (yield)
        finally:
            item.user_properties.append(("seconds", processor_seconds() - before))


class SoakTable(ProcessorTime):
    """Collects the outcomes of tests, and writes the table."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.outcomes: dict[str, dict[str, Any]] = {}
        self.began = time.monotonic()
        before = folder / "soak.json"
        if before.exists():
            known = json.loads(before.read_text(encoding="utf-8"))
            self.outcomes, self.began = known["outcomes"], self.began - known["elapsed"]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed or (report.when == "setup" and report.skipped):
            said = dict(report.user_properties)
            lost = said.get("lost", "nothing") if report.passed else "skipped" if report.skipped else "FAILED"
            self.outcomes[report.nodeid] = {
                "tried": said.get("tried", {}),
                "lost": lost,
                "seconds": said.get("seconds", 0.0),
            }
            self.write()

    def write(self) -> None:
        self.folder.mkdir(exist_ok=True)
        known = {"elapsed": time.monotonic() - self.began, "outcomes": self.outcomes}
        (self.folder / "soak.json").write_text(json.dumps(known, indent=1), encoding="utf-8")
        (self.folder / "soak.md").write_text(make_table(**known), encoding="utf-8")


def make_table(outcomes: dict[str, dict[str, Any]], elapsed: float) -> str:
    """The whole page, with a row for every test function and outcome, from outcomes by test and seconds.

    Examples
    --------
    >>> row = {"tried": {"kills": 500}, "lost": "no byte", "seconds": 3.0}
    >>> page = make_table({"tests/test_a.py::test_b[1]": row, "tests/test_a.py::test_b[2]": row}, elapsed=120.0)
    >>> print(page.splitlines()[-1])
    | 1,000 kills (`test_a.py`) | no byte | 2 | 6 s |
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name, outcome in sorted(outcomes.items()):
        groups.setdefault((name.partition("[")[0], outcome["lost"]), []).append(outcome)
    rows = []
    for (name, lost), group in groups.items():
        path, _, function = name.partition("::")
        total: Counter[str] = Counter()
        for outcome in group:
            total.update(outcome["tried"])
        what = ", ".join(f"{count:,} {what}" for what, count in total.items())
        what = what or function.removeprefix("test_").replace("_", " ").replace("::", ", ")
        seconds = sum(outcome["seconds"] for outcome in group)
        rows.append((not total, f"| {what} (`{path.rpartition('/')[2]}`) | {lost} | {len(group)} | {seconds:.0f} s |"))
    head = HEAD.format(
        python=platform.python_version(),
        machine=platform.machine(),
        cores=os.cpu_count(),
        date=time.strftime("%Y-%m-%d"),
        count=len(outcomes),
        failed=sum(outcome["lost"] == "FAILED" for outcome in outcomes.values()),
        elapsed=elapsed / 60,
        minutes=sum(outcome["seconds"] for outcome in outcomes.values()) / 60,
    )
    return head + "\n".join(row for _, row in sorted(rows, key=lambda row: row[0])) + "\n"


def processor_seconds() -> float:
    """The processor time of this process and of the children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
