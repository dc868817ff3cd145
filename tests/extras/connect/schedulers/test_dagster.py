"""Releases as Dagster's assets: real runs, in the environment .venv-schedulers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pkdp_pipeline as pkdp

ROOT = Path(__file__).resolve().parents[4]
pytestmark = pytest.mark.dagster

MATERIALIZE = """
import json
from pathlib import Path

import dagster as dg
from pkdp_pipeline.extras.connect.dagster import release_assets

def plain(value):
    if isinstance(value, dg.TableSchema):
        return {"columns": [{"name": column.name, "type": column.type} for column in value.columns]}
    return value

def recorded(result, run):
    shown = []
    for event in result.get_asset_materialization_events():
        materialization = event.materialization
        shown.append({
            "key": materialization.asset_key.path,
            "partition": materialization.partition,
            "version": materialization.tags["dagster/data_version"],
            "metadata": {name: plain(value.value) for name, value in materialization.metadata.items()},
        })
    events = [event.event_type_value for event in result.all_events]
    errors = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    run |= {"success": result.success, "shown": shown, "events": events}
    checks = result.get_asset_check_evaluations()
    run |= {"checks": [[check.asset_key.path, check.check_name, check.passed] for check in checks]}
    run |= {"failures": [error.user_failure_data.description for error in errors if error.user_failure_data]}
    return run
"""


def results_of(flights, script):
    flights.printed = flights.python(MATERIALIZE + script, "dagster", "pandas")
    return json.loads((flights.folder / "results.json").read_text(encoding="utf-8"))


def test_a_partition_is_published_once_and_shown_again(flights):
    first, second, again = results_of(
        flights,
        """
assets = release_assets("daily_flights.toml", start="2013-01-01", end="2013-12-31", key_prefix="public", group="all")
runs = []
logs = {"python_logs": {"managed_python_loggers": ["pkdp_pipeline"], "python_log_level": "INFO"}}
with dg.DagsterInstance.ephemeral(settings=logs) as instance:
    for day in ("2013-01-02", "2013-01-03", "2013-01-02"):
        if len(runs) == 2:
            Path("data/flights_2013.parquet").unlink()
        runs.append(recorded(dg.materialize([assets], instance=instance, partition_key=day), {"day": day}))
Path("results.json").write_text(json.dumps(runs))
""",
    )
    assert [run["success"] for run in (first, second, again)] == [True] * 3
    assert again["shown"] == first["shown"]
    assert flights.published() == ["2013-01-02", "2013-01-03"]
    (shown,) = first["shown"]
    release = pkdp.read_release(flights.out / "2013-01-02" / "aircraft_by_carrier.parquet")
    for outcome in ("published", "replayed"):
        assert (
            f"{outcome}: 'aircraft_by_carrier' of 2013-01-02 in data set 'flights', release {release.id}"
            in flights.printed
        )
    assert shown["key"] == ["public", "aircraft_by_carrier"]
    assert shown["partition"] == "2013-01-02"
    assert shown["version"] == release.id
    metadata = shown["metadata"]
    assert metadata["guarantee"] == release.certificate.sentence()
    assert metadata["release"] == release.id
    assert metadata["epsilon"] == release.certificate.epsilon(1e-6)
    assert metadata["dagster/row_count"] == len(release.table)
    assert metadata["parquet"] == str(flights.out / "2013-01-02" / "aircraft_by_carrier.parquet")
    columns = [(column["name"], column["type"]) for column in metadata["dagster/column_schema"]["columns"]]
    assert columns == [(name, str(kind)) for name, kind in release.table.dtypes.items()]
    assert first["checks"] == again["checks"] == [[["public", "aircraft_by_carrier"], "input", True]]
    assert metadata["table"].splitlines()[0] == "| carrier | count |"
    assert metadata["table"].count("\n| ") == 1 + len(release.table)


def test_several_releases_are_assets_of_one_run(flights):
    noisy = (ROOT / "examples" / "daily_flights_noisy.toml").read_text(encoding="utf-8")
    flights.job.write_text(noisy.replace('"aircraft_by_carrier"', '"by-carrier"'), encoding="utf-8")
    run = results_of(
        flights,
        """
