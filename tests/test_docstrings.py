"""Every public name documents its parameters, what it returns, and an example.

Functions and classes do so in sections. A method may do so in a sentence that names every parameter. An override may
leave it to its ancestor, and a class the parameters that its ancestor documents. A base class, with abstract methods or
a class variable that its subclasses set, needs no example.

Read from the source, so that modules whose dependencies are not installed are held to it as well.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import redescend

PACKAGE = Path(redescend.__file__).parent
MODULES = (
    *("", "losses", "transforms", "domains", "steps", "gates", "registry", "errors", "adversaries", "streams"),
    *("streams.real", "regret", "bounds", "invex", "sklearn", "river", "torch", "streaming", "sources", "client"),
    "exports.mlflow",
)
FORMULAS = ("transforms", "domains", "steps", "gates", "registry", "errors")
"""Modules of which users take classes; their functions are for kernels and other modules."""


class Source:
    """A module as text: its definitions, and where the names that it imports come from."""

    def __init__(self, module: str) -> None:
        base = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
        self.path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        self.module = module
        self.tree = ast.parse(self.path.read_text())
        self.defined = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        self.imported = {
            (name.asname or name.name): (node.module or "", name.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("redescend")
            for name in node.names
        }

    def public(self) -> list[str]:
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                return ast.literal_eval(node.value)
        kinds = ast.ClassDef if self.module in FORMULAS else ast.ClassDef | ast.FunctionDef
        return [name for name, node in self.defined.items() if isinstance(node, kinds) and not name.startswith("_")]


source = functools.cache(Source)


def resolve(module: str, name: str) -> tuple[str, ast.ClassDef | ast.FunctionDef] | None:
    """Where a name of this package is defined; None for a module, a constant or another package's name."""
    here = source(module)
    if name in here.defined:
        return module, here.defined[name]
    if name in here.imported:
        home, original = here.imported[name]
        inner = home.removeprefix("redescend").removeprefix(".")
        if PACKAGE.joinpath(*inner.split("."), original).is_dir() or (
            PACKAGE.joinpath(*inner.split("."), f"{original}.py").exists()
        ):
            return None
        return resolve(inner, original)
    return None


def family(module: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
    """The class and its ancestors in this package, nearest first."""
    yield module, node
    for base in node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        text = ast.unparse(name)
        found = resolve(module, text)
        if found is None and "." in text:
            inner, _, last = text.rpartition(".")
            home = source(module).imported.get(inner)
            found = resolve(f"{home[0]}.{home[1]}".removeprefix("redescend."), last) if home else None
        if found and isinstance(found[1], ast.ClassDef):
            yield from family(found[0], found[1])


def ancestors(module: str, node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0] for _, one in family(module, node) for base in one.bases}


