"""The output check: a release is looked at once more, with other eyes than those that made it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd

from pkdp_pipeline.jobs.job import ReleaseTable
from pkdp_pipeline.model.domain import Domain
from pkdp_pipeline.model.keys import canonical_key, sort_rank
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.model.keys import Key

__all__ = ["check_output"]

_METADATA = {b"pandas", b"pkdp.certificate", b"pkdp.release"}


def check_output(release: Release, asked: ReleaseTable, *, rows: int | None = None) -> None:
    """Check that a release is what the job asks for and withholds what it must.

    Parameters
    ----------
    release : Release
    asked : ReleaseTable
    rows : int, optional
        How many rows were read for it; None where it was published before.

    Raises
    ------
    RuntimeError
        If it is not: a defect of this library. The message holds no value and no count.
    """
    problems = [*_schema(release, asked), *_file(release)]
    if not problems:
        problems = [*_counts(release.table, asked, rows), *_cells(release.table, asked)]
    if problems:
        raise RuntimeError(
            f"the output check of release {asked.name!r} failed, which is a defect of pkdp; nothing was written: "
            f"{'; '.join(problems)}."
        )


def _schema(release: Release, asked: ReleaseTable) -> list[str]:
    table, problems = release.table, []
    if list(table.columns) != [*(asked.by or ()), "count"]:
        problems.append("its columns must be the by-columns and count")
    elif table["count"].dtype != pd.Int64Dtype():
        problems.append("count must hold whole numbers")
    if not isinstance(table.index, pd.RangeIndex) or table.index.name is not None:
        problems.append("it must have no index")
    if release.certificate.mechanism != asked.mechanism():
        problems.append("its certificate must be about the mechanism that the job asks for")
    if asked.by is None and table.shape != (1, 1):
        problems.append("a count must be one number")
    return problems


def _file(release: Release) -> list[str]:
    """Look at the bytes that are going to be written: nothing but columns and certificate may be in them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(release.to_bytes()))
    metadata = file.metadata.metadata or {}
    problems = []
    if not set(metadata) <= _METADATA or json.loads(metadata.get(b"pandas", b"{}")).get("attributes"):
        problems.append("its file must hold no metadata but the certificate")
    if file.schema_arrow.names != list(release.table.columns):
        problems.append("its file must hold no other columns")
    return problems


def _counts(table: pd.DataFrame, asked: ReleaseTable, rows: int | None) -> list[str]:
    mechanism, published = asked.mechanism(), table["count"].dropna()
    problems = []
    if mechanism.noise is None:
        # Without k, a cell that was found has somebody in it; one that was declared may be empty.
        least = mechanism.k or (1 if asked.by is not None and asked.domain is None else 0)
        if bool((published < least).any()):
            problems.append("no cell may be under k")
        if rows is not None and sum(map(int, published)) > rows:
            problems.append("its cells must not add up to more than the rows that were read")
    elif mechanism.release_threshold is not None and bool((published < mechanism.release_threshold).any()):
        problems.append("no cell may be under the release threshold")
    if asked.by is not None and asked.domain is None and len(published) < len(table):
        problems.append("a cell that is suppressed must be left out where no domain is declared")
    return problems


def _cells(table: pd.DataFrame, asked: ReleaseTable) -> list[str]:
    if asked.by is None:
        return []
    columns = [list(map(canonical_key, table[column].array)) for column in asked.by]
    cells: list[tuple[Key, ...]] = list(zip(*columns, strict=True))
    if asked.domain is not None:
        declared = Domain.parse(asked.by, asked.domain)
        return [] if cells == list(declared.cells) else ["its cells must be those of the domain, in its order"]
    if len(set(cells)) < len(cells):
        return ["no cell may be in it twice"]
    return [] if cells == sorted(cells, key=sort_rank) else ["its rows must be sorted by the by-columns"]
