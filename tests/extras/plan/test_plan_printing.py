"""What a plan prints fits the terminal, and can be shown in ASCII."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.extras.plan.answers import estimate, planned
from pkdp_pipeline.extras.plan.printing import print_choices, print_closely, print_offer
from pkdp_pipeline.extras.plan.question import Assumed, Question

QUESTIONS = {
    "table": Question(
        kind="histogram",
        attacker=pkdp.AttackerModel(p_max=0.1),
        epsilon=4.0,
        delta=1e-6,
        days=5,
        evidence=(pkdp.IndependentGivenHabits(),),
        counts=Assumed(cells=40, people=30_000, spread="zipf"),
    ),
    "count": Question(
        kind="count",
        attacker=pkdp.AttackerModel(p_max=0.6, p_min=0.3, unknown=20),
        epsilon=1.0,
        delta=1e-6,
        counts=Assumed(cells=1, people=40),
    ),
    "zero": Question(kind="histogram", attacker=pkdp.AttackerModel(p_max=0.0), epsilon=0.0, delta=1e-6, noise=False),
}


@pytest.fixture(scope="module", params=QUESTIONS)
def printed_plan(request):
    """A plan that was printed before: what it says of other assumptions is certified once."""
    plan = planned(QUESTIONS[request.param])
    shown(plan, width=80)
    return plan


def shown(plan, *, width: int, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    text = io.TextIOWrapper(raw, encoding=encoding)
    screen = Screen(Console(file=text, width=width, markup=False, highlight=False))
    print_choices(screen, plan)
    print_closely(screen, plan)
    text.flush()
    fitting = raw.getvalue().decode(encoding)
    assert max(len(line.rstrip()) for line in fitting.splitlines()) <= width
    print_offer(screen, plan)
    text.flush()
    return raw.getvalue().decode(encoding)


@thinned(3)
@pytest.mark.parametrize("width", [40, 200])
def test_nothing_is_wider_than_the_terminal(printed_plan, width):
    shown(printed_plan, width=width)


def test_a_terminal_without_unicode_gets_ascii(printed_plan):
    # What no translation is known for would be an error here.
    assert "epsilon" in shown(printed_plan, width=80, encoding="ascii")


def test_a_wide_terminal_says_in_the_table_whom_a_choice_holds_against():
    plan = planned(QUESTIONS["table"])
    wide, narrow = shown(plan, width=120), shown(plan, width=80)
    assert "declared attacker  " in wide
    assert "Choices 2 and 3 hold against anyone at all, the others" in " ".join(narrow.split())
    assert "Choices 2 and 3 hold against anyone at all, the others" not in " ".join(wide.split())


def test_estimates_are_written_short():
    assert [estimate(value) for value in (0.0, 0.85091, 12.345, 999.4, 12345.6)] == [
        "0",
        "0.851",
        "12.3",
        "999",
        "12,346",
    ]
