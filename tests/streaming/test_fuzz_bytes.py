"""Wrong bytes in files of every format: a sentence that refuses the file, or a pass that accounts for every record."""

from __future__ import annotations

import pytest

from tests.streaming.fuzzing.many import check_many
from tests.streaming.fuzzing.of_bytes import CHANGES


@pytest.mark.slow
@pytest.mark.parametrize("damage", CHANGES)
def test_no_file_is_a_surprise(damage):
    check_many(damage)
