"""Code lists whose codes have parents, as NUTS, ICD and one's own have, and sums of a table along them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.model.keys import canonical_key
from pkdp_pipeline.model.mechanisms import key_columns
from pkdp_pipeline.model.question import column_names
from pkdp_pipeline.model.wording import whole_number
from pkdp_pipeline.releases.derived import check_adds_up

if TYPE_CHECKING:
    from pkdp_pipeline.releases.release import Release

_COLUMNS = ("code", "parent")
_OWN = ("level", "count", "error", "least", "most")


@dataclass(frozen=True)
class Hierarchy:
    """A public list of codes, each with its parent; as a domain it is its codes without children, in their order.

    Parameters
    ----------
    pairs : sequence of (str, str or None)
        Each code and its parent, which is listed, too; None, or an empty text, for a code without a parent.

    Raises
    ------
    ArgumentError
        If a code is empty, listed twice or its own ancestor, or a parent is not listed.

    Notes
    -----
    Publish the finest level and sum along it with `Release.along`, which costs nothing: a second table of a coarser
    level, of the same people, tells more.
    """

    pairs: tuple[tuple[str, str | None], ...]

    def __post_init__(self) -> None:
        pairs: Any = self.pairs
        if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Sequence) or not pairs:
            raise ArgumentError("Hierarchy must be a list of pairs (code, parent).")
        read = []
        for pair in pairs:
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise ArgumentError("Hierarchy must be a list of pairs (code, parent).")
            code, parent = pair
            if not isinstance(code, str) or not code or not (parent is None or isinstance(parent, str)):
                raise ArgumentError("Hierarchy must have texts for codes and parents, no empty code among them.")
            read.append((code, parent or None))
        object.__setattr__(self, "pairs", tuple(read))
        if len(self._parents) < len(read):
            raise ArgumentError("Hierarchy lists a code twice; list each once, with its parent.")
        if not {parent for _, parent in read if parent is not None} <= self._parents.keys():
            raise ArgumentError("Hierarchy has a parent that is not listed as a code; list it, with its own parent.")
        if len(self._order) < len(read):
            raise ArgumentError("Hierarchy has a code that is its own ancestor; correct its parents.")

    @classmethod
    def from_csv(cls, path: str | PathLike[str]) -> Hierarchy:
        """Read a code list from a CSV file in UTF-8.

        Parameters
        ----------
        path : path-like
            The first line names the columns, ``code`` and ``parent`` among them; others are not read.

        Returns
        -------
        Hierarchy

        Raises
        ------
        ArgumentError
            If a column is missing, or the list is no hierarchy.
        ConfigError
            If the file cannot be read.
        """
        try:
            table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
        except OSError as error:
            raise ConfigError(f"the code list {str(path)!r} cannot be read: {error.strerror}.") from None
        except ValueError:  # also of what is no CSV, or no UTF-8
            raise ArgumentError(f"the code list {str(path)!r} must be a CSV file in UTF-8, with commas.") from None
        if not set(_COLUMNS) <= set(table.columns):
            raise ArgumentError(f"the code list {str(path)!r} must have the columns code and parent.")
        try:
            return cls(tuple(zip(table["code"].str.strip(), table["parent"].str.strip(), strict=True)))
        except ArgumentError as error:
            raise ArgumentError(f"the code list {str(path)!r}: {error}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.leaves)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The codes without children, in the order of the list."""
        return tuple(code for code, _ in self.pairs if code not in self._children)

    @property
    def levels(self) -> int:
        """The number of levels; codes without a parent are on level 0."""
        return 1 + max(self._order.values())

    def at(self, level: int) -> tuple[str, ...]:
        """Return the codes of a level, and those above it without children: everybody is in one of them.

        Parameters
        ----------
        level : int
            0 for the codes without a parent.

        Returns
        -------
        tuple of str

        Raises
        ------
        ArgumentError
            If there is no such level.
        """
        whole_number("level", level, least=0)
        if level >= self.levels:
            raise ArgumentError(f"level must be below {self.levels}, the number of levels of this hierarchy.")
        depths = self._order
        return tuple(
            code
            for code, _ in self.pairs
            if depths[code] == level or (depths[code] < level and code not in self._children)
        )

    def ancestors(self, code: str) -> tuple[str, ...]:
        """Return a code's parent, the parent's parent and so on.

        Parameters
        ----------
        code : str

        Returns
        -------
        tuple of str

        Raises
        ------
        ArgumentError
            If the code is not listed.
        """
        if code not in self._parents:
            raise ArgumentError("the code is not in the hierarchy: list it, with its parent.")
        above = []
        while (parent := self._parents[code]) is not None:
            above.append(parent)
            code = parent
        return tuple(above)

    @cached_property
    def _parents(self) -> dict[str, str | None]:
        return dict(self.pairs)

    @cached_property
    def _children(self) -> dict[str | None, list[str]]:
        children: dict[str | None, list[str]] = {}
        for code, parent in self.pairs:
            children.setdefault(parent, []).append(code)
        return children

    @cached_property
    def _order(self) -> dict[str, int]:
        """Every code that has a root above it, each before its children, and its level."""
        levels: dict[str, int] = {}
        waiting = [(code, 0) for code in reversed(self._children.get(None, []))]
        while waiting:
            code, level = waiting.pop()
            levels[code] = level
            waiting += [(child, level + 1) for child in reversed(self._children.get(code, []))]
        return levels


