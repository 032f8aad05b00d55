"""Links of pages to files outside docs/, which work on a forge, lead to the site's page of that file or are text."""

from __future__ import annotations

import re
from typing import Any

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
LINK = r"(?<!!)\[([^\]]+)\]\((?:\.\./){%d}(?!\.\./)([^)#]+)(#[^)]*)?\)"
"""A link that leaves docs/ from a page at this depth."""

INCLUDED = re.compile(r"(?<!!)\[([^\]]+)\]\(docs/([^)]+)\)")


def lead(match: re.Match[str], to_root: str) -> str:
    """The link on the site."""
    text, path, anchor = match[1], match[2], match[3] or ""
    if path in PAGES:
        return f"[{text}]({to_root}{PAGES[path]}{anchor})"
    return f"{text} (`{path}`)" if text != path and f"`{path}`" != text else f"`{path}`"


def rewrite(app: Any, docname: str, content: list[str]) -> None:
    depth = docname.count("/")
    content[0] = re.sub(LINK % (depth + 1), lambda match: lead(match, "../" * depth), content[0])


def rewrite_included(app: Any, path: Any, docname: str, content: list[str]) -> None:
    """Files of the repository's root link to docs/page.md."""
    content[0] = INCLUDED.sub(r"[\1](\2)", content[0])
    for name, page in PAGES.items():
        content[0] = content[0].replace(f"]({name})", f"]({page})")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", rewrite)
    app.connect("include-read", rewrite_included)
    return {"parallel_read_safe": True}
