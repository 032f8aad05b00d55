"""Whatever is wrong with a file, the command ends with a code that is documented and in words for a person."""

from __future__ import annotations

import csv
import io
from itertools import cycle
from typing import Any

import pytest

from redescend.cli import app
from tests.cli.commands import RUNNER
from tests.streaming.fuzzing.cases import DAMAGES, cases
from tests.streaming.fuzzing.sheets import TARGET

CODES = {"quarantine": {0, 2, 3}, "skip": {0, 2, 3}, "fail": {0, 2, 4}}
MODEL = "model.safetensors"


def said_by(*arguments: Any) -> Any:
    """What the command did: nothing but CSV on standard output, and nothing there if it failed."""
    done = RUNNER.invoke(app, [str(argument) for argument in arguments], prog_name="redescend")
    assert "Traceback" not in done.stderr
    assert "Unexpected error" not in done.stderr, done.stderr
    if done.exit_code in (2, 4):
        assert done.stdout == ""
        assert done.stderr.rstrip()[-1] in ".?"
    lines = list(csv.reader(io.StringIO(done.stdout, newline=""), strict=True))
    assert all(len(line) == len(lines[0]) for line in lines)
    assert not lines or "row" in lines[0]
    return done


@pytest.mark.parametrize(("damage", "on_bad"), list(zip(DAMAGES[::2], cycle(CODES))))
def test_one_file_of_every_second_damage_ends_with_a_code_and_in_words(in_a_folder, damage, on_bad):
    check_commands(in_a_folder, damage, list(zip(cases(damage, 1), [on_bad], strict=True)))


@pytest.mark.soak
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_command_ends_with_a_code_and_in_words(in_a_folder, damage):
    check_commands(in_a_folder, damage, list(zip(cases(damage, 9), [*CODES] * 3, strict=True)))


def check_commands(in_a_folder, damage, chosen) -> None:
    for number, (case, on_bad) in enumerate(chosen):
        file, aside, model = (in_a_folder / name for name in (f"{number}.{case.form}", f"{number}.jsonl.aside", MODEL))
        file.write_bytes(case.data)
        # A report takes a second to draw.
        reported = number == 0 and damage in DAMAGES[::16]
        extra = [*([] if reported else ["--no-report"]), *(["--quarantine", aside] if on_bad == "quarantine" else [])]
        done = said_by("fit", file, "--target", TARGET, "--model", model, "--on-bad", on_bad, *extra)
        assert done.exit_code in CODES[on_bad]
        assert model.exists() == (done.exit_code in (0, 3))
        if not model.exists():
            assert on_bad != "quarantine" or not aside.exists()
            assert done.exit_code == 4 or done.stderr.count("\n") == 1
            continue
        if on_bad == "quarantine":
            assert (done.exit_code == 3) == bool(aside.read_bytes())
        for command in ("predict", "score"):
            assert said_by(command, model, file, "--on-bad", "skip").exit_code in (0, 3)
        model.unlink()
