"""The command as tests call it: inside this process, or as a shell would."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from redescend.cli import app

COMMAND = [sys.executable, "-W", "error", "-c", "from redescend.cli import app; app(prog_name='redescend')"]

RUNNER = CliRunner(**({"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}))
"""Click 8.2 always captures the streams apart; before, it had to be asked to."""


def run(*arguments: Any, code: int = 0, input: str | bytes | None = None) -> Any:
    """What the command says, with the code that it must end with."""
    done = RUNNER.invoke(app, [str(argument) for argument in arguments], input=input, prog_name="redescend")
    assert done.exit_code == code, (done.exit_code, done.stderr, done.exception)
    return done


def refused(*arguments: Any, code: int = 2) -> str:
    """The one sentence that a mistake gets."""
    done = run(*arguments, code=code)
    assert done.stdout == ""
    said = str(done.stderr)
    assert said.endswith("\n")
    assert said.count("\n") == 1, said
    assert "Traceback" not in said
    return said.strip()


def started(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
    """The command in a process of its own, which hears Ctrl-C also where the tests run in the background of a shell."""
    return subprocess.Popen(
        [*COMMAND, *(str(argument) for argument in arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **options.pop("environment", {})},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
        **options,
    )


def prices(path: Path, count: int = 2000, bad: dict[int, str] | None = None) -> Path:
    """Sizes, towns and prices; in every twentieth record the price is far too high."""
    lines = ["size,town,price", *((bad or {}).get(row, record(row)) for row in range(1, count + 1))]
    path.write_text("\n".join(lines) + "\n")
    return path


@functools.cache
def record(row: int) -> str:
    """A record, with noise 0.5."""
    random = np.random.default_rng(row)
    size, town = random.normal(), random.choice(["Rome", "Oslo", "Bonn"])
    price = 20.0 + 3.0 * size + 6.0 * (town == "Rome") + 0.5 * random.normal() + 500.0 * (row % 20 == 0)
    return f"{size},{town},{price}"


BAD = {7: "1,2", 1500: "x,Rome,3", 1501: "1,Rome,"}
"""Records of `prices` that cannot be used: too few values, no number, no target."""
