"""Files for offices beside a job's outputs: the same releases, written and written again as the others are."""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import date
from pathlib import Path

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.jobs.dry_run import plan_job
from pkdp_pipeline.jobs.session import run_job
from pkdp_pipeline.releases.release import read_release

openpyxl = pytest.importorskip("openpyxl")

DAY = date(2020, 1, 1)
FORMATS = 'formats = ["parquet", "csv", "xlsx", "csvw", "json-stat", "sdmx-csv"]\n'
FILES = {
    "tables.xlsx",
    "people_by_town.csvw.csv",
    "people_by_town.csvw.csv-metadata.json",
    "people_by_town.json-stat.json",
    "people_by_town.sdmx.csv",
}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def text(basic):
    declared = basic.replace('by = "town"\n', 'by = "town"\ndomain = ["Ås", "Bø", "Secretville"]\n')
    return declared + FORMATS + 'suppressed = "c"\n[about]\ntitle = "Patients"\npublisher = "=Office"\n'


def test_a_day_has_the_files_of_its_releases(job_file, text):
    job = load_job(job_file(text))
    result = run_job(job, DAY)
    folder = job.folder(DAY)
    assert {path.name for path in result.files} == {path.name for path in folder.iterdir()}
    assert {path.name for path in folder.iterdir()} > FILES
    release = read_release(folder / "people_by_town.parquet")
    for name, method in (
        ("people_by_town.csvw.csv", release.to_csv),
        ("people_by_town.json-stat.json", release.to_json_stat),
    ):
        method(folder.parent / name, suppressed="c")
        assert (folder.parent / name).read_bytes() == (folder / name).read_bytes()
    book = openpyxl.load_workbook(folder / "tables.xlsx")
    assert [cell.value for cell in book["Cover"]["A"][:2]] == ["Patients", "Publisher: =Office"]
    sheet = book["Table 1"]
    (printed,) = sheet.tables.values()
    rows = [(town.value, count.value) for town, count in sheet[printed.ref][1:]]
    assert rows == [("Ås", 7), ("Bø", 5), ("Secretville", "c")]
    assert "LOCAL:PEOPLE_BY_TOWN(1.0)" in (folder / "people_by_town.sdmx.csv").read_text()
    assert json.loads((folder / "people_by_town.json-stat.json").read_text())["value"] == [7, 5, None]


def test_a_workbook_with_estimates_of_a_sample(job_file, basic):
    sampled = basic.replace("p_max = 0.5", "sampled = 0.1")
    job = load_job(job_file(sampled + 'formats = ["parquet", "xlsx", "xlsx-estimates"]\n'))
    run_job(job, DAY)
    books = [openpyxl.load_workbook(job.folder(DAY) / name) for name in ("tables.xlsx", "estimates.xlsx")]
    (plain,), (estimated,) = ([*book["Table 1"].tables.values()] for book in books)
    assert [len(table.tableColumns) for table in (plain, estimated)] == [2, 6]
    assert [cell.value for cell in books[1]["Table 1"][estimated.ref][1]][:3] == ["Bø", 5, 50]


def test_lost_and_half_written_files_come_back_as_they_were(job_file, text):
    job = load_job(job_file(text))
    run_job(job, DAY)
    folder = job.folder(DAY)
    before = contents(folder)
    for name in FILES:
        (folder / name).unlink()
    (folder / ".tables.xlsx.partial").write_bytes(b"half")
    assert run_job(job, DAY).replayed
    assert contents(folder) == before


