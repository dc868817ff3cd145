from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest
from example_report import day_report, noisy_report, year_report
from thorough import one_in, thinned
from visit_jobs import BASIC, DAY, NOISY, TOWNS, dates, visits

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.report import job_report
from pkdp_pipeline.extras.report.job_report import NothingPublishedError
from pkdp_pipeline.extras.report.pages import gathering, render
from pkdp_pipeline.extras.report.pages import gathering as module
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.jobs import run_job
from pkdp_pipeline.jobs.session import backfill
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import GeometricNoise
from pkdp_pipeline.releases.printed import corrected
from pkdp_pipeline.releases.publish import Publication

pytestmark = pytest.mark.xdist_group("report")
ROOM = Path(module.__file__).parent


@pytest.fixture(scope="module", autouse=True)
def examples():
    """Gather the reports of examples before they are looked at."""
    for report in (day_report, noisy_report, year_report):
        report()


def report_of(*arguments, **options):
    """Return a report without its curves over what else may be assumed, which take nine tenths of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering, "knowledge_curves", lambda *_, **__: ())
        return job_report.report_of(*arguments, **options)


def ledger_of(job):
    return Ledger.open(job.ledger, dataset=job.dataset)


def test_the_room_knows_nothing_of_jobs():
    for path in ROOM.glob("*.py"):
        assert "pkdp_pipeline.jobs" not in path.read_text(encoding="utf-8"), path.name


def test_the_report_of_a_day_says_what_the_ledger_holds_of_it(job):
    read = job()
    for day in dates(3):
        result = run_job(read, day)
        if day == dates(2)[1]:
            middle = result
    report = report_of(read, dates(2)[1])
    (view,), (published,) = report.releases, middle.releases
    release = published.release
    assert (view.name, view.period, view.id, view.revision) == ("people_by_town", "2020-01-02", release.id, 1)
    assert view.table.columns == ("town",)
    assert dict(zip(view.table.keys, view.table.counts, strict=True)) == {("Bø",): 26, ("Ås",): 38}
    assert view.sentence == release.certificate.sentence()
    assert (view.k, view.error, view.rule) == (20, None, release.error.suppression)
    assert view.files == tuple(f"2020-01-02/{path.name}" for path in published.files)
    assert view.asked == "Distinct person by town: a cell is published only when it is at least k = 20."
    (promise,) = report.promises
    assert report.lead == promise.statement == Statement.of(release.certificate)
    assert promise.certificate == json.loads(release.certificate.to_json())
    assert Certificate.from_json(json.dumps(promise.certificate)).verify()
    assert promise.statement.epsilon == release.certificate.epsilon(1e-6)
    assert promise.scenarios[0].epsilon == promise.statement.epsilon
    assert (report.title, report.period, report.series, report.checks) == ("visits", "2020-01-02", (), ())
    assert report.provenance.head == middle.head
    assert (report.provenance.job, report.provenance.digest) == ("job", read.digest)
    with ledger_of(read) as ledger:
        assert report.ledger.head == ledger.head()
        assert report.ledger.total == Statement.of(ledger.total("person"))
        ledger.verify(head=report.provenance.head)
    assert (report.ledger.releases, report.ledger.waiting, report.ledger.unit) == (3, 0, "person")
    assert [point.releases for point in report.ledger.points] == [1, 2, 3]
    (budget,) = report.ledger.budgets
    assert budget.spent == report.ledger.total.epsilon == report.ledger.points[-1].epsilon


def test_the_report_of_a_job_has_its_newest_day_in_full_and_all_days_as_a_series():
    report = year_report()
    assert report.period == "2013-01-01 to 2013-01-30"
    assert [view.period for view in report.releases] == ["2013-01-30"]
    (series,) = report.series
    assert len(series.periods) == len(series.counts) == 30
    newest = dict(zip(series.cells, series.counts[-1], strict=True))
    table = report.releases[0].table
    assert {cell: count for cell, count in newest.items() if count is not None} == {
        key[0]: count for key, count in zip(table.keys, table.counts, strict=True)
    }
    frame = pd.read_parquet(Path(__file__).parents[4] / "examples/data/flights_2013.parquet")
    days = {day.isoformat(): rows for day, rows in frame.groupby("date")}
    for period, counts in zip(series.periods, series.counts, strict=True):
        true = days[period].groupby("carrier")["tailnum"].nunique()
        expected = [int(true[cell]) if true.get(cell, 0) >= 50 else None for cell in series.cells]
        assert list(counts) == expected
    total, single = report.promises
    assert report.lead == total.statement == report.ledger.total
    assert report.lead.sentence.startswith("Any one of 30 releases: private at ε = 1.16, δ = 1e-6")
    assert total.certificate["rule"] == "one_day_protected"
    assert (total.name, single.name, report.releases[0].promise) == ("everything published", "aircraft_by_carrier", 1)
    assert len(report.ledger.points) == 25
    assert report.ledger.points[-1].epsilon == report.lead.epsilon == total.scenarios[0].epsilon
    cited = [theorem for promise in report.promises for theorem in promise.statement.theorems]
    assert report.provenance.theorems == tuple(dict.fromkeys(cited))


def test_several_releases_a_day_add_up_by_their_noise():
    report = noisy_report()
    assert [view.name for view in report.releases] == ["aircraft", "aircraft_by_carrier_and_origin"]
    assert [promise.name for promise in report.promises] == ["everything published", *(v.name for v in report.releases)]
    assert [view.promise for view in report.releases] == [1, 2]
    assert report.lead.worst_case is not None
    assert report.lead.worst_case[0] == pytest.approx(7.0)
    for view in report.releases:
        assert view.sentence == report.promises[view.promise].statement.sentence
        assert view.error.bound_95 == 6
    count, cells = (view.table for view in report.releases)
    assert (count.columns, count.keys) == ((), ((),))
    assert len(cells.keys) == 18
    assert cells.counts.count(None) > 10
    assert [series.cells[0] for series in report.series] == ["count", "AA / EWR"]
    window, partial, worst = report.ledger.budgets
    assert (window.window_days, window.part) == (7, "worst_case")
    assert 6.9 < window.spent <= 7.0
    assert (partial.part, worst.part) == ("partial_knowledge", "worst_case")
    assert partial.spent <= worst.spent <= 7.0


def test_the_report_of_one_of_these_days_leads_with_what_they_add_up_to(job):
    read = job(NOISY, visits())
    result = run_job(read, DAY)
    report = report_of(read, DAY)
    total = report.promises[0]
    assert total.name == "everything published about 2020-01-01"
    assert report.lead == total.statement == Statement.of(result.together.total)
    assert report.lead_reason == ""
    assert [view.promise for view in report.releases] == [1, 2]
    declared = report.releases[1].table
    assert declared.keys == (("Ås",), ("Bø",), ("Secretville",))
    assert declared.counts[2] is None


def test_of_a_date_of_which_nothing_is_published_the_message_says_which_there_are(job):
    read = job()
    for day in dates(2):
        run_job(read, day)
    with pytest.raises(ArgumentError, match=r"2020-01-03.*2020-01-01 to 2020-01-02"):
        report_of(read, dates(3)[2])


def test_a_job_that_has_not_run_has_nothing_to_report(job, job_file):
    read = job()
    with pytest.raises(NothingPublishedError, match="pkdp run"):
        report_of(read)
    assert not Path(read.ledger).exists()
    run_job(read, DAY)
    for other in (
        BASIC.replace('dataset = "visits"', 'dataset = "others"'),
        BASIC.replace("k = 20", "k = 24"),
    ):
        with pytest.raises(NothingPublishedError, match="ledger or dataset"):
            report_of(job(other, name="other"))


def test_releases_of_other_jobs_count_and_are_not_shown(job):
    read = job(visits_text := BASIC)
    run_job(read, DAY)
    other = job(
        visits_text.replace("people_by_town", "elsewhere").replace("k = 20", "k = 22").replace('"out"', '"out2"'),
        name="other",
    )
    run_job(other, dates(2)[1])
    report = report_of(read)
    assert report.ledger.releases == 2
    assert [view.name for view in report.releases] == ["people_by_town"]
    assert report.period == "2020-01-01"
    assert report.lead == report.ledger.total
    (remark,) = report.ledger.remarks
    assert remark.startswith("1 release of the ledger is not of this job as its file is now")
    assert "elsewhere" not in render(report, "json")
    assert report.provenance.head != report.ledger.head


def test_the_newest_revision_is_shown(job, tmp_path):
    noisy = NOISY.replace("noise = { epsilon = 0.5 }", "noise = { epsilon = 0.25 }")
    read = job(noisy, visits())
    run_job(read, DAY)
    changed = visits(towns={**TOWNS, "Ås": 400})
    changed.to_parquet(tmp_path / "visits.parquet")
    result = run_job(read, DAY, revise=True)
    report = report_of(read, DAY)
    assert [view.revision for view in report.releases] == [2, 2]
    assert [view.id for view in report.releases] == [release.release.id for release in result.releases]
    assert report.releases[1].table.counts[0] > 300
    assert report.ledger.releases == 4
    (remark,) = report.ledger.remarks  # and none on what is not of this job
    assert remark.startswith("2 earlier tables of 2020-01-01")
    for text in (render(report, "md"), render(report, "md", "officer"), result.summary.read_text("utf-8")):
        assert text.count(corrected(2)) == 2
    assert corrected(1) == ""


def test_a_reservation_that_waits_is_counted_and_said(job):
    read = job()
    run_job(read, DAY)
    with ledger_of(read) as ledger:
        (publication,) = read.publications(dates(2)[1])
        Publication(question=publication.question, attacker=read.attacker_model(), ledger=ledger).reserve()
    report = report_of(read)
    assert (report.ledger.releases, report.ledger.waiting) == (2, 1)
    assert report.period == "2020-01-01"
    assert any("charged and not public" in remark for remark in report.ledger.remarks)


@pytest.mark.usefixtures("undrawn")
def test_where_releases_do_not_add_up_there_is_no_lead_but_a_reason(job):
    plain = "\n".join(line for line in BASIC.splitlines() if not line.strip().startswith(("budget", "evidence")))
    unit = 'missing_unit = "drop"'
    two = plain.replace(unit, unit + '\n    evidence = { kind = "bounded_dependence", epsilon = 0.1 }').replace(
        "[output]", '[[release]]\n    name = "people"\n    k = 20\n    [output]'
    )
    run_job(job(two), DAY)
    read = job(plain.replace(unit, unit + '\n    evidence = { kind = "independent_given_habits" }'))
    run_job(read, dates(2)[1])
    report = report_of(read)
    assert report.lead is None
    assert "do not add up" in report.lead_reason
    assert report.ledger.total is None
    assert report.ledger.reason == report.lead_reason
    assert report.ledger.points[-1].epsilon == math.inf
    assert report.promises[0].name.startswith("people_by_town")
    for form in ("md", "json"):
        assert "do not add up" in render(report, form)
    of_day = report_of(read, DAY)
    assert of_day.lead is None
    assert "The ledger holds 2 releases about these people on 2020-01-01" in of_day.lead_reason


def test_what_is_declared_about_one_day_counts_for_its_lead(job):
    text = (
        BASIC.replace('{ kind = "one_day_protected" }', '{ kind = "bounded_dependence", epsilon = 0.1 }')
        .replace("[output]", '[[release]]\n    name = "people"\n    k = 20\n    [output]')
        .replace("epsilon = 9.0", "epsilon = 99.0")
    )
    read = job(text)
    result = run_job(read, DAY)
    assert result.together.total is None
    report = report_of(read, DAY)
    assert report.lead == report.promises[0].statement
    assert report.lead.sentence.startswith("2 releases together: private at ε = ")
    assert report.lead.epsilon == report.ledger.total.epsilon
    assert [view.promise for view in report.releases] == [1, 2]


def test_other_privacy_units_are_named_and_not_added(job):
    frame = visits().assign(house=lambda table: table["person"])
    read = job(frame=frame)
    run_job(read, DAY)
    other = job(
        BASIC.replace('unit = "person"', 'unit = "house"').replace('"out"', '"out2"'), frame=frame, name="other"
    )
    run_job(other, dates(2)[1])
    report = report_of(read)
    assert report.ledger.releases == 1
    assert any("'house'" in remark for remark in report.ledger.remarks)


PARTLY = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    ledger = "ledger/visits.sqlite"

    [attacker]
    p_min = 0.5
    p_max = 0.5
    unknown = 2000

    [[release]]
    name = "people"
    noise = { epsilon = 0.7 }

    [output]
    directory = "out"
"""

