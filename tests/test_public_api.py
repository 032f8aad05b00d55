"""A change of a public name or signature is a decision."""

from __future__ import annotations

import difflib

from tests.public_api import SNAPSHOT, describe_all


def test_public_names_and_signatures_are_as_written_down():
    before, now = SNAPSHOT.read_text(encoding="utf-8").splitlines(), describe_all().splitlines()
    changes = list(difflib.unified_diff(before, now, "written down", "now", lineterm="", n=0))
    assert not changes, (
        "The public API has changed. If that is intended, run `python -m tests.public_api`, and say so in CHANGELOG:\n"
        + "\n".join(changes)
    )


def test_the_snapshot_has_parameters_with_defaults_and_methods():
    lines = describe_all().splitlines()
    assert "redescend.transforms.Learn(a, b)" in lines
    assert any(line.startswith("redescend.fit_stream(source: Any, target: str, *, ") for line in lines)
    assert any(line.strip().startswith(".partial_fit(") for line in lines)
