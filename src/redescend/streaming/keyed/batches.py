"""A table whose records have keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.streaming.encoding.batches import Part, Readied
from redescend.streaming.encoding.features import shown
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.keyed.keys import Keys

CELLS = 1 << 21
"""Numbers that records are made into at a time: enough for every shard to have some of them."""


class Keyed(Readied):
    """A table that is ready to be learned from, or to be answered, by the models of many keys.

    A record without a key is refused; so is one whose key is not known, unless keys are added. Those are the keys of
    records that can be used, in the order in which they come.
    """

    def __init__(self, schema: Schema, table: Any, target: bool, keys: Keys, *, add: bool) -> None:
        self._texts, self._keys, self._add = table.column(schema.by), keys, add
        refused = {}
        if self._texts.null_count:
            missing = np.flatnonzero(self._texts.is_null().to_numpy(zero_copy_only=False))
            refused = dict.fromkeys(missing.tolist(), f"the key '{schema.by}' is missing")
        if not add:
            unknown = np.flatnonzero(keys.numbers(self._texts.fill_null("")) < 0).tolist()
            for at in set(unknown) - refused.keys():
                refused[at] = f"the key '{schema.by}': there is no model of {shown(self._texts[at].as_py())}"
        super().__init__(schema, table, target, refused, CELLS)

    def parts(self) -> Iterator[Part]:
        for part in super().parts():
            numbers = self._keys.numbers(self._texts.take(pa.array(part.kept)), add=self._add)
            yield part._replace(keys=numbers, names=self._keys.names)