#: What an attacker without a model is told; the job's own noise is not.
OTHER = PARTLY.replace("p_min = 0.5", "").replace("p_max = 0.5", "").replace("unknown = 2000", "").replace("0.7", "0.3")


def all_numbers(report):
    """Every ε that the report claims, besides that of the lead."""
    return [point.epsilon for point in report.ledger.points] + [
        epsilon
        for promise in report.promises
        for epsilon in (promise.statement.epsilon, *(scenario.epsilon for scenario in promise.scenarios))
    ]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("later", one_in(2, [0, 1]))
def test_no_number_is_below_the_total_when_another_unit_stands_in_the_ledger(job, later):
    frame = visits().assign(house=lambda table: table["person"])
    read = job(PARTLY, frame)
    run_job(read, DAY)
    alone = report_of(read)
    assert alone.lead.epsilon < 0.2
    other = job(OTHER.replace('"person"', '"house"').replace('"out"', '"out2"'), frame, name="other")
    run_job(other, dates(2)[later])
    report = report_of(read)
    with ledger_of(read) as ledger:
        total = ledger.total("person")
    assert report.lead == report.ledger.total == Statement.of(total)
    assert total.epsilon(1e-6) > 0.6
    assert "house" in report.lead.sentence
    assert report.ledger.points[-1].epsilon == total.epsilon(1e-6)
    assert min(all_numbers(report)) >= total.epsilon(1e-6)
    of_day = report_of(read, DAY)
    assert min(all_numbers(of_day)) >= total.epsilon(1e-6)
    assert of_day.lead is None or of_day.lead.epsilon >= total.epsilon(1e-6)
    if not later:
        assert "different units" in of_day.lead_reason
    page = render(of_day, "html")
    assert "keeps its own promise" not in page
    assert "comes on top" in page.partition('id="promise"')[2].partition('id="strength"')[0]


