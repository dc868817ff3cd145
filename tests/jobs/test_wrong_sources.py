"""Job files that say something wrong about their source: one clear error, exit code 2, nothing published or charged."""

from __future__ import annotations

import pandas as pd
import pytest
from openpyxl import Workbook
from thorough import thinned
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli

SECRET = "hunter2"
ADDRESS = f"snowflake://ulla:{SECRET}@account/database/schema?token={SECRET}"

#: What stands after `source =`, and what is told. None of it is read: the file is refused.
REFUSED = [
    (f'{{ ibis = "{ADDRESS}" }}', 'write table = "schema.name" or query'),
    (f'{{ ibis = "{ADDRESS}", table = "v", query = "SELECT 1" }}', "has table and query: remove one"),
    (f'{{ ibis = "{ADDRESS}", tabel = "v" }}', "did you mean 'table'"),
    (f'{{ ibis = "{ADDRESS}", table = "a.b.c.d" }}', "must be the name of a table"),
    (f'{{ ibis = "{ADDRESS}", table = "v;--\\"" }}', "must be the name of a table"),
    (f'{{ ibis = "{ADDRESS}", postgres = "{ADDRESS}", table = "v" }}', "has postgres and ibis: a job reads one"),
    (f'{{ ibis = "{ADDRESS}", table = "v", sheet = "x" }}', "unknown key 'sheet'"),
    ('{ ibis = "", table = "v" }', "must be the address of a database"),
    ('{ ibis = 7, table = "v" }', "ibis: must be text in quotes"),
    ('{ ibis = "warehouse.duckdb", table = "v" }', "must be the address of a database"),
    ('{ ibis = "sqlite://x.db", table = "v" }', "must be the address of a database"),
    ('{ ibis = "file://x.csv", table = "v" }', "must be the address of a database"),
    ('{ ibis = "${PKDP_NOWHERE}", table = "v" }', "environment variable PKDP_NOWHERE is not set"),
    ('{ ibis = "snowflake://${PKDP_NOWHERE}@x/y", table = "v" }', "must be the whole value"),
    (f'{{ ibis = "snowflake://ulla:{SECRET}/x@account/d", table = "v" }}', "percent-encode"),
    (f'{{ ibis = "snowflake://ulla:{SECRET}#x@account/d", table = "v" }}', "percent-encode"),
    ('{ ibsi = "duckdb://x", table = "v" }', "did you mean 'ibis'"),
    ('{ table = "v" }', "write one of files, duckdb, postgres, ibis"),
    ('{ files = "visits.csv", sheet = "a" }', "sheet is for Excel workbooks"),
    ('{ files = "visits.parquet", sheet = "a" }', "sheet is for Excel workbooks"),
    ('{ files = "visits.xlsx", sheet = "" }', "sheet: must not be empty"),
    ('{ files = "visits.xlsx", sheet = 1 }', "sheet: must be text in quotes"),
    ('{ files = "visits.xlsx", delimiter = ";" }', "a workbook has neither"),
    ('{ files = "visits.xlsx", encoding = "latin-1" }', "a workbook has neither"),
    ('{ files = "visits.xlsx", encoding = "latin-99" }', "must be the name of a text encoding"),
    ('{ files = "visits.xlsx", hive = { day = "date" } }', "hive is for Parquet files"),
    ('{ files = "visits.xlsx", sheets = "a" }', "did you mean 'sheet'"),
    ('["visits.xlsx", "visits.csv"]', "several formats"),
    ('"visits.xls"', "end in .parquet, .pq, .csv, .csv.gz or .xlsx"),
    ('{ files = "visits.txt", format = "xlsx" }', "must be 'parquet', 'csv' or 'excel'"),
]
#: What is found when the source is opened or read.
FOUND = [
    ('{ files = "visits.xlsx", sheet = "b" }', "has the sheets 'a', 'Sheet'"),
    ('{ files = "visits.xlsx", sheet = "a", types = { x = "number" } }', "no column 'x' (source.types"),
    ('{ files = "visits.xlsx", sheet = "a", types = { town = "number" } }', "column 'town' must hold whole numbers"),
    ('{ files = "visits.csv", format = "excel" }', "cannot be read as an Excel workbook"),
    ('"nowhere.xlsx"', "does not exist or is not a file"),
    ('{ files = "visits.csv", encoding = "utf-16" }', "no text in the declared encoding"),
    ('{ files = "visits.csv", delimiter = ";" }', 'write delimiter = ","'),
    ('{ files = "visits.parquet", format = "csv" }', "cannot be read to its end as CSV"),
]
IBIS = [
    ('{ ibis = "duckdb://nowhere.duckdb", table = "v" }', "cannot be used"),
    (f'{{ ibis = "snowflake://ulla:{SECRET}@account/d/s", table = "v" }}', "ibis-framework[snowflake]"),
    (f'{{ ibis = "oracel://ulla:{SECRET}@host/d", table = "v" }}', "Ibis has no database 'oracel'"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    frame = pd.DataFrame({"day": ["2020-01-01"] * 9, "person": [f"p{n}" for n in range(9)], "town": "Secretville"})
    frame.to_csv(tmp_path / "visits.csv", index=False)
    frame.to_parquet(tmp_path / "visits.parquet")
    book = Workbook()
    sheet = book.create_sheet("a", 0)
    for row in [[*frame.columns], *frame.itertuples(index=False)]:
        sheet.append(list(row))
    book.save(tmp_path / "visits.xlsx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(folder, basic, source: str, message: str, more: str = "") -> None:
    """Run a job, and check that it is refused in one error that tells nothing, and leaves nothing behind."""
    (folder / "job.toml").write_text(basic.replace('"visits.parquet"', source) + more, encoding="utf-8")
    before = sorted(folder.iterdir())
    done = CliRunner().invoke(cli.app, ["run", "job.toml", "--date", "2020-01-01"])
    said = " ".join(done.stderr.split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in said
    assert said.count("pkdp:") == 1
    for word in (SECRET, "Secretville", "Traceback", "ulla", "p1"):
        assert word not in said.replace("database", "")
    new_paths = [path for path in sorted(folder.iterdir()) if path not in before]
    assert [path.name for path in folder.rglob("*") if path.suffix in (".json", ".md", ".csv", ".duckdb")] == [
        "visits.csv"
    ]
    if new_paths:  # the ledger is opened before the source
        with pkdp.Ledger.open(folder / "out" / "ledger.sqlite", dataset="visits") as ledger:
            assert list(ledger.entries()) == []


@thinned(6)
@pytest.mark.parametrize(("source", "message"), REFUSED)
def test_what_is_wrong_in_the_file_is_refused_before_anything_is_opened(folder, basic, source, message):
    refused(folder, basic, source, message)
    assert sorted(path.name for path in folder.iterdir()) == ["job.toml", "visits.csv", "visits.parquet", "visits.xlsx"]


@thinned(3)
@pytest.mark.parametrize(("source", "message"), FOUND)
def test_what_is_wrong_with_a_file_is_found_before_anything_is_charged(folder, basic, source, message):
    refused(folder, basic, source, message)


@pytest.mark.ibis
@pytest.mark.parametrize(("source", "message"), IBIS)
def test_what_is_wrong_with_an_address_is_found_before_anything_is_charged(folder, basic, source, message):
    refused(folder, basic, source, message)


@pytest.mark.usefixtures("great_expectations")
@pytest.mark.parametrize(
    "more",
    [
        '[[checks.expect]]\ntype = "expect_column_values_to_not_be_null"\ncolumn = "town"\n',
        '[checks]\nexpectations = "suite.json"\n',
        "",
    ],
)
def test_rows_of_a_source_that_ibis_connects_to_are_not_asked_for(folder, basic, more):
    kept = "" if more else '\nretention = { directory = "private", days = 7 }'
    refused(folder, basic, f'{{ ibis = "{ADDRESS}", table = "v" }}{kept}', "stay in its database: remove", more)


def test_spark_reads_no_database(folder, basic):
    source = f'{{ ibis = "{ADDRESS}", table = "v" }}'
    refused(folder, f'engine = "spark"\n{basic}', source, "databases are read with engine")


def test_what_is_published_does_not_replace_what_is_read(folder, basic):
    source = '{ ibis = "duckdb://warehouse.duckdb", table = "v" }'
    refused(folder, basic, source, "output.duckdb: is the source's file", 'duckdb = "warehouse.duckdb"\n')
    source = '{ ibis = "postgres://db.example/w", table = "people_by_town" }'
    more = 'postgres = "postgresql://ulla@db.example/w"\n'
    refused(folder, basic, source, "would replace the source's", more)
