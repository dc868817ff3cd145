"""Every engine publishes the same bytes of the same table, and refuses the same questions."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from adapters import adapters
from cases import CASES, FAILURES, twice
from thorough import spread

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.keys import canonical_key

ATTACKER = pkdp.AttackerModel(p_max=0.5)
EVERY = [pytest.param(adapter, id=adapter.name, marks=adapter.marks) for adapter in adapters()]
NAMES = {case.name: case for case in CASES}


def histogram(adapter, case):
    terms = {"by": "c", "unit": "u", "k": 2, "attacker": ATTACKER} | case.ask
    with adapter.frame(twice(case.table, terms["unit"])) as frame:
        return pkdp.histogram(frame, **terms)


def shown(table):
    return [
        (*map(canonical_key, keys), None if pd.isna(count) else count / 2)
        for *keys, count in table.itertuples(index=False, name=None)
    ]


def first(case):
    """Return the first engine that can hold the data."""
    return next(adapter for adapter in adapters() if case.name not in adapter.unheld)


@pytest.fixture(scope="module")
def references():
    return {}


def holdable(cases):
    """Return each adapter with the cases that its frame can hold.

    Of all kinds but pandas, with which every case is compared, one in nine is tried, so that another kind takes each
    case; the others are slow.
    """

    def marks(number, place, adapter):
        spare = place % 4 if adapter.name == "pandas" else (number + place) % 12
        return (*adapter.marks, *([pytest.mark.slow] if spare else []))

    return [
        pytest.param(adapter, case, id=f"{adapter.name}-{case.name}", marks=marks(number, place, adapter))
        for number, adapter in enumerate(adapters())
        for place, case in enumerate(cases)
        if case.name not in adapter.unheld
    ]


@pytest.mark.parametrize(("adapter", "case"), holdable(CASES))
def test_every_engine_publishes_the_same_bytes(adapter, case, references):
    name = case.name
    release = histogram(adapter, case)
    if case.expected is not None:
        assert shown(release.table) == case.expected
    if name not in references:
        references[name] = (release if adapter.name == first(case).name else histogram(first(case), case)).to_bytes()
    assert release.to_bytes() == references[name]


@pytest.mark.parametrize(("adapter", "case"), holdable(FAILURES))
def test_every_engine_refuses_the_same(adapter, case):
    with pytest.raises(case.expected) as caught:
        histogram(adapter, case)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    if case.expected is pkdp.InputCheckError:
        with pytest.raises(case.expected) as first:
            histogram(adapters()[0], case)
        assert str(caught.value) == str(first.value)


COUNTS = {
    "u": ("u", None, 2, 0),
    "u with x": ("u", "c == 'x'", 2, 0),
    "u with y": ("u", "c == 'y'", 1, 1),
    "u with nothing": ("u", "c == 'nothing'", 0, 2),
    "u and v": (["u", "v"], None, 3, 0),
    "u and v with x": (["u", "v"], "c == 'x'", 2, 1),
    "u and v without d": (["u", "v"], "d.isna()", 1, 2),
    "rows": (pkdp.EACH_ROW, None, 6, 0),
    "rows without x": (pkdp.EACH_ROW, "c != 'x'", 3, 3),
}


@pytest.mark.parametrize(
    ("adapter", "unit", "where", "hits", "others"),
    spread(4, EVERY, [pytest.param(*case, id=name) for name, case in COUNTS.items()]),
)
def test_every_engine_counts_the_same(adapter, unit, where, hits, others):
    terms = {"unit": unit, "k": 2, "missing_unit": "drop", "attacker": pkdp.AttackerModel(p_max=0.5, p_min=0.1)}
    with adapter.frame(twice(NAMES["composite units"].table, unit)) as frame:
        release = pkdp.count(frame, where, **terms)
        both = pkdp.count(frame, where, k_complement=2, **terms)
    assert release.value == (2 * hits or None)
    assert both.value == (2 * hits if hits and others else None)


@pytest.mark.parametrize(("adapter", "where", "unit"), spread(2, EVERY, [None, "c == 'a'"], ["u", pkdp.EACH_ROW]))
def test_a_count_of_nobody_is_withheld(adapter, where, unit):
    with adapter.frame(NAMES["empty"].table) as frame:
        assert pkdp.count(frame, where, unit=unit, k=2, attacker=ATTACKER).value is None


def test_cases_have_names_of_their_own_and_exceptions_are_cases():
    assert len(NAMES) == len(CASES)
    assert not any(
        isinstance(key, float) and math.isnan(key) for case in CASES for row in case.expected or [] for key in row
    )
    for adapter in adapters():
        assert adapter.unheld <= set(NAMES) | {case.name for case in FAILURES}, adapter.name
