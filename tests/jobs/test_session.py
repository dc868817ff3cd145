from __future__ import annotations

import os
import sqlite3
import textwrap
from contextlib import closing
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from thorough import thinned

from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    ConfigError,
    InputCheckError,
    TemporaryError,
    exit_code,
)
from pkdp_pipeline.extras.report.job_report import report_of
from pkdp_pipeline.jobs import JobSession, load_job, run_job
from pkdp_pipeline.jobs import session as session_module
from pkdp_pipeline.jobs.dry_run import charge_day, plan_job
from pkdp_pipeline.ledger import Ledger

DAY = date(2020, 1, 1)
NEXT_DAY = date(2020, 1, 2)
DAYS = [DAY, NEXT_DAY, date(2020, 1, 3)]
NOISED = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    missing_unit = "drop"
    ledger = "out/ledger.sqlite"
    budget = { epsilon = 1.25, delta = 0.0, part = "worst_case" }

    [[release]]
    name = "people"
    noise = { epsilon = 0.5 }

    [[release]]
    name = "people_in_town"
    where = "town == 'Ås'"
    noise = { epsilon = 0.5 }

    [output]
    directory = "out"
"""


def events(job) -> list[str]:
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        return [f"{entry.label} {entry.state}" for entry in ledger.entries(given_back=True)]


def test_a_day_that_does_not_fit_the_budget_as_a_whole_is_refused_before_data_are_read(job_file):
    job = load_job(job_file(NOISED))
    run_job(job, DAY)
    Path(job.source.files[0]).unlink()
    with pytest.raises(BudgetExceededError):
        run_job(job, NEXT_DAY)
    assert events(job) == ["people published", "people_in_town published"]


@pytest.mark.parametrize("begun", [False, True])
def test_a_refusal_after_the_period_was_read_does_not_say_that_nothing_was_read(job_file, monkeypatch, begun):
    """Another run is charged while this one reads: the budget that was left then is gone under the lock."""
    job, original = load_job(job_file(NOISED)), session_module.check_input
    cheaper = load_job(job_file(NOISED.replace("epsilon = 0.5", "epsilon = 0.125")))

    def charge(*days):
        Path(job.ledger).parent.mkdir(exist_ok=True)
        with Ledger.open(job.ledger, dataset=job.dataset, budget=job.budgets()) as other:
            for day in days:
                charge_day(cheaper, other, cheaper.publications(day))

    def overtaken(*arguments, **options):
        checked = original(*arguments, **options)
        charge(DAY, NEXT_DAY)
        return checked

    if begun:
        charge(DAY)
    monkeypatch.setattr(session_module, "check_input", overtaken)
    with pytest.raises(BudgetExceededError, match=r"\. Nothing was charged\. Ask"):
        run_job(job, NEXT_DAY)
    assert [event.split()[1] for event in events(job)] == ["reserved"] * 4
    monkeypatch.undo()
    with pytest.raises(BudgetExceededError, match=r"\. Nothing was read or charged\. Ask"):
        run_job(job, DAYS[2])


def test_a_failed_check_leaves_no_trace_in_the_ledger(job_file):
    noised = textwrap.dedent(NOISED).replace("epsilon = 1.25", "epsilon = 2.0")
    job = load_job(job_file(noised + "\n[checks]\nrows = { min = 1 }\n"))
    run_job(job, DAY)
    before = events(job)
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        head = ledger.head()
    with pytest.raises(InputCheckError):
        run_job(job, date(2021, 1, 1))
    assert events(job) == before
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert ledger.head() == head


def test_a_source_that_vanishes_between_two_days_is_a_config_error_and_charges_nothing(job_file, basic):
    job = load_job(job_file('evidence = { kind = "one_day_protected" }\n' + basic))
    with JobSession(job) as session:
        session.run(DAY)
        Path(job.source.files[0]).unlink()
        with pytest.raises(ConfigError) as caught:
            session.run(NEXT_DAY)
        assert exit_code(caught.value) == 2
        assert session.run(DAY).replayed
    assert events(job) == ["people_by_town published"]


def test_outputs_that_cannot_be_written_are_told_to_be_published_and_charged(job_file):
    job = load_job(job_file())
    Path(job.output.directory).mkdir()
    (Path(job.output.directory) / "2020-01-01").write_bytes(b"in the way")
    with pytest.raises(ConfigError) as caught:
        run_job(job, DAY)
    assert "published, and charged once: run again" in str(caught.value)
    assert events(job) == ["people_by_town published"]
    (Path(job.output.directory) / "2020-01-01").unlink()
    run_job(job, DAY)
    assert events(job) == ["people_by_town published"]


def test_a_full_disk_is_for_somebody_to_repair_and_the_next_run_writes_the_files(job_file, monkeypatch):
    job = load_job(job_file())

    def full(*arguments):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("pkdp_pipeline.jobs.outputs.files.os.replace", full)
        with pytest.raises(ConfigError) as caught:
            run_job(job, DAY)
    assert exit_code(caught.value) == 2
    assert "published, and charged once: run again" in str(caught.value)
    assert events(job) == ["people_by_town published"]
    Path(job.source.files[0]).unlink()
    assert run_job(job, DAY).replayed
    assert len(list(Path(job.output.directory).glob("2020-01-01/*"))) == 3


def test_a_ledger_that_cannot_be_reached_is_temporary(job_file):
    text = NOISED.replace('"out/ledger.sqlite"', '"postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"')
    job = load_job(job_file(text))
    with pytest.raises(TemporaryError) as caught:
        run_job(job, DAY)
    assert exit_code(caught.value) == 75


def test_sessions_give_what_single_runs_give(job_file, basic):
    job = load_job(job_file('evidence = { kind = "one_day_protected" }\n' + basic))
    with JobSession(job) as session:
        days = [session.run(day) for day in (DAY, NEXT_DAY)]
        assert [result.new_ledger for result in days] == [True, False]
        assert session.total().releases == 2
    assert [run_job(job, result.day).releases[0].release.id for result in days] == [
        result.releases[0].release.id for result in days
    ]


def test_a_ledger_that_does_not_hold_what_was_written_is_refused(job_file):
    first = run_job(load_job(job_file(NOISED)), DAY)
    before = {file: file.read_bytes() for release in first.releases for file in release.files}
    misspelt = load_job(job_file(NOISED.replace("out/ledger", "out/leger").replace("1.25", "9.0")))
    for act in (lambda: run_job(misspelt, NEXT_DAY), lambda: plan_job(misspelt, [NEXT_DAY])):
        with pytest.raises(ConfigError, match="releases that the ledger does not know") as caught:
            act()
        assert "2020-01-01/people, 2020-01-01/people_in_town, 2020-01-01/summary.md)" in str(caught.value)
        assert exit_code(caught.value) == 2
    assert {file: file.read_bytes() for file in before} == before
    assert entries(misspelt) == []
    # What the ledger knows may be followed by another question under the same name.
    noised = NOISED.replace("epsilon = 0.5 }\n\n    [output]", "epsilon = 0.25 }\n\n    [output]")
    assert not run_job(load_job(job_file(noised.replace("1.25", "2.0"))), DAY).replayed


@thinned(2)
@pytest.mark.parametrize(
    ("known", "kept"),
    [(1, ("certificate.json",)), (3, ("certificate.json", "md"))],
)
def test_a_ledger_from_an_old_backup_is_refused(job_file, tmp_path, known, kept):
    """Whatever the backup holds of three days, and whatever is left in the output folder."""
    job = load_job(job_file(NOISED.replace("1.25", "9.0"), three_days()))
    backup = tmp_path / "backup.sqlite"
    for number, day in enumerate(DAYS):
        if number == known:
            copy_ledger(job.ledger, backup)
        run_job(job, day)
    run_job(job, DAYS[0])  # its files are those written last
    for file in Path(job.output.directory).glob("*/*.*"):
        if not file.name.endswith(kept):
            file.unlink()
    if known == len(DAYS):
        run_job(job, DAYS[1])
        return
    Path(job.ledger).unlink()
    copy_ledger(backup, job.ledger)
    acts = (lambda: run_job(job, DAYS[0]), lambda: run_job(job, DAYS[2]), lambda: JobSession(job).__enter__())
    for act in (*acts, lambda: report_of(job)):
        with pytest.raises(ConfigError, match="restored from an old backup") as caught:
            act()
        assert DAYS[known].isoformat() in str(caught.value)
        assert known == 0 or DAYS[known - 1].isoformat() not in str(caught.value)
    # What the message recommends.
    new = NOISED.replace("1.25", "9.0").replace('directory = "out"', 'directory = "new"')
    fresh = load_job(job_file(new, three_days()))
    run_job(fresh, DAYS[2])


def test_a_ledger_whose_log_was_cut_is_refused(job_file):
    job = load_job(job_file(NOISED.replace("1.25", "9.0"), three_days()))
    run_job(job, DAYS[0])
    with Ledger.open(job.ledger, dataset=job.dataset):  # as long as it is open, what is published stays in the log
        run_job(job, DAYS[1])
        cut = Path(job.ledger).read_bytes()
    for file in Path(job.ledger).parent.glob("ledger.sqlite*"):
        file.unlink()
    Path(job.ledger).write_bytes(cut)
    with pytest.raises(ConfigError, match="its end was cut off"):
        run_job(job, DAYS[2])


def test_a_release_published_anew_after_a_cut_is_not_taken_for_the_one_written(job_file, tmp_path):
    """The same question at the same place has the same certificate, and other noise."""
    noisier = NOISED.replace("epsilon = 0.5", "epsilon = 0.005")
    job = load_job(job_file(noisier, three_days()))
    run_job(job, DAYS[0])
    copy_ledger(job.ledger, tmp_path / "backup.sqlite")
    run_job(job, DAYS[1])
    Path(job.ledger).unlink()
    copy_ledger(tmp_path / "backup.sqlite", job.ledger)
    run_job(load_job(job_file(noisier.replace('"out"', '"new"'), three_days())), DAYS[1])
    with pytest.raises(ConfigError, match=r"2020-01-02/summary\.md\)"):
        run_job(job, DAYS[2])


def test_a_revision_and_a_new_certificate_are_known(job_file, basic):
    job = load_job(job_file(NOISED.replace("1.25", "9.0")))
    run_job(job, DAY)
    run_job(job, DAY, revise=True)
    run_job(job, NEXT_DAY)
    other = basic.replace('"out', '"other')
    for p_max in ("0.4", "0.5", "0.4"):
        assert run_job(load_job(job_file(other.replace("0.5", p_max))), DAY)
    # Certified again by somebody else, the files are those of an older certificate.
    certified_job = load_job(job_file(other.replace("0.5", "0.4")))
    third = other.replace('directory = "other"', 'directory = "third"')
    run_job(load_job(job_file(third)), DAY)
    assert run_job(certified_job, DAY).replayed


def test_two_job_files_do_not_share_an_output_folder(job_file, tmp_path):
    first = load_job(job_file(NOISED.replace("1.25", "9.0")))
    run_job(first, DAY)
    summary = (tmp_path / "out" / "2020-01-01" / "summary.md").read_bytes()
    other = tmp_path / "other.toml"
    other.write_text(Path(first.file).read_text(encoding="utf-8").replace("people", "persons"), encoding="utf-8")
    for act in (lambda: run_job(load_job(other), NEXT_DAY), lambda: plan_job(load_job(other), [NEXT_DAY])):
        with pytest.raises(ConfigError, match=r"of the job file '\.\./job\.toml', and this is '\.\./other\.toml'"):
            act()
    assert (tmp_path / "out" / "2020-01-01" / "summary.md").read_bytes() == summary
    run_job(first, NEXT_DAY)
    (tmp_path / "out" / ".pkdp.job").unlink()
    renamed = first.read_from(other, first.digest)
    assert run_job(renamed, DAY).replayed


@pytest.mark.slow
@thinned(2)
@pytest.mark.parametrize("release", ["people", "persons"])
def test_two_job_files_of_one_name_do_not_share_an_output_folder(tmp_path, release):
    first, second = (job_below(tmp_path / "project" / name) for name in ("a", "b"))
    second.write_text(second.read_text(encoding="utf-8").replace("people", release), encoding="utf-8")
    run_job(load_job(first), DAY)
    before = {file: file.read_bytes() for file in (tmp_path / "project" / "out").glob("*/*")}
    for act in (lambda: run_job(load_job(second), DAY), lambda: plan_job(load_job(second), [DAY])):
        with pytest.raises(ConfigError, match="other's summary") as caught:
            act()
        assert "job file '../a/job.toml', and this is '../b/job.toml'" in str(caught.value)
    assert {file: file.read_bytes() for file in before} == before
    (tmp_path / "project").rename(tmp_path / "moved")
    assert run_job(load_job(tmp_path / "moved" / "a" / "job.toml"), DAY).replayed
    with pytest.raises(ConfigError, match=r"remove '\.pkdp\.job'"):
        run_job(load_job(tmp_path / "moved" / "b" / "job.toml"), DAY)
    (tmp_path / "moved" / "out" / ".pkdp.job").unlink()
    run_job(load_job(tmp_path / "moved" / "b" / "job.toml"), NEXT_DAY)


@pytest.mark.slow
def test_a_job_file_behind_links_is_one_job_file(tmp_path):
    """A new version that a link leads to is the same job file, and so is the file that it led to."""
    project = tmp_path / "project"
    old, new = (job_below(project / name) for name in ("1", "2"))
    (project / "current").symlink_to("1")
    run_job(load_job(project / "current" / "job.toml"), DAY)
    assert run_job(load_job(old), DAY).replayed
    assert run_job(load_job(project / "current" / "job.toml"), DAY).replayed
    (project / "current").unlink()
    (project / "current").symlink_to("2")
    assert run_job(load_job(project / "current" / "job.toml"), DAY).replayed
    assert run_job(load_job(new), DAY).replayed
    (tmp_path / "link").symlink_to("project/out")
    new.write_text(new.read_text(encoding="utf-8").replace('"../out"', '"../../link"'), encoding="utf-8")
    assert run_job(load_job(new), DAY).replayed


def test_a_renamed_job_file_goes_on_with_its_own_releases_only(tmp_path):
    first = job_below(tmp_path / "a")
    run_job(load_job(first), DAY)
    renamed = first.rename(first.with_name("renamed.toml"))
    assert run_job(load_job(renamed), DAY).replayed
    for mark in (b"job\n", b"\xff\n", b"\0\n"):
        (tmp_path / "out" / ".pkdp.job").write_bytes(mark)
        assert run_job(load_job(renamed), DAY).replayed
    (tmp_path / "out" / ".pkdp.job").write_bytes(b"job\n")
    other = renamed.read_text(encoding="utf-8").replace("people", "persons")
    renamed.write_text(other, encoding="utf-8")
    with pytest.raises(ConfigError, match="holds releases of the job file 'job'"):
        run_job(load_job(renamed), DAY)


def test_each_certificate_is_read_once(job_file, monkeypatch):
    job = load_job(job_file(NOISED))
    certificates = [file for release in run_job(job, DAY).releases for file in release.files if file.suffix == ".json"]
    read, original = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or original(path))
    with JobSession(job) as session, pytest.raises(BudgetExceededError):
        session.run(NEXT_DAY)
    assert sorted(path for path in read if path in certificates) == sorted(certificates)


@pytest.mark.slow
def test_dates_beside_instants_say_the_zone_they_were_cut_in(job_file):
    text = NOISED.replace("1.25", "9.0")
    oslo = text.replace('"day" }', '"day", time_zone = "Europe/Oslo" }')
    instants = three_days().assign(day=lambda table: pd.to_datetime(table["day"]).dt.tz_localize("UTC"))
    run_job(load_job(job_file(oslo, instants)), DAY)
    unsaid = load_job(job_file(text.replace('directory = "out"', 'directory = "other"'), three_days()))
    for act in (lambda: run_job(unsaid, NEXT_DAY), lambda: plan_job(unsaid, [NEXT_DAY])):
        with pytest.raises(ArgumentError, match=r"time_zone must be 'Europe/Oslo'.* and there is none") as caught:
            act()
        assert exit_code(caught.value) == 2
    said = load_job(job_file(oslo.replace('directory = "out"', 'directory = "other"'), three_days()))
    assert not run_job(said, NEXT_DAY).replayed


@pytest.mark.parametrize("where", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_jobs_of_one_data_set_cut_their_days_in_one_time_zone(job_file, where, request):
    ledger = "ledger.sqlite" if where == "sqlite" else request.getfixturevalue("postgres_url")
    text = NOISED.replace("out/ledger.sqlite", ledger).replace("1.25", "9.0")
    oslo = text.replace('"day" }', '"day", time_zone = "Europe/Oslo" }')
    frame = three_days().assign(day=lambda table: pd.to_datetime(table["day"]).dt.tz_localize("UTC"))
    run_job(load_job(job_file(oslo, frame)), DAY)
    for directory in ("out", "other"):
        other = oslo.replace("Europe/Oslo", "UTC").replace('directory = "out"', f'directory = "{directory}"')
        for act in (run_job, lambda job, day: plan_job(job, [day])):
            for day in (DAY, NEXT_DAY):
                with pytest.raises(ArgumentError, match="time_zone must be 'Europe/Oslo'"):
                    act(load_job(job_file(other, frame)), day)
    job = load_job(job_file(oslo, frame))
    run_job(job, NEXT_DAY)
    with Ledger.open(job.ledger, dataset=job.dataset) as opened:
        opened.verify()
        assert {entry.standing.time_zone for entry in opened.entries()} == {"Europe/Oslo"}


@pytest.mark.postgres
def test_a_ledger_in_postgres_that_does_not_hold_what_was_written_is_refused(job_file, postgres_url, cluster):
    job = load_job(job_file(NOISED.replace("out/ledger.sqlite", postgres_url).replace("1.25", "9.0")))
    run_job(job, DAY)
    run_job(job, DAY, revise=True)
    run_job(job, NEXT_DAY)
    cluster.empty_database()
    with pytest.raises(ConfigError, match=r"2020-01-01/people, .* and 3 more"):
        run_job(job, NEXT_DAY)


def three_days():
    rows = [(day, f"{town} {number}", town) for day in DAYS for town in ("Ås", "Bø") for number in range(7)]
    return pd.DataFrame(rows, columns=["day", "person", "town"])


def copy_ledger(source, target):
    with closing(sqlite3.connect(target)) as copy:
        if Path(source).exists():
            with closing(sqlite3.connect(source)) as original:
                original.backup(copy)
            return
    Path(target).unlink()
    Ledger.open(target).close()


def entries(job):
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        return list(ledger.entries())


def job_below(folder):
    """Write a job file and its source into a new folder; the output folder and the ledger are beside that."""
    folder.mkdir(parents=True)
    three_days().to_parquet(folder / "visits.parquet")
    file = folder / "job.toml"
    file.write_text(textwrap.dedent(NOISED).replace('"out', '"../out').replace("1.25", "9.0"), encoding="utf-8")
    return file
