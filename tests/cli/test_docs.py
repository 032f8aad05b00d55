"""Every command in docs/command-line.md works as it stands."""

from __future__ import annotations

import gzip
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redescend.cli import app
from redescend.cli.exit_codes import MEANINGS
from tests.cli.commands import BAD, prices

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
    Path("sensor.csv").write_text("\n".join(lines).replace("price", "level") + "\n")
    Path("log.csv.gz").write_bytes(
        gzip.compress("\n".join(lines).replace("size,town,price", "size,host,seconds").encode())
    )


def shell(line: str) -> None:
    """What a shell does with a line, without one: a file into the command, its output into a file or to `head`."""
    line, _, remark = line.partition("#")
    before, _, command = line.rpartition("redescend ")
    fed = gzip.decompress(Path(shlex.split(before)[1]).read_bytes()) if before else None
    command, _, after = command.partition("|")
    command, _, file = command.partition(">")
    assert not before or before.startswith("zcat ")
    assert not after or after.startswith(" head ")
    arguments = shlex.split(command) + (["--once"] if command.startswith("tail ") else [])
    done = CliRunner().invoke(app, arguments, input=fed, prog_name="redescend")
    assert done.exit_code == int((re.search(r"\d+", remark) or "0")[0]), (line, done.stderr)
    if file:
        Path(file.strip()).write_text(done.stdout)


def test_every_command_works_in_their_order(records):
    assert len(commands()) >= 15
    for line in commands():
        shell(line)
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
