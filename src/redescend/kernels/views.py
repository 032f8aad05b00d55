"""Views of arrays for compiled code: a pointer and a shape, and no more.

Numba's arrays carry counters, strides and owners, which every call passes on and every access takes apart. A view is
what the loops need: C-contiguous numbers that somebody else owns, indexed from 0. Negative indices do not count from
the end. Indices are not checked, unless Numba's bounds checks are on: then one out of bounds ends the process.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core.cgutils import create_struct_proxy
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin, lower_getattr, lower_getattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import intrinsic, models, register_model

Shape = tuple[Any, ...]
"""Integers, and names of sizes that are known later."""


class View(types.Type):
    """The type of a view: of which numbers, and in how many dimensions."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(name=f"View({dtype}, {ndim})")

    @property
    def key(self) -> Any:
        return self.dtype, self.ndim


@register_model(View)
class _ViewModel(models.StructModel):
    def __init__(self, manager: Any, view: Any) -> None:
        members = [("data", types.CPointer(view.dtype)), ("shape", types.UniTuple(types.intp, view.ndim))]
        super().__init__(manager, view, members)


# --- typing: asked before Numba's own templates, of which there are many ---


class _ViewTemplate(AbstractTemplate):
    metadata = {"target": "cpu"}

    def index_of(self, view: Any, index: Any) -> Any:
        """The type of an index, and what it leads to; None if it is not for views."""
        if isinstance(view, View):
            index = types.unliteral(index)
            if isinstance(index, types.Integer):
                return types.intp, item_type(view, 1)
            places = index if isinstance(index, types.BaseTuple) else ()
            if 0 < len(places) <= view.ndim and all(isinstance(place, types.Integer) for place in places):
                return types.UniTuple(types.intp, len(places)), item_type(view, len(places))
        return None


def item_type(view: Any, indices: int) -> Any:
    """The type of a number, or of the view that is left after some indices."""
    return view.dtype if indices == view.ndim else View(view.dtype, view.ndim - indices)


