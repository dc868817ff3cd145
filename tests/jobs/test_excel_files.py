"""Excel workbooks: read as CSV is, strictly."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime
from functools import partial

import pytest
from openpyxl import Workbook, load_workbook
from source_jobs import job_of
from thorough import thinned
from typer.testing import CliRunner

from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.sources import files as source_files
from pkdp_pipeline.jobs.tables import PeriodTable

DAY = date(2026, 2, 1)
HEADER = ["day", "n", "town", "dose", "ill", "at", "age"]
TYPES = {"dose": "real", "ill": "boolean", "at": "timestamp", "age": "number"}
ROWS = [
    [datetime(2026, 2, 1), "001", "Ås", 1.5, True, datetime(2026, 2, 1, 13, 45), 41],
    [date(2026, 2, 1), "002", "Bø", 2, False, datetime(2026, 2, 1), None],
    [None] * 7,
    [date(2026, 2, 2), "003", "", None, None, None, 7.0],
]


@pytest.fixture
def written(tmp_path):
    def write(rows=(HEADER, *ROWS), name="visits.xlsx", **sheets):
        book = Workbook()
        for title, content in (sheets or {"Sheet": rows}).items():
            sheet = book.create_sheet(title)
            for row in content:
                sheet.append(list(row))
        book.remove(book.worksheets[0])
        book.save(tmp_path / name)
        return str(tmp_path / name)

    return write


@pytest.fixture
def opened():
    sources = []

    def build(source, **keys):
        sources.append(open_source(job_of(source, period={"column": "day"}, **keys)))
        return sources[-1]

    yield build
    for source in sources:
        source.close()


def rows(source, *columns, day=DAY):
    frame = source.day(PeriodTable(column="day"), day).project(", ".join(f'"{name}"' for name in columns))
    return sorted(frame.fetchall(), key=repr)


def test_cells_are_what_is_declared_and_text_otherwise(opened, written):
    source = opened({"files": written(), "types": TYPES}, release=[{"name": "a", "by": HEADER[2:], "k": 5}])
    assert source.columns == {"day": "date", "n": "text", "town": "text", **TYPES}
    assert rows(source, *HEADER[1:]) == [
        ("001", "Ås", 1.5, True, datetime(2026, 2, 1, 13, 45), 41),
        ("002", "Bø", 2.0, False, datetime(2026, 2, 1), None),
    ]
    assert rows(source, "n", "town", "age", day=date(2026, 2, 2)) == [("003", None, 7)]
    assert source.newest(PeriodTable(column="day"), "day") == date(2026, 2, 2)
    assert source.counts(PeriodTable(column="day"), DAY, ("age",)) == (2, 1)


def test_what_csv_can_say_of_texts_can_be_said_of_cells_with_text(opened, written):
    content = [["day", "n", "dose"], ["01.02.2026", "a", "1,5"], ["01.02.2026", "NA", "NA"]]
    keys = {"decimal": ",", "date_format": "%d.%m.%Y", "null": ["", "NA"], "types": {"dose": "real"}}
    release = [{"name": "a", "by": "dose", "k": 5}]
    assert rows(opened({"files": written(content), **keys}, release=release), "n", "dose") == [("a", 1.5), (None, None)]
    content[1:] = [[DAY, "a", 1.5], [DAY, "b", "NA"]]
    assert rows(opened({"files": written(content), **keys}, release=release), "n", "dose") == [("a", 1.5), ("b", None)]


def test_workbooks_of_a_pattern_agree_by_the_names_of_their_columns(opened, written, tmp_path):
    written([["day", "n"], [DAY, "a"]], "a.xlsx")
    written([["more", "n", "day"], [7, "b", DAY]], "b.XLSX")
    keys = {"files": [str(tmp_path / "a.xlsx"), str(tmp_path / "b.XLSX")]}
    assert rows(opened(keys), "n") == [("a",), ("b",)]
    with pytest.raises(ConfigError, match="must agree on their columns: 'more'"):
        opened(keys, unit="more")


def test_a_refused_workbook_does_not_stay_in_memory(opened, written, monkeypatch):
    files, in_memory = [], source_files._in_memory

    def noted():
        files.append(in_memory())
        return files[-1]

    monkeypatch.setattr(source_files, "_in_memory", noted)
    with pytest.raises(ConfigError, match=r"source\.types"):
        opened({"files": written(), "types": {"nowhere": "real"}})
    assert [file.closed for _, file in files] == [True]


def test_a_sheet_is_named_where_there_are_several(opened, written):
    path = written(notes=[["about"]], visits=[["day", "n"], [DAY, "a"]])
    assert rows(opened({"files": path, "sheet": "visits"}), "n") == [("a",)]
    for sheet in ({}, {"sheet": "Visits"}):
        with pytest.raises(ConfigError, match=r"has the sheets 'notes', 'visits': name one, as in sheet = 'notes'"):
            opened({"files": path, **sheet})


SECRET = "Secretville"
WRONG = [
    ([["day", "n"], [DAY, SECRET], [DAY, 7]], {}, "column 'n' of source .* cells of one kind"),
    ([["day", "n"], [DAY, SECRET], ["2026-02-01", "b"]], {}, "column 'day' of source .* cells of one kind"),
    ([["day", "n"], [DAY, SECRET], [DAY, True]], {}, "cells of one kind"),
    ([["day", "n"], [DAY, f'="{SECRET}"']], {}, "no formulas or errors"),
    ([["day", "n"], [DAY, "#N/A"]], {}, "no formulas or errors"),
    ([["day", "n"], [DAY, datetime(2026, 1, 1).time()]], {}, "cells of one kind"),
    ([["day", "n"], [DAY, 12345678901234567]], {}, "Excel keeps 15 digits"),
    ([["day", "n"], [DAY, 1.5]], {"types": {"n": "number"}}, "column 'n' must hold whole numbers"),
    ([["day", "n"], [DAY, SECRET]], {"types": {"n": "number"}}, "column 'n' must hold whole numbers"),
    ([["day", "n"], [DAY, 1]], {"types": {"n": "boolean"}}, "must hold true or false"),
    ([["day", "n"], [datetime(2026, 2, 1, 10), "a"]], {}, "column 'day' must hold dates"),
    ([["day", "n"], [DAY, datetime(2026, 2, 1, 10)]], {"types": {"n": "instant"}}, "with an offset"),
    ([["day", "n"], [DAY, SECRET]], {"types": {"m": "number"}}, r"no column 'm' \(source.types"),
    ([["day", None], [DAY, SECRET]], {}, "right of the last column"),
    ([[None, "day", "n"], [1, DAY, SECRET]], {}, "first row of the sheet must name every column"),
    ([["day", 7], [DAY, SECRET]], {}, "first row of the sheet must name every column"),
    ([["day", "n", "N"], [DAY, SECRET, "x"]], {}, "'n' and 'N'"),
    ([["day", "n", "n"], [DAY, SECRET, "x"]], {}, "has two columns 'n'; rename one"),
    ([], {}, "first row of the sheet must name every column"),
]


@thinned(4)
@pytest.mark.parametrize(("content", "keys", "message"), WRONG)
def test_what_is_wrong_in_a_workbook_is_one_error_without_its_content(opened, written, content, keys, message):
    def read():
        rows(opened({"files": written(content), **keys}), "n")

    with pytest.raises(ConfigError, match=message) as caught:
        read()
    assert SECRET not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def merged(path, *ranges):
    book = load_workbook(path)
    for cells in ranges:
        book.worksheets[0].merge_cells(cells)
    book.save(path)
    return path


@pytest.mark.parametrize("cells", ["B2:B3", "A4:B4", "B3:D3"])
def test_merged_cells_whose_values_would_be_lost_are_named(opened, written, cells):
    content = [["day", "n"], [DAY, SECRET], [DAY, "b"], [DAY, "c"]]
    path = merged(written(content), cells)
    with pytest.raises(ConfigError, match=f"the cells {cells} are merged, and all but the first") as caught:
        opened({"files": path})
    assert SECRET not in str(caught.value)


def test_cells_that_are_merged_beside_the_table_do_not_matter(opened, written):
    path = merged(written([["day", "n"], [DAY, "a"], [DAY, "b"]]), "D1:E3", "C7:C9")
    assert rows(opened({"files": path}), "n") == [("a",), ("b",)]


def test_what_is_no_workbook_is_one_error(opened, tmp_path, monkeypatch):
    path = tmp_path / "visits.xlsx"
    for content in (b"", b"PK\x03\x04 Secretville", b"a;b\n"):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="cannot be read as an Excel workbook") as caught:
            opened(str(path))
        assert caught.value.__context__ is None
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ConfigError, match=r"'\.\[excel\]'"):
        opened(str(path))


def test_a_job_and_a_command_publish_the_same_from_a_workbook(job_file, basic, engine, tmp_path, written):
    job = job_file(basic)
    import pandas as pd

    visits = pd.read_parquet(tmp_path / "visits.parquet").replace({float("nan"): None})
    written([[*visits.columns], *visits.itertuples(index=False)])
    expected = run_job(load_job(job), date(2020, 1, 1)).releases[0].release
    text = basic.replace("visits.parquet", "visits.xlsx").replace('"out', '"other')
    job.write_text(f'engine = "{engine}"\n{text}', encoding="utf-8")
    assert run_job(load_job(job), date(2020, 1, 1)).releases[0].release.to_bytes() == expected.to_bytes()
    run = partial(CliRunner().invoke, cli.app)
    options = ["--by", "town", "--unit", "person", "--missing-unit", "drop", "--k", "5", "--p-max", "0.5", "--json"]
    done = run(["histogram", str(tmp_path / "visits.xlsx"), *options])
    assert json.loads(done.stdout)["columns"] == {"town": ["Bø", "Ås"], "count": [5, 7]}
    done = run(["histogram", str(tmp_path / "visits.xlsx"), *options, "--sheet", "nowhere"])
    assert (done.exit_code, json.loads(done.stdout)["exit_code"]) == (2, 2)
    assert "has the sheets 'Sheet1'" in done.stderr
