"""A job's engine reads and counts, and changes nothing in what is published, refused or said."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from local_spark import local_spark
from thorough import thinned
from typer.testing import CliRunner

from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.errors import InputCheckError
from pkdp_pipeline.jobs import load_job, run_job

EXAMPLES = Path(__file__).parents[2] / "examples"
DAY = date(2013, 1, 2)
SUBMITTED = (
    "--master local[2] --conf spark.driver.bindAddress=127.0.0.1 --conf spark.driver.host=127.0.0.1 pyspark-shell"
)


@pytest.fixture
def spark():
    local_spark()


def flights(folder: Path, engine: str, *changes: tuple[str, str]) -> Path:
    """Write the example job for an engine into a folder of its own, with a new ledger."""
    text = (EXAMPLES / "daily_flights.toml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    text = text.replace("data/flights_2013.parquet", str(EXAMPLES / "data" / "flights_2013.parquet"))
    folder.mkdir(parents=True)
    path = folder / "job.toml"
    path.write_text(f'engine = "{engine}"\n{text}', encoding="utf-8")
    return path


def published(folder: Path, engine: str, day: date, *changes: tuple[str, str]) -> dict[str, bytes]:
    """Return the files of one date but the summary, which names an event of the ledger."""
    result = run_job(load_job(flights(folder, engine, *changes)), day)
    return {file.name: file.read_bytes() for release in result.releases for file in release.files}


NOISELESS_RULES = {
    "as it is": [],
    "a domain": [('by = "carrier"', 'by = "carrier"\ndomain = ["UA", "DL", "ZZ"]\nundeclared = "absent"')],
    "a predicate": [('by = "carrier"', 'by = "carrier"\nwhere = "distance > 500 and origin != \'JFK\'"')],
    "most frequent": [('by = "carrier"', 'by = ["origin"]'), ('one_cell = "hash"', 'one_cell = "most_frequent"')],
    "first": [
        ('by = "carrier"', 'by = ["origin", "carrier"]'),
        ('one_cell = "hash"', 'one_cell = "first"\norder_by = ["dep_delay", "distance"]'),
    ],
    "hash": [('by = "carrier"', 'by = ["dest"]'), ("k = 50", "k = 60")],
    "a count": [
        ('by = "carrier"', 'where = "dep_delay > 15"'),
        ('one_cell = "hash"', ""),
    ],
}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("rule", "day"), [("as it is", date(2013, 12, 31)), *((rule, DAY) for rule in NOISELESS_RULES)]
)
def test_spark_publishes_the_same_bytes(tmp_path, spark, rule, day):
    changes = NOISELESS_RULES[rule]
    files = published(tmp_path / "spark", "spark", day, *changes)
    assert sorted(Path(name).suffixes[-1] for name in files) == [".json", ".parquet"]
    assert files == published(tmp_path / "expected", "duckdb", day, *changes)


CSV_TYPES = "date = 'date', dep_delay = 'real', distance = 'number'"


@thinned(2)
@pytest.mark.parametrize(
    ("form", "engine"),
    [
        ("one CSV file", "duckdb"),
        pytest.param("two CSV files, packed", "spark", marks=pytest.mark.spark),
        ("a pattern of Parquet files", "duckdb"),
        pytest.param("a pattern of Parquet files", "spark", marks=pytest.mark.spark),
    ],
)
def test_the_same_bytes_are_published_from_other_files(tmp_path, engine, form):
    import duckdb

    folder = tmp_path / "data"
    folder.mkdir()
    data = EXAMPLES / "data" / "flights_2013.parquet"
    ending = "parquet" if "Parquet" in form else "csv.gz" if "packed" in form else "csv"
    parts = ["date < DATE '2013-01-02'", "date >= DATE '2013-01-02'"] if form != "one CSV file" else ["true"]
    with duckdb.connect() as connection:
        for position, part in enumerate(parts):
            columns = "* EXCLUDE (carrier), carrier" if position else "*"
            connection.execute(
                f"COPY (SELECT {columns} FROM '{data}' WHERE date < DATE '2013-01-04' AND {part}) "
                f"TO '{folder}/{position}.{ending}'"
            )
    types = "" if ending == "parquet" else f", types = {{ {CSV_TYPES} }}"
    change = ('source = "data/flights_2013.parquet"', f'source = {{ files = "{folder}/*.{ending}"{types} }}')
    rules = [change, ('by = "carrier"', 'by = "carrier"\nwhere = "distance > 500 and origin != \'JFK\'"')]
    assert published(tmp_path / engine, engine, DAY, *rules) == published(
        tmp_path / "expected", "duckdb", DAY, *rules[1:]
    )


@pytest.mark.spark
def test_what_is_refused_is_refused_in_the_same_words(tmp_path, spark):
    missing = (('missing_unit = "drop"', 'missing_unit = "error"'),)
    several = ('by = "carrier"', 'by = "origin"'), ('one_cell = "hash"', 'one_cell = "error"')
    for position, changes in enumerate((missing, several)):
        said = []
        for engine in ("duckdb", "spark"):
            job = flights(tmp_path / f"{engine} {position}", engine, *changes)
            with pytest.raises(InputCheckError) as caught:
                run_job(load_job(job), DAY)
            said.append(str(caught.value))
        assert said[0] == said[1]


def test_another_engine_replays_what_one_has_published(tmp_path, monkeypatch):
    path = flights(tmp_path / "job", "duckdb")
    first = run_job(load_job(path), DAY)
    path.write_text(path.read_text(encoding="utf-8").replace('"duckdb"', '"spark"'), encoding="utf-8")
    monkeypatch.setattr("pkdp_pipeline.jobs.session.open_source", None)  # no engine is asked
    again = run_job(load_job(path), DAY)
    assert again.replayed
    assert again.releases[0].release.id == first.releases[0].release.id


@pytest.mark.spark
def test_a_job_of_its_own_process_starts_spark_stops_it_and_prints_nothing_of_it(tmp_path):
    printed = {}
    for engine in ("duckdb", "spark"):
        job = flights(tmp_path / engine, engine)
        folder = tmp_path / f"{engine} here"
        folder.mkdir()
        ran = subprocess.run(
            [sys.executable, "-m", "pkdp_pipeline.cli.main", "run", str(job), "--date", DAY.isoformat()],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**os.environ, "COLUMNS": "80", "PYSPARK_SUBMIT_ARGS": SUBMITTED},
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        printed[engine] = re.sub(r"^Files in .*$", "", ran.stdout, flags=re.MULTILINE)
        assert list(folder.iterdir()) == []
    assert printed["spark"] == printed["duckdb"]


@pytest.mark.spark
def test_an_error_of_spark_while_counting_says_nothing_of_the_data(tmp_path, capfd, caplog):
    import duckdb

    local_spark()
    folder = tmp_path / "parts.parquet"
    folder.mkdir()
    # Two parts that disagree about a column: Spark notices when it reads the rows.
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT DATE '{DAY}' AS date, 'a' || i AS tailnum, 7 AS carrier FROM range(99) r(i)) "
            f"TO '{folder}/1.parquet'"
        )
        connection.execute(
            f"COPY (SELECT DATE '{DAY}' AS date, 'b' || i AS tailnum, 'Secretville' AS carrier FROM range(99) r(i)) "
            f"TO '{folder}/2.parquet'"
        )
    job = flights(tmp_path / "job", "spark", ("data/flights_2013.parquet", str(folder)))
    ran = CliRunner().invoke(cli.app, ["run", str(job), "--date", DAY.isoformat()])
    assert ran.exit_code == 2
    assert "can be read from start to end" in " ".join(ran.output.split())
    said = ran.output + "".join(capfd.readouterr()) + caplog.text
    for word in ("Secretville", "Exception", "part", "INT"):
        assert word not in said.replace(str(folder), "")
