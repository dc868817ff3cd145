"""df.pkdp is a thin door to the two questions, with the same arguments and no state of its own."""

from __future__ import annotations

import inspect
import re
from typing import get_args

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.releases.accessor import PkdpAccessor

ATTACKER = pkdp.AttackerModel(p_max=0.1)


def test_the_accessor_asks_what_the_functions_ask():
    for method, function in ((PkdpAccessor.count, pkdp.count), (PkdpAccessor.histogram, pkdp.histogram)):
        mine, other = inspect.signature(method), inspect.signature(function)
        assert [str(p) for p in list(mine.parameters.values())[1:]] == [
            str(p) for p in list(other.parameters.values())[1:]
        ]
        for name in list(mine.parameters)[1:]:
            assert re.search(rf"^(\w+, )*{name}(, \w+)* : ", method.__doc__, re.MULTILINE)
        with pytest.raises(TypeError, match="kk"):
            function(pd.DataFrame({"u": [1]}), "u", unit="u", kk=5)
        with pytest.raises(pkdp.ArgumentError, match=r"unit is needed: .*unit=pkdp\.EACH_ROW"):
            function(pd.DataFrame({"u": [1]}), "u", k=5)


def test_options_with_few_values_show_them():
    from pkdp_pipeline.model.question import _RULES

    shown = inspect.signature(pkdp.histogram).parameters
    for name, rule in _RULES.items():
        values, default = ", ".join(map(repr, get_args(rule))), shown[name].default
        assert shown[name].annotation.replace('"', "'") == f"Literal[{values}]"
        assert f"{name} : {{{values}}}, default {default!r}" in pkdp.histogram.__doc__.replace('"', "'")


def test_every_argument_arrives(monkeypatch):
    from pkdp_pipeline.releases import accessor

    for name in ("count", "histogram"):
        seen = {}
        monkeypatch.setattr(accessor, name, lambda *values, seen=seen, **given: seen.update(given, values=values))
        frame = pd.DataFrame({"a": [1]})
        parameters = inspect.signature(getattr(PkdpAccessor, name)).parameters.values()
        given = {p.name: object() for p in parameters if p.kind is p.KEYWORD_ONLY}
        first = object()
        getattr(frame.pkdp, name)(first, **given)
        assert seen["values"][0] is frame
        assert seen["values"][1] is first
        assert all(seen[key] is value for key, value in given.items())


def test_the_answer_is_that_of_the_functions():
    frame = pd.DataFrame({"u": range(12), "c": pd.Series(["a"] * 12, dtype="str")})
    asked = {"unit": "u", "attacker": ATTACKER, "k": 10}
    assert frame.pkdp.histogram("c", **asked).id == pkdp.histogram(frame, "c", **asked).id
    assert frame.pkdp.count("c == 'a'", **asked).id == pkdp.count(frame, "c == 'a'", **asked).id


def test_the_frame_of_the_moment_is_counted():
    frame = pd.DataFrame({"u": range(12)})
    accessor = frame.pkdp
    assert accessor.count(unit="u", attacker=ATTACKER, k=10).value == 12
    frame.loc[12] = 12
    assert frame.pkdp.count(unit="u", attacker=ATTACKER, k=10).value == 13
