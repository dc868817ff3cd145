"""The pieces of the ledger's views: windows, words, budgets on the screen, text that every YAML reader takes."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from ruamel.yaml import YAML

from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.extras.report.ledger.explaining import number, quoted
from pkdp_pipeline.ledger.account import Bundle
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.ledger.history import (
    Spent,
    _fullest,
    _halves,
    attacker_words,
    budget_words,
    evidence_words,
    mechanism_words,
    noise_words,
    number_of,
    spent_words,
)
from pkdp_pipeline.model.attacker import AttackerModel, Leakage
from pkdp_pipeline.model.display import Rounding
from pkdp_pipeline.model.evidence import BoundedDependence, IndependentGivenHabits
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram


@given(st.lists(st.integers(), min_size=1, max_size=50, unique=True).map(sorted))
def test_halves_reach_every_point_once_the_last_one_first(indices):
    levels = _halves(indices)
    assert levels[0] == [indices[-1]]
    assert sorted(index for level in levels for index in level) == indices


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 3)), min_size=1, max_size=8))
def test_of_the_windows_only_those_are_left_out_that_another_one_holds(windows):
    listed = [
        (number, Counter({Bundle.of("alone", {part: 1}): times for part, times in window.items()}))
        for number, window in enumerate(windows)
    ]
    kept = _fullest(listed)
    assert kept
    assert all(pair in listed for pair in kept)
    for _, window in listed:
        assert any(window <= other for _, other in kept)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_what_is_spent_and_left_adds_up_to_the_budget(allowed, spent):
    parsed = re.fullmatch(r"spent (\S+) of (\S+), (?:left (\S+)|OVER BUDGET)", spent_words(allowed, spent))
    used, most = Decimal(parsed[1]), Decimal(parsed[2])
    assert most == Decimal(repr(allowed))
    assert used >= Decimal(repr(spent))
    assert (parsed[3] is None) == (spent > allowed)
    assert len({len(group.partition(".")[2]) for group in parsed.groups() if group}) == 1
    if parsed[3] is not None:
        with localcontext(prec=400):
            assert used + Decimal(parsed[3]) == most


@pytest.mark.parametrize(
    ("allowed", "spent", "text"),
    [
        (1.2, 1.1517, "spent 1.1517 of 1.2000, left 0.0483"),
        (26.0, 25.94231, "spent 25.9424 of 26.0000, left 0.0576"),
        (1.0, 1.0, "spent 1.00 of 1.00, left 0.00"),
        (1.0, 0.0, "spent 0.00 of 1.00, left 1.00"),
        (0.0, 0.0, "spent 0.00 of 0.00, left 0.00"),
        (1.0, 1e-9, "spent 0.00001 of 1.00000, left 0.99999"),
        (1.0, 1e300, "spent 1" + "0" * 300 + " of 1, OVER BUDGET"),
        (1.0, 1.00001, "spent 1.00001 of 1.00000, OVER BUDGET"),
        (0.0, 1e-7, "spent 0.000000100 of 0.000000000, OVER BUDGET"),
    ],
)
def test_spent_and_left_in_words(allowed, spent, text):
    assert spent_words(allowed, spent) == text


def test_a_budget_that_nothing_meets_is_shown_in_words():
    def shown(budget):
        text = io.StringIO()
        Screen(Console(file=text, width=100, markup=False, highlight=False)).budgets([budget])
        return " ".join(text.getvalue().split())

    budget = Budget(1.0, 1e-6, part="partial_knowledge")
    spent = {"budget": budget, "measure": "partial_knowledge", "epsilon": math.inf}
    assert shown(Spent(**spent, at_one=0.01)).endswith("OVER BUDGET no ε reaches δ = 1e-6; δ = 0.01 at ε = 1.")
    assert shown(Spent(**spent, at_one=1.0)).endswith("no ε reaches δ = 1e-6; nothing is certified at ε = 1 either.")
    assert shown(Spent(**spent)).endswith("OVER BUDGET: the releases do not add up")
    part = Spent(budget=budget, measure="partial_knowledge", epsilon=0.5, complete=False)
    assert shown(part).endswith("spent at least 0.500 of 1.000")


def test_mechanisms_in_words():
    assert mechanism_words(Count()) == "exact count"
    assert mechanism_words(Count(k=5, k_complement=7)) == "count, k = 5, k of the rest = 7"
    noised = Histogram(k=5, noise=GeometricNoise(0.1), release_threshold=40)
    assert mechanism_words(noised) == "noisy histogram, k = 5, shown from 40"
    below = Histogram(k=5, noise=GeometricNoise(1.0), release_threshold=40, below="noise")
    assert mechanism_words(below) == "histogram, exact from k = 5, noised below, shown from 40"
    assert mechanism_words(Histogram(k=8, display=Rounding(5))) == "histogram, k = 8, shown to the nearest 5"
    assert (noise_words(noised), noise_words(Count())) == ("ε = 0.1", "none")
    assert attacker_words(AttackerModel(p_max=0.1, known=3, influence="active")) == "p_max = 0.1, known = 3 (active)"
    assert attacker_words(AttackerModel()) == "anyone at all"
    attacker = AttackerModel(leakage=(Leakage.total(), Leakage("the list of prizes", shared_by=("value",))))
    assert attacker_words(attacker) == "anyone at all; given the number of people present and the list of prizes"
    household = AttackerModel(p_max=0.1, dependent="household")
    assert attacker_words(household) == "p_max = 0.1, people of one household depend on one another"
    assert attacker_words(replace(household, secret="conditional")) == "p_max = 0.1, given the others of each household"
    assert mechanism_words(Count(), "value") == "exact total"
    assert mechanism_words(Histogram(k=5), "value") == mechanism_words(Histogram(k=5)) == "histogram, k = 5"
    assert evidence_words(BoundedDependence(0.5, 1e-7)) == "bounded_dependence (epsilon = 0.5, delta = 1e-7)"
    assert attacker_words(AttackerModel(p_max=1e-5)) == "p_max = 1e-5"
    assert evidence_words(IndependentGivenHabits()) == "independent_given_habits"
    assert budget_words(Budget(1.0, 0.0)) == "ε = 1 at δ = 0 for the total and the worst-case total"
    assert (number_of(1, "release"), number_of(1200, "release")) == ("1 release", "1,200 releases")


@given(st.text(st.characters(exclude_categories=("Cs",))), st.booleans(), st.sampled_from([(1, 1), (1, 2)]))
def test_yaml_reads_every_text_as_it_was(text, plain, version):
    reader = YAML(typ="safe")
    reader.version = version
    written = quoted(text, plain=plain)
    assert reader.load(f"name: {written}\n") == {"name": text}
    assert "\n" not in written
    assert not plain or written.isascii()


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([(1, 1), (1, 2)]))
def test_yaml_reads_every_number_as_a_number(value, version):
    reader = YAML(typ="safe")
    reader.version = version
    read = reader.load(f"value: {number(value)}\n")["value"]
    assert isinstance(read, float)
    assert read == value
