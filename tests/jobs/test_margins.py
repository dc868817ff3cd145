"""Margins of a job's table: what two releases say by hand, with what follows of hidden cells in every printed table."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import itertools
import tomllib

import duckdb
import pandas as pd
import pytest
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.jobs import checks, load_job, run_job
from pkdp_pipeline.jobs.job import read_job
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.releases.printed import following_beside

DAY = dt.date(2020, 1, 1)
HEAD = """
dataset = "visits"
source = "visits.parquet"
period = { column = "day" }
unit = "person"
ledger = "ledger.sqlite"

[output]
directory = "out"
"""
ATTACKER = "[attacker]\np_max_between = 0.6\n"
LEAKAGE = '[[attacker.leakage]]\nname = "the number of people present by \'region\'"\ntells = "people_present"\n'
LEAKAGE += 'by = ["region"]\n'
TABLE = """
[[release]]
name = "answers"
by = ["region", "answer"]
domain = { region = ["N", "S"], answer = ["a", "b", "c"] }
protects = "value"
k = 4
"""
MARGINS = 'margins = "region"\n'
TOTALS = '[[release]]\nname = "answers_totals"\nby = "region"\ndomain = ["N", "S"]\nprotects = "value"\n'
COUNTS = {("N", "a"): 9, ("N", "b"): 8, ("N", "c"): 2, ("S", "a"): 3, ("S", "b"): 3, ("S", "c"): 9}


@pytest.fixture
def job(tmp_path):
    """Return a function that writes a job file beside its data."""
    rows = [cell for cell, number in COUNTS.items() for _ in range(number)]
    frame = pd.DataFrame(rows, columns=["region", "answer"]).assign(person=range(len(rows)), day=DAY)
    frame["age"] = frame["region"].map({"N": 10, "S": 40})
    frame.to_parquet(tmp_path / "visits.parquet")

    def write(*tables, name="job.toml", head=HEAD):
        path = tmp_path / name
        path.write_text("".join((head, *tables)), encoding="utf-8")
        return path

    return write


def test_the_certificates_are_those_of_two_releases_by_hand(job):
    margins = load_job(job(ATTACKER, TABLE, MARGINS))
    by_hand = load_job(job(ATTACKER, LEAKAGE, TABLE, TOTALS, head=HEAD.replace('"out"', '"hand"')))
    assert margins.attacker_model() == by_hand.attacker_model()
    questions, by_hand_asked = (
        [
            (publication.question.key("visits"), publication.question.label, publication.attacker)
            for publication in job.publications(DAY)
        ]
        for job in (margins, by_hand)
    )
    assert questions == by_hand_asked
    assert [margins.kind(release) for release in margins.release] == ["noiseless", "total"]
    # The ledger of the first knows what the second asks for.
    published, again = run_job(margins, DAY), run_job(by_hand, DAY)
    assert again.replayed
    for ours, theirs in zip(published.releases, again.releases, strict=True):
        assert ours.release.certificate.to_json() == theirs.release.certificate.to_json()
    assert published.releases[1].release.table["count"].tolist() == [19, 15]


def test_an_attacker_of_its_own_knows_them_as_well(job):
    own = TABLE + MARGINS + "[release.attacker]\np_max_between = 0.7\n"
    other = TABLE.replace("answers", "other").replace('"c"]', '"c", "d"]')
    loaded = load_job(job(ATTACKER, other, own))
    totals = pkdp.Leakage.totals("region")
    assert [loaded.attacker_of(release).leakage for release in loaded.release] == [(totals,)] * 3
    assert loaded.attacker_of(loaded.release[2]) == pkdp.AttackerModel(leakage=totals)
    alone = load_job(job(own))
    assert alone.attacker is None
    twice = load_job(job(ATTACKER, LEAKAGE, TABLE, MARGINS, other, MARGINS))
    assert [release.name for release in twice.release] == ["answers", "other", "answers_totals"]
    assert twice.attacker_model().leakage == (totals,)


def test_cells_in_a_list_and_groups_of_values_have_margins(job):
    listed = TABLE.replace('{ region = ["N", "S"], answer = ["a", "b", "c"] }', '[["S", "a"], ["N", "a"], ["S", "b"]]')
    assert load_job(job(ATTACKER, listed, MARGINS)).release[1].domain == ("S", "N")
    grouped = TABLE.replace('"region", "answer"]', '{ column = "age", bins = [0, 18] }, "answer"]')
    grouped = grouped.replace('region = ["N", "S"], ', "")
    loaded = load_job(job(ATTACKER, grouped, 'margins = "age"\n'))
    assert loaded.attacker_model().leakage == (pkdp.Leakage.totals(pkdp.bins("age", [0, 18])),)
    done = run_job(loaded, DAY).releases
    assert done[1].release.table["age"].tolist() == ["0–17", "18 or more"]
    assert done[1].release.table["count"].tolist() == [19, 15]
    assert done[0].release.crosstab("age", "answer", margins=True, totals=done[1].release)["Total"].tolist() == [
        19,
        15,
        34,
    ]


def test_what_follows_of_hidden_cells_stands_in_every_printed_table(job, tmp_path):
    path = job(ATTACKER, TABLE, MARGINS, head=HEAD + 'formats = ["parquet", "xlsx"]\nsuppressed = "<4"\n')
    result = CliRunner().invoke(cli.app, ["run", str(path), "--date", DAY.isoformat()])
    assert result.exit_code == 0, result.stderr
    folder = tmp_path / "out" / "2020-01-01"
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(folder / "tables.xlsx")
    assert book.sheetnames[2:] == ["Table 1", "Cross-table 1", "Table 2"]
    sheet = book["Table 1"]
    (printed,) = sheet.tables.values()
    assert printed.ref == "A6:C12"  # of the four lines above, one is about what follows
    cells = [row[2].value for row in sheet[printed.ref][1:]]
    assert cells == [9, 8, "2 follows exactly", "3 follows exactly", "3 follows exactly", 9]
    for text in (summary, result.stdout):
        assert "2 follows exactly" in text
    release, totals = (pkdp.read_release(folder / f"answers{end}.parquet") for end in ("", "_totals"))
    table = release.crosstab("region", "answer", margins=True, totals=totals)
    assert table.loc["S", "a"] == "3 follows exactly"
    assert table["Total"].tolist() == [19, 15, 34]
    (crossed,) = book["Cross-table 1"].tables.values()
    values = [[cell.value for cell in row[1:]] for row in book["Cross-table 1"][crossed.ref][1:]]
    assert values == table.to_numpy().tolist()


class Killed(BaseException):
    """The end of a process: nothing is given back."""


def killed_at(step, patched):
    """Let what happens in this process end before or after a step of its ledgers; return the steps that are left."""
    left = [step]

    def stop():
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    def stopping(real):
        def stepped(*given, **named):
            stop()
            done = real(*given, **named)
            stop()
            return done

        return stepped

    for name in ("reserve", "publish"):
        patched.setattr(Ledger, name, stopping(getattr(Ledger, name)))
    patched.setattr(Ledger, "give_back", lambda *given: True)
    return left


def test_no_interval_mixes_two_readings_of_the_data(job, tmp_path, monkeypatch):
    """A run ends before or after any step of its ledgers, somebody is corrected, and the run is repeated."""
    rows = pd.read_parquet(tmp_path / "visits.parquet")
    corrected = rows.assign(region=rows["region"].where(rows.index > 0, "S"))
    together = 0
    for step in itertools.count():
        rows.to_parquet(tmp_path / "visits.parquet")
        head = HEAD.replace('"ledger', f'"{step}/ledger').replace('"out', f'"{step}/out')
        path = job(ATTACKER, TABLE, MARGINS, head=head)
        with monkeypatch.context() as patched:
            left = killed_at(step, patched)
            with contextlib.suppress(Killed):
                run_job(load_job(path), DAY)
        if left[0] >= 0:
            break
        corrected.to_parquet(tmp_path / "visits.parquet")
        table, totals = (each.release for each in run_job(load_job(path), DAY).releases)
        counted = [rows if released.replayed else corrected for released in (table, totals)]
        follows = following_beside(table, [totals])
        assert follows.apart == (counted[0] is not counted[1])
        if follows.apart:
            assert set(follows.texts) == {None}
            with pytest.raises(pkdp.ArgumentError, match="two readings"):
                table.within(totals)
            continue
        true = counted[0].groupby(["region", "answer"]).size()
        bounds = table.within(totals).set_index(["region", "answer"])
        assert (bounds["least"] <= true).all()
        assert (true <= bounds["most"]).all()
        together += 1
    assert 0 < together < step


@pytest.mark.parametrize("source", ["visits.parquet", "visits.csv", "view"])
def test_no_interval_mixes_two_states_of_files_that_are_written_while_they_are_read(job, tmp_path, monkeypatch, source):
    """Somebody is left out between the counts of a table and of its totals, which then say of no reading."""
    rows, file = (
        pd.read_parquet(tmp_path / "visits.parquet"),
        tmp_path / ("visits.csv" if "csv" in source else "v.parquet"),
    )
    head = HEAD.replace('"visits.parquet"', f'"{file.name}"')
    if source == "view":
        head = HEAD.replace('"visits.parquet"', '{ duckdb = "visits.duckdb", table = "visits" }')
    marks = []

    def store(frame):
        frame.to_csv(file, index=False) if file.suffix == ".csv" else frame.to_parquet(file)

    store(rows)
    if source == "view":
        with duckdb.connect(str(tmp_path / "visits.duckdb")) as connection:
            connection.execute(f"CREATE VIEW visits AS FROM '{file}'")

    def counted(frame, question, real=checks.count_units):
        answer = real(frame, question)
        if question.label == "answers" and marks:
            store(rows.iloc[1:])
        return answer

    monkeypatch.setattr(checks, "count_units", counted)
    for day in ("once", "twice"):
        path = job(
            ATTACKER, TABLE, MARGINS, head=head.replace('"ledger', f'"{day}/ledger').replace('"out', f'"{day}/out')
        )
        table, totals = (each.release for each in run_job(load_job(path), DAY).releases)
        follows = following_beside(table, [totals])
        assert follows.apart == (bool(marks) or source == "view")
        assert (set(follows.texts) == {None}) == follows.apart
        marks.append(table.certificate.context.reading)


def test_nothing_follows_from_tables_that_do_not_say_when_they_were_counted(job):
    releases = [each.release for each in run_job(load_job(job(ATTACKER, TABLE, MARGINS)), DAY).releases]
    assert len({release.certificate.context.reading for release in releases}) == 1
    unmarked = []
    for release in releases:
        certificate = release.certificate
        context = dataclasses.replace(certificate.context, reading=None)
        unmarked.append(pkdp.Release.seal(release.table, certificate.in_context(context)))
    assert not following_beside(releases[0], releases[1:]).apart
    for table, totals in (unmarked, (releases[0], unmarked[1]), (unmarked[0], releases[1])):
        assert following_beside(table, [totals]).apart
        assert table.within(totals)["least"].tolist() == [9, 8, 2, 3, 3, 9]  # who gives both vouches for them


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('protects = "value"\n', "", "no number holds"),
        ("k = 4\n", "noise = { epsilon = 1.0 }\n", "margins with noise"),
        ("k = 4\n", "k = 4\ndisplay = { rounding = 5 }\n", "margins with noise, display"),
        ("k = 4\n", 'k = 4\nbelow = "noise"\nnoise = { epsilon = 1.0 }\n', "margins with noise"),
        ('domain = { region = ["N", "S"], answer = ["a", "b", "c"] }\n', "", "without a domain"),
        ("k = 4\n", 'k = 4\nwhere = "age > 3"\n', "margins with where"),
        ("k = 4\n", 'k = 4\nundeclared = "absent"\n', "undeclared"),
        ("k = 4\n", 'k = 4\none_cell = "hash"\n', "one_cell"),
        (MARGINS, 'margins = ["region", "answer"]\n', "not all"),
        (MARGINS, 'margins = "county"\n', "columns in by"),
        (MARGINS, "margins = []\n", "margins"),
        (MARGINS, "margins = true\n", "margins"),
        ('by = ["region", "answer"]\n', "", "margins is about the cells"),
        ("[attacker]", 'one_cell = "hash"\n[attacker]', "'answers', margins: one_cell"),
        (MARGINS, MARGINS + TOTALS.replace('"value"', '"presence"'), "one of them by margins"),
    ],
)
def test_margins_that_say_nothing_honest_are_refused(job, old, new, words):
    text = ATTACKER + TABLE + MARGINS
    if "domain" not in old and "by" in old:
        text = text.replace('domain = { region = ["N", "S"], answer = ["a", "b", "c"] }\n', "").replace(
            'protects = "value"\n', ""
        )
    path = job(text.replace(old, new)) if "[attacker]" not in old else job(text, head='one_cell = "hash"\n' + HEAD)
    with pytest.raises(pkdp.ConfigError, match=words):
        load_job(path)


def test_a_failed_check_names_no_key_that_margins_refuse(job):
    path = job(ATTACKER, TABLE, MARGINS)
    frame = pd.read_parquet(path.with_name("visits.parquet"))
    for changed, names in (
        (frame.iloc[:1].assign(region="S"), ("'answers'", "'answers_totals'")),
        (frame.iloc[:1].assign(person=99, answer="d"), ("'answers'", "domain")),
    ):
        pd.concat([frame, changed]).to_parquet(path.with_name("visits.parquet"))
        with pytest.raises(pkdp.InputCheckError) as failed:
            run_job(load_job(path), DAY)
        assert all(name in str(failed.value) for name in names)
        assert not [key for key in ("one_cell", "cells_per_unit", "undeclared") if key in str(failed.value)]
    assert not any("one_cell" in rule for rule in checks.stated_rules(load_job(path), DAY))


def test_other_tables_of_the_job_must_stand_beside_them(job):
    without = '[[release]]\nname = "only"\nby = "answer"\ndomain = ["a", "b", "c"]\nprotects = "value"\nk = 4\n'
    with pytest.raises(pkdp.ConfigError, match="release 'only': leakage has exact totals by 'region'"):
        load_job(job(ATTACKER, TABLE, MARGINS, without))


def test_a_margin_is_part_of_the_hash_of_a_job(job):
    path = job(ATTACKER, TABLE, MARGINS)
    text = path.read_text(encoding="utf-8")
    assert read_job(text, path).digest == load_job(path).digest
    assert load_job(job(ATTACKER, TABLE)).digest != load_job(job(ATTACKER, TABLE, MARGINS)).digest
    assert "margins" in tomllib.loads(text)["release"][0]
