"""From a frame to the public table: what is counted, checked, suppressed and noised, in this order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pandas as pd

from pkdp_pipeline.domain import Domain
from pkdp_pipeline.engines import CellCounts, Question, engine_for
from pkdp_pipeline.errors import ArgumentError, InputCheckError, PkdpError
from pkdp_pipeline.keys import canonical_key, kind_of_dtype, published_keys
from pkdp_pipeline.mechanisms import Count, Mechanism
from pkdp_pipeline.noise import add_noise
from pkdp_pipeline.request import Request

__all__ = ["public_table"]

Answer = TypeVar("Answer")

_NUMBERS = frozenset({"integer", "real", "decimal"})


def public_table(frame: Any, request: Request) -> pd.DataFrame:
    """Return what is published of `frame`: count, check, suppress below k, add noise, suppress again.

    Returns
    -------
    pandas.DataFrame
        The by-columns and ``count`` (Int64). Its rows, their order and its dtypes tell nothing of what is
        withheld.

    Raises
    ------
    ArgumentError, InputCheckError
        If the frame does not have what `request` names, or not as it declares.
    """
    engine = engine_for(frame)
    question = Question(
        unit=request.unit,
        where=request.where,
        by=request.by or (),
        one_cell=request.one_cell,
        order_by=request.order_by or (),
    )
    if request.by is None:
        tally = _answered(lambda: engine.tally(frame, question))
        _check_units(request, missing_unit=tally.missing_unit, several_cells=False)
        others = tally.population - tally.satisfying
        return pd.DataFrame({"count": _public(request.mechanism, [tally.satisfying], others=others)})
    cells = _answered(lambda: engine.cells(frame, question))
    _check_units(request, missing_unit=cells.missing_unit, several_cells=cells.several_cells)
    if request.domain is not None:
        table: pd.DataFrame = request.domain.keys()
        counts = _answered(partial(_in_domain, cells, request.domain, request.undeclared))
        table["count"] = _public(request.mechanism, counts)
        return table
    # Cells below k are gone before anything else happens to them.
    large = cells.counts >= (request.mechanism.k or 1)
    table = cells.keys.loc[large].reset_index(drop=True)
    table["count"] = _public(request.mechanism, cells.counts[large].tolist())
    table = table.loc[table["count"].notna()]
    for column in request.by:
        table[column] = _answered(partial(published_keys, table[column].reset_index(drop=True))).array
    return table.sort_values(by=list(request.by), na_position="last", ignore_index=True)


def _answered(ask: Callable[[], Answer]) -> Answer:
    """Return what is answered from the data; what breaks below may quote them, so only its type is told."""
    try:
        return ask()
    except PkdpError:
        raise
    except (UnicodeError, TypeError, ValueError, ArithmeticError) as error:
        problem = type(error).__name__
    raise ArgumentError(
        f"the frame could not be counted ({problem}): give the columns named in unit, by and order_by plain dtypes, "
        "and see that their text is valid Unicode."
    )


def _public(mechanism: Mechanism, counts: list[int], *, others: int | None = None) -> Any:
    """Return the counts as they are published, <NA> where suppressed.

    Noise is drawn for every cell, suppressed or not.
    """
    shown = add_noise(counts, mechanism.noise) if mechanism.noise is not None else counts
    kept = [
        (mechanism.k is None or counted >= mechanism.k)
        and (mechanism.release_threshold is None or noisy >= mechanism.release_threshold)
        for counted, noisy in zip(counts, shown, strict=True)
    ]
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        kept = [keep and others is not None and others >= mechanism.k_complement for keep in kept]
    return pd.array([noisy if keep else None for noisy, keep in zip(shown, kept, strict=True)], dtype="Int64")


def _check_units(request: Request, *, missing_unit: bool, several_cells: bool) -> None:
    problems = []
    unit = ", ".join(map(repr, request.unit))
    if missing_unit and request.missing_unit == "error":
        problems.append(f'rows have no value in unit {unit}; missing_unit="drop" leaves such rows out.')
    if several_cells:
        by = ", ".join(map(repr, request.by))
        problems.append(
            f"units {unit} have rows in several cells of {by}; a unit must be in one cell. one_cell says which: "
            '"most_frequent", "first" (with order_by) or "hash".'
        )
    if problems:
        raise InputCheckError(f"The input is not as declared, nothing was published: {' Also, '.join(problems)}")


def _in_domain(cells: CellCounts, domain: Domain, undeclared: str) -> list[int]:
    """Return the count of every public cell, in the domain's order."""
    for column, kind in zip(domain.by, domain.kinds, strict=True):
        found = kind_of_dtype(cells.keys[column].dtype)
        if kind is not None and kind != found and not {kind, found} <= _NUMBERS:
            raise ArgumentError(
                f"domain names the cells of {column!r} by {kind} values, but the column holds {found} values; write "
                "the domain as the column has it, or convert the column."
            )
    positions = {cell: position for position, cell in enumerate(domain.cells)}
    counts = [0] * len(domain.cells)
    keys = zip(*([canonical_key(key) for key in cells.keys[column].array] for column in domain.by), strict=True)
    strangers = False
    for key, units in zip(keys, cells.counts.tolist(), strict=True):
        position = positions.get(key)
        if position is None:
            strangers = True
        else:
            counts[position] = units
    if strangers and undeclared == "error":
        by = ", ".join(map(repr, domain.by))
        raise InputCheckError(
            f"The input is not as declared, nothing was published: {by} has values that domain does not list (a "
            'missing value is None in a domain). Add them, or take such units as absent with undeclared="absent".'
        )
    return counts
