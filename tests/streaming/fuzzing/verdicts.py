"""What must hold of a pass over any file, whatever is wrong with it."""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import re
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from redescend import transforms
from redescend.engines import NonlinearEngine
from redescend.errors import DataError, RedescendError
from redescend.sources import Bad, open_source
from redescend.streaming import StreamModel, fit_stream
from redescend.streaming.rounds import Rounds
from redescend.streaming.run import Run
from redescend.streaming.summary import Summary
from tests.sources.outcomes import read_slowly
from tests.streaming.fuzzing.cases import Case
from tests.streaming.fuzzing.sheets import TARGET

LONGEST = 2**20
MARK = b"\xef\xbb\xbf"

FIXED = {"transform": transforms.Learn(1.0, 10.0)}
SETTINGS: list[dict[str, Any]] = [{}, FIXED, {"order": 2}, FIXED]
"""What to learn with: each needs kernels of its own, so there are few."""


class Verdict(NamedTuple):
    """What became of a file: the sentence that refused it, or a pass and what it went through."""

    refusal: str | None
    passing: Run | None = None
    rounds: Rounds | None = None
    bad: list[Bad] = []

    @property
    def word(self) -> str:
        if self.refusal is not None:
            return "refused"
        return "with bad records" if self.bad else "all learned"


class Passed(NamedTuple):
    """A pass to its end: the model, the pass, and all its rounds."""

    model: StreamModel
    passing: Run
    rounds: Rounds


def passed(case: Case, **settings: Any) -> Passed:
    """Pass over a file as the format that it should have, be it compressed."""
    form = case.form.partition(".")[0]
    model, passing = fit_stream(io.BytesIO(case.data), TARGET, format=form, **settings)
    return Passed(model, passing, Rounds.concatenate(passing.batches()))


def judged(case: Case, deeply: bool = True, **settings: Any) -> Verdict:
    """Pass over a file, and check all that can be checked of any; what takes long if it is to be done deeply."""
    slow = slow_records(case)
    try:
        model, passing, rounds = passed(case, **settings)
    except (RedescendError, OSError) as error:
        check_sentence(said := str(error))
        assert "has no records" not in said or not slow
        return Verdict(said)
    check_counts(passing, rounds, slow)
    check_rounds(model, rounds)
    assert model.records == passing.counts.learned
    check_finite(model, passing)
    if deeply:
        check_model(model, passing, settings)
    return Verdict(None, passing, rounds, list(passing.bad))


def check_sentence(said: str) -> None:
    """One sentence for a person, which says where to look."""
    assert said[-1:] in (".", "?"), said
    assert said.isprintable(), said
    assert len(said) < 1000
    assert re.search(rf"the file object|'{TARGET}'|column|data frame", said), said


def check_counts(passing: Run, rounds: Rounds, slow: list[bytes] | None) -> None:
    """Every record is there once, learned from or set aside with a reason and as it came."""
    records, learned, quarantined, skipped = passing.counts
    assert passing.finished
    assert records == learned + quarantined + skipped
    assert (learned, skipped) == (len(rounds), 0)
    bad = passing.bad
    check_rows(rounds.rows, bad, records)
    assert [one.row for one in bad] == sorted(one.row for one in bad)
    for one in bad:
        assert one.reason
        assert one.reason.isprintable(), one.reason
        assert one.file == passing.source.name
        assert isinstance(one.raw, bytes)
        assert one.raw or re.search("damaged here|is incomplete", one.reason)
    if slow is not None:
        assert records == len(slow)
        for one in bad:
            assert one.raw == slow[one.row - 1]


def check_rows(rows: np.ndarray, bad: Sequence[Bad], records: int) -> None:
    """Every row number up to that of the last record is there once; lost rows may be many."""
    after = 1
    for row, size in sorted([*((row, 1) for row in rows.tolist()), *((one.row, one.rows) for one in bad)]):
        assert row == after
        after += size
    assert after == records + 1


def check_rounds(model: StreamModel, rounds: Rounds) -> None:
    for numbers in (rounds.targets, rounds.predictions, rounds.losses, rounds.weights):
        assert np.isfinite(numbers).all()
    assert (rounds.losses >= 0.0).all()
    assert ((rounds.weights >= 0.0) & (rounds.weights <= 1.0)).all()
    if model.schema.classifies:
        assert ((rounds.probabilities > 0.0) & (rounds.probabilities <= 1.0)).all()
        assert (rounds.predictions < len(model.schema.labels)).all()
    else:
        assert np.isnan(rounds.probabilities).all()


