"""Read every page of the built site: no dead link, no missing image, nothing that is loaded from elsewhere.

python docs/crawl.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}
ELSEWHERE = {"http", "https"}


class Page(HTMLParser):
    """The places that a page has, and what it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[tuple[str, str, str]] = []
        self.untold: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        for name in ("id", "name"):
            self.anchors.add(named.get(name) or "")
        for name in ("href", "src"):
            if named.get(name) is not None and not (tag == "link" and named.get("rel") == "canonical"):
                self.links.append((tag, name, named[name] or ""))
        if tag == "img" and "alt" not in named:
            self.untold.append(f"the image {named.get('src')} has no description")


def find_faults(folder: Path) -> list[str]:
    """Each fault of the site in a sentence."""
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.relative_to(folder).parts]
    pages = {path.resolve(): Page(path) for path in paths}
    faults = [] if pages else [f"{folder} has no pages; build them first."]
    for path, page in pages.items():
        where = path.relative_to(folder.resolve())
        faults += [f"{where}: {fault}." for fault in page.untold]
        for tag, attribute, link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ELSEWHERE or parts.netloc:
                if (tag, attribute) in LOADED:
                    faults.append(f"{where}: loads {link}.")
            elif parts.scheme not in ("data", "mailto", "javascript"):
                goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                goal = goal / "index.html" if goal.is_dir() else goal
                if not goal.exists():
                    faults.append(f"{where}: {link} leads nowhere.")
                elif goal in pages and parts.fragment and unquote(parts.fragment) not in pages[goal].anchors:
                    faults.append(f"{where}: {link} has no such place in its page.")
    return faults


if __name__ == "__main__":
    found = find_faults(Path(sys.argv[1]))
    print(*found, f"{len(found)} faults in the links and images of {sys.argv[1]}.", sep="\n")
    sys.exit(bool(found))
