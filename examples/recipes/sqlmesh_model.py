"""SQLMesh: a Python model of published counts, for the folder models/ of a project; one interval for each day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName

import pkdp_pipeline as pkdp


@model(
    "public.aircraft_by_carrier",
    kind={"name": ModelKindName.INCREMENTAL_BY_TIME_RANGE, "time_column": "date"},
    start="2013-01-01",
    cron="@daily",
    columns={"date": "date", "carrier": "text", "count": "int"},
)
def execute(context: ExecutionContext, start: datetime, end: datetime, **_: Any) -> Iterator[pd.DataFrame]:
    """Publish the days of an interval; those of another environment, or of a restatement, are replayed."""
    with pkdp.Ledger.open("ledger.sqlite", dataset="flights", evidence=pkdp.OneDayProtected()) as ledger:
        for day in pd.date_range(start.date(), end.date()).date:
            flights = context.fetchdf(f"SELECT tailnum, carrier FROM raw.flights WHERE date = '{day}'")
            release = flights.pkdp.histogram(
                "carrier",
                unit="tailnum",
                missing_unit="drop",
                one_cell="hash",
                k=50,
                attacker=pkdp.AttackerModel(p_max=0.5),
                ledger=ledger,
                period=day,
            )
            yield release.table.assign(date=day)
