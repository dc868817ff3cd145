"""Spec: a question as JSON, which the macros send and the gate answers, checked whoever sends it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, cast

from pkdp_pipeline.duckdb.tables import lowered
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import positive_real
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
_CELLS = ("domain", "protects", "one_cell", "order_by", "undeclared")
#: Keys that the policy of a gate decides, and not who asks.
_OF_THE_POLICY: Mapping[str, str] = MappingProxyType(
    {
        "domain": "the policy's domains say which cells are public",
        "protects": "the policy says what is protected",
        "period": "the policy says which period the tables are about",
        "missing_unit": "rows without a privacy unit are dropped",
        "one_cell": "the policy says in which cell a person is counted",
        "order_by": "the policy says in which cell a person is counted",
        "undeclared": "people outside the public cells are absent",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One question, such as ``{"table": "events", "histogram": "country", "k": 20}``; None where a key is left out.

    Parameters
    ----------
    table : str
        As written; see `tables.resolve`.
    histogram : tuple of str, optional
        The columns whose values are the cells of a histogram, as written.
    count : bool, optional
        True for a count; a question has either.
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

    table: str
    histogram: tuple[str, ...] | None = None
    count: bool | None = None
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
        for name in ("histogram", "order_by"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        schemas: Any = self.schemas
        if schemas is not None:
            if not isinstance(schemas, (list, tuple)) or not all(isinstance(name, str) for name in schemas):
                raise ArgumentError("schemas must be a list of names; pkdp_histogram and pkdp_count write it.")
            object.__setattr__(self, "schemas", tuple(schemas))
        if self.count is not None and self.count is not True:
            raise ArgumentError("count must be true, or left out.")
        if (self.histogram is None) is (self.count is None):
            raise ArgumentError(
                "a question has either: histogram, the columns whose values are the cells, or count, which is true."
            )
        if self.histogram is not None and self.k_complement is not None:
            raise ArgumentError("k_complement is about a count; a histogram has none: leave it out.")
        for name in _CELLS:
            if self.count and getattr(self, name) is not None:
                raise ArgumentError(f"{name} is about the cells of a histogram; a count has none: leave it out.")

    @classmethod
    def read(cls, question: object) -> Spec:
        """Read a question: a mapping, or its JSON text.

        Raises
        ------
        ArgumentError
            If it is no question.
        """
        if isinstance(question, Spec):
            return question
        content: object = question
        if isinstance(question, (str, bytes)):
            try:
                text = question if isinstance(question, str) else question.decode()  # json guesses UTF-16 and UTF-32
                content = json.loads(text, object_pairs_hook=_object)
            except (ValueError, RecursionError):
                content = None
        if not isinstance(content, Mapping):
            raise ArgumentError('the question must be a JSON object, such as {"table": "events", "count": true}.')
        known = [field.name for field in fields(cls)]
        for name in content:
            if name not in known:
                close = difflib.get_close_matches(str(name), known, n=1)
                raise ArgumentError(
                    f"the question has a key {name!r}, which there is not."
                    + (f" Did you mean {close[0]!r}?" if close else "")
                )
        if content.get("table") is None:
            raise ArgumentError("table is needed, and may not be NULL.")
        return cls(**cast("dict[str, Any]", dict(content)))

    def to_dict(self) -> dict[str, Any]:
        """Return the keys that are given, as JSON has them."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value is not None
        }

    def to_json(self) -> str:
        """Return JSON that `read` reads; equal questions have equal JSON."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    def for_a_gate(self) -> Spec:
        """Return the question as a gate takes it: without where the asker's own connection stands.

        Raises
        ------
        ArgumentError
            If it says what the policy decides.
        """
        for name, reason in _OF_THE_POLICY.items():
            if getattr(self, name) is not None:
                raise ArgumentError(f"{name} is not for analysts to choose: {reason}. Leave it out.")
        return replace(self, database=None, schema=None, schemas=None)

    def mechanism(self) -> Count | Histogram:
        """Return the mechanism that is asked for."""
        noise = None if self.noise is None else GeometricNoise(self.noise)
        if self.histogram is not None:
            return Histogram(k=self.k, noise=noise, release_threshold=self.release_threshold)
        return Count(k=self.k, k_complement=self.k_complement, noise=noise, release_threshold=self.release_threshold)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _check_text(name: str, value: object, meant: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ArgumentError(f"{name} must be {meant}, and not empty.")
    _check_characters(name, value)


def _check_characters(name: str, text: str) -> None:
    if any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in text):
        raise ArgumentError(f"{name} has characters that no text in a database has.")


def _names(argument: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    if isinstance(names, Mapping) or not isinstance(names, Iterable):
        names = []
    listed = tuple(names)
    if not listed or not all(isinstance(name, str) and name for name in listed):
        raise ArgumentError(f"{argument} must be a column's name or a list of them: 'country' or ['country', 'flag'].")
    for name in listed:
        _check_characters(argument, name)
    if len({lowered(name) for name in listed}) < len(listed):
        raise ArgumentError(
            f"{argument} names a column twice, letter case aside; write each once: ['country', 'flag']."
        )
    return cast("tuple[str, ...]", listed)
