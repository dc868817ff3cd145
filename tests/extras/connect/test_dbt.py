"""Models publish: real runs of dbt, with DuckDB 1.5, each in a project folder of its own."""

from __future__ import annotations

import atexit
import itertools
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pandas as pd
import pytest
from thorough import one_in

import pkdp_pipeline as pkdp
import pkdp_pipeline.duckdb

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "dbt"
FILES = ("dbt_project.yml", "profiles.yml", "models/flights_of_day.sql", "models/aircraft_by_carrier.sql")
DAY = "2013-01-02"
NUMBERS = itertools.count()

PROJECT = """
name: people
profile: people
flags: {send_anonymous_usage_stats: false}
"""
PROFILE = """
people:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: people.duckdb
      threads: 2
      settings: {memory_limit: 1GB}
      plugins: [PLUGINS]
"""
PLUGIN = (
    "{module: pkdp_pipeline.extras.connect.dbt, "
    "config: {unit: uid, attacker: {p_max: 0.1}, dataset: people, ledger: people.sqlite, period: 2024-01-01, "
    "evidence: {kind: one_day_protected}}}"
)
BY_COUNTRY = "FROM pkdp_histogram('{{ ref(\"events\") }}', 'country', k := 20)"
GROWS = "INSERT INTO {{ ref('growing') }} SELECT 100 + range, 'SE' FROM range(30)"
MODELS = {
    "by_country": "{{ config(materialized='table') }} SELECT * " + BY_COUNTRY,
    "as_view": "{{ config(materialized='view') }} SELECT * "
    + BY_COUNTRY.replace("20)", "25, period := DATE '2024-01-02')"),
    "read_twice": "{{ config(materialized='table') }} SELECT a.country, a.count + b.count AS both "
    "FROM {{ ref('as_view') }} a JOIN {{ ref('as_view') }} b USING (country)",
    "value": "{{ config(materialized='table') }} -- {{ ref('events') }}\n"
    "SELECT pkdp_count('events', k := 20, period := '2024-01-03') AS people",
    "incremental": "{{ config(materialized='incremental', unique_key='country') }} SELECT * "
    + BY_COUNTRY.replace("20)", "20, period := '2024-01-06')"),
    "refused": "-- {{ ref('by_country') }}\n{{ config(materialized='table') }} SELECT * "
    + BY_COUNTRY.replace("'country'", "'city'"),
    "too_late": "{{ config(materialized='table', pre_hook=\"" + GROWS + '") }} SELECT * '
    "FROM pkdp_histogram('{{ ref(\"growing\") }}', 'country', k := 20, period := '2024-01-04')",
    "in_time": '-- {{ ref("too_late") }}\n{{ config(materialized=\'table\', pre_hook={"sql": "'
    + GROWS.replace("100", "200")
    + '", "transaction": false}) }} SELECT * '
    "FROM pkdp_histogram('{{ ref(\"growing\") }}', 'country', k := 20, period := '2024-01-05')",
}
EVENTS = pd.DataFrame(
    {
        "uid": range(90),
        "country": ["NO"] * 40 + ["SE"] * 30 + ["DK"] * 20,
        "city": ["Oslo"] * 40 + ["Lund"] * 30 + ["Ribe"] * 20,
    }
)


#: Imports dbt once, which takes most of a short run, but no DuckDB: runs are processes of their own, forked from there.
FORKING = """
import json, os, sys
import dbt.cli.main, pandas

for line in sys.stdin:
    folder, arguments, printed = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.environ["DBT_PROFILES_DIR"] = folder
        file = os.open(printed, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.argv = ["dbt", "--no-use-colors", *arguments]
        sys.exit(dbt.cli.main.cli())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def forking() -> subprocess.Popen[str]:
    """Return the process that runs of dbt are forked from; it ends with this one, whose pipe it reads."""
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    command = [ROOT / ".venv-duckdb1" / "bin" / "python", "-c", FORKING]
    started = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(started.communicate)
    return started


def dbt(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run dbt in a folder; return its exit code and what it prints."""
    printed, process = folder / f"printed.{next(NUMBERS)}", forking()
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps([str(folder), arguments, str(printed)]), file=process.stdin, flush=True)
    return int(process.stdout.readline()), printed.read_text(encoding="utf-8")


