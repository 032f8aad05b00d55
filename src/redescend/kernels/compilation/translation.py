"""How kernels and their parts are translated: one walk over the tree of a function types and emits it.

Kernels are written in a small part of Python: numbers, views and tuples; `if`, `while` and `for` over a `range`; calls
of functions that Numba knows. Numba itself would go by way of byte code, single assignments and constraints on types,
which takes five times as long.

A variable on the stack has one type. If a later assignment needs a wider one, the walk begins again with that, as it
does if the type of the result was not the guessed one. References to arrays are not counted, and nothing is raised.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types

from redescend.kernels.compilation.expressions import Expressions, Known, Value, Variable

GUESSES = {"float": types.float64, "int": types.intp, "bool": types.boolean}


class Loop(NamedTuple):
    """Where `continue` and `break` go to."""

    again: Any
    after: Any


class _AgainError(Exception):
    """A variable or the result needs another type."""


def _guess(annotation: Any) -> Any:
    """The type of a result from its annotation; whether it is right is seen later."""
    if isinstance(annotation, ast.Name):
        return GUESSES.get(annotation.id)
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        items = [_guess(item) for item in annotation.slice.elts]
        return None if None in items else types.Tuple(items)
    return types.none


class Translation(Expressions):
    """A function that is translated for arguments of some types."""

    def __init__(self, function: FunctionType, kinds: Sequence[Any], context: Any) -> None:
        super().__init__(function, kinds, context)
        self._wider: dict[int, Any] = {}
        self.result = _guess(self._tree.returns) or types.none

    def emit(self, declare: Callable[[Any], Any]) -> Any:
        """Emit the function, which `declare` makes for the type of a result; returns its module."""
        while True:
            function = declare(self.result)
            try:
                returned = self._emit_function(function)
            except _AgainError:
                continue
            if returned == self.result:
                return function.module
            self.result = returned

    def _emit_function(self, function: Any) -> Any:
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
        self._emit_statements(self._tree.body)
        if not self._builder.block.is_terminated:
            self._return(Value(types.none, context.get_dummy_value()))
        return functools.reduce(self._unify, self._returned)

    def _emit_statements(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._builder.block.is_terminated:
                return
            try:
                translate = getattr(self, f"_emit_{type(statement).__name__.lower()}")
            except AttributeError:
                raise self._unsupported(statement) from None
            translate(statement)

    def _emit_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._read(node.value)

    def _emit_pass(self, node: ast.Pass) -> None:
        pass

    def _emit_assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Tuple) and all(isinstance(target, ast.Tuple) for target in node.targets):
            values = [self._read(item) for item in node.value.elts]
            for target in node.targets:
                for item, value in zip(target.elts, values, strict=True):  # type: ignore[attr-defined]
                    self._assign(item, value)
        else:
            value = self._read(node.value)
            for target in node.targets:
                self._assign(target, value)

    def _emit_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self._read(node.value))

    def _emit_augassign(self, node: ast.AugAssign) -> None:
        change = self._operator(node, node.op)
        if isinstance(node.target, ast.Subscript):
            array, index = self._read(node.target.value), self._read(node.target.slice)
            value = self._call(change, self._call(operator.getitem, array, index), self._read(node.value))
            self._call(operator.setitem, array, index, value)
        elif isinstance(node.target, ast.Name):
            self._assign(node.target, self._call(change, self._load(node), self._read(node.value)))
        else:
            raise self._unsupported(node)

    def _assign(self, target: Any, value: Value | Known) -> None:
        if isinstance(target, ast.Name):
            self._store(target, self._value(value))
        elif isinstance(target, ast.Tuple):
            whole = self._value(value)
            for i, (item, kind) in enumerate(zip(target.elts, whole.kind, strict=True)):
                self._assign(item, Value(kind, self._builder.extract_value(whole.value, i)))
        elif isinstance(target, ast.Subscript):
            self._call(operator.setitem, self._read(target.value), self._read(target.slice), value)
        else:
            raise self._unsupported(target)

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

    def _emit_return(self, node: ast.Return) -> None:
        self._return(self._value(self._read(node.value) if node.value is not None else Known(None)))

    def _return(self, given: Value) -> None:
        self._returned.append(given.kind)
        if self._typing.can_convert(given.kind, self.result) is None:
            self._builder.unreachable()
        else:
            value = self._context.get_return_value(self._builder, self.result, self._cast(given, self.result))
            self._context.call_conv.return_value(self._builder, value)

    def _emit_if(self, node: ast.If) -> None:
        yes, no, after = self._block(), self._block(), self._block()
        self._branch(node.test, yes, no)
        for block, body in ((yes, node.body), (no, node.orelse)):
            self._enter(block)
            self._emit_statements(body)
            self._go(after)
        self._continue_in(after)

    def _emit_while(self, node: ast.While) -> None:
        loop, test, body = Loop(self._block(), self._block()), self._block(), self._block()
        self._go(test)
        self._enter(test)
        if isinstance(node.test, ast.Constant) and node.test.value:
            self._builder.branch(body)
        else:
            self._branch(node.test, body, loop.after)
            self._reached.add(loop.after)
        self._enter(body)
        self._repeat(node, loop, test)

    def _emit_for(self, node: ast.For) -> None:
        """Emit a loop over a `range` as a counter and what is left to count."""
        builder, number = self._builder, self._context.get_value_type(types.intp)
        if not (isinstance(node.iter, ast.Call) and self._read(node.iter.func) == Known(range)):
            raise self._unsupported(node)
        ends = [self._value(self._read(argument)) for argument in node.iter.args]
        whole = all(isinstance(end.kind, types.Integer | types.Boolean) for end in ends)
        if not whole or not 1 <= len(ends) <= 3 or node.iter.keywords:
            raise self._unsupported(node.iter)
        given = [self._cast(end, types.intp) for end in ends]
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
        loop, test, body = Loop(self._block(), self._block()), self._block(), self._block()
        self._go(test)
        self._enter(test)
        here, more = builder.load(at), builder.load(left)
        builder.cbranch(builder.icmp_signed(">", more, number(0)), body, loop.after)
        self._reached.add(loop.after)
        self._enter(body)
        builder.store(builder.add(here, step), at)
        builder.store(builder.sub(more, number(1), flags=["nsw"]), left)
        self._assign(node.target, Value(types.intp, here))
        self._repeat(node, loop, test)

    def _repeat(self, node: Any, loop: Loop, test: Any) -> None:
        if node.orelse:
            raise self._unsupported(node)
        self._loops.append(loop)
        self._emit_statements(node.body)
        self._loops.pop()
        self._go(loop.again)
        self._continue_in(loop.again)
        if not self._builder.block.is_terminated:
            self._builder.branch(test).set_metadata("llvm.loop", self._describe_loop())
        self._continue_in(loop.after)

    def _describe_loop(self) -> Any:
        """What LLVM is told of a loop: not to unroll it if the number of its rounds is not known.

        LLVM would take a fifth longer, and the rounds of self-tuning models and of trees would be no faster.
        """
        module = self._builder.module
        option = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.runtime.disable")])
        loop = ir.MDValue(module, [option], name=str(len(module.metadata)))
        loop.operands = (loop, option)  # a loop is known by metadata that begin with themselves
        return loop

    def _emit_break(self, node: ast.Break) -> None:
        self._go(self._loops[-1].after)

    def _emit_continue(self, node: ast.Continue) -> None:
        self._go(self._loops[-1].again)
