"""Expressions of kernels and their parts, each of which is typed and translated at once.

Operators and functions have the types and the code that Numba gives them.
"""

from __future__ import annotations

import ast
import builtins
import functools
import operator
from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

from llvmlite import ir
from numba import config, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError, UnsupportedError

from redescend.kernels.compilation.libraries import PartLibrary
from redescend.kernels.compilation.names import read_function

# Numba asks all rules of an operator, which are many, at every occurrence: equal calls and attributes are typed once.


@functools.cache
def type_of_call(context: Any, function: Any, args: Any) -> Any:
    return context.resolve_function_type(function, args, {})


@functools.cache
def type_of_attribute(context: Any, kind: Any, name: str) -> Any:
    return context.resolve_getattr(kind, name)


@functools.cache
def type_of(context: Any, function: Any) -> Any:
    return context.resolve_value_type(function)


@functools.cache
def code_of(context: Any, function: Any, found: Any) -> Any:
    return context.get_function(function, found)


NODES = (
    "Add Sub Mult Div FloorDiv Mod Pow LShift RShift BitAnd BitOr BitXor Lt LtE Gt GtE Eq NotEq USub UAdd Not Invert"
)
NAMES = "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor lt le gt ge eq ne neg pos not_ invert"
OPERATORS = {
    getattr(ast, node): getattr(operator, name) for node, name in zip(NODES.split(), NAMES.split(), strict=True)
}
LARGER = {max: operator.gt, min: operator.lt}


class Value(NamedTuple):
    """A value of compiled code, and its type."""

    kind: Any
    value: Any


class Known(NamedTuple):
    """What is known when a function is compiled: a constant, a function or a module."""

    value: Any


class Variable(NamedTuple):
    """A variable: its value, or the place on the stack where that is."""

    kind: Any
    value: Any


