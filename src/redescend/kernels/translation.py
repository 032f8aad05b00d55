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


@functools.cache
def _code_of(context: Any, function: Any, found: Any) -> Any:
    return context.get_function(function, found)


class Value(NamedTuple):
    """A value of compiled code, and its type."""

    kind: Any
    value: Any


class Known(NamedTuple):
    """What is known when a function is compiled: a constant, a function or a module."""

    value: Any


class _AgainError(Exception):
    """A variable or the result needs another type."""


class Variable(NamedTuple):
    """A variable: its value, or the place on the stack where that is."""

    kind: Any
    value: Any


class Names:
    """Which variable each name of a function is, by the identity of its node; other names are global.

    Every assignment begins a new variable, unless the variable is of a block around it: that one is `changing`, and has
    a place on the stack. So has one that is read after the block in which it was assigned.
    """

    def __init__(self, tree: ast.FunctionDef) -> None:
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        self._assigned, self._lasting = {node.id for node in nodes}, set[str]()
        while True:
            self.variables, self.changing = dict[int, int](), set[int]()
            self._blocks: list[dict[str, int]] = [{}]
            self._count = 0
            try:
                for node in (*tree.args.args, *tree.body):
                    self._visit(node)
                return
            except _AgainError:
                continue

    def _visit(self, node: Any) -> None:
        if isinstance(node, ast.arg):
            self.variables[id(node)] = self._new(node.arg, self._blocks[0])
        elif isinstance(node, ast.Name):
            self._visit_name(node)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self._load(node, node.target.id)
            for each in (node.value, *targets):
                self._visit(each)
        elif isinstance(node, ast.If | ast.While):
            self._visit(node.test)
            self._visit_block(node.body)
            self._visit_block(node.orelse)
        elif isinstance(node, ast.For):
            self._visit(node.iter)
            self._visit_block([node.target, *node.body])
        else:
            for each in ast.iter_child_nodes(node):
                self._visit(each)

    def _visit_block(self, nodes: Sequence[ast.AST]) -> None:
        self._blocks.append({})
        for node in nodes:
            self._visit(node)
        self._blocks.pop()

    def _new(self, name: str, block: dict[str, int]) -> int:
        self._count += 1
        block[name] = self._count
        return self._count

    def _load(self, node: ast.AST, name: str) -> None:
        for block in reversed(self._blocks):
            if name in block:
                self.variables[id(node)] = block[name]
                return
        if name in self._assigned:
            self._lasting.add(name)
            raise _AgainError

    def _visit_name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            return self._load(node, node.id)
        around = self._blocks[:1] if node.id in self._lasting else self._blocks[:-1]
        found = next((block[node.id] for block in reversed(around) if node.id in block), None)
        if found is None:
            found = self._new(node.id, self._blocks[0 if node.id in self._lasting else -1])
        elif node.id not in self._lasting and node.id in self._blocks[-1]:
            found = self._new(node.id, self._blocks[-1])
        else:
            self.changing.add(found)
        if node.id in self._lasting:
            self.changing.add(found)
        self.variables[id(node)] = found
        return None


class Loop(NamedTuple):
    """Where `continue` and `break` go to."""

    again: Any
    after: Any


@functools.cache
def _functions(file: str) -> dict[int, Any]:
    """The functions of a file by their first lines."""
    tree = ast.parse("".join(linecache.getlines(file)))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {min([node.lineno, *(each.lineno for each in node.decorator_list)]): node for node in found}


