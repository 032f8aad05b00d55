"""The pages of docs/ are run as they stand: Python, and for guides also the commands, in a folder of their own."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gzip
import re
import shlex
import shutil
import tempfile
from pathlib import Path

from sybil import Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser
from sybil.sybil import SybilCollection

GUIDES = ["docs/guides/*.md", "docs/tour.md", "docs/install.md", "docs/asked.md", "docs/export.md"]
"""Pages that write files."""


def run_line(line: str) -> None:
    """What a shell does with a line, without one: a file into the command, its output into a file or to `head`.

    A number in a comment is the expected exit code.
    """
    from typer.testing import CliRunner

    from redescend.cli import app

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


def run_commands(example):
    for line in example.parsed.replace("\\\n", " ").splitlines():
        run_line(line)


@functools.cache
def make_folder(page: str) -> str:
    """A folder for a page, removed in the end: blocks of several pages may alternate."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def in_folder(evaluate):
    """Run a block in the folder of its page."""

    def evaluate_there(example):
        with contextlib.chdir(make_folder(example.path)):
            evaluate(example)

    return evaluate_there


def make_pages() -> SybilCollection:
    """How pytest collects the pages."""
    guides = [CodeBlockParser("python", in_folder(PythonEvaluator())), CodeBlockParser("sh", in_folder(run_commands))]
    root = str(Path(__file__).parents[1])
    return SybilCollection(
        [
            Sybil([PythonCodeBlockParser()], patterns=["*.md"], excludes=GUIDES, path=root),
            Sybil(guides, patterns=GUIDES, path=root),
        ]
    )
