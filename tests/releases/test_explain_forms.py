"""An explanation printed in a terminal and shown in a notebook."""

from __future__ import annotations

import re

import pytest
from thorough import thinned

import pkdp_pipeline as pkdp

ATTACKER = pkdp.AttackerModel(p_max=0.2, known=20, influence="active")
ANYONE = pkdp.AttackerModel()
NOISE = pkdp.GeometricNoise(0.5)
BUDGETS = [pkdp.Budget(0.9, 1e-6), pkdp.Budget(0.7, 1e-6, part="worst_case", window_days=30)]


def explained(**more):
    return pkdp.explain(**{"by": "district", "unit": "patient", "k": 55, "attacker": ATTACKER} | more)


def with_a_ledger(**more):
    with pkdp.Ledger.open(":memory:", dataset="clinic", budget=BUDGETS) as ledger:
        terms = {"by": None, "k": None, "noise": NOISE, "attacker": ANYONE, "period": "2026-01", "ledger": ledger}
        return explained(**terms | more)


CASES = {
    "publish": explained,
    "count": lambda: explained(by=None, where="visits > 2", k=20, k_complement=10),
    "not certifiable": lambda: explained(attacker=ANYONE),
    "charged": with_a_ledger,
    "over budget": lambda: with_a_ledger(noise=pkdp.GeometricNoise(1.0)),
    "a long label": lambda: with_a_ledger(label="people " * 30),
}


@thinned(2)
@pytest.mark.parametrize("case", CASES)
def test_every_line_fits_a_terminal(case):
    for line in str(CASES[case]()).split("\n"):
        assert len(line) <= 80
        assert line == line.rstrip()


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_it_says_what_is_promised_and_assumed():
    explanation = explained()
    text = words(str(explanation))
    assert text.startswith("histogram by district: would be published. The promise")
    assert explanation.certificate.sentence() in text
    assert "Every cell is published only when it is at least 55. No noise is added." in text
    assert "knows everything about everybody else nothing is certified" in text
    assert "ledger of" not in text


def test_numbers_are_rounded_up():
    explanation = explained()
    for epsilon, shown in re.findall(r"(\S+) at ε = ([\d.]+)", words(str(explanation)).split("δ is at most ")[1]):
        assert float(epsilon) >= explanation.certificate.delta(float(shown))
    assert float(re.search(r"ε = ([\d.]+) at δ = 1e-6", str(explanation))[1]) >= explanation.certificate.epsilon(1e-6)


def test_it_says_what_noise_does():
    text = words(str(with_a_ledger()))
    assert "Expected error of the noise: 1.92 on average, standard deviation 2.8; it is within ±6 in 95 %" in text


def test_it_says_what_the_ledger_holds_now_and_then():
    text = words(str(with_a_ledger()))
    assert "count, period 2026-01: would be published, and charged to 'clinic'." in text
    assert "The ledger of 'clinic' what now then everything, ε at δ = 1e-6 nothing yet 0.5" in text
    assert "budget ε = 0.9 at δ = 1e-6 for the worst-case total 0 0.5" in text
    assert "of any" in text
    assert "30 days" in text


def test_a_refusal_says_why_and_shows_no_total_to_come():
    explanation = with_a_ledger(noise=pkdp.GeometricNoise(1.0))
    text = words(str(explanation))
    assert "would be refused: nothing would be read or charged. Why" in text
    assert words(str(explanation.refused)) in text
    assert "The promise it would have made" in text
    assert "what now everything, ε at δ = 1e-6 nothing yet budget" in text
    assert repr(explanation) == (
        "<Explanation: count, period 2026-01: would be refused: nothing would be read or charged.>"
    )


def test_what_is_not_certifiable_promises_nothing():
    text = words(str(explained(attacker=ANYONE)))
    assert "Not certifiable" in text
    assert "promise" not in text
    assert "What if" not in text


@pytest.mark.parametrize("case", CASES)
def test_a_notebook_shows_the_same(case):
    explanation = CASES[case]()
    page = explanation._repr_html_()
    for tag in ("div", "table", "tr", "td", "th", "p", "details"):
        assert len(re.findall(rf"<{tag}[ >]", page)) == page.count(f"</{tag}>")
    assert ("<summary" in page) == (explanation.certificate is not None)
    assert page.count(">nothing is certified<") == sum(
        row.verdict == "nothing is certified" for row in explanation.scenarios
    )


def test_a_notebook_takes_names_as_text():
    page = with_a_ledger(label="<script>alert(1)</script>")._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
