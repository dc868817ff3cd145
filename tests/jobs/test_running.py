from __future__ import annotations

import json
import logging
import sqlite3
import textwrap
from datetime import date
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from thorough import thinned

from pkdp_pipeline import jobs
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.cli.job_views import print_result
from pkdp_pipeline.errors import (
    ConfigError,
    DifferencingError,
    InputCheckError,
    NotCertifiableError,
    TemporaryError,
)
from pkdp_pipeline.jobs import checks, load_job, run_job, session
from pkdp_pipeline.jobs.dry_run import OWNER_FILE, plan_job
from pkdp_pipeline.jobs.outputs.files import LOCK_FILE
from pkdp_pipeline.ledger import Ledger, database
from pkdp_pipeline.model.evidence import OneDayProtected
from pkdp_pipeline.releases.release import read_release

DAY = date(2020, 1, 1)
NEXT_DAY = date(2020, 1, 2)
NOISY = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    missing_unit = "drop"
    ledger = "out/ledger.sqlite"

    [[release]]
    name = "people"
    noise = { epsilon = 0.5 }

    [[release]]
    name = "people_by_town"
    by = "town"
    k = 2
    noise = { epsilon = 0.25 }
    release_threshold = 3

    [output]
    directory = "out/noisy"
"""


def entries(job):
    if not Path(job.ledger).exists():
        return []
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        return list(ledger.entries())


def files(job) -> dict[str, bytes]:
    folder = Path(job.output.directory)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "sqlite" not in path.name and path.name not in (LOCK_FILE, OWNER_FILE)
    }


def test_one_date_publishes_the_cells_that_reach_k_and_leaves_no_trace_of_others(job_file, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    job = load_job(job_file())
    result = run_job(job, DAY)
    (published,) = result.releases
    assert not result.replayed
    assert result.together is None
    assert dict(published.release.table.itertuples(index=False, name=None)) == {"Ås": 7, "Bø": 5}
    written = files(job)
    assert sorted(written) == [
        "2020-01-01/people_by_town.certificate.json",
        "2020-01-01/people_by_town.parquet",
        "2020-01-01/summary.md",
    ]
    for content in [*written.values(), Path(job.ledger).read_bytes(), "".join(capfd.readouterr()).encode()]:
        assert b"Secretville" not in content
    assert "Secretville" not in caplog.text
    title = "'people_by_town' of 2020-01-01 in data set 'visits'"
    ours = [record.getMessage() for record in caplog.records if record.name == "pkdp_pipeline"]
    assert ours == [f"charged: {title}", f"published: {title}, release {published.release.id}"]


def test_the_files_are_what_the_ledger_holds(job_file):
    job = load_job(job_file())
    result = run_job(job, DAY)
    (entry,) = entries(job)
    written = files(job)
    path = Path(job.output.directory) / "2020-01-01" / "people_by_town.parquet"
    shown = pd.read_parquet(path)
    assert list(shown) == ["period", *result.releases[0].release.table]
    assert set(shown["period"]) == {DAY}
    release = read_release(path)
    assert release.to_bytes() == entry.content
    assert release.id == entry.release_id == result.releases[0].release.id
    certificate = Certificate.from_json(written["2020-01-01/people_by_town.certificate.json"].decode())
    assert certificate == release.certificate
    assert json.loads(entry.certificate) == json.loads(certificate.to_json())
    assert (entry.period, entry.unit, entry.noiseless) == ("2020-01-01", ("person",), True)


def test_the_statement_is_about_this_period_alone_and_says_so(job_file):
    job = load_job(job_file())
    sentence = run_job(job, DAY).releases[0].release.certificate.sentence()
    assert "2020-01-01" in sentence
    assert "alone" in sentence
    summary = files(job)["2020-01-01/summary.md"].decode()
    assert sentence in summary
    assert "| Ås | 7 |" in summary


def test_the_same_date_replays_without_its_source_and_makes_the_files_again(job_file):
    job = load_job(job_file())
    first = run_job(job, DAY)
    before = files(job)
    Path(job.source.files[0]).unlink()
    for path in (Path(job.output.directory) / "2020-01-01").iterdir():
        path.unlink()
    again = run_job(job, DAY)
    assert again.replayed
    assert again.releases[0].release.id == first.releases[0].release.id
    assert files(job) == before
    assert len(entries(job)) == 1


def test_changed_data_are_not_read_again(job_file):
    path = job_file()
    before = run_job(load_job(path), DAY).releases[0].release.table
    frame = pd.DataFrame({"day": [DAY] * 9, "person": list("abcdefghi"), "town": ["Ås"] * 9})
    frame.to_parquet(path.parent / "visits.parquet")
    again = run_job(load_job(path), DAY)
    assert again.replayed
    pd.testing.assert_frame_equal(again.releases[0].release.table, before)


def test_a_changed_attacker_or_output_replays(job_file, basic):
    run_job(load_job(job_file()), DAY)
    changed = basic.replace("p_max = 0.5", "p_max = 0.6").replace('directory = "out"', 'directory = "elsewhere"')
    job = load_job(job_file(changed))
    assert run_job(job, DAY).replayed
    assert len(files(job)) == 3


EVIDENCE = 'evidence = { kind = "one_day_protected" }\n'


def test_another_date_of_a_noiseless_job_needs_evidence(job_file):
    job = load_job(job_file())
    assert run_job(job, DAY).total.rule == "single"
    Path(job.source.files[0]).unlink()
    with pytest.raises(DifferencingError, match="one_day_protected"):
        run_job(job, NEXT_DAY)
    assert [entry.period for entry in entries(job)] == ["2020-01-01"]


def test_another_date_is_another_release(job_file, basic):
    job = load_job(job_file(EVIDENCE + basic))
    run_job(job, DAY)
    result = run_job(job, NEXT_DAY)
    assert not result.replayed
    assert (result.total.releases, result.total.rule) == (2, "one_day_protected")
    assert [entry.period for entry in entries(job)] == ["2020-01-01", "2020-01-02"]


def test_a_failed_check_charges_nothing_and_writes_nothing(job_file, basic):
    job = load_job(job_file(basic + "\n[checks]\nrows = { min = 1 }\n"))
    with pytest.raises(InputCheckError, match="the number of rows"):
        run_job(job, date(2021, 1, 1))
    assert entries(job) == []
    assert files(job) == {}


ASKED = [
    'by = "town"\nk = 5',
    'by = "day"\nk = 5',
    "k = 5",
    'by = "town"\nk = 5\ndomain = ["Ås", "Bø"]\nundeclared = "absent"',
    'by = "town"\nk = 5\nwhere = "person != \'x\'"\none_cell = "most_frequent"',
]


@thinned(2)
@pytest.mark.parametrize(
    ("declaration", "engine"),
    [
        *((declaration, "duckdb") for declaration in ASKED),
        *(pytest.param(declaration, "spark", marks=pytest.mark.spark) for declaration in ASKED[3:]),
    ],
    indirect=["engine"],
    ids=str,
)
def test_a_day_without_rows_is_published_like_one_that_reaches_nothing(job_file, basic, declaration, engine):
    """Nobody there, and too few there, cannot be told apart: the same files, keys and dtypes."""
    text = f'engine = "{engine}"\nevidence = {{ kind = "one_day_protected" }}\n{basic}'
    job = load_job(job_file(text.replace('by = "town"\nk = 5', declaration).replace("k = 5", "k = 100")))
    few, none = (run_job(job, day) for day in (DAY, date(2021, 1, 1)))
    assert [path.name for path in none.releases[0].files] == [path.name for path in few.releases[0].files]
    assert none.summary.read_text().splitlines()[2:10] == few.summary.read_text().splitlines()[2:10]
    tables = [result.releases[0].release.table for result in (few, none)]
    pd.testing.assert_frame_equal(*tables)
    assert [entry.state for entry in entries(job)] == ["published", "published"]


@thinned(2)
@pytest.mark.parametrize("kind", ["csv", "duckdb"])
def test_so_it_is_with_other_sources(job_file, basic, tmp_path, kind):
    file = job_file('evidence = { kind = "one_day_protected" }\n' + basic.replace("k = 5", "k = 100"))
    frame = pd.read_parquet(tmp_path / "visits.parquet")
    source = '"visits.csv"'
    if kind == "csv":
        frame.to_csv(tmp_path / "visits.csv", index=False)
    else:
        source = '{ duckdb = "visits.duckdb", table = "visits" }'
        with duckdb.connect(str(tmp_path / "visits.duckdb")) as connection:
            connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    file.write_text(file.read_text(encoding="utf-8").replace('"visits.parquet"', source), encoding="utf-8")
    few, none = (run_job(load_job(file), day).releases[0].release.table for day in (DAY, date(2021, 1, 1)))
    pd.testing.assert_frame_equal(few, none)


def test_an_unreadable_source_or_a_column_that_it_lacks_leaves_nothing_and_charges_nothing(job_file, basic):
    missing = load_job(job_file(basic.replace('by = "town"', 'by = "twon"')))
    with pytest.raises(ConfigError, match=r"'twon' .* did you mean 'town'"):
        run_job(missing, DAY)
    job = load_job(job_file('evidence = { kind = "one_day_protected" }\n' + basic))
    rows = Path(job.source.files[0]).read_bytes()
    Path(job.source.files[0]).write_bytes(b"no parquet")
    with pytest.raises(ConfigError, match="source"):
        run_job(job, DAY)
    assert not Path(job.ledger).exists()
    assert not Path(job.output.directory).exists()
    Path(job.source.files[0]).write_bytes(rows)
    run_job(job, DAY)
    Path(job.source.files[0]).write_bytes(b"no parquet")
    with pytest.raises(ConfigError, match="source"):
        run_job(job, NEXT_DAY)
    assert len(entries(job)) == 1


def test_what_cannot_be_certified_is_refused_before_data_are_read(job_file, basic):
    job = load_job(job_file(basic.replace("p_max = 0.5", "p_max = 1.0")))
    Path(job.source.files[0]).unlink()
    with pytest.raises(NotCertifiableError):
        run_job(job, DAY)
    assert entries(job) == []


def test_two_views_are_refused_before_anything_is_opened(job_file, basic):
    two = basic.replace("[output]", '[[release]]\nname = "people"\nk = 5\n\n[output]')
    job = load_job(job_file(two))
    Path(job.source.files[0]).unlink()
    with pytest.raises(DifferencingError, match="cross-tabulated"):
        run_job(job, DAY)
    assert not Path(job.ledger).exists()


def test_one_noiseless_view_among_noised_ones_is_refused(job_file):
    text = NOISY.replace("k = 2\n    noise = { epsilon = 0.25 }\n    release_threshold = 3", "k = 5")
    with pytest.raises(DifferencingError):
        run_job(load_job(job_file(text)), DAY)


def test_noise_without_a_finite_worst_case_does_not_help(job_file):
    text = NOISY.replace("    release_threshold = 3\n", "").replace("k = 2", 'k = 2\n    domain = ["Ås"]')
    with pytest.raises(DifferencingError):
        run_job(load_job(job_file(text)), DAY)


@pytest.mark.parametrize("noisy_first", [True, False])
def test_both_kinds_of_job_on_one_ledger_are_refused_whichever_comes_first(job_file, basic, noisy_first):
    first, second = (NOISY, basic) if noisy_first else (basic, NOISY)
    job = load_job(job_file(first))
    run_job(job, DAY)
    entries_before = entries(job)
    other = load_job(job_file(second))
    Path(other.source.files[0]).unlink()
    with pytest.raises(DifferencingError, match="Ways out"):
        run_job(other, DAY)
    assert entries(job) == entries_before


def test_noised_releases_claim_the_worst_case_only_and_it_adds_up(job_file):
    job = load_job(job_file(NOISY))
    result = run_job(job, DAY)
    parts = [published.release.certificate.worst_case.parameters for published in result.releases]
    assert [published.release.certificate.has_partial_knowledge for published in result.releases] == [
        False,
        False,
    ]
    epsilon, delta = result.together.total.worst_case.parameters
    assert result.together.releases == 2
    assert epsilon == pytest.approx(0.75)
    assert epsilon >= parts[0][0] + parts[1][0]
    assert 0 < delta < 1
    assert delta == pytest.approx(parts[0][1] + parts[1][1])
    summary = result.summary.read_text(encoding="utf-8")
    assert "2 releases together: private at ε = 0.7" in summary
    assert f"the ledger's chain: `{result.head}`." in summary
    assert "With noise: 95 % of such numbers are within ±" in summary
    assert run_job(job, DAY).summary.read_text(encoding="utf-8") == summary


def test_a_noised_release_beside_one_in_the_ledger_is_not_alone(job_file):
    single = (
        NOISY[: NOISY.index('    [[release]]\n    name = "people_by_town"')] + '    [output]\n    directory = "out"\n'
    )
    attacker = "    [attacker]\n    p_max = 0.5\n    p_min = 0.5\n    unknown = 1000\n\n    [[release]]"
    single = single.replace("    [[release]]", attacker)
    first = run_job(load_job(job_file(single)), DAY)
    assert first.releases[0].release.certificate.has_partial_knowledge
    assert first.together is None
    other = single.replace('name = "people"', 'name = "people_in_town"\n    where = "town"').replace(
        '"town"', '"in_town"'
    )
    frame = pd.DataFrame({"day": [DAY] * 3, "person": list("abc"), "in_town": [True, False, True]})
    second = run_job(load_job(job_file(other, frame)), DAY)
    assert not second.releases[0].release.certificate.has_partial_knowledge
    assert second.together.total.worst_case.parameters == (1.0, 0.0)


def test_the_same_request_under_two_names_is_a_config_error(job_file, basic):
    two = basic.replace("[output]", '[[release]]\nname = "again"\nby = "town"\nk = 5\n\n[output]')
    with pytest.raises(ConfigError, match="ask for the same"):
        run_job(load_job(job_file(two)), DAY)


def test_a_crash_between_charging_and_writing_is_repaired_by_running_again(job_file, monkeypatch):
    job = load_job(job_file())

    def crash(*arguments):
        raise OSError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(session, "write_period", crash)
        with pytest.raises(OSError, match="power cut"):
            run_job(job, DAY)
    assert len(entries(job)) == 1
    assert files(job) == {}
    Path(job.source.files[0]).unlink()
    assert run_job(job, DAY).replayed
    assert len(files(job)) == 3
    assert len(entries(job)) == 1


def test_a_crash_between_two_releases_charges_each_once(job_file, monkeypatch):
    job = load_job(job_file(NOISY))
    publish = session.publish
    calls = []

    def crash_at_the_second(source, publication, **names):
        calls.append(publication.alone)
        if len(calls) == 2:
            raise OSError("power cut")
        return publish(source, publication, **names)

    with monkeypatch.context() as patch:
        patch.setattr(session, "publish", crash_at_the_second)
        with pytest.raises(OSError, match="power cut"):
            run_job(job, DAY)
    assert [entry.state for entry in entries(job)] == ["published", "reserved"]  # a day is charged together
    assert calls == [False, False]
    result = run_job(job, DAY)
    assert [published.release.replayed for published in result.releases] == [True, False]
    assert len(entries(job)) == 2


def test_a_day_that_stops_right_after_its_charge_is_charged_once(job_file, monkeypatch):
    job, charge_day = load_job(job_file(NOISY)), session.charge_day

    def charge_and_stop(*arguments):
        charge_day(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(session, "charge_day", charge_and_stop)
        with pytest.raises(KeyboardInterrupt):
            run_job(job, DAY)
    assert [entry.state for entry in entries(job)] == ["reserved"] * 2
    assert not run_job(job, DAY).replayed
    assert [entry.state for entry in entries(job)] == ["published"] * 2
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        ledger.verify()
        states = [entry.state for entry in ledger.entries(given_back=True)]
    assert states == ["given_back"] * 2 + ["published"] * 2


def test_a_release_whose_data_are_not_as_declared_stops_the_others_before_anything_is_charged(job_file):
    frame = pd.DataFrame({"day": [DAY] * 2, "person": ["a", "a"], "town": ["Ås", "Bø"]})
    job = load_job(job_file(NOISY, frame))
    with pytest.raises(InputCheckError, match="release 'people_by_town'"):
        run_job(job, DAY)
    assert entries(job) == []


def test_a_release_that_fails_after_another_says_what_was_published_and_writes_it(job_file, monkeypatch):
    job = load_job(job_file(NOISY))
    publish = session.publish

    def locked_at_the_second(source, publication, **names):
        if publication.question.by:
            raise TemporaryError("the ledger is locked by another process; try again later.")
        return publish(source, publication, **names)

    with monkeypatch.context() as patch:
        patch.setattr(session, "publish", locked_at_the_second)
        with pytest.raises(TemporaryError) as caught:
            run_job(job, DAY)
    assert "release 'people_by_town'" in str(caught.value)
    assert "Only 'people' was published" in str(caught.value)
    states = [(entry.label, entry.state) for entry in entries(job)]
    assert states == [("people", "published"), ("people_by_town", "reserved")]
    assert sorted(files(job)) == ["2020-01-01/people.certificate.json", "2020-01-01/people.parquet"]
    assert [published.release.replayed for published in run_job(job, DAY).releases] == [True, False]


def test_a_locked_ledger_is_temporary_and_charges_nothing(job_file, basic, monkeypatch):
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.05)
    job = load_job(job_file(EVIDENCE + basic))
    run_job(job, NEXT_DAY)
    blocker = sqlite3.connect(job.ledger, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(TemporaryError):
        run_job(job, DAY)
    blocker.close()
    assert [entry.period for entry in entries(job)] == ["2020-01-02"]
    assert not run_job(job, DAY).replayed


def test_a_composite_unit_and_composite_cells(job_file, basic):
    text = basic.replace('unit = "person"', 'unit = ["person", "house"]').replace('by = "town"', 'by = ["town", "sex"]')
    frame = pd.DataFrame(
        {
            "day": [DAY] * 12,
            "person": [1, 2, 3] * 4,
            "house": [1, 1, 1, 2, 2, 2] * 2,
            "town": ["Ås"] * 12,
            "sex": ["f"] * 12,
        }
    )
    (published,) = run_job(load_job(job_file(text, frame)), DAY).releases
    assert list(published.release.table.itertuples(index=False, name=None)) == [("Ås", "f", 6)]


def test_declared_cells_that_are_withheld_or_empty_look_the_same(job_file, basic):
    text = basic.replace('by = "town"', 'by = "town"\ndomain = ["Secretville", "Nowhere", "Bø", "Ås"]')
    result = run_job(load_job(job_file(text)), DAY)
    summary = result.summary.read_text(encoding="utf-8")
    assert "| Secretville | suppressed |" in summary
    assert "| Nowhere | suppressed |" in summary
    assert "| Ås | 7 |" in summary


def test_the_public_names_of_the_room():
    assert jobs.__all__ == ["Job", "JobRelease", "JobResult", "JobSession", "load_job", "run_job"]


def test_two_noiseless_views_under_bounded_dependence_keep_their_statements(job_file, basic):
    text = 'evidence = { kind = "bounded_dependence", epsilon = 0.5 }\n' + basic
    text = text.replace(
        "[output]", '[[release]]\nname = "people_of_every_town"\nwhere = "day == day"\nk = 5\n\n[output]'
    )
    result = run_job(load_job(job_file(text)), DAY)
    assert [published.release.certificate.has_partial_knowledge for published in result.releases] == [True, True]
    assert [published.release.certificate.context.beside for published in result.releases] == [True, True]
    assert (result.total.rule, result.total.releases) == ("bounded_dependence", 2)
    assert run_job(load_job(job_file(text)), DAY).replayed


def test_a_coarser_display_in_a_job_is_derived_and_the_job_goes_on(job_file, basic, capsys):
    second = """
    [[release]]
    name = "rounded"
    by = "town"
    k = 5
    display = { rounding = 5, mode = "down" }

    [output]"""
    coarser = textwrap.dedent(basic).replace("[output]", textwrap.dedent(second))
    path = job_file(coarser)
    planned = plan_job(load_job(path), [DAY])
    assert [release.outcome for release in planned.days[0].releases] == ["publish", "replay"]
    result = run_job(load_job(path), DAY)
    first, derived = (release.release for release in result.releases)
    assert dict(derived.table.itertuples(index=False, name=None)) == {"Ås": 5, "Bø": 5}
    assert first.certificate.has_partial_knowledge
    assert derived.certificate.derived_from == first.certificate.mechanism
    assert [entry.label for entry in entries(load_job(path))] == ["people_by_town"]
    print_result(result)
    assert "derived: another display of it was published before; no data was read" in capsys.readouterr().out
    # The folder is known to the ledger; the next day adds one release, and the first day is replayed.
    before = files(load_job(path))
    assert run_job(load_job(path), DAY).replayed
    assert files(load_job(path)) == before
    with Ledger.open(load_job(path).ledger, dataset="visits", evidence=OneDayProtected()) as ledger:
        assert len(list(ledger.entries())) == 1
    # The finer one after the coarser one does not follow from it.
    finer_last = coarser.replace("k = 5\n", "k = 5\ndisplay = { bands = [0, 10] }\n", 1)
    with pytest.raises(DifferencingError, match="thresholds"):
        plan_job(load_job(job_file(finer_last.replace('"out', '"other'))), [DAY])


def test_rows_that_come_while_they_are_counted_are_no_defect(job_file, basic, monkeypatch):
    path = job_file(basic)
    file = path.with_name("visits.parquet")
    rows = pd.read_parquet(file)
    rows.iloc[:1].to_parquet(file)

    def counted(frame, question, real=checks.count_units):
        rows.to_parquet(file)
        return real(frame, question)

    monkeypatch.setattr(checks, "count_units", counted)
    assert len(run_job(load_job(path), DAY).releases[0].release.table) == 2


def test_a_coarser_display_has_the_promise_of_the_finer_one(job_file, basic):
    second = '[[release]]\nname = "rounded"\nby = "town"\nk = 5\ndisplay = { rounding = 5 }\nprotects = "value"\n'
    path = job_file(basic.replace("[output]", f"{second}attacker = {{ p_max_between = 0.6 }}\n[output]"))
    for run in (run_job, lambda job, day: plan_job(job, [day])):
        with pytest.raises(ConfigError, match="'rounded' shows 'people_by_town'"):
            run(load_job(path), DAY)
    assert not (path.parent / "out").exists()


def test_a_release_certified_anew_is_refused_before_another_is_charged(job_file, basic):
    text = basic.replace("p_max = 0.5", "p_max = 0.1").replace('"none"', "{ epsilon = 3.0, delta = 0.3 }")
    text = 'evidence = { kind = "bounded_dependence", epsilon = 0.5 }\n' + text
    run_job(load_job(job_file(text)), DAY)
    before = entries(load_job(job_file(text)))
    own = "attacker = { p_max = 0.9 }\n"
    other = '[[release]]\nname = "everybody"\nk = 5\n[[release]]\nname = "people_by_town"'
    edited = text.replace('[[release]]\nname = "people_by_town"', other).replace("k = 5\n\n", f"k = 5\n{own}\n")
    job = load_job(job_file(edited))
    assert isinstance(plan_job(job, [DAY]).refused.refused, NotCertifiableError)
    with pytest.raises(NotCertifiableError):
        run_job(job, DAY)
    assert entries(job) == before


def test_a_revised_release_is_displayed_anew_and_charged_once(job_file, basic):
    second = '[[release]]\nname = "bands"\nby = "town"\ndomain = ["Ås"]\nundeclared = "absent"\n'
    first = second.replace("bands", "people_by_town")
    noise, display = "noise = { epsilon = 0.5 }\n", "display = { bands = [0, 5] }\n"
    text = textwrap.dedent(basic).replace('[[release]]\nname = "people_by_town"\nby = "town"\nk = 5\n', first + noise)
    path = job_file(text.replace("[output]", f"{second}{noise}{display}\n[output]"))
    for revise in (False, True):
        noised, banded = (release.release for release in run_job(load_job(path), DAY, revise=revise).releases)
        assert banded.table["count"].tolist() == [5 if value >= 5 else 0 for value in noised.table["count"]]
        assert noised.certificate.context.beside == revise
    assert [(entry.label, entry.revision) for entry in entries(load_job(path))] == [
        ("people_by_town", 1),
        ("people_by_town", 2),
    ]
