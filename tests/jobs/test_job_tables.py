"""Every key of a job file: what it becomes, and what is refused with the place, the rule and the fix."""

from __future__ import annotations

import glob
import json
import re
from datetime import date
from typing import get_args

import pytest

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.extras.connect.postgres import PostgresSourceTable
from pkdp_pipeline.jobs import run_job
from pkdp_pipeline.jobs.job import Job, load_job
from pkdp_pipeline.jobs.source_tables import DuckDBSourceTable, FileSourceTable
from pkdp_pipeline.jobs.tables import FreshTable, RowsTable
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.releases import options
from pkdp_pipeline.releases.options import Table

SOURCE = 'source = "visits.parquet"'


@pytest.fixture
def written(tmp_path, basic):
    """Return a function that writes the basic job with something else in it."""

    def write(old: str = "", new: str = "", *, end: str = "", start: str = ""):
        assert old in basic
        path = tmp_path / "job.toml"
        path.write_text(f"{start}\n{basic.replace(old, new) if old else basic}\n{end}", encoding="utf-8")
        return path

    return write


def refusal(path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_job(path)
    assert str(caught.value).startswith(f"the job file {str(path)!r} ")
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "files", "format_"),
    [
        ('"data/*.parquet"', ["data/*.parquet"], "parquet"),
        ('"data/day.PQ"', ["data/day.PQ"], "parquet"),
        ('["a.csv", "b.csv.gz"]', ["a.csv", "b.csv.gz"], "csv"),
        ('{ files = "*.csv" }', ["*.csv"], "csv"),
        ('{ files = ["in/*.dat"], format = "csv" }', ["in/*.dat"], "csv"),
        ('{ files = "in/*.csv", format = "parquet" }', ["in/*.csv"], "parquet"),
    ],
)
def test_files_are_patterns_below_the_job_files_folder(written, tmp_path, source, files, format_):
    read = load_job(written(SOURCE, f"source = {source}")).source
    assert isinstance(read, FileSourceTable)
    assert read.files == tuple(str(tmp_path / file) for file in files)
    assert read.format == format_
    assert read.public_name == ", ".join(file.rpartition("/")[2] for file in files)


def test_brackets_in_the_folders_name_are_no_pattern(basic, tmp_path):
    folder = tmp_path / "[2020]"
    folder.mkdir()
    (folder / "job.toml").write_text(basic.replace(SOURCE, 'source = "*.parquet"'), encoding="utf-8")
    (folder / "one.parquet").touch()
    (pattern,) = load_job(folder / "job.toml").source.files
    assert glob.glob(pattern) == [str(folder / "one.parquet")]


def test_a_csv_source_says_how_it_is_read(written):
    text = 'source = { files = "a.csv", delimiter = ";", null = "NA", types = { person = "text", n = "number" } }'
    read = load_job(written(SOURCE, text)).source
    assert (read.delimiter, read.null, dict(read.types)) == (";", ("NA",), {"person": "text", "n": "number"})
    plain = load_job(written(SOURCE, 'source = "a.csv"')).source
    assert (plain.delimiter, plain.null, dict(plain.types)) == (",", ("",), {})


def test_spark_reads_folders_and_addresses(written):
    spark = 'engine = "spark"'
    (folder,) = load_job(written(SOURCE, 'source = "visits"', start=spark)).source.files
    assert folder.endswith("/visits")
    address = load_job(written(SOURCE, 'source = "s3a://bucket/visits/"', start=spark)).source
    assert (address.files, address.public_name) == (("s3a://bucket/visits/",), "visits")


def test_databases_are_sources(written, tmp_path, monkeypatch):
    duck = load_job(written(SOURCE, 'source = { duckdb = "w.duckdb", table = "main.visits" }')).source
    assert isinstance(duck, DuckDBSourceTable)
    assert (duck.duckdb, duck.table, duck.query) == (str(tmp_path / "w.duckdb"), "main.visits", None)
    assert duck.public_name == "w.duckdb, main.visits"
    monkeypatch.setenv("PKDP_SOURCE", "postgresql://ada:secret@db.example:5433/warehouse?sslmode=require")
    query = "-- all\\nSELECT * FROM visits"
    read = load_job(written(SOURCE, f'source = {{ postgres = "${{PKDP_SOURCE}}", query = "{query}" }}')).source
    assert isinstance(read, PostgresSourceTable)
    assert read.postgres == "postgresql://ada:secret@db.example:5433/warehouse?sslmode=require"
    assert read.public_name == "db.example:5433/warehouse, query"


