"""Arrays whose references are not counted: passing a counted one on, in a loop, costs atomic operations every time."""

from __future__ import annotations

from numba import carray

from redescend.kernels.compiler import inlined, pointer
from redescend.numeric import Array


@inlined
def uncounted(array: Array) -> Array:
    """The same memory; the array must outlive it."""
    return carray(pointer(array.ctypes.data), array.shape, array.dtype)
