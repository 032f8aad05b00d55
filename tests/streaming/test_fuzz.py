"""Damaged files: each is refused in one sentence, or every record is learned from or rejected with a reason.

`make soak` runs ten thousand of them, the normal run the first of each kind of damage. Skipped, failed and quarantined
records agree, and so do files and rounds.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import cycle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redescend as rd
from redescend.errors import BadRecordError, RedescendError
from redescend.sources.batch import count_bad
from redescend.streaming.io.writers import parse_rejected
from redescend.streaming.rounds import Rounds
from tests.streaming.fuzzing.cases import DAMAGES, Case, cases
from tests.streaming.fuzzing.sheets import TARGET, TEXTS
from tests.streaming.fuzzing.verdicts import SETTINGS, alike, check_finite, check_rows, check_sentence, judged, passed

FILES = -(-10_000 // len(DAMAGES))
"""Damaged files of each kind, no two alike, in a complete run."""


def judge_many(damage: str, count: int, deeply: int) -> Counter[str]:
    """Judge damaged files, one in `deeply` of them thoroughly."""
    found = zip(cases(damage, count), cycle(SETTINGS), strict=False)
    return Counter(
        judged(case, deeply=number % deeply == 0, **chosen).word for number, (case, chosen) in enumerate(found)
    )


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_file_is_a_surprise(damage):
    assert judge_many(damage, FILES // 40, deeply=10).total() == FILES // 40


@pytest.mark.soak
@pytest.mark.parametrize("damage", DAMAGES)
def test_no_file_of_ten_thousand_is_a_surprise(damage, record_property):
    outcomes = judge_many(damage, FILES, deeply=25)
    record_property("tried", {"damaged files": FILES, **outcomes})
    record_property("lost", "no record")
    assert outcomes.total() == FILES
    # A kind of damage that always ends the same way would not be worth its many files.
    assert len(outcomes) > 1


@pytest.mark.parametrize("linear", [True, False])
def test_numbers_that_are_not_finite_are_noticed(linear, monkeypatch):
    """The checks above would be worth nothing if they could not fail."""
    random = np.random.default_rng(0)
    table = pa.table({"x": random.normal(size=200), TARGET: random.normal(size=200)})
    model, run = rd.fit_stream(table, TARGET, linear=linear)
    check_finite(model, run.run())
    if linear:
        coefficients, intercepts = model.coefficients()
        monkeypatch.setattr(model.engine, "coefficients", lambda: (np.full_like(coefficients, np.nan), intercepts))
    else:
        monkeypatch.setattr(model.engine, "predict", lambda X: np.full((1, len(X)), np.nan))
    with pytest.raises(AssertionError):
        check_finite(model, run)


@pytest.mark.parametrize("count", [1, pytest.param(20, marks=pytest.mark.soak)])
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_quarantined_is_skipped_or_ends_the_run_and_nothing_else_changes(damage, count):
    for case in cases(damage, count):
        kept = judged(case, deeply=False)
        if kept.passing is None:
            continue
        model, passing, rounds = passed(case, on_bad="skip")
        records, learned, quarantined, _ = kept.passing.counts
        assert passing.counts == (records, learned, 0, quarantined)
        assert passing.bad == []
        assert alike(model.state(), kept.passing.model.state())
        assert all(map(alike, rounds.arrays(), kept.rounds.arrays()))
        if not kept.bad:
            assert passed(case, on_bad="fail").passing.counts == (records, learned, 0, 0)
            continue
        with pytest.raises(BadRecordError) as refusal:
            passed(case, on_bad="fail")
        check_sentence(str(refusal.value))
        assert f"Row {kept.bad[0].row} of " in str(refusal.value)
        assert kept.bad[0].reason in str(refusal.value)


@pytest.mark.parametrize("count", [1, pytest.param(20, marks=pytest.mark.soak)])
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_written_is_what_happened(tmp_path, damage, count):
    log, aside, saved = (tmp_path / name for name in ("rounds.parquet", "aside.jsonl", "model.safetensors"))
    for number, case in enumerate(cases(damage, count)):
        file = tmp_path / f"{number}.{case.form}"
        file.write_bytes(case.data)
        try:
            model, passing = rd.fit_stream(file, TARGET, rounds=log, quarantine=aside)
            rounds = Rounds.concatenate(passing.batches())
        except RedescendError:
            assert set(tmp_path.iterdir()) == {file}
            file.unlink()
            continue
        table = pq.read_table(log)
        assert table["row"].to_pylist() == rounds.rows.tolist()
        assert table["loss"].to_pylist() == rounds.losses.tolist()
        assert table["prediction"].to_pylist() == [played.prediction for played in rounds.records(model.schema)]
        bad = [parse_rejected(line) for line in aside.read_bytes().splitlines()]
        assert count_bad(bad) == passing.counts.quarantined
        check_rows(rounds.rows, bad, passing.counts.records)
        assert {one.file for one in bad} <= {str(file)}
        rd.save(model, saved)
        assert alike(rd.load(saved).state(), model.state())
        for written in (file, log, aside, saved):
            written.unlink()


# --- anything at all ---

NUMBERS = st.floats() | st.floats(-1e100, 1e100) | st.floats(-3.0, 3.0) | st.integers(-(10**30), 10**30)
WORDS = st.sampled_from(["", "NA", "inf", "true", "FALSE", "2024-02-29", "a", "b", '"', "\0", "é", "1e5", " "])
VALUES = NUMBERS | WORDS | st.text(max_size=4) | st.none() | st.booleans()
NAMES = st.lists(st.sampled_from(["a", "b", "c d", "é", "a\nb"]), min_size=1, max_size=3, unique=True)


@st.composite
def delimited(draw, values):
    names = [*draw(NAMES), TARGET]
    rows = draw(st.lists(st.tuples(*[values] * len(names)), min_size=1, max_size=20))
    quoted = [[f'"{name}"' for name in names], *([str(value) for value in row] for row in rows)]
    return Case("csv", "\n".join(map(",".join, quoted)).encode("utf-8", "surrogatepass"))


@st.composite
def json_lines(draw):
    nested = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2))
    names = [*draw(NAMES), TARGET]
    records = st.lists(st.dictionaries(st.sampled_from(names), VALUES | nested), min_size=1, max_size=15)
    return Case("jsonl", "\n".join(map(json.dumps, draw(records))).encode())


NOISE = st.tuples(st.sampled_from(["parquet", "arrow", *TEXTS]), st.binary(max_size=200)).map(lambda case: Case(*case))


ANYTHING = given(delimited(NUMBERS) | delimited(VALUES) | json_lines() | NOISE, st.sampled_from(SETTINGS))


@settings(deadline=None, derandomize=True, max_examples=40)
@ANYTHING
def test_anything_at_all(case, chosen):
    judged(case, **chosen)


@pytest.mark.soak
@settings(deadline=None, derandomize=True, max_examples=1500)
@ANYTHING
def test_anything_at_all_for_long(case, chosen):
    judged(case, **chosen)
