"""Whether every variable of a function is assigned, on every path, before it is read.

Python raises an error at run time; compiled code would read whatever is in memory. A loop may have no rounds, unless it
is `while True`, and each condition may be true or false, whatever was decided before. mypy's `possibly-undefined` does
not see a variable that only some ways out of an endless loop assign.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Names = frozenset[str]


def find_unassigned(tree: ast.FunctionDef) -> set[str]:
    """The variables of a function that may be read before they are assigned."""
    return _Paths(tree).unassigned


class _Paths:
    """Follows the paths through a function, with the names that are assigned on all of them."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        arguments = frozenset(argument.arg for argument in tree.args.args)
        self._all = arguments.union(*(_stored(statement) for statement in tree.body))
        self._breaks: list[Names] = []
        self.unassigned: set[str] = set()
        self._run(tree.body, arguments)

    def _run(self, statements: Iterable[ast.stmt], assigned: Names) -> Names:
        """What is assigned after some statements, given what was before; all names, if nothing is run after them."""
        for statement in statements:
            assigned = self._run_one(statement, assigned)
        return assigned

    def _run_one(self, node: ast.stmt, assigned: Names) -> Names:
        if isinstance(node, ast.If):
            self._read(node.test, assigned)
            return self._run(node.body, assigned) & self._run(node.orelse, assigned)
        if isinstance(node, ast.While | ast.For):
            return self._run_loop(node, assigned)
        if isinstance(node, ast.Break):
            self._breaks.append(assigned)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return):
            self._read(node.value, assigned)
        if isinstance(node, ast.AugAssign):
            self._read(node.target, assigned, changed=True)
        if isinstance(node, ast.Assign | ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value is not None):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._read(target, assigned)
                assigned |= _stored(target)
            return assigned
        # What other statements do is not followed: they are no part of kernels.
        return assigned if isinstance(node, ast.Expr | ast.AnnAssign | ast.Pass) else self._all

    def _run_loop(self, node: ast.While | ast.For, assigned: Names) -> Names:
        around, self._breaks = self._breaks, []
        if isinstance(node, ast.For):
            self._read(node.iter, assigned)
            self._run(node.body, assigned | _stored(node.target))
        else:
            self._read(node.test, assigned)
            self._run(node.body, assigned)
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value
        after = self._all.intersection(*self._breaks) if endless else assigned
        self._breaks = around
        return after

    def _read(self, node: ast.AST | None, assigned: Names, changed: bool = False) -> None:
        """Check the names that an expression reads, or a target, also the one that is changed."""
        for each in _find_names(node) if node is not None else ():
            if (changed or isinstance(each.ctx, ast.Load)) and each.id in self._all and each.id not in assigned:
                self.unassigned.add(each.id)


def _stored(node: ast.AST) -> Names:
    return frozenset(each.id for each in _find_names(node) if isinstance(each.ctx, ast.Store))


def _find_names(node: ast.AST) -> Iterator[ast.Name]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Name))
