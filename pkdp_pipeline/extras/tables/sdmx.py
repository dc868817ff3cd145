"""SDMX-CSV 2.0, the exchange format of statistics offices, with each observation's status and confidentiality."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.tables.published import PublishedRows, safe
from pkdp_pipeline.extras.tables.words import marker, period
from pkdp_pipeline.model.keys import plain

if TYPE_CHECKING:
    from pkdp_pipeline.releases.release import Release

_DATAFLOW = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:[A-Za-z0-9_@$-]+\(\d+(\.\d+)*\)")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")
_OWN = (
    "STRUCTURE",
    "STRUCTURE_ID",
    "ACTION",
    "TIME_PERIOD",
    "OBS_VALUE",
    "OBS_STATUS",
    "CONF_STATUS",
    "COMMENT_OBS",
    "RELEASE_ID",
)

_NORMAL, _ESTIMATED, _SUPPRESSED = "A", "E", "Q"
"""Codes of CL_OBS_STATUS: a normal value, an estimated one, a missing one that is suppressed."""

_FREE, _CONFIDENTIAL = "F", "C"
"""Codes of CL_CONF_STATUS."""


def sdmx_csv_bytes(release: Release, suppressed: str | None, dataflow: str) -> bytes:
    """Return a table as SDMX-CSV 2.0; see `Release.to_sdmx_csv`."""
    if not isinstance(dataflow, str) or _DATAFLOW.fullmatch(dataflow) is None:
        raise ArgumentError('dataflow must name an agency, a dataflow and its version, as in "OFFICE:PATIENTS(1.0)".')
    mark, table, time = marker(release.certificate.mechanism, suppressed), PublishedRows.of(release), period(release)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    times = [] if time is None else ["TIME_PERIOD"]
    observed = ["OBS_VALUE", "OBS_STATUS", "CONF_STATUS", "COMMENT_OBS", "RELEASE_ID"]
    writer.writerow(["STRUCTURE", "STRUCTURE_ID", "ACTION", *_identifiers(table.by), *times, *observed])
    for row in table.rows:
        shown = table.shown(row)
        if row.count is None:
            values = ["", _SUPPRESSED, _CONFIDENTIAL, mark]
        else:
            # The first count of a band is no count: its text is the comment.
            observed_value = "" if table.bands is not None else str(row.count)
            status = _NORMAL if row.exact and not table.rough else _ESTIMATED
            values = [observed_value, status, _FREE, str(shown) if table.bands is not None else ""]
        keys = ["_Z" if key is None else safe(plain(key)) if isinstance(key, str) else plain(key) for key in row.keys]
        writer.writerow(["dataflow", dataflow, "I", *keys, *([] if time is None else [time]), *values, release.id])
    return text.getvalue().encode()


def _identifiers(names: tuple[str, ...]) -> list[str]:
    """Return the identifiers of dimensions: names in capitals, with other signs than letters and digits replaced."""
    identifiers = [
        _NOT_IN_NAMES.sub("_", name).strip("_").upper() or f"DIM_{place + 1}" for place, name in enumerate(names)
    ]
    for place, identifier in enumerate(identifiers):
        while identifier in _OWN or identifier[0].isdigit() or identifiers.count(identifier) > 1:
            identifier = identifiers[place] = f"DIM_{place + 1}_{identifier}"  # noqa: PLW2901 - until it is its own
    return identifiers