@pytest.mark.usefixtures("great_expectations")
def test_checks_retention_outputs_and_records_are_read(written, tmp_path):
    (tmp_path / "checks.json").write_text(json.dumps({"name": "s", "expectations": []}))
    job = load_job(
        written(
            'directory = "out"',
            'directory = "out"\nformats = ["csv", "parquet"]\nduckdb = "public.duckdb"\nschema = "published"',
            start='retention = { directory = "private", days = 7 }',
            end="""
[checks]
rows = { min = 1 }
columns = { person = "text" }
fresh = { column = "day" }
expectations = "checks.json"
[[checks.expect]]
type = "expect_column_values_to_be_between"
column = "distance"
min_value = 0
[records]
directory = "runs"
lineage = "lineage.jsonl"
""",
        )
    )
    assert job.checks.rows == RowsTable(min=1)
    assert dict(job.checks.columns) == {"person": "text"}
    assert job.checks.fresh == FreshTable(column="day", days=1)
    assert job.checks.expectations == str(tmp_path / "checks.json")
    assert job.checks.expect[0]["column"] == "distance"
    assert (job.retention.directory, job.retention.days) == (str(tmp_path / "private"), 7)
    assert (job.output.formats, job.output.duckdb) == (("csv", "parquet"), str(tmp_path / "public.duckdb"))
    assert (job.output.schema_, job.output.postgres) == ("published", None)
    assert (job.records.directory, job.records.lineage) == (str(tmp_path / "runs"), str(tmp_path / "lineage.jsonl"))
    assert job.records.namespace == "pkdp"
    assert (job.file, job.name) == (str(tmp_path / "job.toml"), "job")


