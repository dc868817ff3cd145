"""OpenDP with Polars: noisy counts of distinct units; cells are found with a threshold.

Guarantee: (epsilon, delta) worst-case DP of units. One row per unit is kept (`truncate_per_group(1)`), so a unit
in several cells is counted in one of them and not reported. Missing units are not looked for. Of thirty days each has
an accountant of its own: version 0.16 refuses to split a loss by thirty, which does not add up again in floats.
"""

from __future__ import annotations

import sys
import warnings
from datetime import date
from typing import Any

import opendp.prelude as dp
import polars as pl
from serving import serve

dp.enable_features("contrib")
warnings.simplefilter("ignore")

UNIT, DAYS = sys.argv[2], int(sys.argv[3])


def asked(frame: Any) -> Any:
    return dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col(UNIT)),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-8),
        split_evenly_over=1,
    )


def by(query: Any, key: str) -> int:
    return len(query.truncate_per_group(1).group_by(key).agg(dp.len()).release().collect())


def count(frame: Any) -> int:
    late = asked(frame).query().filter(pl.col("delay") > 60).truncate_per_group(1)
    return int(late.select(dp.len()).release().collect().item())


def of_day(frame: Any, day: int) -> int:
    return by(asked(frame).query().filter(pl.col("passed") == day), "cell")


def load(path: str) -> Any:
    # It knows no constants that are dates.
    passed = (pl.col("day") - date(2026, 1, 1)).dt.total_days()
    return pl.read_parquet(path).with_columns(passed=passed).lazy()


serve(
    "opendp",
    load,
    {
        "T1": count,
        "T2": lambda frame: of_day(frame, DAYS // 2),
        "T3": lambda frame: by(asked(frame).query(), "key"),
        "T4": lambda frame: sum(of_day(frame, day) for day in range(DAYS)),
    },
)
