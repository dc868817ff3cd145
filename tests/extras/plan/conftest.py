"""What tests of plans share: each question is answered once, however often it is asked, printed and written as JSON."""

from __future__ import annotations

import functools

import pytest

from pkdp_pipeline.extras.plan import answers


def kept(function):
    """Return a function whose answers are kept, but for what cannot be a key."""
    known = functools.cache(function)

    @functools.wraps(function)
    def once(*arguments, **named):
        try:
            hash((arguments, *named.values()))
        except TypeError:
            return function(*arguments, **named)
        return known(*arguments, **named)

    return once


@pytest.fixture(scope="module", autouse=True)
def computed_once():
    patch = pytest.MonkeyPatch()
    for name in ("choices", "largest_p_max", "largest_p_max_between", "smallest_unknown"):
        patch.setattr(answers, name, kept(getattr(answers, name)))
    views = {name: kept(answers.view(name)) for name in ("what_if", "knowledge_curves")}
    patch.setattr(answers, "view", views.__getitem__)
    yield
    patch.undo()
