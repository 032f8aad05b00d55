"""The public names with their signatures, as text: `python -m tests.public_api` writes tests/public_api.txt.

Read from the source, like the test of docstrings, so that extras need not be installed.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.test_docstrings import constructor, family, is_property, resolve, source
from tests.test_site import declared_names

SNAPSHOT = Path(__file__).parent / "public_api.txt"


def format_signature(node: ast.FunctionDef, method: bool) -> str:
    """The parameters with their defaults, and what is returned."""
    arguments = ast.parse(ast.unparse(node)).body[0].args
    if method and arguments.args and arguments.args[0].arg in ("self", "cls"):
        del arguments.args[0]
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(arguments)}){returned}"


def describe_class(module: str, node: ast.ClassDef) -> list[str]:
    """How it is made, and its public methods and properties, those of its ancestors in this package included."""
    lines, seen = [f"({', '.join(constructor(module, node))})"], set()
    for _, one in family(module, node):
        for child in one.body:
            if not isinstance(child, ast.FunctionDef) or child.name in seen:
                continue
            seen.add(child.name)
            if child.name == "__init__":
                lines[0] = format_signature(child, method=True).removesuffix(" -> None")
            elif not child.name.startswith("_"):
                lines.append(f".{child.name}" + ("" if is_property(child) else format_signature(child, method=True)))
    return [lines[0], *sorted(set(lines[1:]))]


def describe(name: str) -> list[str]:
    module, _, last = name.removeprefix("redescend.").rpartition(".")
    found = resolve(module, last)
    if found is None:
        return [name]
    home, node = found
    if isinstance(node, ast.ClassDef):
        first, *others = describe_class(home, node)
        return [name + first, *("    " + line for line in others)]
    return [name + format_signature(node, method=False)]


def describe_all() -> str:
    """The text of the snapshot."""
    source.cache_clear()
    return "".join(line + "\n" for name in sorted(declared_names()) for line in describe(name))


if __name__ == "__main__":
    SNAPSHOT.write_text(describe_all(), encoding="utf-8")
    print(f"Wrote {SNAPSHOT}.")
