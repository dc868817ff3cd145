"""Registers what a release is printed and written as."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

_HERE = "pkdp_pipeline.extras.tables"

_FORMATS = {
    "xlsx": "workbook",
    "xlsx-estimates": "estimates_workbook",
    "csvw": "csv_on_the_web",
    "json-stat": "json_stat",
    "sdmx-csv": "sdmx_csv",
}

plugin = Plugin(
    views={
        "tables.along": f"{_HERE}.hierarchy:along",
        "tables.crosstab": f"{_HERE}.published:crosstab",
        "tables.csv": f"{_HERE}.formats:csv_files",
        "tables.hierarchy": f"{_HERE}.hierarchy:Hierarchy",
        "tables.marker": f"{_HERE}.published:marker",
        "tables.json_stat": f"{_HERE}.formats:json_stat_bytes",
        "tables.check_size": f"{_HERE}.formats:check_size",
        "tables.sdmx_csv": f"{_HERE}.formats:sdmx_csv_bytes",
        "tables.workbook": f"{_HERE}.formats:workbook_bytes",
    },
    formats={name: f"{_HERE}.formats:{function}" for name, function in _FORMATS.items()},
)
