"""Code in the README and in docs/ is run as it stands, the blocks of a page in their order."""

from importlib.util import find_spec

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

# PyTorch is large: `make test-torch` installs it and runs what needs it.
collect_ignore = [] if find_spec("torch") else ["src/redescend/torch", "docs/pytorch.md", "tests_torch"]

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"]).pytest()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Tests come in random order, but a page is read from the top: what one block defines, the next may use."""
    places = {}
    for place, item in enumerate(items):
        if item.path.suffix == ".md":
            places.setdefault(item.path, []).append(place)
    for mixed in places.values():
        blocks = sorted((items[place] for place in mixed), key=lambda item: item.example.line)
        for place, block in zip(mixed, blocks, strict=True):
            items[place] = block
