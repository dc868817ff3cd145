"""Airflow 3: publishes each day of daily_flights.toml at six on the next morning."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

from pkdp_pipeline.jobs.integrations.airflow import PublishOperator

ZONE = "America/New_York"

with DAG(
    dag_id="daily_flights",
    # With data intervals {{ ds }} is the day that has ended; with a plain cron expression it is the day of the run.
    schedule=CronDataIntervalTimetable("0 6 * * *", timezone=ZONE),
    start_date=datetime(2013, 1, 1, tzinfo=ZoneInfo(ZONE)),
    catchup=False,
    max_active_runs=1,
) as dag:
    PublishOperator(
        task_id="publish",
        job=Path(__file__).parents[1] / "daily_flights.toml",
        date="{{ ds }}",
        catch_up=True,
        retries=12,
        retry_delay=timedelta(minutes=5),
    )
