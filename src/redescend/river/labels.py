"""Two labels of any kind, and the signs that they are to the learner."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.errors import DataError
from redescend.losses import likelihood
from redescend.numeric import Values
from redescend.river.names import plain, unplain

probability: Any = likelihood.sigmoid
"""Of the label +1, at a margin or at many."""


class Labels:
    """Which label is −1 and which is +1: True and 1 are +1, other first labels −1, and the second is what is left."""

    def __init__(self) -> None:
        self.signs: dict[Any, float] = {}

    def sign(self, label: Any) -> float:
        """The sign of a label, or that which a new one would get."""
        try:
            if (known := self.signs.get(label)) is not None:
                return known
            missing = label is None or bool(label != label)
        except TypeError:  # It cannot be a key, or is the NA of pandas, which is neither equal nor unequal.
            missing = True
        if missing:
            raise DataError(f"y must be a label, such as True or 'spam'. Got {label!r} instead.")
        if len(self.signs) == 2:
            first, second = self.signs
            raise DataError(
                f"y must be {first!r} or {second!r}, the two labels seen so far. Got {label!r} instead; for more, put "
                "the classifier, with any filter of labels ahead of it, in river.multiclass.OneVsRestClassifier."
            )
        return -next(iter(self.signs.values()), -1.0 if label == True else 1.0)  # noqa: E712 -- 1 and 1.0 are meant

    def keep(self, label: Any) -> None:
        """Remember a label that was learned from."""
        if label not in self.signs:
            self.signs[label.item() if isinstance(label, np.generic) else label] = self.sign(label)

    @property
    def ends(self) -> tuple[Any, Any]:
        """The labels of −1 and +1: False and True while no others were seen, and a single other one is both."""
        if len(self.signs) == 2:
            negative, positive = sorted(self.signs, key=self.signs.__getitem__)
            return negative, positive
        return (False, True) if self.signs.keys() <= {False, True} else (next(iter(self.signs)),) * 2

    def shares(self, margin: Values) -> dict[Any, Any]:
        """The probability of each label."""
        positive = probability(margin)
        if (ends := self.ends)[0] is ends[1]:
            return {ends[0]: 0.0 * positive + 1.0}
        return {ends[0]: probability(-margin), ends[1]: positive}

    def state(self) -> list[Any]:
        return [[plain(label), sign] for label, sign in self.signs.items()]

    def restore(self, state: Any) -> None:
        signs = {unplain(label): float(sign) for label, sign in state}
        if len(signs) != len(state) or sorted(signs.values()) not in ([], [-1.0], [1.0], [-1.0, 1.0]):
            raise ValueError
        self.signs = signs