@thinned(2)
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("day", [None, DAY])
def test_what_others_beside_it_undo_is_promised_no_more(job, day):
    read = job(PARTLY)
    run_job(read, DAY)
    assert report_of(read, day).promises[0].statement.epsilon < 0.2
    by_town = '    by = "town"\n    domain = { town = ["Ås", "Bø", "Secretville"] }\n    noise'
    other = job(
        OTHER.replace("    noise", by_town).replace('"people"', '"towns"').replace('"out"', '"out2"'), name="other"
    )
    run_job(other, DAY)
    report = report_of(read, day)
    assert report.lead == report.promises[0].statement
    assert report.lead.epsilon >= 1.0 - 1e-4
    _, left = report.promises
    assert 0.69 < left.statement.epsilon <= 0.7
    assert min(all_numbers(report)) > 0.69
    certificate = Certificate.from_json(json.dumps(left.certificate))
    assert certificate.verify()
    assert not certificate.has_partial_knowledge
    (view,) = report.releases
    assert view.sentence == left.statement.sentence
    assert view.sentence.startswith("Private at ε = 0.7, δ = 0 against anyone at all")
    assert "only its noise counts" in view.sentence
    for form in ("html", "md"):
        page = render(report, form)
        assert "ε = 0.168" not in page
        assert "power 0.168" not in page


