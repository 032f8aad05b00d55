"""What an HTML page is made of, and what a browser has to say about it."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Its tags with their attributes, and its text; a tag that is not closed in order is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names))
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def words(self):
        """The text with single blanks."""
        return " ".join(" ".join(self.text).split())


def open_in_browser(page: Path, folder: Path, *options: str) -> tuple[str, list[str]]:
    """What headless Chromium prints about a page, and what it logs to its console."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.fail("This test opens the report in Chromium; install it with: apt-get install chromium")
    options = (*options, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
    options = (*options, "--no-first-run", "--disable-dev-shm-usage", "--enable-logging=stderr")
    command = [chromium, *options, f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