assets = release_assets("daily_flights.toml", start="2013-01-01", name="flights")
assert not assets.can_subset and assets.op.name == "flights"
with dg.DagsterInstance.ephemeral() as instance:
    run = recorded(dg.materialize([assets], instance=instance, partition_key="2013-01-02"), {})
Path("results.json").write_text(json.dumps(run))
""",
    )
    assert [asset["key"] for asset in run["shown"]] == [["aircraft"], ["by-carrier"]]
    assert run["events"].count("STEP_START") == 1
    assert len({asset["version"] for asset in run["shown"]}) == 2


def test_what_is_locked_is_tried_again(flights):
    run = results_of(
        flights,
        """
from filelock import FileLock

assets = release_assets("daily_flights.toml", start="2013-01-01", max_retries=2, seconds_to_wait=1)
Path("out").mkdir()
lock = FileLock("out/.pkdp.lock")
lock.acquire()
requested = dg.RetryRequested

def released(**options):
    lock.release()
    return requested(**options)

dg.RetryRequested = released
with dg.DagsterInstance.ephemeral() as instance:
    run = recorded(dg.materialize([assets], instance=instance, partition_key="2013-01-02", raise_on_error=False), {})
Path("results.json").write_text(json.dumps(run))
""",
    )
    assert run["success"]
    assert run["events"].count("STEP_UP_FOR_RETRY") == 1
    assert "another run is publishing" in flights.printed
    assert flights.published() == ["2013-01-02"]


def test_a_refusal_is_not_tried_again_and_says_what_to_do(flights):
    text = flights.job.read_text(encoding="utf-8")
    refused = {
        "BudgetExceededError": text.replace("k = 50 ", "k = 40 "),
        "InputCheckError": text.replace('by = "carrier" ', 'by = "dest" ').replace('"hash"', '"error"'),
        "ConfigError": text.replace("flights_2013.parquet", "flights_2014.parquet"),
    }
    for name, changed in refused.items():
        assert changed != text
        (flights.folder / f"{name}.toml").write_text(changed, encoding="utf-8")
    runs = results_of(
        flights,
        """
runs = {}
with dg.DagsterInstance.ephemeral() as instance:
    for path in sorted(Path().glob("*Error.toml")):
        assets = release_assets(path, start="2013-01-01", seconds_to_wait=0)
        done = dg.materialize([assets], instance=instance, partition_key="2013-01-02", raise_on_error=False)
        runs[path.stem] = recorded(done, {})
Path("results.json").write_text(json.dumps(runs))
""",
    )
    assert set(runs) == set(refused)
    for name, run in runs.items():
        assert not run["success"]
        assert run["shown"] == []
        checked = [[["aircraft_by_carrier"], "input", False]] if name == "InputCheckError" else []
        assert run["checks"] == checked
        assert "STEP_UP_FOR_RETRY" not in run["events"]
        (said,) = run["failures"]
        assert said.startswith(f"{name}: ")
        assert said.splitlines()[0] in flights.printed
    # Dagster shows what it logs; what an error was caused by is not there.
    assert "direct cause" not in flights.printed
    assert "another exception" not in flights.printed
    assert not flights.withheld_in(flights.printed)
    assert not flights.out.exists()


def test_the_days_are_those_of_the_job(flights):
    flights.change('period = { column = "date" }', 'period = { column = "date", time_zone = "Europe/Oslo" }')
    run = results_of(
        flights,
        """
import os
import time
from pkdp_pipeline.errors import ConfigError

assets = release_assets("daily_flights.toml", start="2013-03-30", end="2013-04-02")
text = Path("daily_flights.toml").read_text().replace(', time_zone = "Europe/Oslo"', "")
Path("plain.toml").write_text(text)
os.environ["TZ"] = "Pacific/Auckland"
time.tzset()
machine = release_assets("plain.toml", start="2013-03-30").partitions_def.timezone
try:
    release_assets("daily_flights.toml", start="2013-03-30", time_zone="UTC")
    said = ""
except ConfigError as error:
    said = str(error)
