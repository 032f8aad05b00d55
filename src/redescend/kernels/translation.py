"""How kernels and their parts are translated: one walk over the syntax of a function types and emits it.

Kernels are written in a small part of Python: numbers, views and tuples; `if`, `while` and `for` over a `range`; calls
of functions that Numba knows. Their types and code are Numba's; what is left out is how Numba gets there, by way of
byte code, single assignments and constraints on types, which takes five times as long.

A variable has one type. If a later assignment needs a wider one, the walk begins again with that. A type that is
assigned outside of loops and branches begins a new variable of the same name. References to arrays are not counted, and
nothing is raised.
"""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import operator
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError, UnsupportedError
from numba.core.typing.context import Context

from redescend.kernels.libraries import PartLibrary

OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
LARGER = {max: operator.gt, min: operator.lt}
GUESSES = {"float": types.float64, "int": types.intp, "bool": types.boolean}


class Memo(Context):
    """Numba's typing context, with its state, that types equal calls and attributes once.

    Numba asks all rules of an operator, which are many, at every occurrence, and several times.
    """

    @staticmethod
    @functools.cache
    def of(context: Any) -> Any:
        memo = object.__new__(Memo)
        memo.__dict__ = context.__dict__
        return memo

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        if isinstance(function, types.Function) and not kws:
            return _type_call(self, function, tuple(args))
        return super().resolve_function_type(function, args, kws)

    def resolve_getattr(self, kind: Any, name: str) -> Any:
        return _type_attribute(self, kind, name)


@functools.cache
def _type_call(context: Any, function: Any, args: Any) -> Any:
    return Context.resolve_function_type(context, function, args, {})


@functools.cache
def _type_attribute(context: Any, kind: Any, name: str) -> Any:
    return Context.resolve_getattr(context, kind, name)


class Value(NamedTuple):
    """A value of compiled code, and its type."""

    kind: Any
    value: Any


class Known(NamedTuple):
    """What is known when a function is compiled: a constant, a function or a module."""

    value: Any


class Variable(NamedTuple):
    """A variable: a value, or the place on the stack where it is."""

    kind: Any
    value: Any
    stored: bool
    version: int


class Loop(NamedTuple):
    """Where `continue` and `break` go to."""

    again: Any
    after: Any


class _AgainError(Exception):
    """A variable or the result needs another type."""


@functools.cache
def _functions(file: str) -> dict[int, Any]:
    """The functions of a file by their first lines."""
    tree = ast.parse("".join(linecache.getlines(file)))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {min([node.lineno, *(each.lineno for each in node.decorator_list)]): node for node in found}


def _guess(annotation: Any) -> Any:
    """The type of a result from its annotation; whether it is right is seen later."""
    if isinstance(annotation, ast.Name):
        return GUESSES.get(annotation.id)
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        items = [_guess(item) for item in annotation.slice.elts]
        return None if None in items else types.Tuple(items)
    return types.none


