"""Wrong names, records and values: a sentence that refuses the file, or a pass in which every record is accounted for.

With the files of `test_fuzz_bytes` there are ten thousand of them.
"""

from __future__ import annotations

import pytest

from tests.streaming.fuzzing.many import check_many
from tests.streaming.fuzzing.of_sheets import SPOILS


@pytest.mark.slow
@pytest.mark.parametrize("damage", SPOILS)
def test_no_text_is_a_surprise(damage):
    check_many(damage)
