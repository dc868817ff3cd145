"""The series of a report held against the ledger: each of its periods is one that a published release shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.assurance.verification.claims import Claim, failed, passed
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.plain_text import joined, key_text, printable
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.ledger import Entry

__all__ = ["series_claim"]

_KEY = "ledger.series"
_WORDS = "The ledger holds a release for every period of every series, with these counts."


def series_claim(entries: Sequence[Entry], document: dict[str, Any]) -> Claim:
    """Return whether every period of every series has a published release that shows these counts."""
    tables: dict[str, list[dict[str, int | None]]] = {}
    wanted = {period for series in document["series"] for period in series["periods"]}
    try:
        for entry in entries:
            period = printable(entry.period)
            if period in wanted and entry.content is not None:
                tables.setdefault(period, []).append(_named(Release.from_bytes(entry.content).table))
    except ArgumentError as error:
        return failed(_KEY, _WORDS, str(error))
    rows = 0
    for place, series in enumerate(document["series"]):
        widths = {len(counts) for counts in series["counts"]}
        if len(series["counts"]) != len(series["periods"]) or widths - {len(series["cells"])}:
            return failed(_KEY, _WORDS, f"series[{place}]: it has not one count for every period and cell.")
        for period, counts in zip(series["periods"], series["counts"], strict=True):
            row = dict(zip(series["cells"], counts, strict=True))
            complete = not series["more_cells"]
            if not any(_shows(table, row, complete=complete) for table in tables.get(period, ())):
                return failed(
                    _KEY,
                    _WORDS,
                    f"series[{place}]: no published release about {period} has these counts.",
                    period=period,
                )
            rows += 1
    return passed(_KEY, _WORDS, f"{rows} periods in {len(document['series'])} series: each is in the ledger.")


def _shows(table: dict[str, int | None], row: dict[str, int | None], *, complete: bool) -> bool:
    """Return whether a table has the counts of a row, and, where all cells are said to be in it, no others."""
    if any(table.get(name) != count for name, count in row.items()):
        return False
    return not complete or all(count is None or name in row or _twin(name, row) for name, count in table.items())


def _twin(name: str, row: dict[str, int | None]) -> bool:
    """Return whether a cell is in the row under its other name."""
    return name.replace('"', "") in {known.replace('"', "") for known in row}


def _named(table: pd.DataFrame) -> dict[str, int | None]:
    """Return the counts of a table by the names of its cells, those with quotation marks included."""
    import pandas as pd

    found: dict[str, int | None] = {}
    plain: Counter[str] = Counter()
    for *cell, count in table.itertuples(index=False, name=None):
        number = None if pd.isna(count) else int(count)
        name = joined([key_text(value) for value in cell]) or "count"
        plain[name] += 1
        found[name] = number
        found[joined([key_text(value, quoted=isinstance(value, str)) for value in cell]) or "count"] = number
    return {name: number for name, number in found.items() if plain[name] < 2}