def along(release: Release, hierarchy: Hierarchy, column: str | None, by: str | Sequence[str]) -> pd.DataFrame:
    """Return sums of a table along a hierarchy; see `Release.along`.

    Notes
    -----
    *Guarantee*: `least` and `most` are sums of the bounds of cells, all of which can be reached at once.
    """
    names = key_columns(name for name, _ in release.sealed.cells.columns)
    if not isinstance(hierarchy, Hierarchy):
        raise ArgumentError("hierarchy must be a pkdp_pipeline.Hierarchy, for example Hierarchy.from_csv('codes.csv').")
    if column is None and len(names) != 1:
        raise ArgumentError("column must name the by-column that has the hierarchy's codes.")
    column = names[0] if column is None else column
    kept = column_names("by", by) if by else ()
    if not {column, *kept} <= set(names) or column in kept or set(_OWN) & {column, *kept}:
        raise ArgumentError(
            "column and by must name by-columns of this histogram, none twice, and none named as sums are."
        )
    check_adds_up(release.certificate.mechanism)
    cells = release.rollup([column, *kept])
    codes = [canonical_key(code) for code in cells[column].array]
    if not set(codes) <= set(hierarchy._parents):
        raise ArgumentError(
            f"by-column {column!r} has a value that the hierarchy does not list: list it, with its parent."
        )
    above = {code: hierarchy.ancestors(code) for code in dict.fromkeys(codes)}
    if any(set(others) & above.keys() for others in above.values()):
        raise ArgumentError(f"by-column {column!r} has a code and one above it, in which the same people are counted.")
    places: dict[tuple[Any, ...], dict[str, list[int]]] = {}
    for place, code in enumerate(codes):
        group = places.setdefault(tuple(canonical_key(cells[name].iloc[place]) for name in kept), {})
        for node in (code, *above[code]):
            group.setdefault(node, []).append(place)
    context = release.certificate.context
    # Where cells were found in the data, one without a row may be hidden: that of any code at or below another.
    listed = context is not None and context.cells == "declared"
    sums: list[tuple[Any, ...]] = []
    columns = [name for name in ("count", "error", "least", "most") if name in cells.columns]
    for key, group in places.items():
        for node in (node for node in hierarchy._order if node in group):
            rows = cells.iloc[group[node]]
            total = _sum(rows, whole=listed or node not in hierarchy._children)
            sums.append((hierarchy._order[node], node, *key, *(total[name] for name in columns)))
    frame = pd.DataFrame(sums, columns=["level", column, *kept, *columns])
    types = {"level": "Int64", **{name: cells[name].dtype for name in (column, *kept, *columns)}}
    return frame.astype(types)


def _sum(rows: pd.DataFrame, *, whole: bool) -> dict[str, Any]:
    """Return the sum of cells; what is open in one of them is open in the sum."""
    known, bounded = bool(rows["count"].notna().all()), bool(rows["most"].notna().all())
    total: dict[str, Any] = {
        "count": int(rows["count"].sum()) if known and whole else pd.NA,
        "least": int(rows["least"].sum()),
        "most": int(rows["most"].sum()) if bounded and whole else pd.NA,
    }
    if "error" in rows.columns:
        spread = math.sqrt(sum(float(value) ** 2 for value in rows["error"].dropna()))
        total["error"] = spread if total["count"] is not pd.NA else pd.NA
    return total
