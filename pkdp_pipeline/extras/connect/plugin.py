"""Registers what other programs are read and written by: sources, outputs, engines, and lineage."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

_HERE = "pkdp_pipeline.extras.connect"

plugin = Plugin(
    sources={
        "postgres": f"{_HERE}.postgres:PostgresSourceTable",
        "ibis": f"{_HERE}.postgres:IbisSourceTable",
        "files:excel": f"{_HERE}.excel:write_as_csv",
        "files:spark": f"{_HERE}.spark:open_files",
    },
    outputs={"duckdb": f"{_HERE}.databases:in_duckdb", "postgres": f"{_HERE}.databases:in_postgres"},
    engines={
        "pyspark.DataFrame": f"{_HERE}.spark:SparkEngine",
        "ibis.Table": f"{_HERE}.ibis:IbisEngine",
    },
    views={"perturbation.read": f"{_HERE}.excel:read_rows"},
    after_period={"records.lineage": f"{_HERE}.databases:LineageStep"},
)
