"""A run over a stream: read a batch, learn from it, log it, write checkpoints, and in the end the outputs."""

from __future__ import annotations

import heapq
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

import numpy as np

from redescend.checkpoint import save
from redescend.errors import BadRecordError, DataError, OnBad
from redescend.numeric import Array
from redescend.sources import Bad, Batch, Position, Source
from redescend.sources.batch import count_bad
from redescend.sources.formats import Follow
from redescend.streaming import final_look
from redescend.streaming.config import FitConfig
from redescend.streaming.far_out import FarRecords
from redescend.streaming.io.checkpoints import Checkpoint, CheckpointFolder
from redescend.streaming.io.writers import RunWriters
from redescend.streaming.keyed import ModelStore
from redescend.streaming.model import StreamModel
from redescend.streaming.rounds import RoundRecord, Rounds
from redescend.streaming.summary import Summary
from redescend.streaming.summary.records import read_values

MAX_BATCH = 65_536  # records in a batch

Watch = Callable[["Run", Rounds], object]


class Counts(NamedTuple):
    """Numbers of records: each that was read was learned from, quarantined or skipped."""

    records: int = 0
    learned: int = 0
    quarantined: int = 0
    skipped: int = 0


class LastBatch(NamedTuple):
    """The last batch, the indices of its usable records, and its rejected records."""

    batch: Batch
    indices: Array
    rejected: list[Bad]