def test_without_evidence_other_dates_undo_it_too(job):
    read = job(PARTLY)
    for date in dates(2):
        run_job(read, date)
    for report in (report_of(read), report_of(read, DAY)):
        assert min(all_numbers(report)) > 0.69
        assert report.lead.epsilon > 0.69


@pytest.mark.slow
def test_with_what_is_declared_each_date_keeps_what_it_promises(job, monkeypatch):
    for long in ("knowledge_curves", "what_if"):
        monkeypatch.setattr(gathering, long, lambda *arguments, **named: ())
    read = job(PARTLY.replace("[attacker]", 'evidence = { kind = "independent_given_habits" }\n    [attacker]'))
    for date in dates(2):
        run_job(read, date)
    report = report_of(read)
    assert report.promises[1].statement.epsilon < 0.2 < report.lead.epsilon
    assert report.lead.epsilon == report.ledger.total.epsilon == report.ledger.points[-1].epsilon


def test_what_only_holds_by_itself_says_so(job):
    text = BASIC.replace('{ kind = "one_day_protected" }', '{ kind = "bounded_dependence", epsilon = 0.1 }').replace(
        "epsilon = 9.0", "epsilon = 99.0"
    )
    read = job(text)
    run_job(read, DAY)
    assert [promise.name for promise in report_of(read).promises] == ["people_by_town"]
    more = text.replace("people_by_town", "people").replace('    by = "town"\n', "").replace('"out"', '"out2"')
    run_job(job(more, name="other"), DAY)
    report = report_of(read)
    assert [promise.name for promise in report.promises] == ["everything published", "people_by_town, by itself"]
    assert "about the release by itself" in report.releases[0].sentence


