"""The page as text: well-formed, complete, the same bytes, nothing from elsewhere, and nothing but the content."""

from __future__ import annotations

import functools
import math
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise

import pytest
from html_tree import Element, read
from markupsafe import Markup
from pages import REPORTS, drawn
from pages import page as drawn_page
from thorough import one_in

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report import pages as forms
from pkdp_pipeline.extras.report.content import CheckLine, LedgerAccount, Report
from pkdp_pipeline.extras.report.pages import to_html, to_markdown
from pkdp_pipeline.extras.report.pages.numbers import numbers_of
from pkdp_pipeline.extras.report.pages.plain_words import DECLARED, attackers, ledger_total, meaning, titled
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.model.period import joined
from pkdp_pipeline.model.wording import rounded_up

pytestmark = pytest.mark.xdist_group("report")
every_report = pytest.mark.parametrize("name", [name for name in REPORTS if name != "auditor"])


@pytest.fixture(scope="module", autouse=True)
def pages():
    """Gather the reports and draw their pages before they are looked at."""
    for name in REPORTS.keys() - {"auditor"}:
        page(name)


def described(*_: object, title: str, description: str, **more: object) -> Markup:
    """Return what is said of a picture, wide and narrow, without what is drawn, which takes most of a page's time."""
    return Markup('<svg role="img"><title>{0}</title><desc>{1}</desc></svg>' * 2).format(title, description)


@functools.cache
def page(name: str) -> str:
    """Return a report's page, drawn where it is small or holds names that wish no good."""
    if name in ("day", "hostile"):
        return drawn_page(name)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(forms, "_drawn", described)
        return to_html(REPORTS[name]())


@functools.cache
def tree(name: str) -> Element:
    return read(page(name))


def table_of(root: Element, id: str) -> Element:
    return next(table for table in root.all("table") if table.only("caption").attributes["id"] == id)


def rows(root: Element, id: str) -> list[list[str]]:
    body = table_of(root, id).only("tbody")
    return [[cell.text for cell in row.all("th", "td")] for row in body.all("tr")]


def whole(count: int | None, absent: str) -> str:
    return absent if count is None else f"{count:,}".replace("-", "\u2212")


def plain(text: str) -> str:
    return " ".join(text.split())


def brief(text: str, report: Report) -> str:
    """Return an assumption as it stands where the attacker is described elsewhere."""
    about_attacker = text in [f"The attacker is {whom}." for whom in attackers(report.lead)]
    return "The attacker is as described above." if about_attacker else plain(text)