def documented(doc: str, section: str) -> dict[str, str]:
    """The names of a section, each with its description."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", doc, re.DOTALL | re.MULTILINE)
    entries: dict[str, str] = {}
    names: list[str] = []
    for line in found[1].splitlines() if found else ():
        if line and not line[0].isspace():
            names = [name.strip().lstrip("*") for name in line.partition(":")[0].split(",")]
            entries |= dict.fromkeys(names, "")
        for name in names:
            entries[name] += line.strip() if not line or line[0].isspace() else ""
    return entries


def parameters(node: ast.FunctionDef) -> list[str]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    return [one.arg for one in every if one and one.arg not in ("self", "cls") and not one.arg.startswith("_")]


def constructor(module: str, node: ast.ClassDef) -> list[str]:
    """What the class is made with: the parameters of __init__, or the fields of a dataclass or NamedTuple."""
    line = list(family(module, node))
    for _, one in line:
        for child in one.body:
            if isinstance(child, ast.FunctionDef) and child.name == "__init__":
                return parameters(child)
        if any("dataclass" in ast.unparse(mark) for mark in one.decorator_list) or "NamedTuple" in map(
            ast.unparse, one.bases
        ):
            break
    fields = [child for _, one in reversed(line) for child in one.body if isinstance(child, ast.AnnAssign)]
    kept = [one for one in fields if "ClassVar" not in ast.unparse(one.annotation)]
    return list(dict.fromkeys(name for one in kept if not (name := ast.unparse(one.target)).startswith("_")))


def is_property(node: ast.FunctionDef) -> bool:
    return any(re.search(r"property$|setter$", ast.unparse(mark)) for mark in node.decorator_list)


def gaps_of_function(node: ast.FunctionDef, doc: str) -> list[str]:
    told = documented(doc, "Parameters")
    gaps = [f"parameter {name}" for name in parameters(node) if not told.get(name)]
    returned = ast.unparse(node.returns) if node.returns else "Any"
    if returned not in ("None", "NoReturn") and not re.search(r"^(Returns|Yields)\n-", doc, re.MULTILINE):
        gaps.append("what is returned")
    return gaps


def gaps_of_method(node: ast.FunctionDef, doc: str) -> list[str]:
    if not doc:
        return ["a docstring"]
    if is_property(node):
        return []
    text = doc.partition("Examples\n--")[0]
    said = {"what is returned"} | {
        f"parameter {name}" for name in parameters(node) if re.search(rf"(?<!\w){name}(?!\w)", text)
    }
    return [gap for gap in gaps_of_function(node, doc) if gap not in said]


def has_example(doc: str) -> bool:
    return bool(re.search(r"^Examples\n-", doc, re.MULTILINE))


def gaps_of_class(module: str, node: ast.ClassDef) -> list[str]:
    doc = words_of(node)
    gaps = [] if doc else ["a docstring"]
    lines = list(family(module, node))
    if not ({"Exception", "Protocol"} & {ast.unparse(base) for _, one in lines for base in one.bases}):
        told: dict[str, str] = {}
        for _, one in lines:
            told |= documented(words_of(one), "Parameters") | documented(words_of(one), "Attributes")
        gaps += [f"parameter {name}" for name in constructor(module, node) if not told.get(name)]
        abstract = any("abstractmethod" in ast.unparse(mark) for one in node.body for mark in marks(one)) or any(
            isinstance(one, ast.AnnAssign) and "ClassVar" in ast.unparse(one.annotation) and one.value is None
            for one in node.body
        )
        gaps += [] if abstract or has_example(doc) else ["an example"]
    methods: dict[str, list[tuple[ast.FunctionDef, str]]] = {}
    for _, one in lines:
        for child in one.body:
            if isinstance(child, ast.FunctionDef) and not child.name.startswith("_"):
                methods.setdefault(child.name, []).append((child, words_of(child)))
    for name, versions in methods.items():
        child, words = next((pair for pair in versions if pair[1]), versions[0])
        gaps += [f"{name}: {gap}" for gap in gaps_of_method(child, words)]
    return gaps


def words_of(node: ast.ClassDef | ast.FunctionDef) -> str:
    return inspect.cleandoc(ast.get_docstring(node) or "")


def marks(node: ast.stmt) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])


def public_names() -> dict[str, tuple[str, ast.ClassDef | ast.FunctionDef]]:
    names: dict[str, tuple[str, ast.ClassDef | ast.FunctionDef]] = {}
    for module in MODULES:
        for name in source(module).public():
            found = resolve(module, name)
            if found and found not in names.values():
                names[".".join(filter(None, ("redescend", module, name)))] = found
    return names


PUBLIC = public_names()


def gaps_of(name: str) -> list[str]:
    module, node = PUBLIC[name]
    if isinstance(node, ast.ClassDef):
        return gaps_of_class(module, node)
    doc = words_of(node)
    return gaps_of_function(node, doc) + ([] if has_example(doc) else ["an example"])


def test_public_names_are_found():
    assert {"redescend.Learn", "redescend.losses.Custom", "redescend.torch.robustify"} <= PUBLIC.keys()
    assert len(PUBLIC) > 100


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_is_documented(name):
    gaps = gaps_of(name)
    assert not gaps, f"The docstring of {name} lacks: {'; '.join(gaps)}."
