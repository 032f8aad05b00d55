"""How Numba types and translates kernels and their parts: like any function, but without what only others need.

Kernels and parts count no references, and parts raise no exceptions and are not debugged. Without the code for these, a
function has two thirds of the instructions.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from typing import Any

from numba import types
from numba.core import ir
from numba.core.compiler_machinery import register_pass
from numba.core.errors import UnsupportedError
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering, NopythonTypeInference
from numba.core.typing.context import Context


class _Memo(Context):
    """Numba's typing context, with its state, that types equal calls and attributes once.

    Numba asks all rules of an operator, which are many, at every occurrence, and several times.
    """

    @staticmethod
    @functools.cache
    def of(context: Any) -> Any:
        memo = object.__new__(_Memo)
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


@register_pass(mutates_CFG=True, analysis_only=False)
class Inference(NopythonTypeInference):
    """Type inference that remembers."""

    _name = "redescend_inference"

    def run_pass(self, state: Any) -> bool:
        state.typingctx = _Memo.of(state.typingctx)
        return super().run_pass(state)


class _Lower(Lower):
    """Variables that are assigned once are values; others have a place on the stack, which is not filled before."""

    parts: type

    def _find_singly_assigned_variable(self) -> None:
        blocks = self.func_ir.blocks.values()
        counts = Counter(inst.target.name for block in blocks for inst in block.find_insts(ir.Assign))
        self._singly_assigned_vars = {name for name, count in counts.items() if count == 1}
        self._blk_local_varmap: dict[str, Any] = {}

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        with self.builder.goto_entry_block():
            return self.builder.alloca(lltype, name=name)

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """Lower an assignment; functions are no values."""
        if isinstance(ty, types.Callable) and isinstance(inst.value, ir.Global | ir.FreeVar):
            return self.context.get_dummy_value()
        return super().lower_assign(ty, inst)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """Lower an operator; constants are values like others, unless they are exponents."""
        if op in (operator.pow, operator.ipow):
            return super().lower_binop(resty, expr, op)
        signature, operands = self.fndesc.calltypes[expr], []
        for operand, kind in zip((expr.lhs, expr.rhs), signature.args, strict=True):
            value = self.loadvar(operand.name)
            operands.append(self.context.cast(self.builder, value, self.typeof(operand.name), kind))
        context = _Memo.of(self.context.typing_context)
        function = context.resolve_value_type(op)
        found = context.resolve_function_type(function, signature.args, {})
        result = self.context.get_function(function, found)(self.builder, operands)
        return self.context.cast(self.builder, result, signature.return_type, resty)

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        """Call a part without looking for an exception afterwards; a `range` of steps of 1 is its two ends."""
        if signature.return_type == types.range_state64_type and len(expr.args) < 3:
            ends = [self.context.get_constant(types.intp, 0)] * (2 - len(expr.args))
            for argument, kind in zip(expr.args, signature.args, strict=True):
                value = self.loadvar(argument.name)
                ends.append(self.context.cast(self.builder, value, self.typeof(argument.name), kind))
            return tuple(ends)
        if isinstance(fnty, types.Dispatcher):
            part = fnty.dispatcher.get_compile_result(signature)
            if isinstance(part.library, self.parts):
                arguments = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
                return self._call_part(part, signature, arguments)
        return super()._lower_call_normal(fnty, expr, signature)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Lower a loop over `range` as a counter and what is left to count, and everything else like Numba."""
        builder = self.builder
        if expr.op == "getiter" and isinstance(ends := self.loadvar(expr.value.name), tuple):
            state = self.alloca_lltype("at", ends[0].type), self.alloca_lltype("left", ends[0].type)
            many, none = builder.sub(ends[1], ends[0]), ends[0].type(0)
            builder.store(ends[0], state[0])
            with builder.if_else(builder.icmp_signed(">", many, none)) as (some, nothing):
                with some:
                    builder.store(many, state[1])
                with nothing:
                    builder.store(none, state[1])
            return state
        if expr.op == "iternext" and isinstance(state := self.loadvar(expr.value.name), tuple):
            at, left = (builder.load(each) for each in state)
            more = builder.icmp_signed(">", left, left.type(0))
            with builder.if_then(more):
                builder.store(builder.add(at, at.type(1)), state[0])
                builder.store(builder.sub(left, left.type(1), flags=["nsw"]), state[1])
            return at, more
        if expr.op in ("pair_first", "pair_second") and isinstance(pair := self.loadvar(expr.value.name), tuple):
            return pair[expr.op == "pair_second"]
        return super().lower_expr(resty, expr)

    def _call_part(self, part: Any, signature: Any, arguments: Any) -> Any:
        context, builder = self.context, self.builder
        context.add_linking_libs([part.library])
        callee = context.declare_function(builder.module, part.fndesc)
        result = self.alloca_lltype("result", callee.args[0].type.pointee)
        packed = context.get_arg_packer(signature.args).as_arguments(builder, arguments)
        builder.call(callee, [result, builder.function.args[1], *packed])
        return context.get_returned_value(builder, signature.return_type, builder.load(result))

    def return_exception(self, *args: Any, **kws: Any) -> None:
        raise UnsupportedError("Kernels and their parts raise no exceptions.", loc=self.loc)


def lowering(parts: type) -> Any:
    """The pass that translates kernels and parts; the code of parts is in libraries of the class `parts`."""
    lower = type("Lower", (_Lower,), {"parts": parts})

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(NativeLowering):
        _name = "redescend_lowering"

        @property
        def lowering_class(self) -> Any:
            return lower

    return Lowering
