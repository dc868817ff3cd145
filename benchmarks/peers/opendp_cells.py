"""OpenDP with Polars: a noisy count of distinct units per declared cell, of units in several cells.

Guarantee: epsilon worst-case DP of units. `truncate_num_groups(c)` limits a unit's cells; noise has the scale
c / epsilon. Version 0.16 stops at `keep="sample"`, its default ("multiple fields with name"), so the first cells by
name are kept; and it keeps c - 1. Missing units are not looked for. Arguments: the table, c, epsilon, and the cells.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import opendp.prelude as dp
import polars as pl
from serving import serve

dp.enable_features("contrib")
warnings.simplefilter("ignore")

MOST, EPSILON = int(sys.argv[2]), float(sys.argv[3])
CELLS = pl.LazyFrame({"cell": sys.argv[4:]})


def load(path: str) -> Any:
    return pl.read_csv(path).lazy()


def histogram(frame: Any) -> dict[str, int]:
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("unit")),
        privacy_loss=dp.loss_of(epsilon=EPSILON),
        split_evenly_over=1,
    )
    kept = context.query().truncate_per_group(1, by=["cell"]).truncate_num_groups(MOST, by=["cell"], keep="first")
    query = kept.group_by("cell").agg(dp.len()).with_keys(CELLS)
    return dict(query.release().collect().iter_rows())


serve("opendp", load, {"cells": histogram})
