"""Registers what a release is printed and written as."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

_HERE = "pkdp_pipeline.extras.tables"

_FORMATS = {"xlsx": "workbook", "csvw": "csv_on_the_web", "json-stat": "json_stat", "sdmx-csv": "sdmx_csv"}

plugin = Plugin(
    views={
        "tables.along": f"{_HERE}.hierarchy:along",
        "tables.crosstab": f"{_HERE}.crosstab:crosstab",
        "tables.csv": f"{_HERE}.csvw:csv_files",
        "tables.hierarchy": f"{_HERE}.hierarchy:Hierarchy",
        "tables.marker": f"{_HERE}.words:marker",
        "tables.json_stat": f"{_HERE}.json_stat:json_stat_bytes",
        "tables.sdmx_csv": f"{_HERE}.sdmx:sdmx_csv_bytes",
        "tables.workbook": f"{_HERE}.workbook:workbook_bytes",
    },
    formats={name: f"{_HERE}.job_formats:{function}" for name, function in _FORMATS.items()},
)
