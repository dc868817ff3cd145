"""The tables of a report, which are text: whether the mechanism can have published them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pkdp_pipeline.assurance.verification.tables import least_shown
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.model.plain_text import joined

__all__ = ["series_fault", "table_fault"]


def table_fault(table: dict[str, Any], certificate: ReleaseCertificate | None) -> str:
    """Return which rule a table breaks first; empty where it breaks none. Without a certificate, its shape alone."""
    keys, counts = table["keys"], table["counts"]
    if len(keys) != len(counts):
        return "it has not as many keys as counts"
    if any(len(key) != len(table["columns"]) for key in keys):
        return "a row has not as many keys as there are columns"
    if len({tuple(key) for key in keys}) < len(keys):
        return "a cell is named twice"
    if certificate is None:
        return ""
    is_count = isinstance(certificate.mechanism, Count)
    if is_count != (not table["columns"]) or (is_count and (len(counts) != 1 or table["more"])):
        return "its columns are not those of what the certificate is about"
    found = _is_found(certificate)
    if found and None in counts:
        return "cells are found in the data, so a suppressed one has no row; here one has"
    least = least_shown(certificate.mechanism, found=found)
    if least is not None and any(count is not None and count < least for count in counts):
        return f"a count is below {least}, which the mechanism never publishes"
    return ""


def series_fault(
    series: dict[str, Any], releases: Sequence[dict[str, Any]], certificates: Sequence[ReleaseCertificate]
) -> str:
    """Return what is wrong with a series first; empty where nothing is.

    Its last period is compared with the release of that period; older counts are held to the lowest threshold that
    any certificate of the report names.
    """
    periods, counts, cells = series["periods"], series["counts"], series["cells"]
    if len(counts) != len(periods) or any(len(row) != len(cells) for row in counts):
        return "it has not one count for every period and cell"
    if len(set(periods)) < len(periods) or len(set(cells)) < len(cells):
        return "a period or a cell is named twice"
    least = [least_shown(one.mechanism, found=_is_found(one)) for one in certificates]
    lowest = min((one for one in least if one is not None), default=None)
    shown = [count for row in counts for count in row if count is not None]
    if lowest is not None and None not in least and any(count < lowest for count in shown):
        return f"a count is below {lowest}, which no mechanism of the report publishes"
    for release in releases:
        if release["name"] == series["name"] and release["period"] in periods:
            return _unlike(series, release)
    return ""


def _unlike(series: dict[str, Any], release: dict[str, Any]) -> str:
    """Return how a series departs from the table of one of its periods."""
    table = release["table"]
    names = [joined(key) or "count" for key in table["keys"]]
    shown = dict(zip(names, table["counts"], strict=True))
    # Names in quotation marks are made where texts and numbers would look the same: they are left out here.
    doubtful = {name for name in (*names, *series["cells"]) if '"' in name} or len(shown) < len(names) or table["more"]
    if doubtful:
        return ""
    row = series["counts"][series["periods"].index(release["period"])]
    for cell, count in zip(series["cells"], row, strict=True):
        if shown.get(cell) != count:
            return "its last period is not what the table of that release says"
    return ""


def _is_found(certificate: ReleaseCertificate) -> bool:
    """Return whether cells are found in the data, so that a suppressed one has no row."""
    if isinstance(certificate.mechanism, Count):
        return False
    return certificate.context is None or certificate.context.cells != "declared"
