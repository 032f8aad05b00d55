"""The ledgers of a pass, and the files that they become at its end."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from redescend.errors import DataError
from redescend.files import PART, check_replaceable
from redescend.sources import Bad
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.io import quarantine, round_log
from redescend.streaming.io.append_log import Ledger
from redescend.streaming.rounds import Rounds

ROUNDS, QUARANTINE = "rounds", "quarantine"
LEDGERS = {ROUNDS: "rounds.ledger", QUARANTINE: "quarantine.ledger"}
"""What the ledgers are called."""


class Books:
    """What a pass writes down about records.

    Parameters
    ----------
    folder
        Where the ledgers are while the pass runs. None: in a folder beside the files, which is gone when they are
        there.
    targets
        The files to make of them at the end: of `ROUNDS`, of `QUARANTINE`, of both or of none. Without a file for
        bad records, the first of them are kept in memory.
    state
        What `settled` returned when a checkpoint was written, to go on from there.

    Attributes
    ----------
    tidy
        Whether no file is made for bad records where there are none.
    """

    def __init__(self, folder: Path | None, targets: dict[str, Path], state: dict[str, Any] | None = None) -> None:
        self._targets, self.tidy = targets, False
        for target in targets.values():
            _check(target)
        self.kept = quarantine.Kept()
        if state is not None:
            self.kept.restore(state["kept"])
        self._temporary = None
        if folder is None and targets:
            beside = next(iter(targets.values())).absolute().parent
            # It has its name before it is there, so that `close` finds it whenever this is interrupted.
            folder = self._temporary = beside / f".{secrets.token_hex(8)}{PART}"
        self._folder = folder
        self._ledgers: dict[str, Ledger] = {}
        try:
            if self._temporary is not None:
                self._temporary.mkdir(0o700)
            for name in targets:
                path = Path(folder or "", LEDGERS[name])
                self._ledgers[name] = Ledger(path, 0 if state is None else state["sizes"][name])
        except BaseException:
            self.close()
            raise

    def add(self, rounds: Rounds, bad: Sequence[Bad]) -> None:
        """Write down rounds, and records that are set aside."""
        if ROUNDS in self._ledgers:
            self._ledgers[ROUNDS].append(round_log.packed(rounds))
        if QUARANTINE in self._ledgers:
            self._ledgers[QUARANTINE].append(b"".join(map(quarantine.line, bad)))
        else:
            self.kept.add(bad)

    def settled(self) -> dict[str, Any]:
        """What a checkpoint holds of the books, once the ledgers are on the disk."""
        sizes = {name: ledger.settled() for name, ledger in self._ledgers.items()}
        return {"sizes": sizes, "kept": self.kept.state()}

    def publish(self, schema: Schema, names: Sequence[str] = ()) -> None:
        """Make the files; the names are those of keys."""
        for name, ledger in self._ledgers.items():
            ledger.flush()
            if name == ROUNDS:
                round_log.write(ledger.path, schema, self._targets[name], names)
            elif not self.tidy or ledger.path.stat().st_size:
                quarantine.write(ledger.path, self._targets[name])

    def close(self) -> None:
        """Close the ledgers; those of a checkpoint stay."""
        with ExitStack() as stack:
            if self._temporary is not None:
                stack.callback(shutil.rmtree, self._temporary, ignore_errors=True)
            for ledger in self._ledgers.values():
                stack.callback(ledger.close)

    def discard(self) -> None:
        """Remove the ledgers: nobody will go on with them."""
        self.close()
        if self._folder is not None:
            for name in LEDGERS.values():
                (self._folder / name).unlink(missing_ok=True)

    def __enter__(self) -> Books:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check(target: Path) -> None:
    """Hours of work should not end with a file that cannot be written."""
    if target.is_dir():
        raise DataError(f"'{target}' cannot be written, because it is a folder; name a file in it.")
    check_replaceable(target)
    if not target.absolute().parent.is_dir():
        raise DataError(f"'{target}' cannot be written, because there is no folder '{target.parent}'; make it first.")