def test_a_failure_before_them_leaves_the_releases_and_the_next_run_writes_them(job_file, text, monkeypatch):
    job, replace = load_job(job_file(text)), os.replace

    def full(source, target):
        if str(target).endswith(".xlsx"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(pkdp.ConfigError, match="published, and charged once"):
        run_job(job, DAY)
    assert not [name for name in contents(job.folder(DAY)) if "xlsx" in name]
    monkeypatch.setattr(os, "replace", replace)
    assert run_job(job, DAY).replayed
    assert set(contents(job.folder(DAY))) > FILES


def test_revised_data_are_in_every_file(job_file, text, tmp_path):
    job = load_job(job_file(text))
    run_job(job, DAY)
    before = contents(job.folder(DAY))
    more = pd.read_parquet(tmp_path / "visits.parquet")
    more.loc[len(more)] = (DAY, "Ås new", "Ås")
    more.to_parquet(tmp_path / "visits.parquet")
    with pytest.raises(pkdp.DifferencingError):
        run_job(job, DAY, revise=True)
    assert contents(job.folder(DAY)) == before
    noised = text.replace("k = 5\n", "noise = { epsilon = 1.0 }\n").replace("[attacker]\np_max = 0.5\n", "")
    shutil.rmtree(tmp_path / "out")
    job = load_job(job_file(noised, more))
    run_job(job, DAY)
    revised = run_job(job, DAY, revise=True).releases[0].release
    for name in ("people_by_town.sdmx.csv", "people_by_town.json-stat.json", "people_by_town.csvw.csv-metadata.json"):
        assert revised.id in (job.folder(DAY) / name).read_text()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('suppressed = "c"', 'suppressed = "<30"', "people_by_town.*below k = 5"),
        ('suppressed = "c"', 'suppressed = "12"', "must not be a number"),
        (FORMATS, 'formats = ["csv"]\n', "add xlsx to formats"),
        (FORMATS, 'formats = ["xlxs"]\n', r"formats\[1\].*did you mean 'xlsx'"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_charge(job_file, text, tmp_path, old, new, words):
    path = job_file(text.replace(old, new))
    with pytest.raises(pkdp.ConfigError, match=words):
        run_job(load_job(path), DAY)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_program_that_is_missing_is_named_before_any_charge(job_file, text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(pkdp.ConfigError, match=r"xlsxwriter.*excel"):
        run_job(load_job(job_file(text)), DAY)
    assert not Path(tmp_path / "out" / "ledger.sqlite").exists()


def test_the_hash_of_a_job_without_them_is_as_before(job_file, basic):
    digest = load_job(job_file(basic)).digest
    assert load_job(job_file(basic + 'formats = ["parquet"]\n')).digest == digest
    assert load_job(job_file(basic + FORMATS)).digest != digest


@pytest.fixture
def limit_of_one(monkeypatch):
    monkeypatch.setattr("pkdp_pipeline.extras.tables.formats._MAX_CELLS", 1)
    monkeypatch.setattr("pkdp_pipeline.extras.tables.formats._MAX_ROWS", 1)


@pytest.mark.parametrize("name", ["xlsx", "json-stat"])
def test_a_declared_domain_above_a_formats_limit_is_refused_before_any_charge(
    job_file, text, tmp_path, limit_of_one, name
):
    job = load_job(job_file(text.replace(FORMATS, f'formats = ["parquet", "{name}"]\n')))
    for refused in (lambda: run_job(job, DAY), lambda: plan_job(job, [DAY])):
        with pytest.raises(pkdp.ConfigError, match=r"output\.formats, release 'people_by_town'"):
            refused()
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
    run_job(load_job(job_file(text.replace(FORMATS, 'formats = ["parquet", "sdmx-csv"]\n'))), DAY)


def test_found_cells_above_a_formats_limit_are_written_in_the_others(job_file, basic, request):
    job = load_job(job_file(basic + FORMATS))
    first = run_job(job, DAY)
    assert not first.unwritten
    request.getfixturevalue("limit_of_one")
    again = run_job(job, DAY)
    too_large = {"tables.xlsx", "people_by_town.json-stat.json"}
    assert again.replayed
    assert set(again.unwritten) == too_large
    # A file of an earlier table is not left beside the others.
    assert {path.name for path in first.files} - {path.name for path in job.folder(DAY).iterdir()} == too_large
    assert {path.name for path in again.files} == {path.name for path in job.folder(DAY).iterdir()}
    assert all(name in again.summary.read_text() for name in too_large)
