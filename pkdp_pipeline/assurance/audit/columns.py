"""Columns: what a job calls them, and values that its filter lets through."""

from __future__ import annotations

import io
import itertools
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Columns", "Filtered", "filtered"]

_MOST_TRIED = 400
_WORDS = {"and", "or", "not", "in", "True", "False", "None"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Values of the columns of a filter: of a row that it keeps, and of one that it does not."""

    kept: Mapping[str, Any] = field(default_factory=dict)
    dropped: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A job's columns.

    Parameters
    ----------
    unit, by, order_by : tuple of str
    cells : tuple of tuples, optional
        The declared cells; None where they are found in the data.
    where : Filtered
    """

    unit: tuple[str, ...]
    by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    cells: tuple[tuple[Any, ...], ...] | None = None
    where: Filtered = field(default_factory=Filtered)

    def keys(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the keys of the cells that an audit calls by these names."""
        if self.cells is not None:
            return list(self.cells[: len(names)])
        return [(name, *("same" for _ in self.by[1:])) for name in names] if self.by else [(name,) for name in names]

    def dressed(self, frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
        """Return the rows of an audit's frame under the job's columns."""
        import pandas as pd

        keys = dict(zip(names, self.keys(names), strict=True))
        columns: dict[str, Any] = {name: frame["turn"].to_numpy() for name in self.order_by}
        columns |= {name: frame["person"].to_numpy() if not place else "same" for place, name in enumerate(self.unit)}
        for place, name in enumerate(self.by):
            columns[name] = [keys[cell][place] for cell in frame["cell"]]
        for name in self.where.kept:
            kept, dropped = self.where.kept[name], self.where.dropped.get(name)
            columns[name] = [kept if counted else dropped for counted in frame["counted"]]
        return pd.DataFrame(columns, index=frame.index)


def filtered(where: str | None) -> Filtered | None:
    """Return values that a filter keeps and drops, found by trying; None where none were found.

    Tried are the constants of the filter, what lies beside them, and truth values, in every column it names.
    """
    if where is None:
        return Filtered()
    names, constants = _parts(where)
    if not names:
        return None
    tried = list(itertools.islice(itertools.product(constants, repeat=len(names)), _MOST_TRIED))
    # A column has values of one type, in rows that are kept and in rows that are not.
    found: dict[tuple[type, ...], dict[bool, dict[str, Any]]] = {}
    for values in tried:
        row = dict(zip(names, values, strict=True))
        answer = _answer(where, row)
        if answer is not None:
            rows = found.setdefault(tuple(map(type, values)), {})
            rows.setdefault(answer, row)
            if len(rows) == 2:
                return Filtered(kept=rows[True], dropped=rows[False])
    return None


def _parts(where: str) -> tuple[list[str], list[Any]]:
    """Return the columns that a filter names, and values to try in them."""
    names: list[str] = []
    constants: list[Any] = []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(where).readline))
    except (tokenize.TokenError, SyntaxError):
        return [], []
    for token in tokens:
        if token.type == tokenize.NAME and token.string not in _WORDS:
            names.append(token.string)
        elif token.type == tokenize.NUMBER:
            number = float(token.string) if not token.string.isdecimal() else int(token.string)
            constants += [number, number + 1, number - 1]
        elif token.type == tokenize.STRING:
            text = token.string[1:-1]
            constants += [text, f"{text}~", ""]
    return list(dict.fromkeys(names)), [*dict.fromkeys(constants), True, False]


def _answer(where: str, row: Mapping[str, Any]) -> bool | None:
    """Return what a filter says of one row; None where its values do not fit it."""
    import pandas as pd

    if where in row:
        return row[where] if isinstance(row[where], bool) else None
    try:
        return len(pd.DataFrame({name: [value] for name, value in row.items()}).query(where, engine="python")) == 1
    except Exception:
        # Whatever does not fit: other values are tried.
        return None