@infer_global(operator.getitem)
class _GetItem(_ViewTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        found = self.index_of(*args)
        return found and signature(found[1], args[0], found[0])


@infer_global(operator.setitem)
class _SetItem(_ViewTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        found = self.index_of(*args[:2])
        return signature(types.none, args[0], *found) if found and found[1] == args[0].dtype else None


@infer_global(len)
class _Len(_ViewTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.intp, args[0]) if isinstance(args[0], View) else None


@infer_getattr
class _Attributes(AttributeTemplate):
    key = View

    def resolve_shape(self, view: Any) -> Any:
        return types.UniTuple(types.intp, view.ndim)

    def resolve_size(self, view: Any) -> Any:
        return types.intp


# --- code ---


def _make(context: Any, builder: Any, view: Any, data: Any, shape: list[Any]) -> Any:
    value = ir.Constant(context.get_value_type(view), ir.Undefined)
    value = builder.insert_value(value, builder.bitcast(data, value.type.elements[0]), 0)
    for axis, size in enumerate(shape):
        value = builder.insert_value(value, size, [1, axis])
    return value


def _size(builder: Any, value: Any, axis: int) -> Any:
    return builder.extract_value(value, [1, axis])


def _total_size(builder: Any, view: Any, value: Any) -> Any:
    return functools.reduce(builder.mul, [_size(builder, value, axis) for axis in range(view.ndim)])


def _check(builder: Any, comparison: str, place: Any, size: Any) -> None:
    """End the process unless a place compares like this with a size."""
    with builder.if_then(builder.not_(builder.icmp_unsigned(comparison, place, size)), likely=False):
        trap = builder.module.declare_intrinsic("llvm.trap", (), ir.FunctionType(ir.VoidType(), ()))
        builder.call(trap, [])


def _find(builder: Any, view: Any, value: Any, index: Any, indices: int) -> Any:
    """The pointer to what an index leads to."""
    places = [builder.extract_value(index, axis) for axis in range(indices)] if indices else [index]
    if config.BOUNDSCHECK:
        for axis, place in enumerate(places):
            _check(builder, "<", place, _size(builder, value, axis))
    place = places[0]
    for axis in range(1, view.ndim):
        place = builder.mul(place, _size(builder, value, axis))
        if axis < indices:
            place = builder.add(place, places[axis])
    return builder.gep(builder.extract_value(value, 0), [place], inbounds=True)


@lower_builtin(operator.getitem, View, types.Integer)
@lower_builtin(operator.getitem, View, types.BaseTuple)
def _get_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (view, index), value = sig.args, args[0]
    indices = len(index) if isinstance(index, types.BaseTuple) else 0
    data = _find(builder, view, value, args[1], indices)
    if not isinstance(sig.return_type, View):
        return context.unpack_value(builder, view.dtype, data)
    rest = range(view.ndim - sig.return_type.ndim, view.ndim)
    return _make(context, builder, sig.return_type, data, [_size(builder, value, axis) for axis in rest])


@lower_builtin(operator.setitem, View, types.Integer, types.Any)
@lower_builtin(operator.setitem, View, types.BaseTuple, types.Any)
def _set_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    view, index, _ = sig.args
    indices = len(index) if isinstance(index, types.BaseTuple) else 0
    context.pack_value(builder, view.dtype, args[2], _find(builder, view, args[0], args[1], indices))
    return context.get_dummy_value()


@lower_builtin(len, View)
def _len(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _size(builder, args[0], 0)


@lower_getattr(View, "shape")
def _shape(context: Any, builder: Any, view: Any, value: Any) -> Any:
    return builder.extract_value(value, 1)


@lower_getattr(View, "size")
def _total(context: Any, builder: Any, view: Any, value: Any) -> Any:
    return _total_size(builder, view, value)


# --- making views ---


def _viewed(value: Any) -> Any:
    """The type of a value with views for arrays."""
    if isinstance(value, types.Array):
        if value.layout != "C":
            raise TypingError(f"Views are of C-contiguous arrays. Got {value}.")
        return View(value.dtype, value.ndim)
    if isinstance(value, types.BaseNamedTuple):
        return types.NamedTuple([_viewed(item) for item in value], value.instance_class)
    if isinstance(value, types.BaseTuple):
        return types.Tuple([_viewed(item) for item in value])
    return value


def _view(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = create_struct_proxy(kind)(context, builder, value)
        shape = [builder.extract_value(array.shape, axis) for axis in range(kind.ndim)]
        return _make(context, builder, _viewed(kind), array.data, shape)
    if isinstance(kind, types.BaseTuple):
        items = [_view(context, builder, item, builder.extract_value(value, i)) for i, item in enumerate(kind)]
        return context.make_tuple(builder, _viewed(kind), items)
    return value


@intrinsic
def view(typing: Any, value: Any) -> Any:
    """View an array, or all arrays of a tuple, which have to outlive the view."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _view(context, builder, value, args[0])

    return _viewed(value)(value), generate


@intrinsic
def window(typing: Any, memory: Any, at: Any, shape: Any) -> Any:
    """Numbers of a view from a place on, in this shape, an integer or a tuple."""
    sizes = len(shape) if isinstance(shape, types.BaseTuple) else 1
    out = View(memory.dtype, sizes)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = builder.gep(builder.extract_value(args[0], 0), [args[1]], inbounds=True)
        items = [builder.extract_value(args[2], i) for i in range(sizes)] if sig.args[2] != types.intp else [args[2]]
        if config.BOUNDSCHECK:
            end = builder.add(args[1], functools.reduce(builder.mul, items))
            _check(builder, "<=", end, _total_size(builder, memory, args[0]))
        return _make(context, builder, out, data, items)

    return out(memory, types.intp, types.UniTuple(types.intp, sizes) if sizes > 1 else types.intp), generate


class Split(types.Type):
    """The type of a row of numbers that is read as the fields of a NamedTuple, each a view.

    Shapes are made of integers and of names; the sizes behind the names come with the row.
    """

    def __init__(self, kind: Any, dtype: Any, shapes: Sequence[Shape], names: Sequence[str]) -> None:
        self.kind, self.dtype, self.names = kind, dtype, tuple(names)
        self.shapes = dict(zip(kind._fields, shapes, strict=True))
        super().__init__(name=f"Split({kind.__module__}.{kind.__qualname__}, {dtype})")

    @property
    def key(self) -> Any:
        return self.kind, self.dtype

    def offset(self, field: str) -> Counter[tuple[str, ...]]:
        """Where a field begins, or the last one ends: how often every product of names is added."""
        out: Counter[tuple[str, ...]] = Counter()
        for name, shape in self.shapes.items():
            if name == field:
                break
            numbers = [axis for axis in shape if isinstance(axis, int)]
            out[tuple(axis for axis in shape if isinstance(axis, str))] += math.prod(numbers)
        return out


@register_model(Split)
class _SplitModel(models.StructModel):
    def __init__(self, manager: Any, split: Any) -> None:
        members = [("data", types.CPointer(split.dtype)), ("dims", types.UniTuple(types.intp, len(split.names)))]
        super().__init__(manager, split, members)


@infer_getattr
class _Fields(AttributeTemplate):
    key = Split

    def generic_resolve(self, split: Any, field: str) -> Any:
        return View(split.dtype, len(split.shapes[field])) if field in split.shapes else None


def _offset(builder: Any, split: Any, field: str, sizes: Callable[[str], Any]) -> Any:
    number = ir.IntType(64)
    products = [
        functools.reduce(builder.mul, [sizes(name) for name in names], number(count))
        for names, count in split.offset(field).items()
    ]
    return functools.reduce(builder.add, products, number(0))


@lower_getattr_generic(Split)
def _field(context: Any, builder: Any, split: Any, value: Any, field: str) -> Any:
    sizes = functools.cache(lambda name: builder.extract_value(value, [1, split.names.index(name)]))
    number, place = ir.IntType(64), _offset(builder, split, field, sizes)
    shape = [sizes(axis) if isinstance(axis, str) else number(axis) for axis in split.shapes[field]]
    data = builder.gep(builder.extract_value(value, 0), [place], inbounds=True)
    return _make(context, builder, View(split.dtype, len(shape)), data, shape)


def splitter(kind: Any, shapes: Sequence[Shape], names: Sequence[str]) -> Any:
    """A compiled function (memory, at, dims) that reads a row of numbers from a place on as a NamedTuple."""

    @intrinsic
    def split(typing: Any, memory: Any, at: Any, dims: Any) -> Any:
        out = Split(kind, memory.dtype, shapes, names)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value = ir.Constant(context.get_value_type(out), ir.Undefined)
            data = builder.gep(builder.extract_value(args[0], 0), [args[1]], inbounds=True)
            if config.BOUNDSCHECK:
                sizes = {name: builder.extract_value(args[2], i) for i, name in enumerate(names)}
                end = builder.add(args[1], _offset(builder, out, "", sizes.__getitem__))
                _check(builder, "<=", end, _total_size(builder, memory, args[0]))
            return builder.insert_value(builder.insert_value(value, data, 0), args[2], 1)

        return out(memory, types.intp, types.UniTuple(types.intp, len(names))), generate

    return split
