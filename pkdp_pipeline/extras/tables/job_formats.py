"""The files that a job writes for offices and their programs: of each release, and one workbook of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pkdp_pipeline.extras.tables.csvw import csv_files
from pkdp_pipeline.extras.tables.json_stat import json_stat_bytes
from pkdp_pipeline.extras.tables.sdmx import sdmx_csv_bytes
from pkdp_pipeline.extras.tables.workbook import workbook_bytes

if TYPE_CHECKING:
    from pkdp_pipeline.releases.release import Release

_Releases = Mapping[str, "Release"]


def workbook(releases: _Releases, suppressed: str | None) -> Mapping[str, bytes]:
    """Return ``tables.xlsx``, a sheet for each release; see `jobs.outputs.Format`."""
    content = workbook_bytes(releases, suppressed)
    return {"tables.xlsx": content} if releases else {}


def csv_on_the_web(releases: _Releases, suppressed: str | None) -> Mapping[str, bytes]:
    """Return ``NAME.csvw.csv`` of each release, and its metadata."""
    files: dict[str, bytes] = {}
    for name, release in releases.items():
        file = f"{name}.csvw.csv"
        files[file], files[f"{file}-metadata.json"] = csv_files(release, file, suppressed)
    return files


def json_stat(releases: _Releases, suppressed: str | None) -> Mapping[str, bytes]:
    """Return ``NAME.json-stat.json`` of each release."""
    return {f"{name}.json-stat.json": json_stat_bytes(release, suppressed) for name, release in releases.items()}


def sdmx_csv(releases: _Releases, suppressed: str | None) -> Mapping[str, bytes]:
    """Return ``NAME.sdmx.csv`` of each release; its dataflow has the release's name in capitals."""
    return {
        f"{name}.sdmx.csv": sdmx_csv_bytes(release, suppressed, f"LOCAL:{name.upper()}(1.0)")
        for name, release in releases.items()
    }
