"""Every test of the command works in a folder of its own, and is not told what is compiled."""

from contextlib import nullcontext

import pytest

from redescend.kernels import compiler


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def without_notices(monkeypatch):
    """Whether a kernel is compiled depends on what ran before: messages are compared without that notice."""
    monkeypatch.setattr(compiler, "on_compile", lambda callback: nullcontext())
