"""Records in a summary: the least likely clean, a sample of all rounds, reasons and examples of rejected ones, and what
the final look has found: suspects, false alarms, stuck runs and extreme values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redescend.belief.suspects import HALF
from redescend.numeric import Array
from redescend.sources import Bad, Batch
from redescend.state import ArraySpec, read_arrays, require
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Judged, RoundRecord, Rounds
from redescend.streaming.summary import histograms

MAX_SUSPECTS = 10  # the default number of suspects
MAX_TEXT = 200  # the most characters of a text that are stored


class Suspect(NamedTuple):
    """A suspect: its round, its file and its values."""

    round: RoundRecord
    file: str
    values: dict[str, Any]
    why: dict[str, Any] | None = None
    """Its explanation as plain values, see `redescend.streaming.explanation`, or that it is outdated, because the model
    has changed since; None if there is none."""
    q_value: float | None = None
    """The share of false alarms in the final list down to this record; None if there is no such list."""
    far_out: str | None = None  # the column in which it has an extreme value, if any


class LeastCleanRecords:
    """The records that are least likely clean; ties are broken by the larger loss, then by the earlier row."""

    def __init__(self, schema: Schema, most: int = MAX_SUSPECTS) -> None:
        self.schema, self.most = schema, most
        self.records: list[Suspect] = []  # the least likely first

    def add(self, rounds: Rounds, batch: Batch, indices: Array) -> None:
        """Add rounds that were played on the records of a batch at these indices."""
        probability = rounds.clean_probability
        if not self.most:
            return
        if len(self.records) == self.most and not (probability <= self.records[-1].round.clean_probability).any():
            return
        before = [record.round for record in self.records]
        probability = np.append([played.clean_probability for played in before], probability)
        losses = np.append([played.loss for played in before], rounds.losses)
        # Earlier rows come first, and sorting leaves equals in their order.
        places = np.lexsort([-losses, probability])[: self.most] - len(before)
        fresh = places[places >= 0]
        played = zip(rounds[fresh].records(self.schema), indices[fresh].tolist(), strict=True)
        found = {
            place: Suspect(record, batch.files, read_values(self.schema, batch, index))
            for place, (record, index) in zip(fresh.tolist(), played, strict=True)
        }
        self.records = [self.records[place] if place < 0 else found[place] for place in places.tolist()]

    def state(self) -> list[Any]:
        return [[list(record.round), *record[1:]] for record in self.records]

    def restore(self, state: list[Any]) -> None:
        """Restore a state of the same size."""
        self.records = [
            Suspect(RoundRecord(*played), file, dict(values), None if why is None else dict(why), *others)
            for played, file, values, why, *others in state[: self.most]
        ]


def shorten(text: str) -> str:
    """Shorten a text for a table; … marks the cut."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def to_json_value(value: Any) -> Any:
    """Convert a value of a record to one that JSON has: dates as ISO texts, long texts shortened.

    >>> import datetime
    >>> moments = datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(2024, 2, 29)
    >>> [to_json_value(value) for value in (*moments, None)]
    ['2024-02-29T12:30:00', '2024-02-29', None]
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat().removesuffix("T00:00:00")
    return shorten(str(value))


def read_values(schema: Schema, batch: Batch, index: int, others: Sequence[str] = ()) -> dict[str, Any]:
    """Read the values of a record in the `others` and in the features."""
    names = dict.fromkeys([*others, *(name for name in schema.columns if name != schema.target)])
    return {name: to_json_value(batch.table.column(name)[index].as_py()) for name in names}


class Reservoir:
    """A uniform sample of at most `size` rounds. It depends on the row numbers alone, so it is reproducible."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rounds = Rounds.concatenate([])
        self._orders = histograms.hash_rows(self.rounds.rows)

    def add(self, rounds: Rounds) -> None:
        """Sample from these rounds as well."""
        orders = histograms.hash_rows(rounds.rows)
        if len(self.rounds) == self.size:
            drawn = np.flatnonzero(orders < self._orders[-1])
            if not len(drawn):
                return
            rounds, orders = rounds[drawn], orders[drawn]
        orders = np.append(self._orders, orders)
        first = np.argsort(orders, kind="stable")[: self.size]
        self.rounds, self._orders = Rounds.concatenate([self.rounds, rounds])[first], orders[first]

    def state(self) -> dict[str, Any]:
        judged = self.rounds.judged
        return {
            "rows": self.rounds.rows.copy(),
            "numbers": np.stack(list(self.rounds.arrays())[1:]),
            "judged": np.empty((0, len(self.rounds))) if judged is None else np.stack(judged),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a reservoir of the same size."""
        specs = (
            ArraySpec("rows", ("count",), kind="count", dtype=np.int64),
            ArraySpec("numbers", (5, "count"), finite=False),
            ArraySpec("judged", ("judgements", "count"), finite=False),
        )
        rows, numbers, parts = read_arrays(specs, state, {}, "a sample").values()
        require(len(rows) <= self.size, "a sample", f"more than {self.size} records")
        require(len(parts) in (0, len(Judged._fields)), "a sample", f"{len(parts)} judgements")
        judged = Judged(*parts)._replace(suspect=parts[-1] != 0.0) if len(parts) else None
        self.rounds, self._orders = Rounds(rows, *numbers, judged=judged), histograms.hash_rows(rows)


MAX_KINDS, MAX_EXAMPLES = 30, 3
OTHER = "other reasons"

# The name of a column is part of a reason; a value or number in it is not.
_PARTS = re.compile(r"((?:column|target) '[^']*')|'[^']*'|[-+]?\b\d[\w.+]*")

_UNKNOWN_LABEL = re.compile(r"(the target .*: .* is none of the) \d+ (labels)", re.DOTALL)


class Example(NamedTuple):
    """A rejected record."""

    row: int
    file: str
    reason: str
    record: str


def classify_reason(reason: str) -> str:
    """Replace the values in a reason by …, so that reasons that differ only in a value are equal.

    >>> classify_reason("column 'x1': 'abc' is not a number"), classify_reason("3 values where the header has 20")
    ("column 'x1': … is not a number", '… values where the header has …')
    >>> classify_reason("the target 'y': 'maybe' is none of the 2 labels")  # a label is part of the reason
    "the target 'y': 'maybe' is none of the labels"
    """
    if found := _UNKNOWN_LABEL.fullmatch(reason):
        return shorten(f"{found[1]} {found[2]}")
    return shorten(_PARTS.sub(lambda found: found[1] or "…", reason))


class Rejections:
    """Counts of rejected records by kind of reason: the first `MAX_KINDS` kinds, and all others together."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.examples: dict[str, list[Example]] = {}

    def add(self, bad: Iterable[Bad]) -> None:
        """Count rejected records, in the order of their rows."""
        for record in bad:
            kind = classify_reason(record.reason)
            if kind not in self.counts and len(self.counts) >= MAX_KINDS:
                kind = OTHER
            self.counts[kind] = self.counts.get(kind, 0) + record.rows
            examples = self.examples.setdefault(kind, [])
            if len(examples) < MAX_EXAMPLES:
                text = shorten(record.raw[: 6 * MAX_TEXT].decode("utf-8", "replace"))
                examples.append(Example(record.row, record.file, shorten(record.reason), text))

    @property
    def have_unknown_labels(self) -> bool:
        """Whether records were rejected because their labels are none of the model's, to which none are added."""
        return any("is none of the labels" in kind for kind in self.counts)

    def most_frequent(self) -> list[str]:
        """The kinds of reasons, the most frequent first."""
        return sorted(self.counts, key=lambda kind: -self.counts[kind])

    def state(self) -> list[Any]:
        return [[kind, count, [list(one) for one in self.examples[kind]]] for kind, count in self.counts.items()]

    def restore(self, state: list[Any]) -> None:
        counts = {kind: int(count) for kind, count, _ in state}
        examples = {kind: [Example(*one) for one in listed] for kind, _, listed in state}
        self.counts, self.examples = counts, examples


class StuckRun(NamedTuple):
    """A run of records that repeat the target of the record before; of one key, if there are keys."""

    first: int
    last: int
    records: int
    target: float
    key: str | None = None


class FarColumn(NamedTuple):
    """A column with extreme values: the number of records, and the first of them."""

    column: str
    records: int
    row: int
    value: float


class FinalCounts(NamedTuple):
    """The length of the final list and the expected number of false alarms in it.

    `stuck` are the longest runs of stuck targets, and `far` the columns with extreme values.
    """

    listed: int
    clean: float
    stuck: list[StuckRun]
    far: Sequence[FarColumn] = ()

    def state(self) -> list[Any]:
        return [self.listed, self.clean, [list(run) for run in self.stuck], [list(one) for one in self.far]]

    @classmethod
    def restore(cls, state: Any) -> FinalCounts:
        """Restore a state; an invalid one raises an error."""
        listed, clean, stuck, *far = state
        require(type(listed) is int and listed >= 0, "the summary", f"{listed!r} suspects")
        require(0.0 <= clean <= listed, "the summary", f"{clean!r} clean records among {listed} suspects")
        columns = [FarColumn(*one) for one in (far[0] if far else [])]
        return cls(listed, float(clean), [StuckRun(*run) for run in stuck], columns)


class StuckRuns:
    """Collects stuck runs from parts of a stream, given the probability that each record is stuck."""

    def __init__(self) -> None:
        self._runs: list[StuckRun] = []
        self._open: dict[str | None, int] = {}  # by key: the index of the run that ended with its last record

    def add(self, rounds: Rounds, stuck: Array) -> None:
        """Add the next rounds; a run may continue in later ones."""
        if not len(rounds):
            return
        keys = np.zeros(len(rounds), np.int64) if rounds.keys is None else rounds.keys
        order = np.argsort(keys, kind="stable")
        keys, targets, held = keys[order], rounds.targets[order], stuck[order] > HALF
        changed = (np.diff(keys) != 0) | (np.diff(targets) != 0.0) | (held[1:] != held[:-1])
        starts = np.flatnonzero(np.append(True, changed))
        ends = np.append(starts[1:], len(keys))
        begins = np.append(True, np.diff(keys) != 0)  # the first record of a key
        before, self._open = self._open, dict(self._open)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            key = None if rounds.keys is None else rounds.names[int(keys[start])]
            place = before.get(key) if begins[start] else None
            self._open.pop(key, None)
            if not held[start]:
                continue
            first, last = rounds.rows[order[[start, end - 1]]].tolist()
            run = StuckRun(first, last, end - start, float(targets[start]), key)
            if place is not None and self._runs[place].target == run.target:
                known = self._runs[place]
                self._runs[place] = known._replace(last=run.last, records=known.records + run.records)
            else:
                place = len(self._runs)
                self._runs.append(run)
            self._open[key] = place

    def longest(self, most: int) -> list[StuckRun]:
        """The longest runs, in the order of the stream."""
        return sorted(sorted(self._runs, key=lambda run: (-run.records, run.first))[:most])
