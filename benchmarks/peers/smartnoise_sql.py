"""SmartNoise SQL over a pandas frame: COUNT(DISTINCT unit) per cell, cells found with a threshold.

Guarantee: (epsilon, delta) worst-case DP of units, by noise from floating-point samplers. `max_ids=1` keeps one
cell per unit at random; a unit in several cells is not reported. Missing units are not looked for.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import snsql
from serving import serve

METADATA = {
    "": {
        "t": {
            "t": {
                "row_privacy": False,
                "max_ids": 1,
                "unit": {"type": "int", "private_id": True},
                "cell": {"type": "string"},
            }
        }
    }
}


def histogram(frame: Any) -> int:
    reader = snsql.from_df(frame, privacy=snsql.Privacy(epsilon=1.0, delta=1e-8), metadata=METADATA)
    return len(reader.execute_df("SELECT cell, COUNT(DISTINCT unit) AS n FROM t.t GROUP BY cell"))


serve("smartnoise-sql", pd.read_csv, histogram)
