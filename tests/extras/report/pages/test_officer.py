"""The pages for somebody who answers for the protection of data: what they say, in order, and that it is checked."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from importlib import import_module

import pytest
from example_report import clinic_report, hostile_report, noisy_report, year_report

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.assurance.verification import verify
from pkdp_pipeline.extras.report.content import About, BudgetLine
from pkdp_pipeline.extras.report.pages import carried, render, report_of_document
from pkdp_pipeline.extras.report.pages.gathering import promise_of
from pkdp_pipeline.extras.report.pages.officer import _Words, sections
from pkdp_pipeline.extras.report.pages.plain_words import DECLARED, leak, strength
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.ledger.chain import Budget

pytestmark = pytest.mark.xdist_group("report")
every_report = pytest.mark.parametrize("report", [clinic_report, hostile_report, noisy_report, year_report])


@pytest.fixture(scope="module", autouse=True)
def reports():
    """Gather the reports before they are looked at."""
    for report in (clinic_report, hostile_report, noisy_report, year_report):
        report()


def test_the_parts_are_in_order():
    assert [section.title for section in sections(clinic_report())] == [
        "Published",
        "Against whom",
        "The promise",
        "The assumptions, and who argued them",
        "If an assumption is wrong",
        "Over time",
        "Not protected",
        "How to check it",
        "Read and answered for",
    ]


def test_the_clinic_is_told_in_words():
    text = render(clinic_report(), "md", "officer")
    assert text.startswith("# Patients of a walk-in clinic, by district\n\n- Publisher: Walk-in clinic (invented)\n")
    for said in (
        "- Period: 2026-W02 to 2026-W14",
        "where a cell is not listed, there are fewer than 55, possibly none",
        "Anyone who regards people's records as independent, knows or controls at most 20 people",
        "In numbers: ε (strength of the strongest hint) = 0.98; δ (probability that the hint leaks everything) = 1e-6",
        "Argued by Head of the practice (invented) on 2025-12-01.",
        "> About one patient in eight comes in a week",
        "| controls 6 more people in each table (10 % of the threshold) | 3.1 | 76 % |",
        "| controls 22 more people in each table (40 % of the threshold) | 9.6 | 91 % |\n"
        "| controls 28 more people in each table (50 % of the threshold) | no limit; 2.8 if everything leaks with "
        "probability one in 81 | practically certain |",
        "Rows that name no person are left out. A person with rows in several cells counts once, in one of them, drawn",
        "| knows everything about everybody else | no limit | practically certain |",
        "The ledger holds 13 releases about these people.",
        "`pkdp verify 2026-W14/patients_by_district.parquet`",
    ):
        assert said in text, said
    assert "Ferry End" not in text  # below the threshold: it leaves no trace


@every_report
def test_no_symbol_is_without_its_word(report):
    for section in sections(report()):
        for kind, value in section.blocks:
            if kind not in ("quote", "lead"):  # a lead says the meaning around the symbol
                text = json.dumps(value, ensure_ascii=False)
                assert not re.search(
                    r"[εδ](?! \(|\))|epsilon|\bk =|p_max(?!\))", text.replace("worst-case ε and δ", "")
                ), text
    (listed,) = [value for s in sections(report()) if s.title == "Not protected" for _, value in s.blocks]
    assert all(
        re.match(r"[A-Z][a-z]+ .*\b(is|are|does|holds?|states?|appears)\b.*\.$", sentence) for sentence in listed
    ), listed
    said = json.dumps([section.blocks for section in sections(report())], ensure_ascii=False)
    words = _Words(report())
    for limit in report().promises[0].statement.limits[1:]:
        assert (
            limit.startswith("A person is one value of ") or json.dumps(words(limit), ensure_ascii=False)[1:-1] in said
        )


def test_every_attacker_and_assumption_is_on_the_pages():
    parts = [
        pkdp.certify(pkdp.Histogram(k=40), pkdp.AttackerModel(p_max=p_max, known=known, influence="active"))
        for p_max, known in ((0.1, 0), (0.05, 20), (0.2, 5))
    ]
    total = pkdp.compose(parts, pkdp.IndependentGivenHabits())
    shown, document = Statement.of(total), json.loads(total.to_json())
    first, *others = clinic_report().promises
    promise = dataclasses.replace(first, statement=shown, certificate=document)
    report = dataclasses.replace(clinic_report(), promises=(promise, *others))
    said, words = json.dumps([section.blocks for section in sections(report)], ensure_ascii=False), _Words(report)
    assert "An attacker fits all of these descriptions" in said
    assert len(shown.attackers) == 3
    for assumption in shown.assumptions:
        assert words(assumption).replace("The attacker is ", "", 1)[1:] in said


def test_symbols_follow_from_values():
    def shown(certificate, *, documented=True):
        first, *others = clinic_report().promises
        document = json.loads(certificate.to_json()) if documented else {}
        promise = dataclasses.replace(first, statement=Statement.of(certificate), certificate=document)
        return render(dataclasses.replace(clinic_report(), promises=(promise, *others)), "md", "officer")

    total = pkdp.compose(
        [(pkdp.certify(pkdp.Histogram(k=50), pkdp.AttackerModel(p_max=0.1, known=7)), 2)],
        pkdp.BoundedDependence(0.1, 1e-9),
    )
    assert "by at most strength (ε) = 0.1, leak probability (δ) = 1e-9." in shown(total)
    assert "In this, δ (the probability that the hint leaks everything) is that of the promise." in shown(total)
    # A total that shows what others have charged is in no document.
    assert "by at most ε = 0.1, δ = 1e-9." in shown(total, documented=False)
    leak = pkdp.Leakage("a rounded total", dependence_epsilon=0.1, shared_by=("presence", "value"))
    noisy = pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(0.5)), pkdp.AttackerModel(leakage=leak))
    assert "noise by at most strength (ε) = 0.1, leak probability (δ) = 0." in shown(noisy)


def test_what_is_true_of_some_releases_is_a_value_also_when_it_is_read_back():
    parts = [
        (pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=k / 400)), times) for k, times in ((40, 3), (80, 1))
    ]
    said = Statement.of(pkdp.compose(parts, pkdp.IndependentGivenHabits()))
    assert [(attacker.number, attacker.releases) for attacker in said.attackers] == [(3, 4), (1, 4)]
    assert {f"The attacker is {attacker.text}." for attacker in said.attackers} <= {
        assumption.text for assumption in said.of_some
    }
    for assumption in said.of_some:
        assert str(assumption) in said.assumptions
    first, *others = clinic_report().promises
    report = dataclasses.replace(clinic_report(), promises=(dataclasses.replace(first, statement=said), *others))
    assert report_of_document(json.loads(render(report, "json"))).promises[0].statement == said


def test_where_noise_protects_nothing_has_to_be_argued():
    text = render(noisy_report(), "md", "officer")
    assert "Anyone at all, whatever they know." in text
    assert "It rests on nothing that an attacker does not know" in text
    assert "ask the publisher" not in text
    assert "ask the publisher" in render(year_report(), "md", "officer")

    assert "No part of it rests on" not in text
    assert re.search(r"\| ≈ \d", text)
    assert not re.search(r"\| [A-Z0-9]{2} \| [A-Z]{3} \| \d", text)  # each noised count is marked


def test_a_weak_promise_is_told_with_its_own_leak():
    report, certificate = year_report(), pkdp.certify(pkdp.Histogram(k=5), pkdp.AttackerModel(p_max=0.1))
    weak = promise_of("all", certificate, 1e-6)
    budget = BudgetLine.of(Budget(1.0, 0.05), "partial_knowledge", certificate.epsilon(0.05))
    ledger = dataclasses.replace(report.ledger, total=weak.statement, budgets=(budget,))
    promises = (weak, *report.promises[1:])
    text = render(dataclasses.replace(report, promises=promises, ledger=ledger), "md", "officer")
    assert text.count(f"{strength(1.0)}; {leak(certificate.delta(1.0))}") == 2
    assert f"At the budget's leak probability (δ), 0.05: {strength(certificate.epsilon(0.05))}." in text
    assert "curve" not in text
    assert "no limit; " not in text
    known = re.findall(r"knows (\d) p.*?probability ([^|]*) \| 74 % \|", text)
    assert [people for people, _ in known] == ["1", "2", "3"]
    assert len(set(known)) == 3


def test_releases_that_do_not_add_up_are_said_to():
    report = clinic_report()
    ledger = dataclasses.replace(report.ledger, total=None, reason="No evidence.")
    releases = tuple(dataclasses.replace(release, promise=0) for release in report.releases)
    alone = dataclasses.replace(
        report, lead=None, lead_reason="No evidence.", promises=report.promises[1:], releases=releases, ledger=ledger
    )
    text = render(alone, "md", "officer")
    assert "The releases do not add up to one promise: No evidence." in text
    assert "They do not add up to one number: No evidence." in text


@every_report
def test_what_the_pages_carry_makes_them_again(report):
    text = render(report(), "html", "officer")
    inside, reader = carried(text)
    assert reader == "officer"
    assert render(report_of_document(json.loads(inside)), "html", reader) == text
    assert render(report(), "json", "officer") == render(report(), "json")


@every_report
def test_markdown_is_for_people_to_its_last_line(report):
    text = render(report(), "md", "officer")
    assert carried(text) is None
    assert "<!--" not in text
    assert text.endswith("- Signature: …\n")
    assert max(map(len, text.split("\n"))) < 2000
    assert "The report that says the same, in HTML or JSON: `pkdp verify FILE`" in text


def test_names_are_text():
    worse = About(title="<script>alert(1)</script>", argument="--> <b>bold</b>", publisher="a<br>", contact="x")
    text = render(dataclasses.replace(hostile_report(), about=worse), "html", "officer")
    assert "<script" not in text
    assert "<b>bold" not in text


@pytest.mark.slow
def test_verify_makes_the_pages_again(tmp_path, monkeypatch):
    # What attackers learn is tried in tests of its own.
    monkeypatch.setattr(import_module(verify.__module__), "attack_claims", lambda *_: ())
    file = tmp_path / "officer.html"
    text = render(clinic_report(), "html", "officer")
    file.write_text(text, encoding="utf-8")
    assert verify(file).passed
    assert "73 %" in text
    file.write_text(text.replace("73 %", "53 %", 1), encoding="utf-8")
    assert not verify(file).passed
    markdown = tmp_path / "officer.md"
    markdown.write_text(render(clinic_report(), "md", "officer"), encoding="utf-8")
    with pytest.raises(ArgumentError, match="in HTML or JSON"):
        verify(markdown)
    file.write_text(text.replace("for officer {", "{"), encoding="utf-8")
    assert not verify(file).passed


def test_no_pictures_are_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert render(clinic_report(), "html", "officer").startswith("<!DOCTYPE html>")


def test_a_reader_that_does_not_exist_is_refused():
    with pytest.raises(ArgumentError, match="reader must be one of 'everybody', 'officer'"):
        render(clinic_report(), "html", "boss")


@pytest.mark.usefixtures("undrawn")
def test_the_report_says_who_publishes_and_plain_words_and_numbers_before_the_sentence():
    text = render(clinic_report(), "md")
    assert "- Publisher: Walk-in clinic (invented)\n- Contact: data" in text
    assert "Argued by Head of the practice" in text
    report = render(clinic_report(), "html")
    order = ['<p class="lead">Each release by itself', "<dt>Guarantee</dt>", "In the words of the certificate"]
    assert sorted(order, key=report.index) == order
    assert text.index("Take any one person") < text.index("In the words of the certificate: Any one of 13 releases")
    assert "<h1>Patients of a walk-in clinic, by district " in report
    assert "<blockquote><p>About one patient in eight" in report
    only = dataclasses.replace(clinic_report(), about=About(argued_by="A registrar"))
    assert "<p>Argued by A registrar.</p>\n<" in render(only, "html")
    assert "<blockquote>" not in render(only, "html")
    assert render(only, "md").startswith("# clinic, ")


def test_what_there_is_no_room_for_is_in_the_report():
    report = clinic_report()
    (release,) = report.releases
    rows = dataclasses.replace(
        release.table, keys=tuple((f"a {row}",) for row in range(40)), counts=tuple(range(60, 100))
    )
    about = dataclasses.replace(report.about, argument="reason " * 300 + "end")
    much = dataclasses.replace(report, releases=(dataclasses.replace(release, table=rows),) * 5, about=about)
    text = render(much, "md", "officer")
    assert text.count("| a 0 | 60 |") == 3
    assert "And 2 more tables: see the report." in text
    assert "And 38 more rows: see the report." in text
    assert "And 2 more ids: see the report." in text
    assert "reason reason …" in text
    assert "end\n" not in text
    assert "read the rest of it there before you sign" in text


def test_numbers_stand_below_one_another():
    assert '<td class="number">110</td>' in render(clinic_report(), "html", "officer")
    assert "| --- | ---: |\n| Harbour | 110 |" in render(clinic_report(), "md", "officer")


def test_every_form_says_the_same_of_what_is_protected_one_at_a_time():
    words = "Each release by itself, and nothing about several together: ε (strength of the strongest hint) = 0.98; "
    for reader in ("everybody", "officer"):
        text = render(clinic_report(), "md", reader)
        assert text.count(words) == 1
        assert DECLARED in text
        assert not re.search("everything (published|together)", text.partition("<!--")[0], re.IGNORECASE)
    assert "Everything together: " in render(noisy_report(), "md", "officer")
