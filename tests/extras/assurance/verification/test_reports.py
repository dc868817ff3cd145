"""Reports: genuine ones pass, and whatever somebody alters in a page or in its content is found."""

from __future__ import annotations

import functools
import json

import pandas as pd
import pytest
from markupsafe import Markup
from published_files import altered, ledger, outcome, page, report, written
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.verification import attacking, verify
from pkdp_pipeline.extras.report import pages as forms
from pkdp_pipeline.extras.report import verification
from pkdp_pipeline.extras.report import verification as pages
from pkdp_pipeline.extras.report.pages import document_of, gathering
from pkdp_pipeline.extras.report.pages.gathering import promise_of, series_of
from pkdp_pipeline.releases.release import Release


@pytest.fixture(scope="module", autouse=True)
def computed_once():
    """Read each certificate once for all tests of this module: most of them alter something else."""
    patch = pytest.MonkeyPatch()
    patch.setattr(pages, "promise_of", functools.cache(pages.promise_of))
    for name in ("knowledge_curves", "what_if"):
        patch.setattr(gathering, name, functools.cache(getattr(gathering, name)))
    patch.setattr(attacking, "enumerated_schedule", functools.cache(attacking.enumerated_schedule))
    patch.setattr(forms, "_drawn", drawn)
    for form in ("json", "html", "md"):
        page(form=form)
    yield
    patch.undo()


def drawn(*values, title, description, **more):
    """Return a picture without what takes its time."""
    return Markup("<svg><title>{}</title><desc>{}</desc></svg>").format(title, description)


def halved(value):
    return value / 2


GENUINE = [
    ("quiet", None, "public"),
    ("noisy", 3, "public"),
    ("quiet", 2, "auditor"),
    ("noisy", None, "auditor"),
    ("pure", None, "public"),
    ("found", None, "public"),
    ("below", None, "public"),
    ("bands", None, "public"),
]


# With the ledger all is checked that is checked without it.
@thinned(4)
@pytest.mark.parametrize(
    ("kind", "day", "audience", "with_ledger"),
    [*((*case, True) for case in GENUINE), *one_in(4, [(*case, False) for case in GENUINE])],
)
def test_genuine_reports_pass(tmp_path, kind, day, audience, with_ledger):
    path = written(tmp_path, report(kind, day, audience))
    verified = verify(path, ledger=ledger(kind) if with_ledger else None)
    assert verified.kind == "report"
    assert verified.passed, str(verified)
    if with_ledger:
        assert outcome(verified, "ledger.total").outcome == "pass"
        assert outcome(verified, "ledger.points").outcome == "pass"
        assert outcome(verified, "ledger.holds").outcome == "pass"
    else:
        assert outcome(verified, "assumptions.declared").outcome == "not_checked"


def checked(folder, document, key, **options):
    verified = verify(written(folder, document), **options)
    assert not verified.passed, str(verified)
    assert outcome(verified, key).outcome == "fail", str(verified)
    return verified


ALTERED_MARKS = [
    (("releases", 0, "table", "exact", 2), True, "releases.tables"),  # a count below k
    (("releases", 0, "table", "exact", 1), None, "releases.tables"),
    (("releases", 0, "table", "counts", 3), None, "releases.tables"),
    (("series", 0, "exact", 2, 0), False, "releases.tables"),
    (("series", 0, "exact", 0), [True], "releases.tables"),
]


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """A report with noised counts, read once: what is computed for it is kept for those that are altered."""
    document = report("below")
    assert verify(written(tmp_path_factory.mktemp("marked"), document), draws=100).passed
    return document


@thinned(2)
@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize(("where", "to", "key"), ALTERED_MARKS)
def test_altered_marks_of_exact_counts_are_found(tmp_path, where, to, key):
    checked(tmp_path, altered(report("below"), *where, to=to), key, draws=100)


def test_marks_that_only_the_ledger_knows_are_compared_with_it(tmp_path):
    document = altered(report("below"), "series", 0, "exact", 0, 0, to=False)
    checked(tmp_path, document, "ledger.series", draws=100, ledger=ledger("below"))
    unmarked = report("below")
    del unmarked["releases"][0]["table"]["exact"]
    checked(tmp_path, unmarked, "releases.tables", draws=100)


def test_counts_are_shown_in_their_bands(tmp_path):
    for form in ("html", "md"):
        text = page("bands", None, form=form)
        # In the table of the release, and in each of three periods.
        for band in ("30 or more", "20–29", "0–19"):
            assert text.count(band) >= 4
    document = report("bands")
    checked(tmp_path, altered(document, "releases", 0, "table", "bands", to=[0, 20, 31]), "releases.tables", draws=100)
    del document["releases"][0]["table"]["bands"]
    checked(tmp_path, document, "releases.tables", draws=100)