@pytest.mark.usefixtures("undrawn")
def test_the_public_hears_of_no_period_but_those_the_job_published(job):
    read = job(PARTLY)
    run_job(read, DAY)
    with ledger_of(read) as ledger:
        visits().pkdp.count(
            unit="person",
            attacker=AttackerModel(),
            noise=GeometricNoise(0.0625),
            ledger=ledger,
            period="clinic /home/alice/x.csv",
        )
        (publication,) = read.publications(dates(2)[1])
        Publication(question=publication.question, attacker=read.attacker_model(), ledger=ledger).reserve()
        total = ledger.total()
    public, auditor = (report_of(read, audience=audience) for audience in ("public", "auditor"))
    assert [(point.period, point.releases) for point in public.ledger.points] == [("2020-01-01", 3)]
    assert public.ledger.points[-1].epsilon == auditor.ledger.points[-1].epsilon == total.epsilon(1e-6)
    assert len(auditor.ledger.points) == 3
    assert auditor.promises[0].certificate["rule"]
    for report in (public, report_of(read, DAY)):
        for form in ("html", "md", "json"):
            text = render(report, form)
            for hidden in ("clinic", "alice", "2020-01-02", "0.0625", "stopped"):
                assert hidden not in text, (form, hidden)
    assert json.loads(render(public, "json"))["promises"][0]["certificate"] is None
    assert "is in an auditor" in render(public, "html")
    assert "clinic" in render(auditor, "md")
    assert any("was stopped" in remark for remark in auditor.ledger.remarks)


@pytest.mark.usefixtures("undrawn")
def test_a_job_that_has_changed_says_that_dates_are_missing_and_lists_what_is_there(job):
    read = job()
    run_job(read, DAY)
    changed = job(BASIC.replace("k = 20", "k = 24"))
    run_job(changed, dates(2)[1])
    report = report_of(changed)
    assert report.period == "2020-01-02"
    (remark,) = report.ledger.remarks
    assert "as its file is now" in remark
    assert remark in render(report, "html").partition('id="promise"')[2].partition('id="strength"')[0]
    with pytest.raises(ArgumentError, match="as its file is now"):
        report_of(changed, DAY)
    assert report.releases[0].files == (
        "2020-01-02/people_by_town.parquet",
        "2020-01-02/people_by_town.certificate.json",
    )
    renamed = job(BASIC.replace("k = 20", "k = 24").replace("people_by_town", "towns"))
    (view,) = report_of(renamed).releases
    assert (view.name, view.files) == ("towns", ())
    page = render(report_of(renamed), "html")
    assert "towns.parquet" not in page
    assert "read_release(" not in page
    more = job(BASIC.replace("k = 20", "k = 24").replace("[output]", '[output]\n    formats = ["csv", "parquet"]'))
    assert report_of(more).releases[0].files == report.releases[0].files