def results(folder: Path) -> dict[str, tuple[str, str]]:
    """Return status and message of everything that the last run made."""
    content = json.loads((folder / "target" / "run_results.json").read_text(encoding="utf-8"))
    return {result["unique_id"].split(".")[-1]: (result["status"], result["message"]) for result in content["results"]}


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(next(folder.glob("*.duckdb")), read_only=True) as connection:
        return connection.execute(query).fetchall()


def entries(folder: Path, dataset: str) -> list[tuple[str, str]]:
    with pkdp.Ledger.open(next(folder.glob("*.sqlite")), dataset=dataset) as ledger:
        ledger.verify()
        return sorted((entry.period, entry.label) for entry in ledger.entries())


@pytest.fixture
def example(tmp_path):
    """The project of the documentation, beside its data."""
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "data")
    for name in FILES:
        (tmp_path / "dbt" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(EXAMPLE / name, tmp_path / "dbt" / name)
    return tmp_path / "dbt"


@pytest.fixture
def project(tmp_path):
    """A project with a seed for every table, and the models above."""
    for folder in ("models", "seeds"):
        (tmp_path / folder).mkdir()
    (tmp_path / "dbt_project.yml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "profiles.yml").write_text(PROFILE.replace("PLUGINS", PLUGIN), encoding="utf-8")
    EVENTS.to_csv(tmp_path / "seeds" / "events.csv", index=False)
    EVENTS[["uid", "country"]].head(40).to_csv(tmp_path / "seeds" / "growing.csv", index=False)
    for name, text in MODELS.items():
        (tmp_path / "models" / f"{name}.sql").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_page_shows_the_example():
    page = (ROOT / "docs" / "dbt.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    for name in FILES[1:]:  # the project's own is that of any project
        assert f"`{name}`" in page
        assert (EXAMPLE / name).read_text(encoding="utf-8") in blocks


@pytest.mark.dbt
def test_a_day_is_published_once_however_often_dbt_runs(example):
    # What only binds or writes SQL publishes nothing.
    code, said = dbt(example, "docs", "generate", "--vars", f"{{day: {DAY}}}")
    assert code == 0, said
    code, said = dbt(example, "run", "--empty", "--vars", f"{{day: {DAY}}}")
    assert code == 1
    assert results(example)["aircraft_by_carrier"][0] == "error"
    assert entries(example, "flights") == []

    code, said = dbt(example, "run", "--vars", f"{{day: {DAY}}}")
    assert code == 0, said
    flights = pd.read_parquet(example.parent / "data" / "flights_2013.parquet")
    frame = flights[flights["date"].astype(str) == DAY]
    options = {"unit": "tailnum", "k": 50, "attacker": pkdp.AttackerModel(p_max=0.5), "missing_unit": "drop"}
    table = pkdp.histogram(frame, "carrier", **options).table
    assert rows(example, "FROM aircraft_by_carrier") == list(table.itertuples(index=False, name=None))
    first = entries(example, "flights")
    assert [period for period, _ in first] == [DAY]

    # The flights of that day are gone: what is replayed reads no data.
    (example / "models" / "flights_of_day.sql").write_text("SELECT '' AS tailnum, '' AS carrier WHERE false")
    code, said = dbt(example, "run", "--full-refresh", "--vars", f"{{day: {DAY}}}")
    assert code == 0, said
    assert rows(example, "FROM aircraft_by_carrier") == list(table.itertuples(index=False, name=None))
    assert entries(example, "flights") == first


def test_macros_quote_names_and_texts_and_refuse_what_is_not_defined():
    jinja2 = pytest.importorskip("jinja2")

    class Refused(Exception):
        def raise_compiler_error(self, text):
            raise Refused(text)

    written = (ROOT / "sql" / "dbt" / "macros" / "questions.sql").read_text(encoding="utf-8")
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    package = SimpleNamespace()  # as dbt has it: macros reach one another by the package's name
    environment.globals |= {"pkdp": package, "exceptions": Refused()}
    macros = environment.from_string(written).module
    vars(package).update(called=macros.called, literal=macros.literal)
    assert macros.count("o'k", **{'k" := 1); --': 2}) == """pkdp_count('o''k', "k"" := 1); --" := 2)"""
    for missing in ({"by": jinja2.Undefined("clinic")}, {"by": "clinic", "filter": jinja2.Undefined("adults")}):
        with pytest.raises(Refused, match="not defined"):
            macros.histogram("visits", **missing)
    assert [macros.number("epsilon", value, 9.0) for value in (0, 1.5, "1e-6")] == ["0.0", "1.5", "1e-06"]
    for wrong in ("0.5 OR true", "nan", -1, 9.5, "inf", True, None):
        with pytest.raises(Refused, match="must be a number"):
            macros.number("epsilon", wrong, 9.0)


@pytest.mark.dbt
def test_models_of_every_kind(project):
    code, said = dbt(project, "build")
    assert code == 1
    assert {name: status for name, (status, _) in results(project).items()} == {
        "events": "success",
        "growing": "success",
        **dict.fromkeys(MODELS, "success"),
        "refused": "error",
    }
    # A refused model fails with the reason and the way out, in dbt's output and in its results.
    for text in (said, results(project)["refused"][1]):
        assert "DifferencingError" in text
        assert "cross-tabulated by city, country" in " ".join(text.split())
    with pytest.raises(duckdb.CatalogException, match="refused"):
        rows(project, "FROM refused")

    assert rows(project, "FROM by_country") == [("DK", 20), ("NO", 40), ("SE", 30)]
    assert rows(project, "FROM incremental") == [("DK", 20), ("NO", 40), ("SE", 30)]
    assert rows(project, "FROM value") == [(90,)]
    assert rows(project, "FROM read_twice ORDER BY country") == [("NO", 80), ("SE", 60)]
    # What a model's own transaction has written is not there yet for the release.
    assert rows(project, "FROM too_late") == [("NO", 40)]
    assert rows(project, "FROM in_time") == [("NO", 40), ("SE", 60)]

    # Of the view, what was read twice was published once, when it was first read.
    charged = entries(project, "people")
    assert [period for period, _ in charged] == [f"2024-01-0{day}" for day in range(1, 7)]
    code, said = dbt(project, "build", "--exclude", "refused")
    assert code == 0, said
    assert sorted(rows(project, "FROM incremental")) == [("DK", 20), ("NO", 40), ("SE", 30)]
    assert rows(project, "FROM in_time") == [("NO", 40), ("SE", 60)]
    assert entries(project, "people") == charged

    # Outside dbt a view needs what the plugin installs; with the ledger it replays.
    with duckdb.connect(project / "people.duckdb") as connection:
        with pytest.raises(duckdb.Error, match="pkdp_"):
            connection.execute("FROM as_view")
        with pkdp.Ledger.open(project / "people.sqlite", dataset="people") as ledger:
            head = ledger.head()
            pkdp.duckdb.install(connection, attacker=pkdp.AttackerModel(p_max=0.1), unit="uid", ledger=ledger)
            assert connection.execute("FROM as_view").fetchall() == [("NO", 40), ("SE", 30)]
            assert ledger.head() == head


@pytest.mark.dbt
@pytest.mark.parametrize(
    ("plugins", "said"),
    one_in(
        3,
        [
            (PLUGIN.replace("period", "perod"), "unknown key 'perod'; did you mean 'period'?"),
            (PLUGIN.replace("people.sqlite", "dbt_project.yml"), "dbt_project.yml"),
            (f"{PLUGIN}, {PLUGIN.replace('module', 'alias: second, module')}", "is listed 2 times under plugins"),
        ],
    ),
)
def test_a_config_that_cannot_be_used_stops_the_run(project, plugins, said):
    (project / "profiles.yml").write_text(PROFILE.replace("PLUGINS", plugins), encoding="utf-8")
    code, printed = dbt(project, "run", "--select", "value")
    assert code != 0
    assert said in " ".join(printed.split())
    assert "Traceback" not in printed


@pytest.mark.dbt
def test_a_model_publishes_the_exact_total_and_another_one_a_table_beside_it(project):
    attacker = "{p_max_between: 0.6, leakage: {name: the number of people present, tells: people_present}}"
    profile = PROFILE.replace("PLUGINS", PLUGIN.replace("{p_max: 0.1}", attacker))
    (project / "profiles.yml").write_text(profile, encoding="utf-8")
    shutil.rmtree(project / "models")
    (project / "models").mkdir()
    models = {
        "total": "* FROM pkdp_count('{{ ref(\"events\") }}', protects := 'value')",
        "cells": "* FROM pkdp_histogram('{{ ref(\"events\") }}', 'country', noise := 0.5, domain := ['DK', 'NO'], "
        "protects := 'value', filter := 'country NOT LIKE ''S_''')",
    }
    for name, query in models.items():
        text = f"{{{{ config(materialized='table') }}}} SELECT {query}"
        (project / "models" / f"{name}.sql").write_text(text, encoding="utf-8")
    code, said = dbt(project, "build", "--threads", "1")
    assert code == 0, said
    assert rows(project, "FROM total") == [(90,)]
    assert sorted(rows(project, "SELECT country FROM cells")) == [("DK",), ("NO",)]
    with pkdp.Ledger.open(project / "people.sqlite", dataset="people") as ledger:
        declared = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total())
        noised = pkdp.Histogram(noise=pkdp.GeometricNoise(0.5))
        assert ledger.total().delta(0.5) == pkdp.certify(noised, declared, protects="value").delta(0.5)


SCHEMA = """
models:
  - name: by_country
    data_tests:
      - pkdp.promises: {name: kept, arguments: {epsilon: 1.31}}
      - pkdp.promises: {name: kept_elsewhere, arguments: {epsilon: 2, delta: 1e-9, period: "2024-01-01"}}
      - pkdp.promises: {name: broken, arguments: {epsilon: 1.3}, config: {severity: warn}}
      - pkdp.promises: {name: of_none, arguments: {epsilon: 9, table: visits}, config: {severity: warn}}
    columns:
      - name: count
        data_tests:
          - pkdp.at_least_k: {name: reaches_k, arguments: {k: 20}}
          - pkdp.at_least_k: {name: below_k, arguments: {k: 21}, config: {severity: warn}}
          - pkdp.published: {name: as_published, arguments: {by: country, table: events}}
  - name: large
    columns: [{name: count, data_tests: [pkdp.published: {name: some_published, arguments: {by: [country]}}]}]
  - name: leaking
    columns:
      - name: count
        data_tests: [pkdp.published: {name: not_published, arguments: {by: [city]}, config: {severity: warn}}]
  - name: visits
    columns: [{name: sum, data_tests: [pkdp.published: {name: sums_published, arguments: {by: [born]}}]}]
  - name: people
    columns: [{name: people, data_tests: [pkdp.published: {name: number_published}]}]
"""
PACKAGED = {
    "by_country": "SELECT * FROM {{ pkdp.histogram(ref('events'), by='country', k=20, "
    " filter=\"country <> 'a''b'\") }}",
    "large": "SELECT country, count FROM {{ ref('by_country') }} WHERE count > 25",
    "leaking": "-- {{ ref('by_country') }}\nSELECT city, count(*) AS count FROM {{ ref('events') }} GROUP BY city",
    "visits": "SELECT * FROM {{ pkdp.sum(ref('events'), none, rows='count', by=['born'], bounds=[0, 5], noise=1.0, "
    "domain={'born': ['2000-01-01', '1990-02-03']}, undeclared='absent', period='2024-01-07') }}",
    "people": "SELECT {{ pkdp.count(ref('events'), k=20, period='2024-01-08') }} AS people",
}


@pytest.mark.dbt
def test_the_package_publishes_and_its_tests_tell_what_was_not_published(project):
    shutil.rmtree(project / "models")
    (project / "models").mkdir()
    (project / "models" / "schema.yml").write_text(SCHEMA, encoding="utf-8")
    for name, text in PACKAGED.items():
        (project / "models" / f"{name}.sql").write_text("{{ config(materialized='table') }} " + text, encoding="utf-8")
    EVENTS.assign(born="2000-01-01").to_csv(project / "seeds" / "events.csv", index=False)
    package = f"packages:\n  - local: {ROOT / 'sql' / 'dbt'}\n"
    (project / "packages.yml").write_text(package, encoding="utf-8")
    assert dbt(project, "deps")[0] == 0
    code, said = dbt(project, "build")
    assert code == 0, said
    content = json.loads((project / "target" / "run_results.json").read_text(encoding="utf-8"))
    warned = {entry["unique_id"].split(".")[2] for entry in content["results"] if entry["status"] == "warn"}
    assert warned == {"broken", "of_none", "below_k", "not_published"}, said
    assert rows(project, "FROM by_country") == [("DK", 20), ("NO", 40), ("SE", 30)]
    # Tests publish nothing.
    assert [period for period, _ in entries(project, "people")] == ["2024-01-01", "2024-01-07", "2024-01-08"]
