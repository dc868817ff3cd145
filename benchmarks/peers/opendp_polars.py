"""OpenDP with Polars: a noisy count of distinct units per cell, cells found with a threshold.

Guarantee: (epsilon, delta) worst-case DP of units. One row per unit is kept (`truncate_per_group(1)`), so a unit
in several cells is counted in one of them and not reported. Missing units are not looked for.
"""

from __future__ import annotations

import warnings
from typing import Any

import opendp.prelude as dp
import polars as pl
from serving import serve

dp.enable_features("contrib")
warnings.simplefilter("ignore")


def load(path: str) -> Any:
    return pl.read_csv(path).lazy()


def histogram(frame: Any) -> int:
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("unit")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-8),
        split_evenly_over=1,
    )
    query = context.query().truncate_per_group(1).group_by("cell").agg(dp.len())
    return len(query.release().collect())


serve("opendp", load, histogram)
