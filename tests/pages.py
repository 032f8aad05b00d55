"""What an HTML page is made of."""

from __future__ import annotations

from html.parser import HTMLParser

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
