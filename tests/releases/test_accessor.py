"""df.pkdp is a thin door to the two questions, with the same arguments and no state of its own."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases import accessor
from pkdp_pipeline.releases import publish as publish_module
from pkdp_pipeline.releases.accessor import PkdpAccessor
from pkdp_pipeline.releases.publish import Publication

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


def test_what_count_shares_with_histogram_is_described_alike():
    described, of_histogram = (
        dict(re.findall(r"^(\w[\w, ]*)( :.*(?:\n .*)*)", inspect.getdoc(function).split("\n\n")[2], re.MULTILINE))
        for function in (pkdp.count, pkdp.histogram)
    )
    shared = described.keys() & of_histogram.keys()
    assert len(shared) > 12
    assert {name for name in shared if described[name] != of_histogram[name]} <= {"where"}


def test_options_with_few_values_show_them():
    from pkdp_pipeline.model.question import RULES

    shown = inspect.signature(pkdp.histogram).parameters
    for name, allowed in RULES.items():
        values, default = ", ".join(map(repr, allowed)), shown[name].default
        assert shown[name].annotation.replace('"', "'") == f"Literal[{values}]"
        assert f"{name} : {{{values}}}, default {default!r}" in pkdp.histogram.__doc__.replace('"', "'")


def test_options_are_written_out_with_the_defaults_of_the_values_that_they_become():
    kinds = {
        pkdp.count: pkdp.Count,
        pkdp.histogram: pkdp.Histogram,
        pkdp.explain: pkdp.Histogram,
        pkdp.sum: pkdp.Sum,
    }
    for function, kind in kinds.items():
        options = [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
        assert {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD} == set()
        assert all(p.annotation is not p.empty for p in options)
        declared = {field.name: field.default for owner in (kind, Question, Publication) for field in fields(owner)}
        declared |= {"unit": inspect.Parameter.empty, "order_by": None, "domain": None, "k_complement": None}
        declared |= {"column": None, "rows": None, "bounds": None}
        declared |= dict.fromkeys(("bounds", "noise"), inspect.Parameter.empty) if kind is pkdp.Sum else {}
        assert {p.name: p.default for p in options} == {p.name: declared[p.name] for p in options}
        assert {field.name for field in fields(kind)} - {"totals", "cells_found"} <= {p.name for p in options}


def test_every_argument_arrives(monkeypatch):
    publications = []
    monkeypatch.setattr(publish_module, "publish", lambda source, publication: publications.append(publication))
    monkeypatch.setattr(accessor, "warn_of_another_frame", lambda *_: None)
    frame = pd.DataFrame({"u": [1], "c": ["a"], "t": [1], "w": [True]})
    steps = {"k": 30, "noise": pkdp.GeometricNoise(1.0), "release_threshold": 40, "display": pkdp.Rounding(5)}
    with pkdp.Ledger.open(":memory:") as ledger:
        terms = {"ledger": ledger, "revise": True, "target": None, "attacker": ATTACKER}
        rules = {"unit": "u", "missing_unit": "drop", "units": "exact", "period": "2020", "label": "a label"}
        cells = {"domain": ["a"], "one_cell": "first", "order_by": "t", "undeclared": "absent", "protects": "value"}
        frame.pkdp.histogram("c", where="w", below="noise", **steps, **terms, **rules, **cells)
        frame.pkdp.histogram("c", cells_per_unit=2, **steps, **terms, **rules)
        frame.pkdp.count("w", k_complement=7, **steps, **terms, **rules)
    histogram, several, counted = publications
    assert histogram.question.mechanism == pkdp.Histogram(below="noise", **steps)
    assert several.question.mechanism == pkdp.Histogram(cells_per_unit=2, **steps)
    assert counted.question.mechanism == pkdp.Count(k_complement=7, **steps)
    for publication in publications:
        assert {name: getattr(publication, name) for name in terms} == terms
        assert {name: getattr(publication.question, name) for name in rules} == {**rules, "unit": ("u",)}
    assert {name: getattr(histogram.question, name) for name in ("one_cell", "order_by", "undeclared", "protects")} == {
        **{name: cells[name] for name in ("one_cell", "undeclared", "protects")},
        "order_by": ("t",),
    }
    assert histogram.question.domain.cells == (("a",),)
    assert (str(histogram.question.where), str(counted.question.where)) == ("w", "w")
    assert (histogram.question.by, counted.question.by) == (("c",), ())


def test_the_answer_is_that_of_the_functions():
    frame = pd.DataFrame({"u": range(12), "c": pd.Series(["a"] * 12, dtype="str")})
    terms = {"unit": "u", "attacker": ATTACKER, "k": 10}
    assert frame.pkdp.histogram("c", **terms).id == pkdp.histogram(frame, "c", **terms).id
    assert frame.pkdp.count("c == 'a'", **terms).id == pkdp.count(frame, "c == 'a'", **terms).id


def test_the_frame_of_the_moment_is_counted():
    frame = pd.DataFrame({"u": range(12)})
    accessor = frame.pkdp
    assert accessor.count(unit="u", attacker=ATTACKER, k=10).value == 12
    frame.loc[12] = 12
    assert frame.pkdp.count(unit="u", attacker=ATTACKER, k=10).value == 13