class Expressions:
    """A function that is translated for arguments of some types: what its expressions need."""

    _builder: Any
    _reached: set[Any]
    _variables: dict[int, Variable]

    def __init__(self, function: FunctionType, kinds: Sequence[Any], context: Any) -> None:
        code = function.__code__
        self._file, (self._tree, self._names) = code.co_filename, read_function(function)
        self._kinds, self._context, self._typing = kinds, context, context.typing_context
        closure = function.__closure__ or ()
        closed = {name: cell.cell_contents for name, cell in zip(code.co_freevars, closure, strict=True)}
        self._known = (closed, function.__globals__, vars(builtins))

    def _unsupported(self, node: Any) -> Exception:
        if isinstance(node, ast.Raise):
            return UnsupportedError("Kernels and their parts raise no exceptions.")
        return UnsupportedError(
            f"This is no part of kernels: {ast.unparse(node)!r} ({self._file}, line {node.lineno})."
        )

    def _block(self) -> Any:
        """A block, which is put in its place when it is entered."""
        return ir.Block(self._builder.function)

    def _enter(self, block: Any) -> None:
        self._builder.function.blocks.append(block)
        self._builder.position_at_end(block)

    def _go(self, block: Any) -> None:
        """Go to a block, unless something else was done last."""
        if not self._builder.block.is_terminated:
            self._builder.branch(block)
            self._reached.add(block)

    def _continue_in(self, block: Any) -> None:
        self._enter(block)
        if block not in self._reached:
            self._builder.unreachable()

    def _load(self, node: Any) -> Value:
        name = self._names.variables[id(node)]
        found = self._variables[name]
        return Value(found.kind, self._builder.load(found.value) if name in self._names.changing else found.value)

    def _place(self, kind: Any) -> Any:
        with self._builder.goto_entry_block():
            return self._builder.alloca(self._context.get_value_type(kind))

    def _read(self, node: Any) -> Any:
        """What an expression is: a value, or something known."""
        if isinstance(node, ast.Constant):
            return Known(node.value)
        try:
            translate = getattr(self, f"_read_{type(node).__name__.lower()}")
        except AttributeError:
            raise self._unsupported(node) from None
        return translate(node)

    def _value(self, given: Any) -> Value:
        """A value; what is known becomes a constant."""
        if isinstance(given, Value):
            return given
        kind = self._typing.resolve_value_type(given.value)
        return Value(kind, self._context.get_constant_generic(self._builder, kind, given.value))

    def _unify(self, kind: Any, other: Any) -> Any:
        found = kind if kind == other else self._typing.unify_pairs(kind, other)
        if found is None:
            raise TypingError(f"No variable and no result is both {kind} and {other}: {self._file}.")
        return found

    def _cast(self, given: Value, kind: Any) -> Any:
        return self._context.cast(self._builder, given.value, given.kind, kind)

    def _read_name(self, node: ast.Name) -> Any:
        if id(node) in self._names.variables:
            return self._load(node)
        for names in self._known:
            if node.id in names:
                return Known(names[node.id])
        raise TypingError(f"'{node.id}' is not known: {self._file}, line {node.lineno}.")

    def _read_attribute(self, node: ast.Attribute) -> Any:
        owner = self._read(node.value)
        if isinstance(owner, Known):
            return Known(getattr(owner.value, node.attr))
        kind = type_of_attribute(self._typing, owner.kind, node.attr)
        if kind is None:
            raise TypingError(f"{owner.kind} has no attribute '{node.attr}': {self._file}, line {node.lineno}.")
        found = self._context.get_getattr(owner.kind, node.attr)
        return Value(kind, found(self._context, self._builder, owner.kind, owner.value, node.attr))

    def _read_tuple(self, node: ast.Tuple) -> Value:
        items = [self._value(self._read(item)) for item in node.elts]
        kind = types.Tuple([item.kind for item in items])
        return Value(kind, self._context.make_tuple(self._builder, kind, [item.value for item in items]))

    def _read_slice(self, node: ast.Slice) -> Value:
        ends = (node.lower, node.upper, node.step)
        given = [Known(None) if end is None else self._read(end) for end in (ends if node.step else ends[:2])]
        return self._call(slice, *given)

    def _read_subscript(self, node: ast.Subscript) -> Any:
        owner, index = self._read(node.value), self._read(node.slice)
        if isinstance(index, Known) and isinstance(owner, Value) and isinstance(owner.kind, types.BaseTuple):
            place = range(len(owner.kind))[index.value]
            return Value(owner.kind[place], self._builder.extract_value(owner.value, place))
        return self._call(operator.getitem, owner, index)

    def _read_unaryop(self, node: ast.UnaryOp) -> Any:
        given = self._read(node.operand)
        if isinstance(given, Known) and isinstance(node.op, ast.USub):
            return Known(-given.value)
        return self._call(OPERATORS[type(node.op)], given)

    def _read_binop(self, node: ast.BinOp) -> Any:
        left, right = self._read(node.left), self._read(node.right)
        if isinstance(node.op, ast.Pow) and isinstance(right, Known):  # Numba would compile a loop
            if isinstance(left, Known):
                return Known(left.value**right.value)
            if right.value == 2:
                return self._call(operator.mul, left, left)
        return self._call(self._operator(node, node.op), left, right)

    def _operator(self, node: ast.AST, op: ast.AST) -> Any:
        """The function of an operator in `node`."""
        if type(op) not in OPERATORS:
            raise self._unsupported(node)
        return OPERATORS[type(op)]

    def _read_compare(self, node: ast.Compare) -> Value:
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            return self._contains(node)
        left, done, results = self._value(self._read(node.left)), self._block(), list[tuple[Any, Any]]()
        for op, other in zip(node.ops, node.comparators, strict=True):
            if results:
                more = self._block()
                self._builder.cbranch(results[-1][0], more, done)
                self._enter(more)
            right = self._value(self._read(other))
            found = self._call(self._operator(node, op), left, right)
            results.append((found.value, self._builder.block))
            left = right
        if len(results) == 1:
            return found
        self._go(done)
        self._enter(done)
        return Value(types.boolean, self._join(results))

    def _contains(self, node: ast.Compare) -> Value:
        """Whether a value is in a tuple that is written out."""
        if len(node.ops) > 1 or not isinstance(node.comparators[0], ast.Tuple):
            raise self._unsupported(node)
        value, found = self._value(self._read(node.left)), ir.Constant(ir.IntType(1), 0)
        for item in node.comparators[0].elts:
            found = self._builder.or_(found, self._call(operator.eq, value, self._read(item)).value)
        return Value(types.boolean, found if isinstance(node.ops[0], ast.In) else self._builder.not_(found))

    def _join(self, values: Any) -> Any:
        """A value that depends on the block that came before; `values` are pairs of a value and its block."""
        found = self._builder.phi(values[0][0].type)
        for value, block in values:
            found.add_incoming(value, block)
        return found

    def _read_boolop(self, node: ast.BoolOp) -> Value:
        return self._read_ifexp(ast.IfExp(node, ast.Constant(True), ast.Constant(False)), logical=True)

    def _read_ifexp(self, node: ast.IfExp, logical: bool = False) -> Value:
        yes, no, after = self._block(), self._block(), self._block()
        self._branch(node.test, yes, no, logical)
        given = []
        for block, each in ((yes, node.body), (no, node.orelse)):
            self._enter(block)
            given.append((self._value(self._read(each)), self._builder.block))
        kind, values = self._unify(given[0][0].kind, given[1][0].kind), []
        for value, block in given:
            self._builder.position_at_end(block)
            values.append((self._cast(value, kind), block))
            self._builder.branch(after)
        self._enter(after)
        return Value(kind, self._join(values))

    def _branch(self, node: Any, yes: Any, no: Any, logical: bool = False) -> None:
        """Go to one of two blocks; `logical` if only booleans may decide."""
        if isinstance(node, ast.BoolOp):
            for operand in node.values[:-1]:
                more = self._block()
                self._branch(operand, *((more, no) if isinstance(node.op, ast.And) else (yes, more)), logical)
                self._enter(more)
            self._branch(node.values[-1], yes, no, logical)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._branch(node.operand, no, yes)
        else:
            value = self._value(self._read(node))
            if value.kind != types.boolean:
                if logical:  # `a and b` is one of the two
                    raise self._unsupported(node)
                value = self._call(bool, value)
            self._builder.cbranch(value.value, yes, no)

    def _read_call(self, node: ast.Call) -> Any:
        function = self._read(node.func)
        if node.keywords or not isinstance(function, Known):
            raise self._unsupported(node)
        return self._call(function.value, *(self._read(argument) for argument in node.args))

    def _call(self, function: Any, *given: Any) -> Value:
        values = [self._value(each) for each in given]
        kinds = tuple(value.kind for value in values)
        if function in LARGER and len(values) > 1:
            return functools.reduce(functools.partial(self._larger, LARGER[function]), values)
        if function is int and isinstance(kinds[0], types.Integer | types.Boolean | types.Float):
            kind = kinds[0] if isinstance(kinds[0], types.Integer) else types.intp
            return Value(kind, self._cast(values[0], kind))
        if isinstance(function, Dispatcher):
            if kinds not in function.overloads:
                function.compile(kinds)
            part = function.overloads.get(kinds)
            if part is not None and isinstance(part.library, PartLibrary):
                return self._call_part(part, [value.value for value in values])
        callee = type_of(self._typing, function)
        found = type_of_call(self._typing, callee, kinds)
        if found is None:
            raise TypingError(f"{function} is not for {kinds}: {self._file}.")
        arguments = [self._cast(value, kind) for value, kind in zip(values, found.args, strict=False)]
        for kind in found.args[len(values) :]:
            arguments += [self._context.get_constant_generic(self._builder, kind, kind.value)]
        return Value(found.return_type, code_of(self._context, callee, found)(self._builder, arguments))

    def _larger(self, compare: Any, value: Value, other: Value) -> Value:
        """The value, unless the other one compares like this with it."""
        kind = self._unify(value.kind, other.kind)
        one, two = self._cast(value, kind), self._cast(other, kind)
        test = self._call(compare, Value(kind, two), Value(kind, one)).value
        return Value(kind, self._builder.select(test, two, one))

    def _call_part(self, part: Any, values: list[Any]) -> Value:
        """Call a part, which raises nothing but an IndexError, if bounds are checked."""
        context, builder, signature = self._context, self._builder, part.signature
        context.add_linking_libs([part.library])
        callee = context.declare_function(builder.module, part.fndesc)
        with builder.goto_entry_block():
            result = builder.alloca(callee.args[0].type.pointee)
        packed = context.get_arg_packer(signature.args).as_arguments(builder, values)
        status = builder.call(callee, [result, builder.function.args[1], *packed])
        if config.BOUNDSCHECK:
            with builder.if_then(builder.icmp_signed("!=", status, status.type(0)), likely=False):
                builder.ret(status)
        kind = signature.return_type
        return Value(kind, context.get_returned_value(builder, kind, builder.load(result)))