def test_noised_counts_are_never_shown_as_exact_ones(tmp_path):
    document = report("below")
    (table,) = (release["table"] for release in document["releases"])
    shown = dict(zip((key[0] for key in table["keys"]), zip(table["counts"], table["exact"], strict=True), strict=True))
    assert shown["Ås"] == (37, True)
    assert not shown["Secretville"][1]
    for form, noised in (("html", "≈\u00a0"), ("md", "≈ ")):
        text = page("below", None, form=form).replace("&nbsp;", "\u00a0")
        assert "Counts of at least 20 are exact; smaller ones, with ≈ before them, have noise: within ±3 in" in text
        # Two noised cells in each of three periods, and among the newest numbers.
        assert text.count(noised) >= 8
        assert text.count("37") >= 4


ALTERED = [
    (("promises", 0, "statement", "epsilon"), halved, "report.content"),
    (("promises", 0, "statement", "numbers", 1, "delta"), halved, "report.content"),
    (("promises", 0, "statement", "sentence"), "Private.", "report.content"),
    (("promises", 0, "statement", "assumptions"), [], "report.content"),
    (("promises", 0, "statement", "limits"), lambda listed: listed[:-1], "report.content"),
    (("promises", 1, "curve", "certified", 7), halved, "report.content"),
    (("promises", 1, "curve", "attained", 7), lambda value: value * 1.5, "report.content"),
    (("promises", 1, "knowledge", 0, "epsilons", 1), halved, "report.content"),
    (("promises", 1, "knowledge"), [], "report.content"),
    (("promises", 1, "scenarios", 1, "epsilon"), halved, "report.content"),
    (("promises", 1, "scenarios", -1, "epsilon"), 3.0, "report.content"),
    (("promises", 1, "scenarios", 1, "delta_at_one"), halved, "report.content"),
    (("promises", 1, "scenarios", 1, "verdict"), "holds", "report.content"),
    (("promises", 1, "scenarios"), lambda listed: listed[:-1], "report.content"),
    (("promises", 0, "certificate", "grid", 9, "delta"), halved, "promises.0.numbers"),
    (("promises", 1, "certificate", "grid", 9, "delta"), halved, "promises.1.enumerated"),
    (("promises", 1, "certificate", "attacker", "p_max"), 0.09, "promises.1.numbers"),
    (("promises", 1, "certificate", "caveats"), ["All is well."], "promises.1.words"),
    (("lead", "epsilon"), halved, "report.content"),
    (("ledger", "total", "epsilon"), halved, "report.content"),
    (("ledger", "total", "numbers", 2, "delta"), halved, "report.content"),
    (("ledger", "points", -1, "epsilon"), halved, "report.content"),
    (("ledger", "points", -1, "releases"), 2, "report.total"),
    (("ledger", "releases"), 2, "report.total"),
    (("ledger", "budgets", 0, "spent"), halved, "report.content"),
    (("ledger", "budgets", 0, "spent"), None, "report.content"),
    (("releases", 0, "table", "counts", 0), 19, "releases.tables"),
    (("releases", 0, "table", "counts", 0), 99, "releases.tables"),
    (("releases", 0, "table", "counts", 0), None, "releases.tables"),
    (("releases", 0, "table", "keys", 0), ["Ås"], "releases.tables"),
    (("releases", 0, "table", "columns"), [], "releases.tables"),
    (("releases", 0, "k"), 10, "report.content"),
    (("releases", 0, "sentence"), "Private.", "report.content"),
    (("releases", 0, "rule"), "Every cell is published.", "report.content"),
    (("releases", 0, "promise"), 7, "report.content"),
    (("series", 0, "counts", 0, 0), 3, "releases.tables"),
    (("series", 0, "counts", -1, 0), 500, "releases.tables"),
    (("series", 0, "cells"), ["one"], "releases.tables"),
    (("provenance", "theorems"), [], "report.content"),
    (("audience",), "nobody", "report.structure"),
]


# Most are found by one comparison, of what is shown with what follows: one in three of these.
@thinned(2)
@pytest.mark.parametrize(
    ("path", "to", "key"),
    [case for case in ALTERED if case[2] != "report.content"]
    + one_in(3, [case for case in ALTERED if case[2] == "report.content"]),
)
def test_what_was_altered_is_found(tmp_path, request, path, to, key):
    if not key.endswith("enumerated"):
        request.getfixturevalue("unattacked")
    checked(tmp_path, altered(report(), *path, to=to), key)