def test_what_is_not_said_is_not_done(written):
    job = load_job(written())
    assert (job.retention, job.records, job.output.formats) == (None, None, ("parquet",))
    assert (job.checks.rows, job.checks.fresh, job.checks.expectations, job.checks.expect) == (None, None, None, ())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[[release]]", "[release]", ["release: ", "[[release]], with two brackets"]),
        ("k = 5", "k = 5\nnoise = 0.5", ["release[1].noise: ", "noise = { epsilon = 0.5 }"]),
        ("k = 5", "k = 20.0", ["release[1].k: ", "whole number: write k = 20."]),
        ("k = 5", "k = 20.5", ["release[1].k: must be a whole number."]),
        ("k = 5", 'k = "many"', ["release[1].k: must be a whole number, without quotes."]),
        ("k = 5", 'k = "20"', ["release[1].k: ", "without quotes: write k = 20."]),
        ("k = 5", "k = 55.0", ["release[1].k: ", "a whole number: write k = 55."]),
        ("p_max = 0.5", 'p_max = "half"', ["attacker.p_max: must be a number, without quotes."]),
        ("p_max = 0.5", 'p_max = "20%"', ["attacker.p_max: ", "without quotes: write p_max = 0.2."]),
        ("k = 5", 'k = 5\n[[release]]\nname = "PEOPLE_by_town"\nk = 5', ["'people_by_town' and 'PEOPLE_by_town'"]),
        ("k = 5", 'k = 5\n[[release]]\nname = "people_by_town"\nk = 5', ["named 'people_by_town'; their", "rename"]),
        (
            'directory = "out"',
            'directory = "out"\nretention = 7',
            ["output: unknown key 'retention'", "above the first"],
        ),
        ('directory = "out"', 'directory = ""', ["output.directory: must not be empty"]),
        ('directory = "out"', 'directory = "~/out"', ["output.directory: ", "~ is not replaced"]),
        ('directory = "out"', 'directory = "s3://out"', ["output.directory: ", "not an address"]),
        ('directory = "out"', 'directory = "${OUT}/x"', ["output.directory: ", "ledger, postgres and ibis only"]),
        ('directory = "out"', 'directory = "out"\nformats = ["cvs"]', ["output.formats[1]: ", "did you mean 'csv'"]),
        ('directory = "out"', 'directory = "out"\nformats = "csv"', ["output.formats: ", 'formats = ["parquet"']),
        ('directory = "out"', 'directory = "out"\nformats = []', ["output.formats: must not be empty"]),
        ('directory = "out"', 'directory = "out"\nformats = ["csv", "csv"]', ["output: formats names a format twice"]),
        ('directory = "out"', 'directory = "out"\nschema = "s"', ["output: schema", "add duckdb or postgres"]),
        ('directory = "out"', 'directory = "out"\nscheme = "s"', ["output: unknown key", "did you mean 'schema'"]),
        ('directory = "out"', 'directory = "out"\n[records]', ["records: needs directory, lineage or both"]),
        ('directory = "out"', 'directory = "out"\n[records]\ndirectory = "out/r"', ["records.directory: ", "beside"]),
        ('directory = "out"', 'directory = "out"\n[records]\nlineage = "out/l"', ["records.lineage: ", "public"]),
        (
            'directory = "out"',
            'directory = "out"\n[retention]\ndirectory = "out/p"\ndays = 1',
            ["retention.directory: "],
        ),
        ('directory = "out"', 'directory = "p/out"\n[retention]\ndirectory = "p"\ndays = 1', ["output.directory: "]),
        ('directory = "out"', 'directory = "out"\n[retention]\ndirectory = "p"\ndays = 0', ["retention.days: ", "1"]),
        (
            'directory = "out"',
            'directory = "out"\nduckdb = "out/ledger.sqlite"',
            ["duckdb: is the ledger's file"],
        ),
        ('directory = "out"', 'directory = "out"\n[checks]\nrows = {}', ["checks.rows: needs min, max or both"]),
        ('directory = "out"', 'directory = "out"\n[checks]\nrows = 5', ["checks.rows: ", "rows = { min"]),
        ('directory = "out"', 'directory = "out"\n[checks]\nrows = { min = 2, max = 1 }', ["checks.rows: ", "swap"]),
        ('directory = "out"', 'directory = "out"\n[checks]\nrows = { min = -1 }', ["checks.rows.min: ", "0"]),
        ('directory = "out"', 'directory = "out"\n[checks]\ncolumns = { a = "txt" }', ["columns.a: ", "mean 'text'"]),
        ('directory = "out"', 'directory = "out"\n[checks]\nfresh = "day"', ["checks.fresh: ", "fresh = { column"]),
        ('directory = "out"', 'directory = "out"\n[checks]\nexpectations = "no.json"', ["no.json", "cannot be read"]),
        ('directory = "out"', 'directory = "out"\n[checks.expect]\ntype = "x"', ["checks.expect: ", "two brackets"]),
        (
            'directory = "out"',
            'directory = "out"\n[[checks.expect]]\ntype = "expect_nothing"',
            ["checks.expect[1]"],
        ),
        ('dataset = "visits"', 'dataset = "visits"\nengine = "DuckDb"', ["engine: ", "did you mean 'duckdb'"]),
        ('missing_unit = "drop"', 'missing_unit = "dorp"', ["missing_unit: ", "did you mean 'drop'"]),
        ('dataset = "visits"', 'dataset = "visits"\none_cell = "most_freq"', ["one_cell: ", "mean 'most_frequent'"]),
        (
            'dataset = "visits"',
            'dataset = "visits"\nevidence = { kind = "one_day" }',
            ["evidence[1]: kind: must be", "did you mean 'one_day_protected'"],
        ),
        (
            'dataset = "visits"',
            'dataset = "visits"\nevidence = { kind = "bounded_dependence", epsilon = "1" }',
            ["evidence[1].epsilon: must be a number"],
        ),
        (
            'dataset = "visits"',
            'dataset = "visits"\nbudget = 5',
            ["budget: ", "budget = { epsilon = 2.0, delta = 1e-6 }"],
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place_and_the_fix(written, old, new, words):
    message = refusal(written(old, new))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('{ files = "a.csv", duckdb = "b.duckdb" }', ["source: has files and duckdb", "remove"]),
        ('{ file = "a.csv" }', ["source: says not what to read", "did you mean 'files'"]),
        ("{ }", ["source: says not what to read"]),
        ("5", ["source: has another form", 'source = "data/*.parquet"']),
        ("[]", ["source.files: must be a file name or a list of file names"]),
        ('["a.csv", "b.parquet"]', ["source: ", "files are of several formats"]),
        ('"a.txt"', ["source: ", ".parquet", 'format = "csv"']),
        ('"folder"', ["source: ", '"folder/*.parquet"']),
        ('"s3://a/b.parquet"', ["source: ", 'engine = "spark"']),
        ('"~/a.parquet"', ["source.files: ", "~ is not replaced"]),
        ('"${DATA}"', ["source.files: ", "ledger, postgres and ibis only"]),
        ('{ files = "a.parquet", delimiter = ";" }', ["source: delimiter is for CSV files"]),
        ('{ files = "a.parquet", null = ["NA"] }', ["source: null is for CSV files"]),
        ('{ files = "a.csv", delimiter = ";;" }', ["source: delimiter must be one character"]),
        ('{ files = "a.csv", types = { a = "number", b = "sting" } }', ["source.types.b: ", "must be 'text'"]),
        ('{ files = "a.csv", format = "tsv" }', ["source.format: must be 'parquet', 'csv' or 'excel'"]),
        ('{ duckdb = "a.duckdb" }', ["source: says not what to read", "query"]),
        ('{ duckdb = "a.duckdb", table = "t", query = "SELECT 1" }', ["source: has table and query", "remove one"]),
        ('{ duckdb = "a.duckdb", table = "a.b.c" }', ["source.table: must be the name of a table"]),
        ('{ duckdb = "a.duckdb", tabel = "t" }', ["source: unknown key 'tabel'", "did you mean 'table'"]),
        ('{ postgres = "mysql://a/b", table = "t" }', ["source.postgres: ", "PostgreSQL"]),
    ],
)
def test_a_source_that_cannot_be_read_is_refused(written, source, words):
    message = refusal(written(SOURCE, f"source = {source}"))
    for word in words:
        assert word in message


