"""Dagster: one asset for each release of daily_flights.toml, one partition for each day, a schedule at six.

dagster dev -f examples/schedule/definitions.py
"""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from pkdp_pipeline.jobs.integrations.dagster import release_assets

flights = release_assets(
    Path(__file__).parents[1] / "daily_flights.toml",
    start="2013-01-01",
    end="2013-12-31",  # leave it out where every new day is published
    time_zone="America/New_York",
    group="public",
    pool="daily_flights",
)
publish = dg.define_asset_job("publish_daily_flights", selection=[flights])
every_morning = dg.build_schedule_from_partitioned_job(publish, hour_of_day=6)

defs = dg.Definitions(assets=[flights], jobs=[publish], schedules=[every_morning])
