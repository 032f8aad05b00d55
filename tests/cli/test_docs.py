"""Every command in docs/command-line.md works as it stands."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from redescend.cli.exit_codes import MEANINGS
from tests.cli.commands import BAD, prices
from tests.guides import run_line

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture
def records(in_a_folder):
    """The files that the page speaks of."""
    lines = prices(in_a_folder / "houses.csv").read_text().splitlines()
    prices(in_a_folder / "new.csv", 100)
    prices(in_a_folder / "messy.csv", bad=BAD)
    Path("parts").mkdir()
    for place in range(2):
        part = [lines[0], *lines[1 + 1000 * place : 1001 + 1000 * place]]
        Path("parts", f"{place}.csv").write_text("\n".join(part) + "\n")
    Path("sensor.csv").write_text("\n".join(lines[:501]).replace("price", "level") + "\n")
    Path("log.csv.gz").write_bytes(
        gzip.compress("\n".join(lines).replace("size,town,price", "size,host,seconds").encode())
    )


def test_every_command_works_in_their_order(records):
    assert len(commands()) >= 15
    for line in commands():
        run_line(line)
    for name in (
        "houses.report.html",
        "messy.quarantine.jsonl",
        "predictions.csv",
        "predictions.parquet",
        "suspects.csv",
    ):
        assert Path(name).stat().st_size > 100


def test_every_exit_code_is_in_the_table():
    found = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(code) for code, _ in found] == [int(code) for code in MEANINGS]
    for (_, said), meaning in zip(found, MEANINGS.values(), strict=True):
        assert said.replace("`", "").startswith(meaning)
