"""Spec: the question that a macro sends as JSON, checked whoever sends it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from pkdp_pipeline.duckdb.tables import lowered
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import choice, positive_real
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

__all__ = ["Spec"]

_TEXTS = (
    "filter",
    "domain",
    "protects",
    "period",
    "missing_unit",
    "one_cell",
    "undeclared",
    "database",
    "schema",
)
_MEANT = {
    "period": "a text or a DATE, such as '2013-01-02'",
    "filter": "a text that holds a condition, such as filter := 'age >= 18'",
}
_WHOLE = ("k", "k_complement", "release_threshold")
_CELLS = ("by", "domain", "protects", "one_cell", "order_by", "undeclared")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One call of ``pkdp_histogram`` or ``pkdp_count``; None where the call leaves something out.

    Parameters
    ----------
    kind : {"histogram", "count"}
    table : str
        As written in the call; see `tables.resolve`.
    by : tuple of str, optional
        The columns of a histogram, as written.
    k, k_complement, release_threshold : int, optional
        See `Histogram` and `Count`.
    noise : float, optional
        The ε of `GeometricNoise`.
    filter : str, optional
        A condition in SQL.
    domain : str, optional
        The public cells as JSON text; see `cells.read_domain`.
    protects, period, missing_unit, one_cell, undeclared : str, optional
        See `Request`.
    order_by : tuple of str, optional
    database, schema : str, optional
        Where the caller's connection stands; unqualified names are looked up there first.
    schemas : tuple of str, optional
        The schemas of its search path.

    Raises
    ------
    ArgumentError
        If a field has the wrong type, or is not one of this kind of release.
    """

    kind: str
    table: str
    by: tuple[str, ...] | None = None
    k: int | None = None
    k_complement: int | None = None
    filter: str | None = None
    noise: float | None = None
    release_threshold: int | None = None
    domain: str | None = None
    protects: str | None = None
    period: str | None = None
    missing_unit: str | None = None
    one_cell: str | None = None
    order_by: tuple[str, ...] | None = None
    undeclared: str | None = None
    database: str | None = None
    schema: str | None = None
    schemas: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        choice("kind", self.kind, ("histogram", "count"))
        _check_text("table", self.table, "the name of a table, in quotes: 'events'")
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None:
                _check_text(name, value, _MEANT.get(name, "a text"))
        for name in _WHOLE:
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise ArgumentError(f"{name} must be a whole number, not {type(value).__name__}: write it as 20.")
        if self.noise is not None:
            try:
                object.__setattr__(self, "noise", positive_real("noise", self.noise))
            except ArgumentError as error:
                raise ArgumentError(f"{str(error).removesuffix('.')}: write noise := 0.5, its ε.") from None
        for name in ("by", "order_by"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        schemas: Any = self.schemas
        if schemas is not None:
            if not isinstance(schemas, (list, tuple)) or not all(isinstance(name, str) for name in schemas):
                raise ArgumentError("schemas must be a list of names; pkdp_histogram and pkdp_count write it.")
            object.__setattr__(self, "schemas", tuple(schemas))
        if self.kind == "histogram":
            if self.by is None:
                raise ArgumentError("by is needed for a histogram: name the columns whose values are the cells.")
            if self.k_complement is not None:
                raise ArgumentError("k_complement is about a count; a histogram has none: leave it out.")
        else:
            for name in _CELLS:
                if getattr(self, name) is not None:
                    raise ArgumentError(f"{name} is about the cells of a histogram; a count has none: leave it out.")

    @classmethod
    def from_json(cls, text: object) -> Spec:
        """Read the JSON that a macro sends.

        Raises
        ------
        ArgumentError
            If it is not the JSON of a `Spec`.
        """
        if not isinstance(text, str):
            raise ArgumentError("the request must be JSON text; call pkdp_histogram or pkdp_count, which write it.")
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, Mapping):
            raise ArgumentError("the request is not a JSON object; call pkdp_histogram or pkdp_count, which write it.")
        known = [field.name for field in fields(cls)]
        for name in content:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                raise ArgumentError(
                    f"the request has no field {name!r}." + (f" Did you mean {close[0]!r}?" if close else "")
                )
        for name in ("kind", "table"):
            if content.get(name) is None:
                raise ArgumentError(f"{name} is needed, and may not be NULL.")
        return cls(**cast("dict[str, Any]", dict(content)))

    def to_json(self) -> str:
        """Return JSON that `from_json` reads; equal specs have equal JSON."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(given, sort_keys=True, separators=(",", ":"))

    def mechanism(self) -> Count | Histogram:
        """Return the mechanism that the call asks for."""
        noise = None if self.noise is None else GeometricNoise(self.noise)
        if self.kind == "histogram":
            return Histogram(k=self.k, noise=noise, release_threshold=self.release_threshold)
        return Count(k=self.k, k_complement=self.k_complement, noise=noise, release_threshold=self.release_threshold)


def _check_text(name: str, value: object, meant: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ArgumentError(f"{name} must be {meant}, and not empty.")


def _names(argument: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    if isinstance(names, Mapping) or not isinstance(names, Iterable):
        names = []
    listed = tuple(names)
    if not listed or not all(isinstance(name, str) and name for name in listed):
        raise ArgumentError(f"{argument} must be a column's name or a list of them: 'country' or ['country', 'flag'].")
    if len({lowered(name) for name in listed}) < len(listed):
        raise ArgumentError(
            f"{argument} names a column twice, letter case aside; write each once: ['country', 'flag']."
        )
    return cast("tuple[str, ...]", listed)
