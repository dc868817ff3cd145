"""Releases as tasks of Airflow: real runs, in the environment .venv-schedulers, with a database of their own."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from filelock import FileLock

import pkdp_pipeline as pkdp

ROOT = Path(__file__).resolve().parents[4]
pytestmark = pytest.mark.airflow

#: What Airflow imports; it reads its own settings when it is imported.
AROUND = ("alembic", "fastapi", "httpx", "jinja2", "pandas", "pendulum", "pydantic", "sqlalchemy.orm", "structlog")

RUN = """
import json
import sys
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, "dags")

def run_of(dag, day):
    run = dag.test(logical_date=datetime.fromisoformat(day + "T00:00:00+00:00"))
    (task,) = run.get_task_instances()
    value = task.xcom_pull(task_ids=task.task_id)
    return {"state": task.state, "tries": task.try_number, "value": value}
"""

REFUSED = """
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG
from filelock import FileLock

from pkdp_pipeline.extras.connect.airflow import PublishOperator

lock = FileLock("out/.pkdp.lock")
again = {"retries": 2, "retry_delay": timedelta(0)}

def dag(name, **options):
    with DAG(name, schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as built:
        PublishOperator(task_id="publish", **options)
    return built

busy = dag("busy", job="daily_flights.toml", on_retry_callback=lambda context: lock.release(), **again)
busy_once = dag("busy_once", job="daily_flights.toml")
names = ("BudgetExceededError", "InputCheckError", "ConfigError")
refused = {name: dag(name, job=f"{name}.toml", **again) for name in names}
no_day = dag("no_day", job="daily_flights.toml", date="tomorrow", **again)
"""


WEEKLY = """
from datetime import datetime, timezone

from airflow.sdk import DAG, CronDataIntervalTimetable

from pkdp_pipeline.extras.connect.airflow import PublishOperator

# Mondays at six: the interval's start lies in the week that is over.
mondays = CronDataIntervalTimetable("0 6 * * 1", timezone="America/New_York")
with DAG("weekly", schedule=mondays, start_date=datetime(2013, 1, 7, tzinfo=timezone.utc), catchup=True) as dag:
    PublishOperator(task_id="publish", job="daily_flights.toml", catch_up=True)
"""


def results_of(flights, script):
    flights.printed = flights.python(RUN + script, *AROUND)
    return json.loads((flights.folder / "results.json").read_text(encoding="utf-8"))


@pytest.fixture
def airflow(flights, tmp_path_factory):
    """The example, and Airflow's folder with an empty database: one is made for all processes of a run, and copied."""
    shared, database = tmp_path_factory.getbasetemp().parent, flights.folder / "airflow" / "airflow.db"
    with FileLock(shared / "airflow.lock"):
        if not (shared / "airflow.db").exists():
            done = flights.start("airflow", "db", "migrate")
            assert done.returncode == 0, done.stdout
            shutil.copy(database, shared / "airflow.db")
    database.parent.mkdir(exist_ok=True)
    shutil.copy(shared / "airflow.db", database)
    (flights.folder / "dags").mkdir()
    return flights


def test_the_example_publishes_a_day_once_and_what_was_missed(airflow):
    # In a folder of its own: beside it there is a file of Dagster's.
    shutil.copy(airflow.folder / "schedule" / "airflow_dag.py", airflow.folder / "dags")
    first, later, again, schedule = results_of(
        airflow,
        """
import airflow_dag
from airflow.sdk import DAG
from airflow.serialization.encoders import coerce_to_core_timetable
from airflow.timetables.base import TimeRestriction

dag = airflow_dag.dag
runs = [run_of(dag, "2013-01-02"), run_of(dag, "2013-01-05")]
Path("data/flights_2013.parquet").unlink()
runs.append(run_of(dag, "2013-01-05"))
times = TimeRestriction(earliest=dag.start_date, latest=None, catchup=True)
run = coerce_to_core_timetable(dag.timetable).next_dagrun_info(last_automated_data_interval=None, restriction=times)
runs.append([run.logical_date.strftime("%Y-%m-%d"), run.run_after.isoformat()])
Path("results.json").write_text(json.dumps(runs))
""",
    )
    assert airflow.published() == ["2013-01-02", "2013-01-03", "2013-01-04", "2013-01-05"]
    assert [run["state"] for run in (first, later, again)] == ["success"] * 3
    assert [period["period"] for period in later["value"]["periods"]] == ["2013-01-03", "2013-01-04", "2013-01-05"]
    assert again["value"]["periods"] == later["value"]["periods"][-1:]
    # What Airflow shows to everybody who may see the DAG is public.
    release = pkdp.read_release(airflow.out / "2013-01-02" / "aircraft_by_carrier.parquet")
    (day,) = first["value"]["periods"]
    (shown,) = day["releases"]
    assert shown == {
        "name": "aircraft_by_carrier",
        "id": release.id,
        "guarantee": release.certificate.sentence(),
        "epsilon": release.certificate.epsilon(1e-6),
        "delta": 1e-6,
        "rows": len(release.table),
        "files": [str(path) for path in sorted((airflow.out / "2013-01-02").glob("aircraft*"), reverse=True)],
    }
    assert not airflow.withheld_in(airflow.printed)
    # A task's log has what the library logs, too.
    assert (
        f"published: 'aircraft_by_carrier' of 2013-01-02 in data set 'flights', release {release.id}" in airflow.printed
    )
    # Its schedule asks for a day once it is over where the flights leave.
    assert schedule == ["2013-01-01", "2013-01-02T11:00:00+00:00"]


def test_only_what_is_temporary_is_tried_again(airflow):
    text = airflow.job.read_text(encoding="utf-8")
    refused = {
        "BudgetExceededError": text.replace("k = 50 ", "k = 40 "),
        "InputCheckError": text.replace('by = "carrier" ', 'by = "dest" ').replace('"hash"', '"error"'),
        "ConfigError": text.replace("flights_2013.parquet", "flights_2014.parquet"),
    }
    for name, changed in refused.items():
        assert changed != text
        (airflow.folder / f"{name}.toml").write_text(changed, encoding="utf-8")
    (airflow.folder / "dags" / "refused.py").write_text(REFUSED, encoding="utf-8")
    runs = results_of(
        airflow,
        """
import refused

runs = {name: run_of(dag, "2013-01-02") for name, dag in refused.refused.items()}
runs["no_day"] = run_of(refused.no_day, "2013-01-02")
Path("out").mkdir(exist_ok=True)
refused.lock.acquire()
runs["busy_once"] = run_of(refused.busy_once, "2013-01-02")
runs["busy"] = run_of(refused.busy, "2013-01-02")
Path("results.json").write_text(json.dumps(runs))
""",
    )
    for name in (*refused, "no_day", "busy_once"):
        assert (runs[name]["state"], runs[name]["tries"], runs[name]["value"]) == ("failed", 1, None), name
    assert (runs["busy"]["state"], runs["busy"]["tries"]) == ("success", 2)
    assert airflow.published() == ["2013-01-02"]
    for name in refused:
        assert f"AirflowFailException: {name}: " in airflow.printed
    assert "AirflowException: another run is publishing" in airflow.printed
    assert "date must be a day such as 2013-01-02, and is 'tomorrow'" in airflow.printed
    assert not re.search("direct cause|another exception", airflow.printed)
    assert not airflow.withheld_in(airflow.printed)


def test_a_week_is_published_by_its_interval_and_a_closed_one_is_skipped(airflow):
    weeks = 'period = { column = "date", every = "week", closed = ["2013-01-14/2013-01-20"] }'
    airflow.change('period = { column = "date" }', weeks)
    (airflow.folder / "dags" / "weekly.py").write_text(WEEKLY, encoding="utf-8")
    published, missed, closed, early, schedule = results_of(
        airflow,
        """
from airflow.serialization.encoders import coerce_to_core_timetable
from airflow.timetables.base import TimeRestriction
from weekly import dag

runs = [run_of(dag, "2013-01-07"), run_of(dag, "2013-01-28"), run_of(dag, "2013-01-15"), run_of(dag, "2099-01-01")]
times = TimeRestriction(earliest=dag.start_date, latest=None, catchup=True)
run = coerce_to_core_timetable(dag.timetable).next_dagrun_info(last_automated_data_interval=None, restriction=times)
runs.append([run.logical_date.strftime("%Y-%m-%d"), run.run_after.strftime("%Y-%m-%d")])
Path("results.json").write_text(json.dumps(runs))
""",
    )
    assert [run["state"] for run in (published, missed, closed, early)] == ["success", "success", "skipped", "failed"]
    assert [period["period"] for period in published["value"]["periods"]] == ["2013-W02"]
    assert [period["period"] for period in missed["value"]["periods"]] == ["2013-W04", "2013-W05"]
    assert airflow.published() == ["2013-W02", "2013-W04", "2013-W05"]
    assert "2099-W01 is not over" in airflow.printed
    assert schedule == ["2013-01-07", "2013-01-14"]


def test_releases_are_assets_that_other_dags_wait_for(airflow):
    (airflow.folder / "dags" / "chained.py").write_text(
        """
from datetime import datetime, timezone

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from pkdp_pipeline.extras.connect.airflow import PublishOperator, release_assets

assets = release_assets("daily_flights.toml")
with DAG("publishes", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as publishes:
    PublishOperator(task_id="publish", job="daily_flights.toml", outlets=assets)
with DAG("reads", schedule=assets) as reads:
    EmptyOperator(task_id="read")
""",
        encoding="utf-8",
    )
    shown = results_of(
        airflow,
        """
import chained
from airflow.models.asset import AssetEvent
from airflow.utils.session import create_session

published = run_of(chained.publishes, "2013-01-02")["value"]["periods"][0]
with create_session() as session:
    events = [[event.uri, event.name, event.extra] for event in session.query(AssetEvent)]
waits = [asset.name for asset in chained.reads.schedule]
Path("results.json").write_text(json.dumps({"published": published, "events": events, "waits": waits}))
""",
    )
    (release,) = shown["published"]["releases"]
    assert shown["waits"] == ["flights/aircraft_by_carrier"]
    (event,) = shown["events"]
    assert event[:2] == ["pkdp://flights/aircraft_by_carrier", "flights/aircraft_by_carrier"]
    assert {key: event[2][key] for key in (*release, "period")} == {**release, "period": "2013-01-02"}


def test_airflow_lists_the_package_among_its_providers(flights):
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    module, _, name = entries["apache_airflow_provider"]["provider_info"].partition(":")
    flights.python(
        f"""
import importlib, json
from pathlib import Path

import airflow
import jsonschema

info = importlib.import_module({module!r}).{name}()
schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
jsonschema.validate(info, schema)
for operators in info["operators"]:
    for module in operators["python-modules"]:
        importlib.import_module(module)
""",
        *AROUND,
    )
