"""OpenDP with Polars: noisy counts of distinct units; cells are found with a threshold.

Guarantee: (epsilon, delta) worst-case DP of units. One row per unit is kept (`truncate_per_group(1)`), so a unit
in several cells is counted in one of them and not reported. Missing units are not looked for. Of thirty days each has
a thirtieth of the loss, which one accountant keeps.
"""

from __future__ import annotations

import sys
import warnings
from datetime import date, timedelta
from typing import Any

import opendp.prelude as dp
import polars as pl
from serving import serve

dp.enable_features("contrib")
warnings.simplefilter("ignore")

UNIT, DAYS = sys.argv[2], int(sys.argv[3])


def asked(frame: Any, questions: int = 1) -> Any:
    return dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col(UNIT)),
        privacy_loss=dp.loss_of(epsilon=1.0 * questions, delta=1e-8 * questions),
        split_evenly_over=questions,
    )


def by(query: Any, key: str) -> int:
    return len(query.truncate_per_group(1).group_by(key).agg(dp.len()).release().collect())


def count(frame: Any) -> int:
    late = asked(frame).query().filter(pl.col("delay") > 60).truncate_per_group(1)
    return int(late.select(dp.len()).release().collect().item())


def on(context: Any, day: int) -> Any:
    return context.query().filter(pl.col("day") == date(2026, 1, 1) + timedelta(days=day))


def days(frame: Any) -> int:
    context = asked(frame, DAYS)
    return sum(by(on(context, day), "cell") for day in range(DAYS))


def load(path: str) -> Any:
    return pl.read_parquet(path).lazy()


serve(
    "opendp",
    load,
    {
        "T1": count,
        "T2": lambda frame: by(on(asked(frame), DAYS // 2), "cell"),
        "T3": lambda frame: by(asked(frame).query(), "key"),
        "T4": days,
    },
)
