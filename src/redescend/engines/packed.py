"""Whether many states of the self-tuning learner could be, all at once.

The rules are those of `SelfTuningEngine`, which looks at one state at a time: too slow for a hundred thousand. A test
keeps the two in step.
"""

from __future__ import annotations

import numpy as np

from redescend.engines import sound
from redescend.engines.selftuning import SelfTuningEngine
from redescend.kernels.selftuning import layout, news
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
        and sound.within(part["thetas"], -sound.LONGEST, sound.LONGEST)
        and sound.within(part["norms"], 0.0, sound.LARGEST)
        and sound.within(part["squares"], 0.0, 1.0 + 1e-6)
        and sound.within(part["counts"], 0.0, layout.MEMORY)
        and sound.within(part["news"], 0.0, np.inf)
        and sound.within(part["news"][:, news.NEWNESS], 0.0, 1.0)
        and _scalars(part["scalars"], engine.loss.margin)
    )


def _shares(parts: Array) -> bool:
    totals = parts.reshape(len(parts), -1).sum(axis=1)
    return bool((parts >= 0.0).all()) and sound.within(totals, 1.0 - 1e-6, 1.0 + 1e-6)


def _scalars(scalars: Array, labels: bool) -> bool:
    lowest = scalars[:, layout.LOWEST]
    known = lowest > 0.0
    hottest = np.where(known & labels, 1.0 / np.where(known, lowest, 1.0), 1.0)
    return (
        sound.within(scalars, 0.0, np.inf)
        and sound.whole(scalars[:, [layout.ROUNDS, layout.SEEN, layout.AGE]], 0.0, sound.COUNTABLE)
        and sound.whole(scalars[:, [layout.SLOT]], 0.0, 2.0)
        and sound.within(scalars[:, [layout.NEW]], 0.0, 1.0)
        and sound.within(scalars[:, [layout.WIDEST, layout.SPREAD]], 0.0, sound.LARGEST)
        and sound.within(lowest[known], sound.SMALLEST, sound.LARGEST)
        and sound.within(scalars[:, layout.TEMPERATURE] / hottest, 0.0, 1.0)
        and sound.within(scalars[:, [layout.TEMPERATURE]], 1.0, np.inf)
    )
