"""Types of arithmetic on floats and integers, found at once.

Numba asks a dozen rules for arrays, sets, strings and the like before it finds the type of a sum of two floats, and
asks again when it writes the code. These rules are asked first, and say the same; what they do not know they leave to
Numba.
"""

from __future__ import annotations

import operator
from typing import Any

from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

NUMBERS = types.float64, types.int64
FLOATS = (types.float64,)

ARITHMETIC = operator.add, operator.sub, operator.mul, operator.iadd, operator.isub, operator.imul
DIVISIONS = operator.truediv, operator.itruediv
COMPARISONS = operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne


def _add_rule(function: Any, numbers: tuple[Any, ...], out: Any = None) -> None:
    @infer_global(function)
    class Rule(AbstractTemplate):
        metadata = {"target": "cpu"}

        def generic(self, args: Any, kws: Any) -> Any:
            known = len(args) == 2 and args[0] == args[1] and args[0] in numbers
            return signature(out or args[0], *args) if known else None


for _function in ARITHMETIC:
    _add_rule(_function, NUMBERS)
for _function in DIVISIONS:
    _add_rule(_function, FLOATS)
for _function in COMPARISONS:
    _add_rule(_function, NUMBERS, types.boolean)


@infer_global(bool)
class _Bool(AbstractTemplate):
    metadata = {"target": "cpu"}

    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.boolean, *args) if args == (types.boolean,) else None