class Translation:
    """A function that is translated for arguments of some types."""

    def __init__(self, function: FunctionType, kinds: Sequence[Any], context: Any) -> None:
        code = function.__code__
        self._file, self._tree = code.co_filename, _functions(code.co_filename)[code.co_firstlineno]
        self._kinds, self._context, self._typing = kinds, context, Memo.of(context.typing_context)
        closure = function.__closure__ or ()
        closed = {name: cell.cell_contents for name, cell in zip(code.co_freevars, closure, strict=True)}
        self._known = (closed, function.__globals__, vars(builtins))
        self._wider: dict[tuple[str, int], Any] = {}
        compound = [node for node in self._tree.body if isinstance(node, ast.If | ast.For | ast.While)]
        inner = [node for each in compound for node in ast.walk(each)]
        self._changing = {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        self.result = _guess(self._tree.returns) or types.none

    def emit(self, declare: Callable[[Any], Any]) -> Any:
        """Emit the function, which `declare` makes for the type of a result; returns its module."""
        while True:
            function = declare(self.result)
            try:
                returned = self._emit(function)
            except _AgainError:
                continue
            if returned == self.result:
                return function.module
            self.result = returned

    def _emit(self, function: Any) -> Any:
        context = self._context
        self._builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.call_helper = context.call_conv.init_call_helper(self._builder)
        arguments = context.call_conv.decode_arguments(self._builder, self._kinds, function)
        body = function.append_basic_block("body")
        self._builder.branch(body)
        self._builder.position_at_end(body)
        self._scope: dict[str, Variable] = {}
        self._reached = set[Any]()
        self._depth, self._loops, self._returned = 0, list[Loop](), list[Any]()
        for argument, kind, value in zip(self._tree.args.args, self._kinds, arguments, strict=True):
            self._store(argument.arg, Value(kind, value))
        self._run(self._tree.body)
        if not self._builder.block.is_terminated:
            self._return(Value(types.none, context.get_dummy_value()))
        return functools.reduce(self._unify, self._returned)

    # --- statements ---

    def _run(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._builder.block.is_terminated:
                return
            try:
                translate = getattr(self, f"_run_{type(statement).__name__.lower()}")
            except AttributeError:
                raise self._unsupported(statement) from None
            translate(statement)

    def _unsupported(self, node: Any) -> Exception:
        if isinstance(node, ast.Raise):
            return UnsupportedError("Kernels and their parts raise no exceptions.")
        return UnsupportedError(f"Kernels have no {type(node).__name__}: {self._file}, line {node.lineno}.")

    @contextmanager
    def _within(self) -> Any:
        """Code that may not run, or more than once."""
        self._depth += 1
        yield
        self._depth -= 1

    def _block(self) -> Any:
        return self._builder.append_basic_block()

    def _go(self, block: Any) -> None:
        """Go to a block, unless something else was done last."""
        if not self._builder.block.is_terminated:
            self._builder.branch(block)
            self._reached.add(block)

    def _continue_in(self, block: Any) -> None:
        self._builder.position_at_end(block)
        if block not in self._reached:
            self._builder.unreachable()

    def _run_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._read(node.value)

    def _run_pass(self, node: ast.Pass) -> None:
        pass

    def _run_assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Tuple) and all(isinstance(target, ast.Tuple) for target in node.targets):
            values = [self._read(item) for item in node.value.elts]
            for target in node.targets:
                for item, value in zip(target.elts, values, strict=True):  # type: ignore[attr-defined]
                    self._assign(item, value)
        else:
            value = self._read(node.value)
            for target in node.targets:
                self._assign(target, value)

    def _run_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self._read(node.value))

    def _run_augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            array, index = self._read(node.target.value), self._read(node.target.slice)
            value = self._operate(node.op, self._call(operator.getitem, array, index), node.value)
            self._call(operator.setitem, array, index, value)
        else:
            name = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)  # type: ignore[union-attr]
            self._assign(node.target, self._operate(node.op, self._read(name), node.value))

    def _assign(self, target: Any, value: Value | Known) -> None:
        if isinstance(target, ast.Name):
            self._store(target.id, self._value(value))
        elif isinstance(target, ast.Tuple):
            whole = self._value(value)
            for i, (item, kind) in enumerate(zip(target.elts, whole.kind, strict=True)):
                self._assign(item, Value(kind, self._builder.extract_value(whole.value, i)))
        else:
            self._call(operator.setitem, self._read(target.value), self._read(target.slice), value)

    def _variable(self, name: str, kind: Any) -> Variable:
        """The variable to which a value of this type is assigned."""
        found = self._scope.get(name)
        if found is None or (self._depth == 0 and found.kind != kind):
            version = found.version + 1 if found else 0
            kind, stored = self._wider.get((name, version), kind), name in self._changing
            found = self._scope[name] = Variable(kind, self._place(kind) if stored else None, stored, version)
        return found

    def _store(self, name: str, given: Value) -> None:
        found = self._variable(name, given.kind)
        kind = self._unify(found.kind, given.kind)
        if kind != found.kind:
            self._wider[name, found.version] = kind
            raise _AgainError
        value = self._cast(given, kind)
        if found.stored:
            self._builder.store(value, found.value)
        else:
            self._scope[name] = found._replace(value=value)

    def _place(self, kind: Any) -> Any:
        with self._builder.goto_entry_block():
            return self._builder.alloca(self._context.get_value_type(kind))

    def _run_return(self, node: ast.Return) -> None:
        self._return(self._value(self._read(node.value) if node.value is not None else Known(None)))

    def _return(self, given: Value) -> None:
        self._returned.append(given.kind)
        if self._typing.can_convert(given.kind, self.result) is None:
            self._builder.unreachable()
        else:
            value = self._context.get_return_value(self._builder, self.result, self._cast(given, self.result))
            self._context.call_conv.return_value(self._builder, value)

    def _run_if(self, node: ast.If) -> None:
        yes, no, after = self._block(), self._block(), self._block()
        self._branch(node.test, yes, no)
        with self._within():
            for block, body in ((yes, node.body), (no, node.orelse)):
                self._builder.position_at_end(block)
                self._run(body)
                self._go(after)
        self._continue_in(after)

    def _run_while(self, node: ast.While) -> None:
        loop, body = Loop(self._block(), self._block()), self._block()
        self._go(loop.again)
        self._builder.position_at_end(loop.again)
        if isinstance(node.test, ast.Constant) and node.test.value:
            self._builder.branch(body)
        else:
            self._branch(node.test, body, loop.after)
            self._reached.add(loop.after)
        self._builder.position_at_end(body)
        self._repeat(node, loop)

    def _run_for(self, node: ast.For) -> None:
        """Emit a loop over a `range` as a counter and what is left to count."""
        builder, number = self._builder, self._context.get_value_type(types.intp)
        if not (isinstance(node.iter, ast.Call) and self._read(node.iter.func) == Known(range)):
            raise self._unsupported(node)
        given = [self._read(argument) for argument in node.iter.args]
        step = given.pop().value if len(given) == 3 else 1
        if not (isinstance(step, int) and step != 0):
            raise self._unsupported(node)
        first, last = (self._cast(self._value(each), types.intp) for each in [Known(0), *given][-2:])
        many = builder.sub(last, first) if step > 0 else builder.sub(first, last)
        if abs(step) > 1:
            many = builder.sdiv(builder.add(many, number(abs(step) - 1)), number(abs(step)))
        at, left = self._place(types.intp), self._place(types.intp)
        builder.store(first, at)
        builder.store(builder.select(builder.icmp_signed(">", many, number(0)), many, number(0)), left)
        loop, body = Loop(self._block(), self._block()), self._block()
        self._variable(node.target.id, types.intp)  # type: ignore[attr-defined]
        self._go(loop.again)
        builder.position_at_end(loop.again)
        here, more = builder.load(at), builder.load(left)
        builder.cbranch(builder.icmp_signed(">", more, number(0)), body, loop.after)
        self._reached.add(loop.after)
        builder.position_at_end(body)
        builder.store(builder.add(here, number(step)), at)
        builder.store(builder.sub(more, number(1), flags=["nsw"]), left)
        with self._within():
            self._assign(node.target, Value(types.intp, here))
        self._repeat(node, loop)

    def _repeat(self, node: Any, loop: Loop) -> None:
        if node.orelse:
            raise self._unsupported(node)
        self._loops.append(loop)
        with self._within():
            self._run(node.body)
        self._loops.pop()
        self._go(loop.again)
        self._continue_in(loop.after)

    def _run_break(self, node: ast.Break) -> None:
        self._go(self._loops[-1].after)

    def _run_continue(self, node: ast.Continue) -> None:
        self._go(self._loops[-1].again)

    # --- expressions ---

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
        if found := self._scope.get(node.id):
            return Value(found.kind, self._builder.load(found.value) if found.stored else found.value)
        for names in self._known:
            if node.id in names:
                return Known(names[node.id])
        raise TypingError(f"'{node.id}' is not assigned before line {node.lineno} of {self._file}.")

    def _read_attribute(self, node: ast.Attribute) -> Any:
        owner = self._read(node.value)
        if isinstance(owner, Known):
            return Known(getattr(owner.value, node.attr))
        kind = self._typing.resolve_getattr(owner.kind, node.attr)
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
        if isinstance(index, Known) and isinstance(getattr(owner, "kind", None), types.BaseTuple):
            return Value(owner.kind[index.value], self._builder.extract_value(owner.value, index.value))
        return self._call(operator.getitem, owner, index)

    def _read_unaryop(self, node: ast.UnaryOp) -> Any:
        given = self._read(node.operand)
        if isinstance(given, Known) and isinstance(node.op, ast.USub):
            return Known(-given.value)
        return self._call(OPERATORS[type(node.op)], given)

    def _read_binop(self, node: ast.BinOp) -> Value:
        return self._operate(node.op, self._read(node.left), node.right)

    def _operate(self, op: ast.operator, left: Any, node: ast.expr) -> Value:
        return self._call(OPERATORS[type(op)], left, self._read(node))

    def _read_compare(self, node: ast.Compare) -> Value:
        left, results, done = self._value(self._read(node.left)), [], self._block() if len(node.ops) > 1 else None
        for op, other in zip(node.ops, node.comparators, strict=True):
            if results:
                block = self._block()
                self._builder.cbranch(results[-1][0], block, done)
                self._builder.position_at_end(block)
            if isinstance(op, ast.In | ast.NotIn):
                right, found = self._contains(left, other, isinstance(op, ast.In)), None
            else:
                right = self._value(self._read(other))
                found = self._call(OPERATORS[type(op)], left, right).value
            results.append((right.value if found is None else found, self._builder.block))
            left = right
        if done is None:
            return Value(types.boolean, results[0][0])
        self._go(done)
        self._builder.position_at_end(done)
        return Value(types.boolean, self._join(results))

    def _contains(self, value: Value, node: Any, wanted: bool) -> Value:
        found = ir.Constant(ir.IntType(1), 0)
        for item in node.elts:
            found = self._builder.or_(found, self._call(operator.eq, value, self._read(item)).value)
        return Value(types.boolean, found if wanted else self._builder.not_(found))

    def _join(self, values: Any) -> Any:
        """A value that depends on the block that came before; `values` are pairs of a value and its block."""
        found = self._builder.phi(values[0][0].type)
        for value, block in values:
            found.add_incoming(value, block)
        return found

    def _read_boolop(self, node: ast.BoolOp) -> Value:
        return self._either(node, Known(True), Known(False))

    def _read_ifexp(self, node: ast.IfExp) -> Value:
        return self._either(node.test, node.body, node.orelse)

    def _either(self, test: Any, *nodes: Any) -> Value:
        yes, no, after = self._block(), self._block(), self._block()
        self._branch(test, yes, no)
        given = []
        for block, node in zip((yes, no), nodes, strict=True):
            self._builder.position_at_end(block)
            value = self._value(node if isinstance(node, Known) else self._read(node))
            given.append((value, self._builder.block))
        kind, values = self._unify(given[0][0].kind, given[1][0].kind), []
        for value, block in given:
            self._builder.position_at_end(block)
            values.append((self._cast(value, kind), block))
            self._builder.branch(after)
        self._builder.position_at_end(after)
        return Value(kind, self._join(values))

    def _branch(self, node: Any, yes: Any, no: Any) -> None:
        """Go to one of two blocks."""
        if isinstance(node, ast.BoolOp):
            for operand in node.values[:-1]:
                more = self._block()
                self._branch(operand, *((more, no) if isinstance(node.op, ast.And) else (yes, more)))
                self._builder.position_at_end(more)
            self._branch(node.values[-1], yes, no)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._branch(node.operand, no, yes)
        else:
            value = self._value(self._read(node))
            if value.kind != types.boolean:
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
        if isinstance(function, Dispatcher):
            if kinds not in function.overloads:
                function.compile(kinds)
            part = function.overloads.get(kinds)
            if part is not None and isinstance(part.library, PartLibrary):
                return self._call_part(part, [value.value for value in values])
        callee = self._typing.resolve_value_type(function)
        found = self._typing.resolve_function_type(callee, kinds, {})
        if found is None:
            raise TypingError(f"{function} is not for {kinds}: {self._file}.")
        arguments = [self._cast(value, kind) for value, kind in zip(values, found.args, strict=True)]
        return Value(found.return_type, self._context.get_function(callee, found)(self._builder, arguments))

    def _larger(self, compare: Any, value: Value, other: Value) -> Value:
        """The value, unless the other one compares like this with it."""
        kind = self._unify(value.kind, other.kind)
        one, two = self._cast(value, kind), self._cast(other, kind)
        test = self._call(compare, Value(kind, two), Value(kind, one)).value
        return Value(kind, self._builder.select(test, two, one))

    def _call_part(self, part: Any, values: list[Any]) -> Value:
        """Call a part, which raises nothing."""
        context, builder, signature = self._context, self._builder, part.signature
        context.add_linking_libs([part.library])
        callee = context.declare_function(builder.module, part.fndesc)
        with builder.goto_entry_block():
            result = builder.alloca(callee.args[0].type.pointee)
        packed = context.get_arg_packer(signature.args).as_arguments(builder, values)
        builder.call(callee, [result, builder.function.args[1], *packed])
        kind = signature.return_type
        return Value(kind, context.get_returned_value(builder, kind, builder.load(result)))