def test_databases_are_read_with_duckdb(written):
    text = 'source = { duckdb = "a.duckdb", table = "t" }'
    assert 'engine = "duckdb"' in refusal(written(SOURCE, text, start='engine = "spark"'))


def test_the_public_never_gets_the_sources_own_tables(written, tmp_path):
    duck = 'source = { duckdb = "w.duckdb", table = "t" }'
    same = written(SOURCE, duck, end='duckdb = "x/../w.duckdb"')
    (tmp_path / "x").mkdir()
    assert "output.duckdb: is the source's file" in refusal(same)
    postgres = 'source = { postgres = "postgresql://ada@db/w", table = "people_by_town" }'
    onto = written(SOURCE, postgres, end='postgres = "postgresql://public@db/w"')
    assert "release[1].name" in refusal(onto)
    load_job(written(SOURCE, postgres, end='postgres = "postgresql://public@db/w"\nschema = "published"'))


def test_links_are_followed_to_find_what_is_private_inside_the_output(written, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "private").symlink_to(tmp_path / "out")
    assert "retention.directory: lies inside" in refusal(written(end='[retention]\ndirectory = "private"\ndays = 1'))
    (tmp_path / "private").unlink()
    (tmp_path / "private").symlink_to(tmp_path / "private")
    load_job(written(end='[retention]\ndirectory = "private"\ndays = 1'))


def test_a_folder_that_becomes_a_link_into_the_output_is_refused_when_the_job_runs(written, tmp_path):
    job = load_job(written(end='[records]\ndirectory = "private"'))
    (tmp_path / "out").mkdir()
    (tmp_path / "private").symlink_to(tmp_path / "out")
    with pytest.raises(ConfigError, match=r"records\.directory"):
        run_job(job, date(2020, 1, 1))
    assert not [*(tmp_path / "out").rglob("*.json")]


def test_an_attacker_that_no_release_uses_is_refused(written):
    own = "k = 5\nattacker = { p_max = 0.2 }"
    assert "every release has its own" in refusal(written("k = 5", own))
    noise = "noise = { epsilon = 1 }"
    noised = f'k = 5\n{noise}\nrelease_threshold = 40\nattacker = {{ p_max = 0.2 }}\n[[release]]\nname = "b"\n{noise}'
    message = refusal(written("k = 5", noised))
    assert "attacker of release[1] says nothing" in message
    # Where the dependence between them is bounded, each keeps what it claims against its attacker.
    load_job(written("k = 5", noised, start='evidence = { kind = "bounded_dependence", epsilon = 1.0 }'))