_names = functools.cache(Names)


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
        self._names, self._wider = _names(self._tree), dict[int, Any]()
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
        self._variables: dict[int, Variable] = {}
        self._reached, self._loops, self._returned = set[Any](), list[Loop](), list[Any]()
        for argument, kind, value in zip(self._tree.args.args, self._kinds, arguments, strict=True):
            self._store(argument, Value(kind, value))
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
            self._assign(node.target, self._operate(node.op, self._load(node), node.value))

    def _assign(self, target: Any, value: Value | Known) -> None:
        if isinstance(target, ast.Name):
            self._store(target, self._value(value))
        elif isinstance(target, ast.Tuple):
            whole = self._value(value)
            for i, (item, kind) in enumerate(zip(target.elts, whole.kind, strict=True)):
                self._assign(item, Value(kind, self._builder.extract_value(whole.value, i)))
        else:
            self._call(operator.setitem, self._read(target.value), self._read(target.slice), value)

    def _store(self, node: Any, given: Value) -> None:
        name = self._names.variables[id(node)]
        if name not in self._names.changing:
            self._variables[name] = Variable(given.kind, given.value)
            return
        if name not in self._variables:
            kind = self._wider.get(name, given.kind)
            self._variables[name] = Variable(kind, self._place(kind))
        found = self._variables[name]
        kind = self._unify(found.kind, given.kind)
        if kind != found.kind:
            self._wider[name] = kind
            raise _AgainError
        self._builder.store(self._cast(given, kind), found.value)

    def _load(self, node: Any) -> Value:
        name = self._names.variables[id(node)]
        found = self._variables[name]
        return Value(found.kind, self._builder.load(found.value) if name in self._names.changing else found.value)

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
        for block, body in ((yes, node.body), (no, node.orelse)):
            self._enter(block)
            self._run(body)
            self._go(after)
        self._continue_in(after)

    def _run_while(self, node: ast.While) -> None:
        loop, body = Loop(self._block(), self._block()), self._block()
        self._go(loop.again)
        self._enter(loop.again)
        if isinstance(node.test, ast.Constant) and node.test.value:
            self._builder.branch(body)
        else:
            self._branch(node.test, body, loop.after)
            self._reached.add(loop.after)
        self._enter(body)
        self._repeat(node, loop)

    def _run_for(self, node: ast.For) -> None:
        """Emit a loop over a `range` as a counter and what is left to count."""
        builder, number = self._builder, self._context.get_value_type(types.intp)
        if not (isinstance(node.iter, ast.Call) and self._read(node.iter.func) == Known(range)):
            raise self._unsupported(node)
        given = [self._cast(self._value(self._read(argument)), types.intp) for argument in node.iter.args]
        first, last, step = [*([number(0)] if len(given) == 1 else []), *given, number(1)][:3]
        at, left = self._place(types.intp), self._place(types.intp)
        builder.store(first, at)
        many, none = builder.sub(last, first), number(0)
        ahead = some = builder.icmp_signed(">", many, none)
        if len(given) == 3:
            some = builder.icmp_signed("==", ahead, builder.icmp_signed(">", step, none))
            # Where the step is 0, and Python would raise, there is nothing to count.
            some = builder.and_(some, builder.icmp_signed("!=", step, none))
        with builder.if_else(some) as (then, orelse):
            with then:
                if len(given) == 3:
                    rest = builder.srem(many, step)
                    uneven = builder.icmp_signed(">", builder.select(ahead, rest, builder.neg(rest)), none)
                    many = builder.add(builder.sdiv(many, step), builder.select(uneven, number(1), none))
                builder.store(many, left)
            with orelse:
                builder.store(none, left)
        loop, body = Loop(self._block(), self._block()), self._block()
        self._go(loop.again)
        self._enter(loop.again)
        here, more = builder.load(at), builder.load(left)
        builder.cbranch(builder.icmp_signed(">", more, number(0)), body, loop.after)
        self._reached.add(loop.after)
        self._enter(body)
        builder.store(builder.add(here, step), at)
        builder.store(builder.sub(more, number(1), flags=["nsw"]), left)
        self._assign(node.target, Value(types.intp, here))
        self._repeat(node, loop)

    def _repeat(self, node: Any, loop: Loop) -> None:
        if node.orelse:
            raise self._unsupported(node)
        self._loops.append(loop)
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
        if id(node) in self._names.variables:
            return self._load(node)
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
                self._enter(block)
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
        self._enter(done)
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
            self._enter(block)
            value = self._value(node if isinstance(node, Known) else self._read(node))
            given.append((value, self._builder.block))
        kind, values = self._unify(given[0][0].kind, given[1][0].kind), []
        for value, block in given:
            self._builder.position_at_end(block)
            values.append((self._cast(value, kind), block))
            self._builder.branch(after)
        self._enter(after)
        return Value(kind, self._join(values))

    def _branch(self, node: Any, yes: Any, no: Any) -> None:
        """Go to one of two blocks."""
        if isinstance(node, ast.BoolOp):
            for operand in node.values[:-1]:
                more = self._block()
                self._branch(operand, *((more, no) if isinstance(node.op, ast.And) else (yes, more)))
                self._enter(more)
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
        arguments = [self._cast(value, kind) for value, kind in zip(values, found.args, strict=False)]
        for kind in found.args[len(values) :]:
            arguments.append(self._context.get_constant_generic(self._builder, kind, kind.value))
        return Value(found.return_type, _code_of(self._context, callee, found)(self._builder, arguments))

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