@every_report
def test_a_page_has_one_title_its_landmarks_and_headings_in_order(name):
    root, report = tree(name), REPORTS[name]()
    assert root.only("html").attributes["lang"] == "en"
    assert plain(report.title) in root.only("h1").text
    assert report.period in root.only("h1").text
    for landmark in ("header", "nav", "main", "footer"):
        root.only(landmark)
    levels = [int(heading.tag[1]) for heading in root.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    first = next(root.only("body").all("a"))
    assert first.attributes["href"] == "#main"


@every_report
def test_every_id_is_unique_and_every_reference_has_its_target(name):
    root = tree(name)
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in root.all():
        wanted = (element.attributes.get("aria-labelledby") or "").split()
        href = element.attributes.get("href") or element.attributes.get("xlink:href") or ""
        assert set(wanted) <= set(ids)
        assert href == "" or href[1:] in ids, href
        for reference in re.findall(r"url\(#([^)]+)\)", " ".join(str(value) for value in element.attributes.values())):
            assert reference in ids


@every_report
def test_a_page_is_alone(name):
    root = tree(name)
    for node in root.all():
        assert node.tag not in ("script", "link", "img", "iframe", "object", "embed", "form", "base", "audio", "video")
        for key, value in node.attributes.items():
            assert not key.startswith("on"), key
            assert key not in ("src", "srcset", "action", "data", "poster"), key
            if key in ("href", "xlink:href"):
                assert str(value).startswith("#"), value
            if key != "xmlns":
                assert "url(" not in str(value).replace("url(#", ""), value
    sheet = root.only("style").text
    assert "url(" not in sheet
    assert "@import" not in sheet
    policy = root.only("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    assert "default-src 'none'" in policy
    assert "script" not in policy


@every_report
def test_a_table_has_a_caption_and_its_headings_a_scope(name):
    root = tree(name)
    tables = list(root.all("table"))
    assert tables
    for table in tables:
        assert all(heading.attributes["scope"] in ("col", "row") for heading in table.all("th"))
        lengths = {sum(1 for _ in row.all("th", "td")) for row in table.all("tr")}
        assert len(lengths) == 1, table.only("caption").text
    for div in root.all("div"):
        if "scroll" in div.classes:
            assert div.attributes["role"] == "region"
            assert div.attributes["tabindex"] == "0"
    folded = {id(table) for figure in root.all("figure") for table in figure.all("table")}
    numbered = [re.match(r"Table (\d+)\.", table.only("caption").text) for table in tables if id(table) not in folded]
    assert [int(match[1]) for match in numbered] == list(range(1, len(numbered) + 1))
    for number, figure in enumerate(root.all("figure"), start=1):
        for table in figure.all("table"):
            assert table.only("caption").text.startswith(f"Numbers of figure {number}. ")


@every_report
def test_a_picture_says_what_it_shows_and_how_to_read_it(name):
    root = tree(name)
    figures = list(root.all("figure"))
    assert len(figures) >= 3
    drawn = [figure for figure in figures if "panels" not in figure.classes]
    for figure in figures:
        pictures = list(figure.all("svg"))
        assert all(svg.attributes["role"] == "img" and len(svg.only("title").text) > 10 for svg in pictures)
        if figure in drawn:
            wide, narrow = pictures
            assert all(len(svg.only("desc").text) > 20 for svg in (wide, narrow))
        caption = figure.only("figcaption")
        assert caption.text.startswith("Figure ")
        assert any("reading" in span.classes for span in caption.all("span"))
    assert sum("In short: " in figure.only("figcaption").text for figure in drawn) == len(drawn)


@every_report
def test_the_numbers_come_first_as_they_were_published(name):
    root, report = tree(name), REPORTS[name]()
    assert next(root.all("section")) is root.only("section", id="numbers")
    for number, release in enumerate(report.releases, start=1):
        screen, table = numbers_of(release, report), release.table
        noised = "≈ " if release.error else ""
        newest = {
            key: count and f"{noised}{whole(count, '')}" for key, count in zip(table.keys, table.counts, strict=True)
        }
        shown = rows(root, f"numbers-{number}")
        assert len(shown) == min(len(table.keys), 30)
        if screen.series is None:
            assert [row[:-1] for row in shown] == [[*map(plain, key), newest[key]] for key in table.keys]
        else:
            named = {plain(joined(key) or "count"): count or "suppressed" for key, count in newest.items()}
            assert [row[-2] for row in shown] == [named[row[0]] for row in shown]
            periods = screen.series.periods[-6:]
            head = [cell.text for cell in table_of(root, f"numbers-{number}").only("thead").all("th", "td")]
            assert head[1:] == [*periods, f"change from {periods[-2]}"]
        for words in (release.sentence, release.asked, release.id):
            assert plain(words) in root.text


def test_what_is_left_out_of_the_first_screen_is_a_link_away():
    root, report = tree("hostile"), REPORTS["hostile"]()
    (release,) = report.releases
    assert root.only("a", href="#all-1").text == "And 30 more cells: all of it"
    assert root.only("details", id="all-1").only("summary").text == "All that is published of people_by_everything"
    wanted = [
        [*map(plain, key), whole(count, "")]
        for key, count in zip(release.table.keys, release.table.counts, strict=True)
    ]
    assert rows(root, "counts-1") == wanted
    assert len(wanted) > 40 > len(release.table.columns)
    days = tree("year").only("a", href="#all-1").text
    assert days == "And 24 earlier periods: all of it"
    assert "counts-1" not in page("year")


@every_report
def test_a_series_is_there_as_it_was_published(name):
    root, report = tree(name), REPORTS[name]()
    for number, series in enumerate(report.series, start=1):
        noised = "≈ " if next(release.error for release in report.releases if release.name == series.name) else ""
        assert rows(root, f"series-numbers-{number}") == [
            [period, *("not published" if count is None else noised + whole(count, "") for count in counts)]
            for period, counts in zip(series.periods, series.counts, strict=True)
        ]
        drawn = [figure for figure in root.all("figure") if "panels" in figure.classes][number - 1]
        assert sum(1 for _ in drawn.all("svg")) == min(8, sum(any(cell) for cell in zip(*series.counts, strict=True)))


@every_report
def test_the_lead_its_assumptions_and_its_limits_come_next(name):
    root, report = tree(name), REPORTS[name]()
    promise = root.only("section", id="promise")
    assert [*root.all("section")][1] is promise
    if report.lead is None:
        assert plain(report.lead_reason) in promise.text
        return
    assert plain(report.lead.sentence) in promise.text
    assert promise.only("p", **{"class": "lead"}).text == plain(meaning(report.lead))
    items = [item.text for item in promise.all("li")]
    assert items == [brief(text, report) for text in (*report.lead.assumptions, *report.lead.limits)]
    for whom in attackers(report.lead):
        assert root.only("dd", id="attacker").text == plain(whom)
        assert not any(plain(whom) in item for item in items)


@pytest.mark.usefixtures("undrawn")
def test_of_several_attackers_none_is_said_to_be_enough():
    histogram, evidence = pkdp.Histogram(k=40), pkdp.IndependentGivenHabits()
    weak = pkdp.certify(histogram, pkdp.AttackerModel(p_max=0.1))
    strong = pkdp.certify(histogram, pkdp.AttackerModel(p_max=0.2, known=5, influence="active"))
    lead = Statement.of(pkdp.compose([weak, strong], evidence))
    assert len(attackers(lead)) == 2
    root = read(to_html(replace(REPORTS["day"](), lead=lead)))
    assert "anyone who fits all assumptions below" in root.only("section", id="promise").text
    assert plain(lead.sentence) in root.text
    assert "described above" not in root.text


def test_a_promise_about_each_release_says_so_first():
    part = pkdp.certify(pkdp.Histogram(k=40), pkdp.AttackerModel(p_max=0.1))
    apart = Statement.of(pkdp.compose([(part, 3)], pkdp.OneDayProtected()))
    assert meaning(apart).startswith("Each release by itself, and nothing about several together. Take any one person")


@every_report
def test_claimed_numbers_are_rounded_up_and_attained_ones_down(name):
    root, report = tree(name), REPORTS[name]()
    for number, promise in drawn(report).items():
        curve = promise.curve
        shown = rows(root, f"guarantee-{number}")
        assert len(shown) == len(curve.epsilons)
        for row, epsilon, certified, attained in zip(
            shown, curve.epsilons, curve.certified, curve.attained, strict=True
        ):
            assert row[:2] == [rounded_up(epsilon), rounded_up(certified)]
            assert float(row[1]) >= certified
            if any(curve.attained) and row[2] != "not known":
                assert float(row[2]) <= attained
                # Also at the larger ε that is shown: what is attained at the next one of the curve.
                least = [
                    delta
                    for larger, delta in zip(curve.epsilons, curve.attained, strict=True)
                    if larger >= float(row[0])
                ]
                assert float(row[2]) <= least[0]
                assert math.isclose(float(row[2]), least[0], rel_tol=0.02, abs_tol=1e-300)
        if curve.worst_case is not None:
            assert [row[-1] for row in shown] == [rounded_up(delta) for delta in curve.worst_case]


@every_report
def test_what_no_attack_is_known_to_attain_is_not_shown_as_nothing(name):
    root, report = tree(name), REPORTS[name]()
    for number, promise in drawn(report).items():
        table = table_of(root, f"guarantee-{number}")
        reading = next(figure for figure in root.all("figure") if table in figure.all("table")).only("figcaption").text
        heading = table.only("thead").text
        assert ("attains" in heading) == ("dashed line below" in reading) == any(promise.curve.attained)
        assert ("not known" in reading) == (not any(promise.curve.attained))
        if any(promise.curve.attained):
            least = {row[0]: float(row[1]) for row in rows(root, f"guarantee-{number}")}  # of equal ε the last
            assert not any(least[row[0]] for row in rows(root, f"guarantee-{number}") if row[2] == "0")
    assert any(not any(promise.curve.attained) for promise in drawn(REPORTS["noisy"]()).values())


@pytest.mark.usefixtures("undrawn")
def test_a_budget_is_not_rounded_and_is_said_with_its_delta():
    report = REPORTS["day"]()
    words = "ε = 1.2345 at δ = 2e-6 for the total of any 7 days"
    (line,) = report.ledger.budgets
    budget = replace(line, words=words, epsilon=1.2345, delta=2e-6, window_days=7)
    root = read(to_html(replace(report, ledger=replace(report.ledger, budgets=(budget,)))))
    figure = next(figure for figure in root.all("figure") if any(words in text.text for text in figure.all("desc")))
    assert f"A budget allows {words}." in next(figure.all("desc")).text
    facts = root.only("section", id="promise").text
    assert "of 1.2345 at δ = 2e-6 allowed against the declared attacker in any 7 days" in facts


@pytest.mark.usefixtures("undrawn")
def test_a_number_of_people_is_written_out():
    report = REPORTS["day"]()
    curve = report.promises[0].knowledge[0]
    million = replace(curve, field="known", declared=12345678, values=(12345678, 23456789), epsilons=(0.1, 0.2))
    promise = replace(report.promises[0], knowledge=(million,))
    changed = replace(report, promises=(promise,))
    said = [desc.text for desc in read(to_html(changed)).all("desc")]
    assert any("As declared, at 12345678, ε is 0.1; at the right end, at 23456789, it is 0.2." in text for text in said)
    assert "declared: 12345678" in to_markdown(changed)


@every_report
def test_what_if_and_what_the_attacker_knows(name):
    root, report = tree(name), REPORTS[name]()
    for number, promise in enumerate(report.promises, start=1):
        for place, curve in enumerate(promise.knowledge if number in drawn(report) else (), start=1):
            shown = rows(root, f"knowledge-{number}-{place}")
            assert [row[1] for row in shown] == [
                "none" if epsilon == math.inf else rounded_up(epsilon) for epsilon in curve.epsilons
            ]
            assert sum("declared" in row[0] for row in shown) == 1
        if promise.scenarios and number in drawn(report):
            assert rows(root, f"what-if-{number}") == [
                [
                    plain(scenario.words),
                    "none" if scenario.epsilon == math.inf else rounded_up(scenario.epsilon),
                    rounded_up(scenario.delta_at_one),
                    plain(scenario.verdict),
                ]
                for scenario in promise.scenarios
            ]


@every_report
def test_the_ledger_over_time_and_its_budgets(name):
    root, report = tree(name), REPORTS[name]()
    ledger = report.ledger
    assert [row[:2] for row in rows(root, "spending-numbers")] == [
        [point.period, f"{point.releases:,}"] for point in ledger.points
    ]
    if ledger.budgets:
        shown = rows(root, "budgets")
        assert [row[0] for row in shown] == [plain(budget.words) for budget in ledger.budgets]
        for row, budget in zip(shown, ledger.budgets, strict=True):
            assert float(row[1]) == budget.epsilon
            if budget.spent is not None and budget.spent < math.inf:
                assert budget.spent <= float(row[2]) <= budget.spent * 1.02
    section = root.only("section", id="ledger").text
    for words in (*ledger.declared, *ledger.remarks, ledger_total(ledger)):
        assert plain(words) in section
    assert (plain(DECLARED) in section) == bool(ledger.declared)
    assert plain(ledger.verify) in root.text
    assert ledger.head in root.text


def test_the_error_of_the_noise_is_stated():
    root, report = tree("noisy"), REPORTS["noisy"]()
    assert rows(root, "error-numbers") == [
        [
            release.name,
            rounded_up(release.error.mean_absolute),
            rounded_up(release.error.standard_deviation),
            f"± {release.error.bound_95}",
        ]
        for release in report.releases
    ]
    assert "what is published is as counted" in tree("day").only("section", id="error").text


def test_where_noise_decides_what_is_published_the_numbers_are_said_to_lean_high():
    root, report = tree("noisy"), REPORTS["noisy"]()
    always, chosen = report.releases
    section = root.only("section", id="error")
    notes = {note.text.partition(": ")[0]: note.text for note in section.all("p") if ": " in note.text}
    assert "as likely to be too high as too low, and may be negative" in notes[always.name]
    assert "lean high" not in notes[always.name]
    assert "Published numbers near 50 lean high" in notes[chosen.name]
    assert "none is below 50" in notes[chosen.name]
    assert "negative" not in notes[chosen.name]
    assert section.text.count("too high as too low") == 1


@pytest.mark.usefixtures("undrawn")
def test_input_checks_are_for_auditors():
    report = REPORTS["auditor"]()
    assert [row[0] for row in rows(read(to_html(report)), "checks-list")] == [
        plain(check.rule) for check in report.checks
    ]
    public = replace(report, audience="public", checks=(CheckLine(rule="no cell is called X", passed=True),))
    shown = read(to_html(public)).only("section", id="checks").text
    assert "no cell is called X" not in shown
    assert "left out" in shown
    failed = replace(report, checks=(CheckLine(rule="no cell is called X", passed=False),))
    assert rows(read(to_html(failed)), "checks-list") == [["no cell is called X", "not kept"]]


def test_cells_that_leave_no_trace_are_not_counted():
    text = tree("day").only("section", id="numbers").text
    assert "leave no trace" in text
    assert "suppressed" not in text
    assert "leave no trace" not in tree("noisy").only("section", id="numbers").text


@pytest.mark.usefixtures("undrawn")
def test_where_releases_do_not_add_up_the_page_says_so():
    report = REPORTS["noisy"]()
    ledger: LedgerAccount = replace(report.ledger, total=None, reason="They are about the same people.", points=())
    none = replace(report, lead=None, lead_reason="They are about the same people.", ledger=ledger)
    root = read(to_html(none))
    assert "do not add up to one promise" in root.only("section", id="promise").text
    assert "They are about the same people." in root.only("section", id="promise").text
    assert "They do not add up to one number: They are" in root.only("section", id="ledger").text


@pytest.mark.usefixtures("undrawn")
def test_the_promise_of_a_single_release_stands_there_once():
    report = REPORTS["noisy"]()
    said = replace(report.ledger.total, sentence="Private in other words.")
    for releases in (1, 2):
        changed = replace(report, ledger=replace(report.ledger, total=said, releases=releases))
        assert to_html(changed).count("<p>Private in other words.</p>") == releases - 1
        assert to_markdown(changed).partition("<!--")[0].count("Private in other words.") == releases - 1


@pytest.mark.usefixtures("undrawn")
def test_a_table_without_rows_says_that_nothing_reached_the_rule():
    report = REPORTS["day"]()
    release = report.releases[0]
    empty = replace(release, table=replace(release.table, keys=(), counts=()))
    assert "Nothing reached the rule" in read(to_html(replace(report, releases=(empty,)))).text


@pytest.mark.usefixtures("undrawn")
def test_rows_and_cells_that_are_left_out_are_said():
    report: Report = REPORTS["year"]()
    release = replace(report.releases[0], table=replace(report.releases[0].table, more=1234))
    series = replace(report.series[0], more_cells=17, more_periods=365)
    text = read(to_html(replace(report, releases=(release,), series=(series,)))).text
    assert "1,234 more rows" in text
    assert "17 more of the published cells" in text
    assert "365 oldest periods" in text


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_equal_reports_have_equal_bytes():
    """Also in another process, in another place and language; of pictures test_inline_svg.py says so."""
    script = (
        "import pickle, sys; from markupsafe import Markup; from pkdp_pipeline.extras.report import pages as forms; "
        "forms._drawn = lambda *values, title, description, **more: "
        "Markup('<svg><title>{}</title><desc>{}</desc></svg>').format(title, description); "
        "sys.stdout.buffer.write(forms.to_html(pickle.load(sys.stdin.buffer)).encode())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    given = pickle.dumps(REPORTS["day"]())
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, input=given, stdout=subprocess.PIPE, env=environment
    )
    assert done.stdout.decode() == to_html(REPORTS["day"]())


@pytest.mark.parametrize(("name", "most"), one_in(3, [("day", 400_000), ("noisy", 400_000), ("year", 1_000_000)]))
def test_a_page_is_small(name, most):
    assert len(drawn_page(name).encode()) < most


@pytest.mark.slow
def test_a_year_of_days_is_small():
    report: Report = REPORTS["year"]()
    days = tuple((date(2013, 1, 1) + timedelta(days=day)).isoformat() for day in range(365))
    counts = tuple(
        tuple(None if (day + cell) % 7 == 0 else 100 + day * cell for cell in range(20)) for day in range(365)
    )
    series = replace(report.series[0], cells=tuple(f"cell {cell}" for cell in range(20)), periods=days, counts=counts)
    points = tuple(replace(report.ledger.points[0], period=day, releases=1 + place) for place, day in enumerate(days))
    year = replace(report, series=(series,), ledger=replace(report.ledger, points=points))
    html = to_html(year)
    assert len(rows(read(html), "series-numbers-1")) == 365
    assert len(html.encode()) < 1_000_000


@pytest.mark.usefixtures("undrawn")
def test_names_that_wish_no_good_are_text():
    root, report = tree("hostile"), REPORTS["hostile"]()
    assert "<script" not in page("hostile")
    assert "<img" not in page("hostile")
    assert "<i>" not in page("hostile")
    assert any("<script>alert(1)</script>" in key for keys in report.releases[0].table.keys for key in keys)
    assert "{{ 7 * 7 }}" in root.text
    assert "<script>alert(1)</script>" in root.text


@pytest.mark.usefixtures("undrawn")
def test_equal_curves_are_drawn_once():
    report = REPORTS["year"]()
    first, second = report.promises
    same = replace(second, curve=first.curve, knowledge=first.knowledge, scenarios=first.scenarios)
    other = replace(second, curve=replace(first.curve, mark=None), knowledge=first.knowledge)
    assert titled(first, report) == "each release by itself"
    words = "the same as those of each release by itself, above"
    once, twice = (to_html(replace(report, promises=(first, repeated))) for repeated in (same, other))
    assert words in once
    assert words not in twice
    assert twice.count("<svg") > once.count("<svg")


def test_no_line_ends_inside_a_number_or_a_date():
    root = tree("noisy")
    bound = {span.text for span in root.all("span") if "n" in span.classes}
    assert {"1.34e-6", "δ = 1e-6", "95 %", "2013-01-07"} <= bound
    for element in root.all("p", "dd", "li", "summary", "figcaption"):
        loose = "".join(text for text in element.inside if isinstance(text, str))
        assert not re.search(r"\de-\d|\d{4}-\d\d|\d %|[εδk] = \d", loose), loose
