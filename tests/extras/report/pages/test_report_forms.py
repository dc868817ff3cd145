"""A report as Markdown and as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from pathlib import Path

import jsonschema
import pytest
from example_report import HOSTILE, day_report, hostile_report, noisy_report, year_report
from markdown_it import MarkdownIt
from pages import REPORTS
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.report import content
from pkdp_pipeline.extras.report.pages import SCHEMA, carried, render, report_of_document, to_html, to_markdown
from pkdp_pipeline.model.period import key_text

SCHEMAS = Path(pkdp.__file__).parent / "schemas"
DOCUMENT = json.loads((SCHEMAS / "report.v1.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(DOCUMENT)
CERTIFICATES = jsonschema.Draft202012Validator(
    json.loads((SCHEMAS / "certificate.v1.json").read_text(encoding="utf-8"))
)
OPENED = ("table", "thead", "tbody", "tr", "td", "th", "heading", "paragraph", "bullet_list", "list_item")
pytestmark = pytest.mark.xdist_group("report")


@pytest.fixture(params=REPORTS)
def report(request):
    return REPORTS[request.param]()


def page(report) -> list:
    """Return the tokens of the Markdown, without the comment that carries its content."""
    words, comment, rest = render(report, "md").partition("<!-- pkdp-report ")
    assert comment
    assert rest.count("-->") == 1
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(words)


def shown(report) -> str:
    """Return what a reader of the Markdown sees."""
    children = (child for token in page(report) for child in token.children or [])
    return "\n".join(child.content for child in children)


def test_the_schema_is_a_schema_of_the_version_that_is_written():
    jsonschema.Draft202012Validator.check_schema(DOCUMENT)
    assert DOCUMENT["properties"]["schema"]["const"] == SCHEMA


@thinned(2)
def test_the_schema_allows_what_is_written_and_no_other_member(report):
    document = json.loads(render(report, "json"))
    VALIDATOR.validate(document)

    def objects(value, path=()):
        if isinstance(value, dict) and path[-1:] != ("certificate",):
            yield path
            for key, inner in value.items():
                yield from objects(inner, (*path, key))
        elif isinstance(value, list) and value:
            yield from objects(value[0], (*path, 0))

    for path in objects(document):
        strange = json.loads(json.dumps(document))
        place = strange
        for step in path:
            place = place[step]
        place["surprise"] = 1
        assert not VALIDATOR.is_valid(strange), path


def test_the_schema_names_every_field_of_the_values():
    definitions = DOCUMENT["$defs"]
    for kind, described in (
        (content.Report, DOCUMENT["properties"].keys() - {"schema"}),
        (content.Promise, definitions["promise"]["properties"].keys()),
        (content.ReleaseView, definitions["release"]["properties"].keys()),
        (content.Series, definitions["series"]["properties"].keys()),
        (content.LedgerAccount, definitions["ledger"]["properties"].keys()),
        (content.BudgetLine, definitions["budget"]["properties"].keys() - {"spent_state"}),
        (content.Provenance, definitions["provenance"]["properties"].keys()),
        (content.Statement, definitions["statement"]["properties"].keys()),
        (content.GuaranteeCurve, definitions["curve"]["properties"].keys()),
        (content.KnowledgeCurve, definitions["knowledge"]["properties"].keys()),
        (content.Scenario, definitions["scenario"]["properties"].keys()),
    ):
        assert {field.name for field in dataclasses.fields(kind)} == set(described), kind


def test_the_certificates_of_the_json_can_be_verified_and_give_its_numbers(report):
    for promise in json.loads(render(report, "json"))["promises"]:
        CERTIFICATES.validate(promise["certificate"])
        certificate = Certificate.from_json(json.dumps(promise["certificate"]))
        assert certificate.verify()
        statement = promise["statement"]
        assert statement["epsilon"] == (None if (e := certificate.epsilon(1e-6)) == math.inf else e)
        assert statement["sentence"] == certificate.sentence()
        # Whole arrays: the last bits of a number depend on what it is computed together with.
        numbers = {pair["epsilon"]: pair["delta"] for pair in statement["numbers"]}
        assert list(numbers.values()) == certificate.delta(list(numbers)).tolist()
        curve = promise["curve"]
        assert curve["certified"] == pytest.approx(certificate.delta(curve["epsilons"]), rel=1e-9, abs=1e-300)


def test_the_json_tells_a_budget_that_nothing_meets_from_one_that_is_not_known():
    report = day_report()
    (line,) = report.ledger.budgets
    lines = tuple(dataclasses.replace(line, spent=spent) for spent in (line.spent, math.inf, None))
    changed = dataclasses.replace(report, ledger=dataclasses.replace(report.ledger, budgets=lines))
    document = json.loads(render(changed, "json"))
    VALIDATOR.validate(document)
    spending = [(budget["spent"], budget["spent_state"]) for budget in document["ledger"]["budgets"]]
    assert spending == [(line.spent, "certified"), (None, "none"), (None, "not known")]
    assert "Infinity" not in render(changed, "json")


@thinned(2)
def test_the_markdown_says_all_that_there_is(report):
    text = shown(report)
    for promise in report.promises:
        for sentence in (promise.statement.sentence, *promise.statement.assumptions, *promise.statement.limits):
            assert sentence in text
        for scenario in promise.scenarios:
            assert scenario.words in text
            assert scenario.verdict in text
        for title, citation in promise.statement.theorems:
            assert f"{title} ({citation})" in text
    for view in report.releases:
        for words in (view.name, view.asked, view.id, *(cell for key in view.table.keys for cell in key)):
            assert words.strip() in text
        assert text.split().count("suppressed") >= view.table.counts.count(None)
    for words in (report.ledger.head, report.ledger.verify, report.provenance.head, report.provenance.digest):
        assert words in text or words in render(report, "md")
    for point in report.ledger.points:
        assert point.period in text
    for check in report.checks:
        assert check.rule in text
    assert ("Which rules the data were held to is left out" in text) == (report.audience == "public")


def test_every_table_of_the_markdown_is_one(report):
    tokens = page(report)
    tables = sum(token.type == "table_open" for token in tokens)
    scenarios, knowledge = len(report.promises) * 2, sum(len(promise.knowledge) for promise in report.promises)
    others = len(report.releases) + len(report.series) + bool(report.ledger.budgets) + bool(report.ledger.points)
    assert tables == scenarios + knowledge + others
    rows: list[int] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append(0)
        elif token.type in ("td_open", "th_open"):
            rows[-1] += 1
    assert min(rows) >= 1
    for view in report.releases:
        assert rows.count(len(view.table.columns) + 1) > len(view.table.keys)


def test_no_number_of_the_markdown_is_below_a_certified_one():
    report = day_report()
    certificate = Certificate.from_json(json.dumps(report.promises[0].certificate))
    text = render(report, "md")
    lines = text.split("δ against anyone at all |\n| ---: | ---: | ---: | ---: |\n")[1].split("\n\n")[0].splitlines()
    assert len(lines) >= 10
    for line in lines:
        epsilon, delta, reached, _ = (cell.strip() for cell in line.strip("|").split("|"))
        attained, certified = certificate.delta_bounds(float(epsilon))
        assert float(delta) >= certified
        assert reached == "not known" or float(reached) <= attained


def test_where_noise_decides_what_is_published_the_markdown_says_so():
    always, chosen = (part.split("\n## ")[0] for part in shown(noisy_report()).split("With noise")[1:])
    assert "95 % of such numbers are within" in always
    assert "95 % of such numbers are within" not in chosen
    assert "Only noisy numbers of at least 50 are shown, so those near 50 lean high" in chosen


def test_hostile_names_are_text_and_nothing_else():
    tokens = page(hostile_report())
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or []}
    assert kinds <= {
        *(f"{kind}_{end}" for kind in ("table", "thead", "tbody", "tr", "td", "th") for end in ("open", "close")),
        *(
            f"{kind}_{end}"
            for kind in ("heading", "paragraph", "bullet_list", "list_item")
            for end in ("open", "close")
        ),
        *("inline", "text", "text_special", "code_block", "code_inline", "softbreak"),
    }
    text = shown(hostile_report())
    for name in HOSTILE:
        assert key_text(name).strip() in text


def test_the_name_of_the_job_file_is_text():
    name = "job`[x](http:e)<b>|\n.toml"
    report = day_report()
    changed = dataclasses.replace(report, provenance=dataclasses.replace(report.provenance, job=name))
    kinds = {child.type for token in page(changed) for child in token.children or []}
    assert kinds <= {"text", "text_special", "code_inline", "softbreak"}
    assert r"Job job`[x](http:e)<b>|\n.toml, SHA-256" in "".join(
        child.content for token in page(changed) for child in token.children or []
    )


def test_numbers_of_the_markdown_are_written_in_one_way(report):
    assert not re.search(r"\de-0\d", shown(report))


def test_what_a_page_carries_makes_it_again(report):
    for form in ("md", "json"):
        text = render(report, form)
        inside = text if form == "json" else carried(text)[0]
        assert render(report_of_document(json.loads(inside)), form) == text


def test_equal_reports_have_equal_bytes(report):
    for form in ("md", "json"):
        assert render(report, form) == render(dataclasses.replace(report), form)


def test_a_form_that_does_not_exist_is_refused():
    with pytest.raises(ArgumentError, match="html, md or json"):
        render(day_report(), "pdf")


def test_without_the_extra_only_html_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match="report"):
        render(day_report(), "html")
    assert re.match("# flights", render(day_report(), "md"))


def test_one_period_is_not_drawn_over_time(undrawn):
    report = year_report()
    (series,) = report.series
    single = dataclasses.replace(
        report, series=(dataclasses.replace(series, periods=series.periods[:1], counts=series.counts[:1]),)
    )
    for text, is_drawn in ((to_html(report), True), (to_html(single), False)):
        assert ('class="panels"' in text) == ("change from" in text) == is_drawn
    assert ", all dates" in to_markdown(report)
    assert ", all dates" not in to_markdown(single)


def test_the_largest_cells_have_a_picture_and_the_others_a_row(undrawn):
    report = year_report()
    (series,) = report.series
    cells = tuple(f"town {cell}" for cell in range(12))
    counts = tuple(tuple(100 + cell for cell in range(12)) for _ in series.periods)
    text = to_html(dataclasses.replace(report, series=(dataclasses.replace(series, cells=cells, counts=counts),)))
    assert re.findall('<p class="cell">(.*?)</p>', text) == [f"town {cell}" for cell in range(4, 12)]
    assert [f'<th scope="row">town {cell}</th>' in text for cell in range(12)] == [True] * 12
    assert ("The largest of the cells published most often from" in text, "Every cell from" in to_html(report)) == (
        True,
        True,
    )
