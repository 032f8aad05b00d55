"""Whether many states of the self-tuning learner could be, all at once.

The rules are those of `SelfTuningEngine`, which looks at one state at a time: too slow for a hundred thousand. A test
keeps the two in step.
"""

from __future__ import annotations

import numpy as np

from redescend.engines import validation
from redescend.engines.selftuning import SelfTuningEngine
from redescend.kernels.selftuning import layout, novelty
from redescend.numeric import Array


def sound_states(engine: SelfTuningEngine, states: Array) -> bool:
    """Whether each row could be an output of the engine."""
    part, start = dict[str, Array](), 0
    for name, shape in engine.shapes.items():
        size = int(np.prod(shape))
        part[name] = states[:, start : start + size].reshape(len(states), *shape)
        start += size
    return (
        all(_shares(part[name]) for name in ("weights", "cells"))
        and validation.within(part["thetas"], -validation.LONGEST, validation.LONGEST)
        and validation.within(part["norms"], 0.0, validation.LARGEST)
        and validation.within(part["squares"], 0.0, 1.0 + 1e-6)
        and validation.within(part["counts"], 0.0, layout.MEMORY)
        and validation.within(part["news"], 0.0, np.inf)
        and validation.within(part["news"][:, novelty.NEWNESS], 0.0, 1.0)
        and _scalars(part["scalars"], engine.loss.margin)
    )


def _shares(parts: Array) -> bool:
    totals = parts.reshape(len(parts), -1).sum(axis=1)
    return bool((parts >= 0.0).all()) and validation.within(totals, 1.0 - 1e-6, 1.0 + 1e-6)


def _scalars(scalars: Array, labels: bool) -> bool:
    lowest = scalars[:, layout.LOWEST]
    known = lowest > 0.0
    hottest = np.where(known & labels, 1.0 / np.where(known, lowest, 1.0), 1.0)
    return (
        validation.within(scalars, 0.0, np.inf)
        and validation.whole(scalars[:, [layout.ROUNDS, layout.SEEN, layout.AGE]], 0.0, validation.COUNTABLE)
        and validation.whole(scalars[:, [layout.SLOT]], 0.0, 2.0)
        and validation.within(scalars[:, [layout.NEW]], 0.0, 1.0)
        and validation.within(scalars[:, [layout.WIDEST, layout.SPREAD]], 0.0, validation.LARGEST)
        and validation.within(lowest[known], validation.SMALLEST, validation.LARGEST)
        and validation.within(scalars[:, layout.TEMPERATURE] / hottest, 0.0, 1.0)
        and validation.within(scalars[:, [layout.TEMPERATURE]], 1.0, np.inf)
    )
