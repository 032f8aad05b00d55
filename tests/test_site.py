"""The documentation has a page for every public name, and every page is in a menu. `make docs` builds and reads it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import redescend
from tests.guides import make_pages
from tests.test_docstrings import PUBLIC

DOCS = Path(__file__).parents[1] / "docs"


def listed_names() -> set[str]:
    """The names of the summaries of docs/api, each of which becomes a page."""
    names = set()
    for page in (DOCS / "api").glob("*.rst"):
        module = ""
        inside = False
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = found[1]
            if line and not line[0].isspace():
                inside = line == ".. autosummary::"
            elif inside and re.fullmatch(r"   [\w.]+", line):
                names.add(f"{module}.{line.strip()}")
    return names


def declared_names() -> set[str]:
    """What `__all__` and the docstrings' own test say is public; modules have pages of their own."""
    belief = ast.parse((DOCS.parent / "src/redescend/belief/__init__.py").read_text()).body
    (declared,) = (node for node in belief if isinstance(node, ast.Assign))
    modules = {path.stem for path in (DOCS.parent / "src/redescend").iterdir()}
    names = {f"redescend.{name}" for name in redescend.__all__ if name not in modules}
    return names | PUBLIC.keys() | {f"redescend.belief.{name}" for name in ast.literal_eval(declared.value)}


def test_every_public_name_has_a_page():
    listed, declared = listed_names(), declared_names()
    assert sorted(declared - listed) == [], "Add them to a page of docs/api."
    assert sorted(listed - declared) == [], "They are not public: remove them from docs/api."


GUIDES = [*sorted((DOCS / "guides").glob("*.md")), *(DOCS / f"{name}.md" for name in ("tour", "install", "asked"))]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_every_code_block_of_a_guide_is_run(page):
    """As many are collected as there are; blocks of text are what is printed, not what is typed."""
    blocks = re.findall(r"^ *```(\w+)\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    code = [language for language, _ in blocks if language != "text"]
    assert set(code) <= {"python", "sh"}
    typed = ("redescend ", "import ", "from ", "pip ", "curl ")
    assert [text for language, text in blocks if language == "text" and text.startswith(typed)] == []
    collected = [list(sybil.parse(page).examples()) for sybil in make_pages() if sybil.should_parse(page)]
    assert [len(examples) for examples in collected] == [len(code)]


def linked_pages(page: Path) -> set[Path]:
    """The pages of the menus of a page."""
    text = page.read_text(encoding="utf-8")
    menus = re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL)
    menus += re.findall(r"\.\. toctree::\n((?:\n|   .*\n)*)", text + "\n")
    lines = {line.strip() for menu in menus for line in menu.splitlines() if line.strip() and ":" not in line}
    names = {line.partition("<")[2].rstrip(">") or line for line in lines}
    found = {(page.parent / f"{name}{suffix}").resolve() for name in names for suffix in (".md", ".rst")}
    return {path for path in found if path.exists()}


def test_every_page_is_in_a_menu():
    start = DOCS / "index.md"
    known, new = {start}, {start}
    while new:
        new = {page for known_page in new for page in linked_pages(known_page)} - known
        known |= new
    made = {"gallery", "generated", "_build", "_templates"}
    pages = {
        path
        for suffix in ("md", "rst")
        for path in DOCS.rglob(f"*.{suffix}")
        if not made & set(path.relative_to(DOCS).parts) and path.name != "commands.md"
    }
    assert {page.name for page in pages - known} == set(), (
        "Add them to a toctree, such as that of docs/explanations.md."
    )


@pytest.mark.parametrize("name", ["python", "sklearn", "numpy", "river"])
def test_inventories_are_files(name):
    assert (DOCS / "inventories" / f"{name}.inv").read_bytes().startswith(b"# Sphinx inventory version 2")


def test_the_crawl_finds_what_is_wrong(tmp_path):
    import importlib.util

    spec = importlib.util.spec_from_file_location("crawl", DOCS / "crawl.py")
    crawl = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(crawl)
    (tmp_path / "good.html").write_text('<h1 id="top">x</h1><a href="#top">a</a><a href="https://a.b">b</a>')
    assert crawl.find_faults(tmp_path) == []
    (tmp_path / "bad.html").write_text(
        '<a href="none.html">a</a><a href="good.html#no">b</a><img src="no.png"><script src="https://a.b/c.js"></script>'
    )
    assert len(crawl.find_faults(tmp_path)) == 5


def test_the_gallery_has_examples_with_a_title_an_explanation_and_a_picture():
    examples = sorted((DOCS.parent / "examples" / "gallery").glob("plot_*.py"))
    assert len(examples) >= 10
    for example in examples:
        text = example.read_text(encoding="utf-8")
        title, line, _, *explanation = ast.get_docstring(ast.parse(text)).splitlines()
        assert set(line) == {"="}, example.name
        assert len(line) >= len(title), example.name
        assert explanation, example.name
        assert "plt.show()" in text, example.name
        assert "xlabel=" in text, example.name
        assert "ylabel=" in text, example.name


def test_only_links_that_leave_the_pages_are_rewritten():
    import importlib.util

    spec = importlib.util.spec_from_file_location("outside", DOCS / "_ext" / "outside.py")
    outside = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(outside)
    for page, before, after in (
        ("guides/one", "[a](../belief.md) [b](../../SECURITY.md)", "[a](../belief.md) [b](../security.md)"),
        ("paper", "[a](belief.md) [b](../examples/theorems)", "[a](belief.md) b (`examples/theorems`)"),
    ):
        content = [before]
        outside.rewrite(None, page, content)
        assert content == [after]
