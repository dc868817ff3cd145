"""Random questions: every answer of the planner reaches the target, and its neighbour does not."""

from __future__ import annotations

import pytest
from planning_questions import KINDS, answered
from thorough import thinned

#: How many questions of each kind are asked in one go: 59 in all; `make slow` asks six thousand.
ASKED = {
    "smallest_k": 8,
    "smallest_unknown": 2,
    "largest_p_max": 3,
    "largest_p_max_between": 6,
    "smallest_noise": 5,
    "smallest_release_threshold": 7,
}


@thinned(3)
@pytest.mark.parametrize("name", KINDS)
def test_the_answer_holds_and_its_neighbour_fails(name):
    answers = answered(name, ASKED[name], 0)
    # Most questions have an answer: a check that none is ever asked for would be empty.
    assert answers >= 0.5 * ASKED[name]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
@pytest.mark.parametrize("name", KINDS)
def test_a_thousand_of_each_kind(name, seed):
    assert answered(name, 50, seed) >= 20
