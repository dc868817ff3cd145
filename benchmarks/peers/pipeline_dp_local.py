"""PipelineDP on its local backend: privacy id count per partition, partitions selected privately.

Guarantee: (epsilon, delta) worst-case DP of units. `max_partitions_contributed=1` keeps one cell per unit at random;
a unit in several cells is not reported. Missing units are not looked for.
"""

from __future__ import annotations

import csv
from typing import Any

import pipeline_dp
from serving import serve


def load(path: str) -> list[tuple[int, str]]:
    with open(path, newline="") as lines:
        rows = csv.reader(lines)
        next(rows)
        return [(int(unit), cell) for unit, cell in rows]


def histogram(rows: Any) -> int:
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-8)
    parameters = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.PRIVACY_ID_COUNT],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: 0
    )
    result = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend()).aggregate(rows, parameters, extractors)
    accountant.compute_budgets()
    return len(list(result))


serve("pipeline-dp", load, histogram)
