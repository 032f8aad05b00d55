"""One more label for a classifier that has learned from records without it.

The only output of two labels becomes one for each: that of the first label is its mirror image, as if it had learned
from the same records with opposite targets. The output of the new label is a new learner that has learned from the
records that the others have stored, at most `layout.ring_size`, none of which had the label.
"""

from __future__ import annotations

import numpy as np

from redescend.engines.engine import Engine, Shape
from redescend.engines.labels import add_class
from redescend.engines.nonlinear import NonlinearEngine
from redescend.engines.selftuning import SelfTuningEngine
from redescend.errors import ParameterError
from redescend.kernels.selftuning import layout
from redescend.numeric import Array
from redescend.state import unpack


def add_label(engine: Engine) -> Engine:
    """The engine of a classifier with one more label, the last one.

    Trees are started anew, because they are grown for all labels together.

    Examples
    --------
    >>> from redescend import losses
    >>> engine = SelfTuningEngine(Shape(1, 1, losses.Logistic()), 2, linked=True)
    >>> X = np.linspace(-2.0, 2.0, 101)[:, None]
    >>> _ = engine.learn_rounds(X, np.sign(X.T + 1e-9))
    >>> grown = add_label(engine)
    >>> two, three = engine.predict(X), grown.predict(X)
    >>> bool(np.allclose(three[1] - three[0], two[0]))
    True
    """
    if isinstance(engine, NonlinearEngine):
        linear = _add_output(engine.linear, linked=False)
        grown = NonlinearEngine(engine.dim, linear.outputs, engine.loss, engine.order, engine.missing)
        grown.linear, grown.link = linear, add_class(engine.link, engine.outputs, engine.loss)
        return grown
    if isinstance(engine, SelfTuningEngine):
        return _add_output(engine, linked=True)
    raise ParameterError("Labels can only be added to a self-tuning model.")


def _add_output(engine: SelfTuningEngine, linked: bool) -> SelfTuningEngine:
    """A linear engine with an output for one more label; `linked` is as in `SelfTuningEngine`."""
    known = engine.models if engine.outputs > 1 else np.concatenate([_mirror(engine), engine.models])
    shape = Shape(engine.dim, len(known) + 1, engine.loss, engine.intercept)
    grown = SelfTuningEngine(shape, engine.order, engine.missing)
    grown.link = add_class(engine.link, engine.outputs, engine.loss) if linked else np.empty(0)
    grown.models = np.concatenate([known, _start_output(engine)])
    return grown


def _mirror(engine: SelfTuningEngine) -> Array:
    """The state of an engine with one output, after the same records with opposite labels."""
    models = engine.models.copy()
    parts = unpack(layout.SPECS, models, layout.dims_of(engine.width, engine.order))
    parts["theta"] *= -1.0
    parts["ring"][..., 0] *= -1.0
    parts["scalar"][:, layout.LAST_Y] *= -1.0
    parts["scalar"][:, layout.POSITIVE] = 1.0 - parts["scalar"][:, layout.POSITIVE]
    return models


def _start_output(engine: SelfTuningEngine) -> Array:
    """The state of a new output that has learned from the stored records, all with the label −1."""
    parts = unpack(layout.SPECS, engine.models, layout.dims_of(engine.width, engine.order))
    ring, last = parts["ring"][0], int(parts["scalar"][0, layout.LAST])
    count = min(last, len(ring))
    # Of order 2, the last records are stored, each in place of the oldest; of order 1, the first ones.
    turn = last % len(ring) if engine.order == 2 and count == len(ring) else 0
    ring = np.roll(ring[:count], -turn, axis=0)
    new = SelfTuningEngine(Shape(engine.dim, 1, engine.loss, engine.intercept), engine.order, engine.missing)
    new.learn_rounds(np.ascontiguousarray(ring[:, 2 : 2 + engine.dim]), np.full((1, count), -1.0), ring[:, 1].copy())
    # All outputs of an engine count the same rounds.
    new.models[:, layout.ROUNDS - layout.SCALARS] = engine.row_count
    return new.models
