"""What docs/recipes.md names lies in examples/recipes, and runs in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import pkdp_pipeline as pkdp

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[3]
RECIPES = ROOT / "examples" / "recipes"
PROGRAMS = ROOT / ".venv-recipes" / "bin"
installed = pytest.mark.skipif(not PROGRAMS.exists(), reason="make test-recipes sets up .venv-recipes")

IDS = {"2013-01-02": 533, "2013-01-03": 516}
"""Of each day, how many aircraft are in published cells."""


@pytest.fixture
def folder(tmp_path):
    """A folder with the recipes, the job beside them, and its data where each expects them."""
    shutil.copytree(RECIPES, tmp_path / "examples" / "recipes")
    shutil.copy(ROOT / "examples" / "daily_flights.toml", tmp_path / "examples")
    (tmp_path / "examples" / "data").symlink_to(ROOT / "examples" / "data")
    return tmp_path


def run(folder: Path, *command: str, **environment: str) -> str:
    """Run a program of the recipes' environment; return what it prints."""
    quiet = {"PREFECT_HOME": str(folder / "prefect"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    program, *arguments = command
    done = subprocess.run(
        [PROGRAMS / program, *arguments],
        cwd=folder,
        env={**os.environ, **quiet, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_page_names_the_files():
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    files = [path for path in sorted(RECIPES.iterdir()) if path.is_file()]
    assert len(files) == 5
    for path in files:
        assert f"(../examples/recipes/{path.name})" in page, path.name


def test_the_statements_in_r_are_answered_by_duckdb(tmp_path):
    frame = pd.DataFrame({"u": range(60), "c": ["a"] * 40 + ["b"] * 20})
    release = frame.pkdp.histogram("c", unit="u", k=10, attacker=pkdp.AttackerModel(p_max=0.1))
    release.to_parquet(tmp_path / "week.parquet")
    statements = re.findall(r'dbGetQuery\(con, "(.*)"\)', (RECIPES / "release.R").read_text(encoding="utf-8"))
    with duckdb.connect() as connection:
        queries = [text.replace("week.parquet", f"{tmp_path}/week.parquet") for text in statements]
        table, certificate = (connection.sql(text).fetchall() for text in queries)
    assert table == [("a", 40), ("b", 20)]
    assert json.loads(certificate[0][0])["sentence"] == release.certificate.sentence()


def test_kestra_runs_the_command_that_cron_runs():
    text = (RECIPES / "kestra.yaml").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ +- (cd .*)$", text, re.MULTILINE)
    assert f"{command} >/dev/null" in (ROOT / "examples" / "schedule" / "crontab").read_text(encoding="utf-8")


@installed
def test_the_notebook_of_marimo_shows_the_release_and_publishes_it_once(folder):
    run(folder, "python", "examples/recipes/notebook.py")
    run(folder, "marimo", "-q", "export", "html", "examples/recipes/notebook.py", "-o", "out.html")
    assert "Private at" in (folder / "out.html").read_text(encoding="utf-8")
    with pkdp.Ledger.open(folder / "ledger.sqlite", dataset="flights") as ledger:
        assert len(list(ledger.entries())) == 1


@installed
def test_the_flow_of_prefect_publishes_logs_and_fails_for_good(folder):
    (folder / "flow.py").write_text(
        """
import sys
from datetime import date
sys.path.insert(0, "examples/recipes")
import prefect_flow
from prefect.testing.utilities import prefect_test_harness
with prefect_test_harness(server_startup_timeout=300):
    print("ids", *prefect_flow.daily_flights(date(2013, 1, 2)).values())
    print("state", prefect_flow.daily_flights(date(2199, 1, 2), return_state=True).type.value)
""",
        encoding="utf-8",
    )
    printed = run(folder, "python", "flow.py", PREFECT_LOGGING_EXTRA_LOGGERS="pkdp_pipeline")
    released = pkdp.read_release(folder / "examples" / "out" / "2013-01-02" / "aircraft_by_carrier.parquet")
    assert f"ids {released.id}\n" in printed
    assert "state FAILED\n" in printed
    title = "'aircraft_by_carrier' of 2013-01-02 in data set 'flights'"
    for line in (
        f"INFO    | pkdp_pipeline - published: {title}, release {released.id}",
        "WARNING | pkdp_pipeline - not published: 2199-01-02 in data set 'flights' (ArgumentError)",
    ):
        assert line in printed


@installed
def test_the_model_of_sqlmesh_publishes_each_day_once(folder):
    (folder / "models").mkdir()
    shutil.copy(RECIPES / "sqlmesh_model.py", folder / "models")
    (folder / "config.yaml").write_text(
        "gateways: {local: {connection: {type: duckdb, database: warehouse.duckdb}}}\ndefault_gateway: local\n"
        "model_defaults: {dialect: duckdb}\ndisable_anonymized_analytics: true\n",
        encoding="utf-8",
    )
    make = "CREATE SCHEMA raw; CREATE TABLE raw.flights AS FROM 'examples/data/flights_2013.parquet'"
    run(folder, "python", "-c", f'import duckdb; duckdb.connect("warehouse.duckdb").execute("{make}")')
    plan = ("plan", "dev", "--auto-apply", "--no-prompts", "--start", "2013-01-02", "--end", "2013-01-03")
    run(folder, "sqlmesh", *plan)
    run(folder, "sqlmesh", *plan, "--restate-model", "public.aircraft_by_carrier")
    ask = "SELECT date, sum(count) FROM public__dev.aircraft_by_carrier GROUP BY date ORDER BY date"
    shown = run(
        folder, "python", "-c", f'import duckdb; print(duckdb.connect("warehouse.duckdb").sql("{ask}").fetchall())'
    )
    assert [int(number) for number in re.findall(r", (\d+)\)(?:, \(|\])", shown)] == [*IDS.values()]
    logged = "".join(path.read_text(encoding="utf-8") for path in (folder / "logs").iterdir())
    for day, outcome in zip([*IDS, *IDS], ["published"] * 2 + ["replayed"] * 2, strict=True):
        assert f"{outcome}: 'histogram by carrier' of {day} in data set 'flights', release " in logged
    with pkdp.Ledger.open(folder / "ledger.sqlite", dataset="flights") as ledger:
        assert [entry.period for entry in ledger.entries()] == [*IDS]
