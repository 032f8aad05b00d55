"""Small right files of every format, from seeds: what is then made wrong."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from tests.sources.written import COMPRESS, as_arrow, as_parquet

TARGET = "y"
DELIMITERS = {"csv": b",", "tsv": b"\t"}
TEXTS = ["csv", "tsv", "jsonl"]
COLUMNAR = {
    "parquet": lambda table: as_parquet(table, group=5),
    "arrow": lambda table: as_arrow(table, stream=False, group=5),
    "arrows": lambda table: as_arrow(table, stream=True, group=5),
}

FEATURES = {
    "x": lambda random: round(random.gauss(0.0, 1.0), 3),
    "size": lambda random: random.randint(-9, 99),
    "flag": lambda random: random.random() < 0.5,
    "town": lambda random: random.choice(["Rome", "Oslo", "Köln", "a b"]),
    "when": lambda random: datetime.date(2024, 1, 1) + datetime.timedelta(random.randrange(400)),
}
TARGETS = [
    lambda random, x: round(3.0 * x + random.gauss(0.0, 0.5), 3),
    lambda random, x: round(3.0 * x + random.gauss(0.0, 0.5), 3),
    lambda random, x: ["low", "middle", "high"][random.randrange(3)],
    lambda random, x: x > 0.0,
    lambda random, x: random.randrange(2),
]


def some_records(random: Random) -> list[dict[str, Any]]:
    """Records with a target and one or two other columns, in which a value may be missing."""
    names = random.sample(sorted(FEATURES), random.randint(1, 2))
    target, holes = random.choice(TARGETS), random.choice([0.0, 0.0, 0.1])
    records = []
    for _ in range(random.choice([4, 5, 6, 7, 8, 10, 30])):
        record = {name: None if random.random() < holes else FEATURES[name](random) for name in names}
        record[TARGET] = target(random, record.get("x") or 0.0)
        records.append(record)
    return records


@dataclass
class Sheet:
    """A file of text before it is written: the names of its columns, and every value as it will stand there."""

    form: str
    names: list[bytes]
    rows: list[list[bytes]]

    @staticmethod
    def of(records: list[dict[str, Any]], form: str) -> Sheet:
        spelled = _in_json if form == "jsonl" else _alone
        rows = [[spelled(value) for value in record.values()] for record in records]
        return Sheet(form, [name.encode() for name in records[0]], rows)

    def column(self, name: str) -> int:
        return self.names.index(name.encode())

    def written(self, end: bytes = b"\n") -> bytes:
        if self.form == "jsonl":
            pairs = ([b'"%s": %s' % pair for pair in zip(self.names, row, strict=False)] for row in self.rows)
            return b"".join(b"{" + b", ".join(row) + b"}" + end for row in pairs)
        return b"".join(DELIMITERS[self.form].join(row) + end for row in [self.names, *self.rows])


def _alone(value: Any) -> bytes:
    if value is None:
        return b""
    return str(value).lower().encode() if isinstance(value, bool) else str(value).encode()


def _in_json(value: Any) -> bytes:
    return json.dumps(value, default=str, ensure_ascii=False).encode()


def some_file(random: Random, form: str) -> bytes:
    """A right file, of a format that may be followed by a compression, as in ``csv.gz``."""
    if form in COLUMNAR:
        return COLUMNAR[form](pa.Table.from_pylist(some_records(random)))
    text, _, compression = form.partition(".")
    data = Sheet.of(some_records(random), text).written()
    return COMPRESS[compression](data) if compression else data