def test_another_attacker_makes_another_promise_about_the_dates_it_is_for(job):
    for number, day in enumerate(dates(3)):
        text = BASIC.replace("p_max = 0.1", "p_max = 0.1" if number < 2 else "p_max = 0.2")
        read = job(text)
        run_job(read, day)
    report = report_of(read)
    assert [promise.name for promise in report.promises] == [
        "everything published",
        "people_by_town (2020-01-03)",
        "people_by_town (2020-01-01 to 2020-01-02)",
    ]
    assert report.releases[0].promise == 1
    weaker, stronger = report.promises[1:]
    assert weaker.statement.epsilon > stronger.statement.epsilon


def test_the_same_promise_is_made_once_and_by_the_latest_certificate(job):
    read = job()
    for day in dates(3):
        last = run_job(read, day)
    report = report_of(read)
    _, promise = report.promises
    assert promise.certificate == json.loads(last.releases[0].release.certificate.to_json())


def test_at_another_delta_every_epsilon_is_stated_there(job):
    read = job()
    run_job(read, DAY)
    report = report_of(read, delta=1e-4)
    certificate = Certificate.from_json(json.dumps(report.promises[0].certificate))
    assert report.lead.epsilon == certificate.epsilon(1e-4) < certificate.epsilon(1e-6)
    assert report.ledger.delta == 1e-4
    assert report.ledger.budgets[0].delta == 1e-6
    assert "δ = 0.0001" in report.releases[0].sentence
    declared = job(BASIC.replace("[attacker]", "target = { delta = 1e-4 }\n\n[attacker]"))
    assert report_of(declared).lead == report.lead


def test_an_auditor_sees_the_rules_of_the_input_and_where_the_ledger_is(job):
    read = job()
    run_job(read, DAY)
    public, auditor = (report_of(read, audience=audience) for audience in ("public", "auditor"))
    assert public.checks == ()
    assert "column 'town' must exist" in [check.rule for check in auditor.checks]
    assert all(check.passed for check in auditor.checks)
    assert read.ledger in auditor.ledger.verify
    assert public.ledger.verify == f"pkdp ledger verify LEDGER --head {public.ledger.head}"
    with pytest.raises(ArgumentError, match="audience"):
        report_of(read, audience="everybody")


def test_what_is_withheld_appears_nowhere(job):
    towns = {"Ås": 8111, "Bø": 9222, "Secretville": 7393, "Hushtown": 6481}
    read = job(BASIC.replace("k = 20", "k = 8000"), visits(days=1, towns=towns))
    run_job(read, DAY)
    public, auditor = report_of(read, DAY), report_of(read, audience="auditor")
    # The pictures are those of one day in both.
    for report, forms in ((public, ("md", "json", "html")), (auditor, ("md", "json"))):
        for form in forms:
            text = render(report, form)
            assert "Bø" in text
            assert "9222" in text.replace(",", "").replace("\u202f", "")
            for secret in ("Secretville", "Hushtown"):
                assert secret not in text
            # Alone, in all, together withheld, and how many cells.
            for number in (7393, 6481, sum(towns.values()), 7393 + 6481):
                digits = re.sub(r"(?<=\d)[,\u202f\u00a0](?=\d{3})", "", text)
                assert not re.search(rf"(?<![\d.a-f]){number}(?![\d.a-f])", digits)


def test_a_report_is_made_of_frozen_values():
    report = day_report()
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.title = "other"
    assert hash(report.releases) == hash(report.releases)


def test_a_report_changes_nothing(job, tmp_path):
    read = job()
    run_job(read, DAY)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    Path(tmp_path / "visits.parquet").unlink()  # no data are read
    report_of(read, audience="auditor")
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    after = {path: content for path, content in after.items() if path.suffix not in (".sqlite-wal", ".sqlite-shm")}
    assert {path: before[path] for path in after} == after
    with ledger_of(read) as ledger:
        assert len(list(ledger.entries())) == 1


@pytest.mark.slow
def test_equal_ledgers_have_equal_reports(job):
    read = job()
    backfill(read, *dates(2))
    for form in ("md", "json"):
        assert render(report_of(read), form) == render(report_of(read), form)