@pytest.mark.usefixtures("unattacked")
def test_errors_of_noise_are_computed_again(tmp_path):
    checked(tmp_path, altered(report("noisy"), "releases", 0, "error", "bound_95", to=1), "report.content")


@pytest.mark.usefixtures("unattacked")
def test_a_total_below_one_of_its_parts_is_found_in_the_report_of_a_day(tmp_path):
    document = report(day=2)
    assert document["promises"][0]["name"] != "everything published"
    document["ledger"]["total"]["epsilon"] = document["ledger"]["points"][-1]["epsilon"] = 0.001
    checked(tmp_path, document, "report.total")


def about_another_attacker():
    """Return the report of a day, consistent in itself, with a certificate for a weaker attacker."""
    document = report(day=2)
    stored = pkdp.Certificate.from_json(json.dumps(document["promises"][0]["certificate"]))
    weaker = pkdp.certify(stored.mechanism, pkdp.AttackerModel(p_max=0.05)).in_context(stored.context)
    promise = document_of(promise_of(document["promises"][0]["name"], weaker, 1e-6))
    document["promises"][0] = json.loads(json.dumps(promise))
    document["lead"] = document["promises"][0]["statement"]
    document["releases"][0]["sentence"] = weaker.sentence()
    return document


@pytest.mark.usefixtures("unattacked")
class TestWithTheLedger:
    """What is consistent in itself is found where the ledger says otherwise."""

    def test_counts(self, tmp_path):
        document = altered(report(day=2), "releases", 0, "table", "counts", 0, to=30)
        assert verify(written(tmp_path, document)).passed
        checked(tmp_path, document, "ledger.holds", ledger=ledger())

    def test_ids(self, tmp_path):
        document = altered(report(day=2), "releases", 0, "id", to="0" * 64)
        checked(tmp_path, document, "ledger.holds", ledger=ledger())

    def test_totals_and_points(self, tmp_path):
        document = report(day=2)
        document["ledger"]["points"][0]["epsilon"] /= 2
        assert verify(written(tmp_path, document)).passed
        checked(tmp_path, document, "ledger.points", ledger=ledger())

    def test_heads(self, tmp_path):
        document = altered(report(day=2), "ledger", "head", to="f" * 64)
        checked(tmp_path, document, "ledger.total", ledger=ledger())

    def test_another_attacker(self, tmp_path):
        document = about_another_attacker()
        assert verify(written(tmp_path, document)).passed
        checked(tmp_path, document, "ledger.holds", ledger=ledger())

    def test_counts_of_earlier_periods(self, tmp_path):
        document = altered(report(), "series", 0, "counts", 0, 0, to=lambda count: count + 1)
        assert verify(written(tmp_path, document)).passed
        checked(tmp_path, document, "ledger.series", ledger=ledger())

    def test_periods_that_are_none(self, tmp_path):
        document = altered(report(), "series", 0, "periods", 0, to="2019-12-31")
        checked(tmp_path, document, "ledger.series", ledger=ledger())

    def test_a_count_too_few(self, tmp_path):
        document = altered(report(), "series", 0, "counts", 0, to=lambda row: row[:-1])
        checked(tmp_path, document, "ledger.series", ledger=ledger())

    def test_a_certificate_that_only_says_that_it_is_against_anyone(self, tmp_path):
        document = about_another_attacker()
        promise = document["promises"][0]
        promise["certificate"]["library"]["version"] = "0.1.0"
        promise["certificate"]["theorems"] = [{**promise["certificate"]["theorems"][0], "key": "noise"}]
        checked(tmp_path, document, "ledger.holds", ledger=ledger())