days = assets.partitions_def
first = days.time_window_for_partition_key("2013-03-31")
zone = days.timezone
run = {"keys": list(days.get_partition_keys()), "hours": (first.end.timestamp() - first.start.timestamp()) / 3600}
run |= {"zone": zone, "said": said, "machine": machine}
Path("results.json").write_text(json.dumps(run))
""",
    )
    assert run["keys"] == ["2013-03-30", "2013-03-31", "2013-04-01", "2013-04-02"]
    assert (run["zone"], run["hours"], run["machine"]) == ("Europe/Oslo", 23.0, "Pacific/Auckland")
    assert "leave time_zone out" in run["said"]


def test_a_backfill_of_the_example_publishes_its_days_in_order(flights):
    definitions = flights.folder / "schedule" / "definitions.py"
    (flights.folder / "dagster").mkdir()
    days = "2013-01-02...2013-01-04"
    done = flights.start(
        "dagster", "asset", "materialize", "-f", definitions, "--select", "*", "--partition-range", days
    )
    assert done.returncode == 0, done.stdout
    assert flights.published() == ["2013-01-02", "2013-01-03", "2013-01-04"]
    run = results_of(
        flights,
        """
import runpy
from datetime import datetime
from zoneinfo import ZoneInfo

with dg.DagsterInstance.get() as instance:
    records = instance.fetch_materializations(dg.AssetKey("aircraft_by_carrier"), limit=10).records
    shown = {record.partition_key: record.asset_materialization.metadata["release"].value for record in records}
    defs = runpy.run_path("schedule/definitions.py")["defs"]
    # Six in the morning of the last day: the day before it is over, and published.
    morning = datetime(2013, 3, 4, 6, tzinfo=ZoneInfo("America/New_York"))
    context = dg.build_schedule_context(instance=instance, scheduled_execution_time=morning)
    schedule = defs.resolve_schedule_def("publish_daily_flights_schedule")
    with context:
        ticks = schedule.evaluate_tick(context).run_requests
run = {"shown": shown, "cron": schedule.cron_schedule, "zone": schedule.execution_timezone}
run |= {"requested": [tick.partition_key for tick in ticks]}
Path("results.json").write_text(json.dumps(run))
""",
    )
    assert (run["cron"], run["zone"], run["requested"]) == ("0 6 * * *", "America/New_York", ["2013-03-03"])
    for day in flights.published():
        assert run["shown"][day] == pkdp.read_release(flights.out / day / "aircraft_by_carrier.parquet").id


def test_the_partitions_are_the_periods_of_the_job(flights):
    weeks = (
        'period = { column = "date", every = "week", closed = ["2013-01-14/2013-01-20"], time_zone = "Europe/Oslo" }'
    )
    flights.change('period = { column = "date" }', weeks)
    run = results_of(
        flights,
        """
assets = release_assets("daily_flights.toml", start="2013-01-09", end="2013-04-03")
weeks = assets.partitions_def
shift = weeks.time_window_for_partition_key("2013-03-25")
run = {"weeks": list(weeks.get_partition_keys()), "hours": (shift.end.timestamp() - shift.start.timestamp()) / 3600}
with dg.DagsterInstance.ephemeral() as instance:
    dg.materialize([assets], instance=instance, partition_key="2013-01-07")
text = Path("daily_flights.toml").read_text()
for every in ("day", "month", "quarter", "year"):
    closed = 'closed = ["2013-02-01/2013-02-28", "sunday"]'
    other = text.replace('every = "week"', f'every = "{every}"').replace('closed = ["2013-01-14/2013-01-20"]', closed)
    Path(f"{every}.toml").write_text(other)
    keys = release_assets(f"{every}.toml", start="2013-01-30", end="2013-04-01").partitions_def.get_partition_keys()
    run[every] = list(keys)
Path("results.json").write_text(json.dumps(run))
""",
    )
    mondays = [f"2013-{day}" for day in ("01-07", "01-21", "01-28", "02-04", "02-11", "02-18", "02-25")]
    assert run["weeks"] == [*mondays, "2013-03-04", "2013-03-11", "2013-03-18", "2013-03-25", "2013-04-01"]
    assert run["hours"] == 167.0
    assert flights.published() == ["2013-W02"]
    assert run["month"] == ["2013-01-01", "2013-03-01", "2013-04-01"]
    assert (run["quarter"], run["year"]) == (["2013-01-01", "2013-04-01"], ["2013-01-01"])
    # Neither February nor a Sunday: 30 and 31 January, 26 weekdays of March with Saturdays, 1 April.
    assert run["day"][:3] == ["2013-01-30", "2013-01-31", "2013-03-01"]
    assert "2013-03-03" not in run["day"]
    assert len(run["day"]) == 29
