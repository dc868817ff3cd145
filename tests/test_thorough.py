"""The quick run tries some of the cases that show one thing many times over, spread over all axes."""

from __future__ import annotations

import pytest
from thorough import is_spare


@pytest.mark.parametrize("few", [2, 3, 4, 6])
def test_one_case_of_every_group_is_tried_and_every_value_of_an_axis_as_long_as_a_group(few):
    tried = [place for place in range(few * few) if not is_spare(place, few)]
    assert [place // few for place in tried] == list(range(few))
    assert {place % few for place in tried} == set(range(few))
    assert tried[0] == 0
