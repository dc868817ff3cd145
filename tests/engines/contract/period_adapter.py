"""One of several periods of a DuckDB relation that are counted together, under contract."""

from __future__ import annotations

from datetime import date
from functools import partial

import numpy as np
import pyarrow as pa
from adapters import _UNHELD, ADAPTERS, Adapter, plain, relation

from pkdp_pipeline.engines.period_engine import OnePeriod, Periods

__all__: list[str] = []

DAY, OTHER = date(2020, 1, 6), date(2020, 1, 13)


def one_of_two(table: pa.Table) -> OnePeriod:
    """Return the table as a period beside another one, in which half of it happened again."""
    twice = pa.concat_tables([table, table.slice(0, len(table) // 2)])
    days = np.repeat(np.array([DAY, OTHER], dtype="datetime64[D]"), [len(table), len(twice) - len(table)])
    rows = relation(twice.append_column("pkdp_day", pa.array(days)))
    return OnePeriod(Periods(rows, '"pkdp_day"'), DAY, partial(relation, table))


ADAPTERS.append(Adapter(name="duckdb one of two periods", frame=plain(one_of_two), unheld=_UNHELD, other=True))