def test_an_exact_count_beside_pure_noise_keeps_its_attacker(written):
    noised = 'domain = ["Ås"]\nnoise = { epsilon = 1 }\n[[release]]\nname = "b"'
    job = load_job(written("k = 5", noised))
    assert job.attacker_of(job.release[1]) == AttackerModel(p_max=0.5)


def test_every_complaint_is_told_at_once(written):
    message = refusal(written("k = 5", "k = 5.5\nnoise = 1", start='engine = "x"'))
    places = ("engine", "release[1].k", "release[1].noise")
    assert sorted(line.strip().partition(": ")[0] for line in message.splitlines()[1:]) == sorted(places)


def test_a_digest_is_of_what_the_file_says(written):
    digest = load_job(written()).digest
    assert len(digest) == 64
    for old, new in [
        ('unit = "person"', 'unit = ["person"]'),
        ('dataset = "visits"', 'dataset = "visits"\none_cell = "error" # a comment'),
        ('by = "town"\nk = 5', 'k = 5\nby = "town"'),
    ]:
        assert load_job(written(old, new)).digest == digest
    digests = {digest}
    for old, new in [
        ("k = 5", "k = 6"),
        ("p_max = 0.5", "p_max = 0.4"),
        ('"drop"', '"error"'),
        ('"town"', '"city"'),
        ("visits.parquet", "others.parquet"),
        ('column = "day"', 'column = "day", time_zone = "UTC"'),
        ('dataset = "visits"', 'dataset = "visits"\nbudget = { epsilon = 1.0, delta = 0.0 }'),
        ('directory = "out"', 'directory = "out"\n[checks]\nrows = { min = 1 }'),
        ("k = 5", "k = 5\nwhere = \"town != 'Bø'\""),
    ]:
        digests.add(load_job(written(old, new)).digest)
    assert len(digests) == 10


@pytest.mark.usefixtures("great_expectations")
def test_a_digest_covers_the_suite_of_expectations(written, tmp_path):
    path = written(end='[checks]\nexpectations = "checks.json"')
    suite = {"name": "s", "expectations": []}
    (tmp_path / "checks.json").write_text(json.dumps(suite))
    before = load_job(path).digest
    kwargs = {"column": "town", "min_value": 0}
    suite["expectations"].append({"type": "expect_column_max_to_be_between", "kwargs": kwargs})
    (tmp_path / "checks.json").write_text(json.dumps(suite))
    assert load_job(path).digest != before


def test_attackers_of_the_job_and_of_its_releases(written):
    only = "k = 5\nattacker = { p_max = 0.2, known = 3 }"
    mixed = load_job(
        written(
            "k = 5",
            f'{only}\n[[release]]\nname = "b"\nby = "day"\nk = 9',
            start='evidence = { kind = "bounded_dependence", epsilon = 1.0 }',
        )
    )
    assert mixed.attacker_of(mixed.release[0]) == AttackerModel(p_max=0.2, known=3)
    assert mixed.attacker_of(mixed.release[1]) == AttackerModel(p_max=0.5)


def _tables(table=Job):
    """Return every table of a job file."""
    tables = {table}
    for field in table.model_fields.values():
        for kind in _kinds(field.annotation):
            tables |= _tables(kind)
    return tables


def _kinds(annotation):
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return {annotation}
    return {kind for part in get_args(annotation) for kind in _kinds(part)}


def test_what_is_required_is_shown_as_it_is_written():
    needed = {name for table in _tables() for name, field in table.model_fields.items() if field.is_required()}
    assert {"dataset", "release", "epsilon", "name", "column", "directory"} <= needed
    for name in needed:
        said = options._message({"type": "missing"}, name, options._WRITTEN.get(name))
        assert re.fullmatch(
            rf"is required: write (\[+{name}\]+, (with two brackets, )?and below it )?.+ = .+\.", said
        ), said
        assert name in said
