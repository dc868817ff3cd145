"""Domain: the public cells of a histogram, declared before anyone looks at the data."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import Key, canonical_key, domain_dtype, json_key, kind_of_values

Cell = tuple[Key, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The public cells, in the order in which they are published.

    Parameters
    ----------
    by : tuple of str
    cells : tuple of tuples
        One key per by-column; None stands for "missing".
    kinds : tuple of str or None
        What each column's keys are; None where all of them are missing.
    """

    by: tuple[str, ...]
    cells: tuple[Cell, ...]
    kinds: tuple[str | None, ...]

    @classmethod
    def parse(cls, by: tuple[str, ...], domain: object) -> Domain:
        """Read a declared domain.

        Parameters
        ----------
        by : tuple of str
        domain : list, or dict of column → list
            For one column its cells. For several, tuples with one key per column, or a dict of each
            column's values, of which all combinations are cells.

        Raises
        ------
        ArgumentError
            If it is empty, repeats a cell, does not fit `by`, or has no order.
        """
        cells = _product(by, domain) if isinstance(domain, Mapping) else _listed(by, domain)
        if not cells:
            raise ArgumentError("domain must have at least one cell.")
        if len(set(cells)) < len(cells):
            raise ArgumentError("domain lists a cell twice; list every public cell once.")
        kinds = tuple(
            kind_of_values(f"domain of {column!r}", [cell[position] for cell in cells])
            for position, column in enumerate(by)
        )
        read = cls(by=by, cells=cells, kinds=kinds)
        try:
            read.keys()
        except (ValueError, ArithmeticError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise ArgumentError("domain holds values that no column can hold; leave them out.") from None
        return read

    def keys(self) -> pd.DataFrame:
        """Return the cells as key columns, under dtypes that the domain alone decides."""
        columns = {}
        for position, (column, kind) in enumerate(zip(self.by, self.kinds, strict=True)):
            values = [cell[position] for cell in self.cells]
            columns[column] = pd.Series(values, dtype=domain_dtype(kind, values))
        return pd.DataFrame(columns)

    def canonical(self) -> dict[str, Any]:
        """Return the set of cells, whatever their order, as a JSON-ready dictionary."""
        cells = [[json_key(key) for key in cell] for cell in self.cells]
        return {"kinds": list(self.kinds), "cells": sorted(cells, key=json.dumps)}


def _values(name: str, values: object) -> list[Any]:
    if isinstance(values, (str, bytes, Set)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name} must be a list: the order of the public cells is published.")
    return list(values)


def _key(value: object) -> Key:
    if isinstance(value, (list, tuple, dict, set)):
        raise ArgumentError("domain has a cell with several values for one by-column; write plain values.")
    return canonical_key(value)


def _product(by: tuple[str, ...], domain: Mapping[Any, Any]) -> tuple[Cell, ...]:
    if set(domain) != set(by):
        raise ArgumentError(f"domain must give the values of exactly the by-columns {', '.join(map(repr, by))}.")
    columns = [[_key(value) for value in _values(f"domain of {column!r}", domain[column])] for column in by]
    return tuple(itertools.product(*columns))


def _listed(by: tuple[str, ...], domain: object) -> tuple[Cell, ...]:
    values = _values("domain", domain)
    if len(by) == 1:
        return tuple((_key(value),) for value in values)
    cells = []
    for value in values:
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(by):
            raise ArgumentError(
                f"domain must be a list of tuples with one value for each of {', '.join(map(repr, by))}, or a dict of "
                "each column's values."
            )
        cells.append(tuple(_key(part) for part in value))
    return tuple(cells)