def check_finite(model: StreamModel, passing: Run) -> None:
    """What was learned is finite: importance and the range of predictions would hide it if it were not."""
    if not isinstance(model.engine, NonlinearEngine):
        assert all(np.isfinite(numbers).all() for numbers in model.coefficients())
    elif passing.latest is not None:
        assert np.isfinite(model.review(passing.latest.batch).rounds.predictions).all()


def check_model(model: StreamModel, passing: Run, settings: dict[str, Any]) -> None:
    """What was learned and found is the same when it is put into another model and summary, and it stays finite."""
    again = StreamModel(**model.get_params() | settings)
    again.restore(model.state())
    summary = Summary(again.schema, settings.get("transform"))
    summary.restore(passing.summary.state())
    assert alike(summary.state(), passing.summary.state())
    assert passing.summary.learned == passing.counts.learned
    assert sum(passing.summary.rejections.counts.values()) == passing.counts.quarantined
    if passing.latest is not None:
        said, same = (each.review(passing.latest.batch, target=True).rounds for each in (model, again))
        check_rounds(model, said)
        assert all(one.tobytes() == other.tobytes() for one, other in zip(said.arrays(), same.arrays(), strict=True))


def alike(one: Any, other: Any) -> bool:
    """Whether two states are the same to the last bit."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return repr(one) == repr(other)


# --- the records of a text, found slowly ---


def slow_records(case: Case) -> list[bytes] | None:
    """The records of a text as they came, without its header; None where it is no text, or cannot be decompressed."""
    form, _, compression = case.form.partition(".")
    text = case.data if not compression else _decompressed(case.data, compression)
    if text is None or form not in ("csv", "tsv", "jsonl"):
        return None
    for size in (32, 16):  # the mark of UTF-32 begins with that of UTF-16
        if text.startswith(tuple(getattr(codecs, f"BOM_UTF{size}_{end}") for end in ("LE", "BE"))):
            text = text.decode(f"utf-{size}", "backslashreplace").encode("utf-8", "backslashreplace")
    text = text.removeprefix(MARK)
    if form == "jsonl":
        return _lines(text)
    if b'"' not in text:
        return _lines(text)[1:]
    # Records end where they do whatever the delimiter, as long as it is one: to look for commas alone, they change
    # places.
    delimiter = b"\t" if form == "tsv" else _delimiter(text)
    swap = bytes.maketrans(delimiter + b",", b"," + delimiter)
    return [record.translate(swap) for record, _ in read_slowly(text.translate(swap), LONGEST)][1:]


def _lines(text: bytes) -> list[bytes]:
    return [line[:LONGEST] for line in re.split(rb"[\r\n]", text) if line]


def _delimiter(text: bytes) -> bytes:
    line = re.split(rb"[\r\n]", text.lstrip(b"\r\n"))[0]
    return b"," if b"," in line else max([b"\t", b";", b"|"], key=line.count) if re.search(rb"[\t;|]", line) else b","


def _decompressed(data: bytes, ending: str) -> bytes | None:
    """What a single stream holds that is whole, and that nothing follows."""
    if ending in ("zst", "lz4"):
        return None
    machine = {"gz": lambda: zlib.decompressobj(31), "bz2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor}[ending]()
    try:
        text = machine.decompress(data)
    except (zlib.error, OSError, lzma.LZMAError):
        return None
    return text if machine.eof and not machine.unused_data else None


def check_readable(data: bytes, form: str) -> None:
    """Every row of a file, which may be damaged, is read or counted as lost, or the file is refused in a sentence."""
    try:
        source = open_source(io.BytesIO(data), format=form)
        batches = list(source.batches(source.columns))
    except DataError as error:
        sentence = str(error)
    else:
        sentence = "one sentence."
        rows = np.concatenate([np.empty(0, np.int64), *(batch.rows for batch in batches)])
        check_rows(rows, [bad for batch in batches for bad in batch.bad], batches[-1].end.row if batches else 0)
    assert sentence.endswith(".")
    assert "\n" not in sentence
