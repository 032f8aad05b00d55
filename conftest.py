"""Code in the README and in docs/ is run as it stands, the blocks of a page in their order."""

import gc
from importlib.util import find_spec

import pytest
from tests.guides import make_pages
from tests.soak_table import ProcessorTime, SoakTable

collect_ignore = ["docs/_build", "docs/gallery"]  # written by `make docs`

if not find_spec("torch"):  # PyTorch is large: `make test-torch` installs it and runs what needs it.
    collect_ignore += ["src/redescend/torch", "docs/pytorch.md", "tests_torch"]

if not find_spec("mlflow"):
    collect_ignore += ["src/redescend/exports/mlflow.py", "src/redescend/exports/mlflow_code.py"]

pytest_collect_file = make_pages().pytest()


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


def pytest_collection_finish():
    """Modules and tests stay to the end: no search for garbage needs to go through them."""
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    if config.option.markexpr == "soak" and not config.option.collectonly:
        # With several processes, each measures its own tests, and the first of all writes the table.
        config.pluginmanager.register(ProcessorTime() if hasattr(config, "workerinput") else SoakTable())
