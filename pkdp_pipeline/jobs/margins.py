"""Margins of tables: a job publishes exact totals by some of a table's columns, which every attacker then knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pkdp_pipeline.jobs.release_tables import ReleaseTable
from pkdp_pipeline.model.bins import Bins, with_groups
from pkdp_pipeline.model.leakage import Leakage


def with_margins(content: Mapping[str, Any], tables: tuple[ReleaseTable, ...]) -> dict[str, Any]:
    """Return what a job file says where a release of totals stands for each ``margins``, as somebody writes it by hand.

    `content`: of the file, from which `tables` were read. Totals come last, and once where two tables ask for the same.
    """
    leakage: dict[str, Leakage] = {}
    totals: dict[str, dict[str, Any]] = {}
    for table, written in zip(tables, content["release"], strict=True):
        if table.margins is None:
            continue
        by = [entry for entry in table.cells_by or () if _column(entry) in table.margins]
        known = Leakage.totals(by)
        leakage[known.name] = known
        release: dict[str, Any] = {
            "by": [{"column": entry.column, "bins": entry.edges} if isinstance(entry, Bins) else entry for entry in by],
            "domain": _domain(table, [_column(entry) for entry in by]),
            "protects": "value",
            **({"attacker": {}} if "attacker" in written else {}),
        }
        if release not in totals.values():
            totals[str(made_of(table))] = release
    releases = [*content["release"], *({"name": name, **release} for name, release in totals.items())]
    if not all("attacker" in release for release in releases):
        content = {"attacker": {}, **content}
    releases = [_told(release, leakage.values()) for release in releases]
    return {**_told(content, leakage.values()), "release": releases}


def made_of(table: ReleaseTable) -> str | None:
    """Return the name of the release of a table's margins; None where it has none."""
    return None if table.margins is None else f"{table.name}_totals"


def _told(table: Mapping[str, Any], totals: Iterable[Leakage]) -> dict[str, Any]:
    """Return a table whose attacker, if it has one, knows these totals, too."""
    if "attacker" not in table:
        return {**table}
    written = table["attacker"].get("leakage", [])
    known = [written] if isinstance(written, dict) else list(written)
    groups = [frozenset([by] if isinstance(by := entry.get("by", ()), str) else by) for entry in known]
    more = [leakage.to_dict() for leakage in totals if frozenset(leakage.by) not in groups]
    return {**table, "attacker": {**table["attacker"], "leakage": [*known, *more]}}


def _domain(table: ReleaseTable, columns: list[str]) -> Any:
    """Return the groups of a table's domain, in its order."""
    domain = with_groups(table.domain, [entry for entry in table.cells_by or () if isinstance(entry, Bins)])
    if isinstance(domain, Mapping):
        return {column: list(domain[column]) for column in columns}
    places = [(table.by or ()).index(column) for column in columns]
    groups = dict.fromkeys(tuple(cell[place] for place in places) for cell in domain)
    return [group[0] if len(group) == 1 else list(group) for group in groups]


def _column(entry: str | Bins) -> str:
    return entry.column if isinstance(entry, Bins) else entry
