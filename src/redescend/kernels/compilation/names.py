"""Which variable each name of a function is.

Every assignment begins a new variable, unless the name is already a variable of a block around it: that one changes,
and has a place on the stack. So has a variable that is read outside of the block in which it was assigned. As in
Python, a name that is assigned anywhere in a function is never a global one.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from numba.core.errors import UnsupportedError

UNASSIGNED = 0
"""The variable of a name that is read before its first assignment; the others are numbered from 1."""


class Names:
    """The variables of a function, as numbers, by the identity of the nodes of its tree; other names are global."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        stored = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        self._assigned, self._lasting = {node.id for node in stored}, set[str]()
        while not self._visit_all((*tree.args.args, *tree.body)):
            pass

    def _visit_all(self, nodes: Sequence[ast.AST]) -> bool:
        """Visit all nodes; returns False if a variable is found to outlast its block."""
        self.variables, self.changing = dict[int, int](), set[int]()
        self._blocks: list[dict[str, int]] = [{}]
        self._count, outlasting = 0, len(self._lasting)
        for node in nodes:
            self._visit(node)
        return len(self._lasting) == outlasting

    def _visit(self, node: Any) -> None:
        if isinstance(node, ast.arg):
            self._store(node, node.arg)
        elif isinstance(node, ast.Name):
            (self._store if isinstance(node.ctx, ast.Store) else self._load)(node, node.id)
        elif isinstance(node, ast.AnnAssign) and node.value is None:
            pass  # the name is declared, not assigned
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self._load(node, node.target.id)
            for each in (node.value, *(node.targets if isinstance(node, ast.Assign) else [node.target])):
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

    def _load(self, node: ast.AST, name: str) -> None:
        for block in reversed(self._blocks):
            if name in block:
                self.variables[id(node)] = block[name]
                return
        if name in self._assigned:
            self._lasting.add(name)
            self.variables[id(node)] = UNASSIGNED

    def _store(self, node: ast.AST, name: str) -> None:
        lasting = name in self._lasting
        around = self._blocks[:1] if lasting else self._blocks[:-1]
        found = next((block[name] for block in reversed(around) if name in block), None)
        if lasting or found is not None:
            self.changing.add(found or self._count + 1)
        if found is None:
            self._count += 1
            found = self._blocks[0 if lasting else -1][name] = self._count
        self.variables[id(node)] = found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


@functools.cache
def _read_file(file: str) -> tuple[set[CodeType], dict[int, ast.FunctionDef]]:
    """The code of all functions of a file, and their trees by their first lines."""
    tree = ast.parse("".join(linecache.getlines(file)))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    first = {min([node.lineno, *(each.lineno for each in node.decorator_list)]): node for node in nodes}
    return set(_codes(compile(tree, file, "exec", dont_inherit=True))), first


@functools.cache
def read_function(function: FunctionType) -> tuple[ast.FunctionDef, Names]:
    """The tree of a function, and its names."""
    code = function.__code__
    codes, trees = _read_file(code.co_filename)
    if code not in codes:
        raise UnsupportedError(f"{code.co_filename} is not what {function.__qualname__} was imported from. Restart.")
    tree = trees[code.co_firstlineno]
    return tree, Names(tree)