class Run:
    """The rounds of a stream, each played when it is requested. Made by `redescend.fit_stream`.

    Iterating over it yields one round at a time; `batches` yields many at a time, which is much faster; `run` plays all
    that are left. After the last round the outputs are written. A run that stops earlier, because of an error or
    because no more rounds are requested, leaves no incomplete file and can be resumed from its last checkpoint.

    Attributes
    ----------
    model, source : StreamModel or ModelStore, Source
        The model, which learns during the run, and the source.
    counts, summary : Counts, Summary
        Numbers of records and statistics of the rounds so far.
    final : FinalSuspects or None
        The suspects of the final look, once the run is finished; None if it was not requested.
    follows : {'', 'time', 'order'}
        What the model of a table follows after the final look: the time of the records or their order, so that it is
        the model of the last records; or nothing.
    resumed : int
        The number of records read before the run was resumed; 0 for a new run.
    position, latest : Position or None, LastBatch or None
        The position of the next record, and the last batch; None before the first batch.
    ended, finished : bool
        Whether all records have been read; whether all outputs have been written, too. A run that was finished before
        it was resumed plays no rounds and writes no files.
    """

    def __init__(
        self,
        config: FitConfig,
        model: StreamModel | ModelStore,
        source: Source,
        beginning: dict[str, Any],
        writers: RunWriters,
        checkpoints: CheckpointFolder | None = None,
        *,
        watch: Watch | None = None,
        follow: Follow | None = None,
        passes: int = 1,
    ) -> None:
        self.config, self.model, self.source = config, model, source
        self.counts, self.summary = Counts(), Summary(model.schema, config.transform, config.top)
        self.final: final_look.FinalSuspects | None = None
        self.follows = ""
        self.on_look: Callable[[int], object] = lambda records: None
        self._passes = passes
        self.resumed, self.ended, self.finished = 0, False, False
        self.latest: LastBatch | None = None
        self.position: Position | None = None
        self._mark: str | None = None
        self._beginning, self._writers, self._checkpoints = beginning, writers, checkpoints
        self._watch, self._follow = watch, follow
        self._reader: Generator[Batch, None, None] | None = None
        self._next_checkpoint = 0
        self._rounds, self._yielded = Rounds.concatenate([]), 0
        self._release = weakref.finalize(self, _release, model, writers, checkpoints)
        if checkpoints is not None and checkpoints.last is not None:
            self._restore(checkpoints.last)

    def __repr__(self) -> str:
        return f"Run({self.source.name!r}, {self.counts}, finished={self.finished})"

    def _repr_html_(self) -> str:
        """Show the counts and the top suspects as tables in notebooks."""
        from redescend.streaming.report.describe import render_run

        return render_run(self)

    # --- playing rounds ---

    def __iter__(self) -> Iterator[RoundRecord]:
        return self

    def __next__(self) -> RoundRecord:
        while self._yielded == len(self._rounds):
            rounds = self._play_batch()
            if rounds is None:
                raise StopIteration
            self._rounds, self._yielded = rounds, 0
        self._yielded += 1
        return self._rounds.record(self._yielded - 1, self.model.schema)

    def batches(self) -> Iterator[Rounds]:
        """Play the rounds that are left, many at a time."""
        left, self._yielded = self._rounds[self._yielded :], len(self._rounds)
        if len(left):
            yield left
        while (rounds := self._play_batch()) is not None:
            yield rounds

    def run(self) -> Run:
        """Play all rounds that are left, and write the outputs."""
        for _ in self.batches():
            pass
        return self

    def _play_batch(self) -> Rounds | None:
        """Play the rounds of the next batch; at the end, write the outputs and return None."""
        if self.finished:
            return None
        self._check_open()
        try:
            batch = None if self.ended else self._read_or_pause()
            if batch is not None:
                return self._learn(batch)
            if self._follow is not None:
                self.pause()
                return None
            if not self.ended:
                self.ended = True
                self.model.settle()
                self._write_checkpoint()
            self.finish()
        except BaseException:
            self.close()
            raise
        return None

    def _read_or_pause(self) -> Batch | None:
        """Read a batch; if a followed file can no longer be read, write the outputs as they are."""
        try:
            return self._read_batch()
        except Exception:
            if self._follow is not None:
                self.pause()
            raise

    def _read_batch(self) -> Batch | None:
        records, every = self.counts.records, self.config.every
        if self._reader is None:
            if self.position is None:
                # Fails early if the model cannot be saved.
                self._write_checkpoint()
            self._next_checkpoint = records + every
            # A followed file is recognized by the mark of a batch, which must not be split.
            columns, most = self._columns(), MAX_BATCH if self._follow else min(MAX_BATCH, every)
            self._reader = self.source.batches(
                columns, start=self.position, most=most, follow=self._follow, mark=self._mark
            )
        elif records >= self._next_checkpoint:
            # Only when the next batch is requested: by then the caller has finished with the rounds of the last one.
            self._write_checkpoint()
            self._next_checkpoint = records + every
        return next(self._reader, None)

    def _columns(self) -> list[str]:
        """The columns to read: of a pipe also those that identify records."""
        others = self.config.id if self._writers.has_values else ()
        return list(dict.fromkeys([*self.model.schema.columns, *others]))

    def _learn(self, batch: Batch) -> Rounds:
        learned = self.model.learn(batch)
        rejected = list(heapq.merge(batch.bad, learned.rejected, key=lambda record: record.row))
        on_bad = self.config.on_bad
        if rejected and on_bad == OnBad.FAIL:
            bad = rejected[0]
            raise BadRecordError(
                f"Row {bad.row} of '{bad.file}' cannot be learned from: {bad.reason}. Fix it, or quarantine such "
                "records with on_bad='quarantine'."
            )
        quarantined = rejected if on_bad == OnBad.QUARANTINE else []
        self._writers.write(learned.rounds, quarantined)
        if self._writers.has_values:
            for place in np.flatnonzero(learned.rounds.clean_probability < final_look.KEPT).tolist():
                index = int(learned.indices[place])
                values = read_values(self.model.schema, batch, index, self.config.id)
                self._writers.log_values(int(learned.rounds.rows[place]), batch.files, values)
        self.summary.grow(self.model.schema)
        self.summary.add(learned.rounds, batch, learned.indices)
        self.summary.add_rejected(rejected)
        aside = count_bad(quarantined)
        more = (batch.count, len(learned.rounds), aside, count_bad(rejected) - aside)
        self.counts = Counts(*(before + new for before, new in zip(self.counts, more, strict=True)))
        self.position, self._mark, self.latest = batch.end, batch.mark, LastBatch(batch, learned.indices, rejected)
        if self._watch is not None:
            self._watch(self, learned.rounds)
        return learned.rounds

    @property
    def bad(self) -> list[Bad]:
        """The first quarantined records, if no file takes them: at most 1,000 and 4 MiB; `counts` counts all."""
        return self._writers.buffer.records

    @property
    def reads_in_time(self) -> bool:
        """Whether the source is read in its order and once, because dates show that its records are in time order."""
        config, source = self.config, self.source
        chosen = config.passes is None and config.transform is None and config.by is None and not config.lags
        once = chosen and self._passes == 1 and not source.is_shuffled
        return once and source.can_reread and source.format != "journal"

    # --- ending ---

    def finish(self) -> None:
        """Write the outputs; called automatically after the last round."""
        if self.finished:
            return
        self._check_open()
        if not self.ended:
            raise DataError("The stream has not been read to its end, so the run cannot be finished; run() it first.")
        self._write_outputs()
        self._write_checkpoint(finished=True)
        self.finished = True
        self._writers.discard()
        self.close()

    def pause(self) -> None:
        """Stop here and write the outputs as they are now; a resumed run continues after the last record.

        A run that follows a growing file always ends this way.
        """
        self._check_open()
        self._write_outputs()
        self._write_checkpoint()
        self.close()

    def close(self) -> None:
        """Stop here without writing the outputs; the last checkpoint stays."""
        if self._reader is not None:
            self._reader.close()
        self._release()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_outputs(self) -> None:
        outputs, model = self.config.outputs, self.model
        if self._follow is None and (self.config.final_look or (self._passes > 1 and isinstance(model, StreamModel))):
            self._look_again(model)
        else:
            self._writers.write_final_files(model.schema, model.keys, judged=model.belief is not None)
        if outputs.model is not None:
            save(model, outputs.model)
        if outputs.report is not None:
            from redescend.streaming.report import page

            single = None if isinstance(model, ModelStore) else model
            page.write(outputs.report, single, self.summary, self.counts, source=self.source.name)

    def _look_again(self, model: StreamModel | ModelStore) -> None:
        """Make further passes over the source, if possible, and judge all records by the final model."""
        config, writers, schema = self.config, self._writers, model.schema
        first = None if config.outputs.rounds is None else writers.read_log("rounds")
        if self.source.can_reread and isinstance(model, StreamModel):
            # The errors of later passes are in-sample.
            metrics = self.summary.metrics
            counted = {"records": self.counts.records, "learned": self.counts.learned}
            self.summary, log, far, judged, self.follows = final_look.read_again(
                model, self.source, config, writers, self._passes, self.on_look, **counted
            )
            self.summary.metrics, last = metrics, log.path
            model.count_repeated(self.counts.learned)
        else:
            last, far, judged = writers.read_log("rounds"), FarRecords(), False
        if not config.final_look or model.belief is None:
            writers.write_final_files(schema, model.keys, judged=model.belief is not None)
            return
        writers.write_quarantine()
        final = final_look.judge_finally(model, config, first, last, far, judged)
        if self.summary.is_constant:
            # All errors are rounding errors.
            final, self.follows = final.empty(), ""
        # In a random order, repeated targets are not a stuck sensor.
        self.final = final = final._replace(runs=[]) if self.source.is_shuffled else final
        count = max(config.top, 0 if config.outputs.suspects is None else final.listed)
        rows = final.rounds.rows[:count].tolist()
        if self.source.can_reread:
            # Only the report has explanations, which take longer than the rest of the list.
            explained = 0 if config.outputs.report is None else config.top
            values = final_look.look_up_values(self.source, model, rows, config.id, explained)
        else:
            values = final_look.recall_values(writers.read_log("values"), rows)
        self.summary.final, self.summary.listed = final.summarize(), final.rounds[: final.listed]
        self.summary.suspects.records = final_look.make_suspects(schema, final, config.top, values)
        if config.outputs.suspects is not None:
            final_look.write_suspects(config.outputs.suspects, schema, final, values, config.id)

    def _check_open(self) -> None:
        if not self._release.alive:
            stopped = f"The run over '{self.source.name}' was stopped before its end"
            raise DataError(f"{stopped}; resume it from its checkpoint, or start again.")

    # --- checkpoints ---

    def _write_checkpoint(self, *, finished: bool = False) -> None:
        if self._checkpoints is None:
            return
        checkpoint = Checkpoint(
            config=self.config.to_dict(),
            beginning=self._beginning,
            kinds={name: kind.value for name, kind in self.source.kinds.items()},
            model=self.model,
            position=None if self.position is None else list(self.position),
            mark=self._mark,
            files=self.source.files[: 0 if self.position is None else self.position.file + 1],
            logs=self._writers.sync(),
            counts=list(self.counts),
            summary=self.summary.state(),
            ended=self.ended,
            finished=finished,
        )
        self._checkpoints.write(checkpoint)

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.counts = Counts(*checkpoint.counts)
        self.summary.restore(checkpoint.summary)
        self.position = None if checkpoint.position is None else Position(*checkpoint.position)
        self._mark = checkpoint.mark
        self.resumed, self.ended, self.finished = self.counts.records, checkpoint.ended, checkpoint.finished
        if self.finished:
            self._writers.discard()
            self.close()


def _release(model: StreamModel | ModelStore, writers: RunWriters, checkpoints: CheckpointFolder | None) -> None:
    with ExitStack() as stack:
        # If a cluster has lost the models, the error is raised where they are used.
        stack.enter_context(suppress(DataError))
        stack.callback(model.settle)
        if checkpoints is not None:
            stack.callback(checkpoints.close)
        stack.callback(writers.close)
