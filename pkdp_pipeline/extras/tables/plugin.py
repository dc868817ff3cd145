"""Registers what a release is printed and written as."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

_HERE = "pkdp_pipeline.extras.tables"

plugin = Plugin(
    views={
        "tables.along": f"{_HERE}.hierarchy:along",
        "tables.crosstab": f"{_HERE}.crosstab:crosstab",
        "tables.csv": f"{_HERE}.csvw:csv_files",
        "tables.json_stat": f"{_HERE}.json_stat:json_stat_bytes",
        "tables.sdmx_csv": f"{_HERE}.sdmx:sdmx_csv_bytes",
        "tables.workbook": f"{_HERE}.workbook:workbook_bytes",
    },
)