@thinned(3)
@pytest.mark.parametrize(
    ("path", "to", "key"),
    [
        (("title",), "another", "report.content"),
        (("lead_reason",), "No reason.", "report.content"),
        (("ledger", "reason"), "No reason.", "report.content"),
        (("ledger", "unit"), "household", "report.content"),
        (("ledger", "declared"), [], "report.content"),
        (("ledger", "budgets", 0, "epsilon"), 1.5, "report.content"),
        (("ledger", "budgets", 0, "words"), "ε = 1 at δ = 1e-6 for the total", "report.content"),
        (("releases", 0, "asked"), lambda text: text.replace("k = 20", "k = 2000"), "releases.tables"),
        (("releases", 0, "asked"), lambda text: text.replace("person", "household"), "releases.tables"),
        (
            ("releases", 0, "asked"),
            lambda text: text.replace("by town", "by town, or so"),
            "releases.tables",
        ),
        (("releases", 0, "table", "columns"), ["street"], "releases.tables"),
    ],
)
@pytest.mark.usefixtures("unattacked")
def test_texts_that_do_not_fit_are_found(tmp_path, path, to, key):
    checked(tmp_path, altered(report(), *path, to=to), key)


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("ledger", "remarks"), ["Private at ε = 0.001, δ = 1e-12 against anyone."]),
        (("releases", 0, "files"), ["Epsilon = 0.001, delta = 1e-12"]),
        (("series", 0, "name"), "private at any ε"),
    ],
)
@pytest.mark.usefixtures("unattacked")
def test_copied_texts_that_promise_are_found(tmp_path, path, to):
    checked(tmp_path, altered(report(), *path, to=to), "report.texts")


@thinned(2)
@pytest.mark.parametrize("form", ["html", "md"])
@pytest.mark.usefixtures("unattacked")
def test_a_page_is_what_its_content_renders_to_and_nothing_else(tmp_path, form):
    genuine = page(form=form)
    verified = verify(written(tmp_path, genuine, f"report.{form}"), draws=100)
    assert verified.passed, str(verified)
    assert outcome(verified, "report.page").outcome == "pass"
    forged = [
        genuine.replace("k = 20", "k = 2000", 1),
        genuine.replace("35", "36", 1),
        genuine.replace("37", "38", 1),
        genuine + "\n",
        genuine.replace("Private", "Perfectly private", 1),
    ]
    if form == "html":
        forged += [
            genuine.replace("<svg>", "<svg><path d='M0 0'/>", 1),
            genuine.replace("</footer>", "<p hidden>More.</p></footer>"),
            genuine.replace("</footer>", "<script>document.title = 1</script></footer>"),
            genuine.replace("<style>", "<style>.scope { display: none }", 1),
        ]
    for text in {text for text in forged if text != genuine}:
        checked(tmp_path, text, "report.page", draws=100)


def test_a_total_that_leaves_releases_out_is_found_although_all_of_it_is_computed_anew(tmp_path):
    document = report("noisy")
    total = pkdp.Certificate.from_json(json.dumps(document["promises"][0]["certificate"]))
    for parts in ([(total.parts[0][0], 6)], [(part, 1) for part, _ in total.parts]):
        fewer = pkdp.compose(parts).with_caveats(*total.caveats)
        promise = json.loads(json.dumps(document_of(promise_of("everything published", fewer, 1e-6))))
        forged = {**document, "promises": [promise, *document["promises"][1:]]}
        forged["lead"] = promise["statement"]
        forged["ledger"] = {**document["ledger"], "total": promise["statement"]}
        checked(tmp_path, forged, "report.total")


@pytest.mark.usefixtures("unattacked")
def test_the_last_point_of_pure_noise_is_compared_with_a_pair_whose_delta_is_zero(tmp_path):
    document = report("pure")
    assert document["ledger"]["total"]["worst_case"] == document["lead"]["named"] == {"epsilon": 1.5, "delta": 0.0}
    assert "ε = 1.5, δ = 0 against" in document["lead"]["sentence"]
    checked(tmp_path, altered(document, "ledger", "points", -1, "worst_case", to=halved), "report.content")
    checked(tmp_path, altered(document, "lead", "named", "epsilon", to=halved), "report.content")


@pytest.mark.usefixtures("unattacked")
def test_json_that_is_spelled_otherwise_is_not_ours(tmp_path):
    checked(tmp_path, page() + "\n", "report.page", draws=100)


def test_earlier_points_and_counts_are_said_to_be_unchecked(tmp_path):
    verified = verify(written(tmp_path, report()))
    assert {claim.key for claim in verified.unchecked} >= {"report.total", "counts.published", "report.origin"}


def test_a_missing_cell_is_told_from_one_that_is_called_so():
    table = pd.DataFrame({"town": [None, "(missing)", "Ås"], "count": pd.array([25, 26, None], dtype="Int64")})
    certificate = pkdp.certify(pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1))
    release = Release.seal(table, certificate)
    series = series_of("people", {"2020": release})
    row = dict(zip(series.cells, series.counts[0], strict=True))
    assert verification._shows(release, row, complete=True)
    for name in series.cells[:2]:
        assert not verification._shows(release, {**row, name: 27}, complete=False)
        assert not verification._shows(release, {each: row[each] for each in row if each != name}, complete=True)
