"""`StreamModel`: a schema and what was learned from the records of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from redescend.engines import Engine, read_shape
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.parameters import check_instance
from redescend.sources import Batch
from redescend.state import ArraySpec, read_arrays
from redescend.streaming import config
from redescend.streaming.answering import Answering, Learned, gathered, played
from redescend.streaming.encoding import target as targets
from redescend.streaming.encoding.batches import Part, Readied
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.importance_moves import moves_of


class StreamModel(Answering):
    """A model of the records of a stream, which wrong ones cannot move.

    Parameters
    ----------
    schema : Schema
        What is predicted from what; or its plain values.
    order : 1 or 2
        2 adds a second-order follower to the self-tuning learner: O(d²) a record, fewer records to learn from.
    loss : str, LinearLoss or None
        What is paid. None: 'squared' for numbers, 'logistic' for labels.
    transform : Transform or None
        A fixed transform of the loss: faster, and to be chosen by hand. None: the model tunes itself.
    step : Step or None
        The step that goes with a transform. None: one that needs no tuning.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from redescend.sources import open_source
    >>> x = np.arange(500.0) % 7
    >>> source = open_source(pa.table({"x": x, "y": np.where(np.arange(500) % 10, 2 * x + 1, 99.0)}))
    >>> model = StreamModel(Schema.decide(source.sample, source.kinds, "y"))
    >>> for batch in source.batches(model.schema.columns):
    ...     rounds, kept, bad = model.learn(batch)
    >>> model.predict(pa.table({"x": [3.0]})).round(1)
    array([7.])
    >>> bool(rounds.weights[490] < 0.01)
    True
    """

    def __init__(
        self, schema: Schema, order: int = 1, loss: Any = None, transform: Any = None, step: Any = None
    ) -> None:
        owner = type(self).__name__
        if isinstance(schema, Mapping):
            schema = Schema.from_plain(schema)
        self.schema = check_instance(owner, "schema", schema, Schema, "a Schema")
        self._settings = config.checked(owner, schema.classifies, order, loss, transform, step)
        self._given = {"order": order, "loss": loss, "transform": transform, "step": step}
        self._engine: Engine | None = None
        self._ones = np.zeros(len(schema.indicators))

    def __repr__(self) -> str:
        columns = len(self.schema.features)
        of = f"{self.schema.task} of '{self.schema.target}' on {columns} column{'s' * (columns != 1)}"
        return f"StreamModel({of}, {self.records:,} records)"

    @property
    def records(self) -> int:
        """How many records it has learned from."""
        return 0 if self._engine is None else self._engine.row_count

    # --- learning ---

    def learn(self, batch: Batch) -> Learned:
        """Learn from the records of a batch, one after the other.

        What happens to a record depends on those before it and on nothing else; batches of any sizes teach the same.
        """
        readied, rounds = self._readied(batch.table, target=True), []
        self._engine = engine = self._ready()
        for part in readied.parts():
            said, paid, believed = engine.learn_rounds(part.X, targets.answers(self.schema, part.values))
            self._ones += part.X[:, self.schema.indicators].sum(axis=0)
            told = (said, targets.summed(paid), believed.min(axis=0))
            rounds.append((part, played(self.schema, batch, part, *told)))
        return gathered(batch, readied, rounds)

    def _ready(self) -> Engine:
        if self._engine is not None:
            return self._engine
        engine = self._settings.engine(self.schema.dim, self.schema.outputs)
        engine.exclude_from_scaling(self.schema.indicators)
        return engine

    # --- answering ---

    def _readied(self, table: Any, target: bool) -> Readied:
        return Readied(self.schema, table, target)

    def _said(self, part: Part) -> Array:
        return self._ready().predict(part.X)

    def _believed(self, part: Part, Y: Array) -> Array:
        return self._ready().score(part.X, Y).min(axis=0)

    def _paid(self, said: Array, Y: Array) -> Array:
        return np.minimum(self._settings.loss.of_prediction(said, Y), np.finfo(float).max)

    # --- what was learned ---

    def explain(self) -> dict[str, float]:
        """How much each column moves the prediction, as shares of 1, the largest first.

        The move of a column of numbers is its coefficient times its scale; that of a text, and that of values being
        missing, is the standard deviation of its part in the prediction. With three or more labels they are added up.
        """
        moves = moves_of(self.schema, self._ready(), self._ones / max(1, self.records))
        total = sum(moves.values())
        ordered = sorted(moves.items(), key=lambda move: -move[1])
        return {name: move / total if total > 0.0 else 0.0 for name, move in ordered}

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients of ``schema.encoded``, a row for each output, and intercepts."""
        return self._ready().coefficients()

    # --- persistence ---

    def _get_params(self) -> dict[str, Any]:
        return {"schema": self.schema.as_plain(), **self._given}

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays and plain values; copies."""
        return {"engine": None if self._engine is None else self._engine.state(), "ones": self._ones.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that such a model gave; it continues to the last bit."""
        try:
            given, ones = state["engine"], state["ones"]
            engine = None if given is None else self._restored(given)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"The state of StreamModel lacks or garbles something ({error}); it has been altered."
            ) from None
        spec = ArraySpec("ones", ("indicators",), kind="count", high=0 if engine is None else engine.row_count)
        ones = read_arrays([spec], {"ones": ones}, {"indicators": len(self._ones)}, "StreamModel")["ones"]
        self._engine, self._ones = engine, ones

    def _restored(self, given: dict[str, Any]) -> Engine:
        size = read_shape(given, True, self._settings.order == 2)
        if size != (self.schema.dim, self.schema.outputs):
            raise DataError("The state of StreamModel belongs to another schema; it has been altered.")
        engine = self._settings.engine(*size)
        engine.restore(given)
        return engine
