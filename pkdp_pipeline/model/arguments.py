"""Reading arguments: each check returns the plain Python value or raises an error that names the rule."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any, cast

from pkdp_pipeline.errors import ArgumentError

_MAX_NUMBER = 1e300

#: What a field's annotation asks for, and how it is said.
_TYPES: dict[str, tuple[Any, str]] = {
    "str": (str, "a text"),
    "str | None": (str | None, "a text or None"),
    "bool": (bool, "True or False"),
    "tuple[str, ...]": (tuple, "a tuple of column names"),
    "tuple[str, ...] | None": (tuple | None, "a tuple of column names, or None"),
}


def check_types(value: Any, of: str = "") -> None:
    """Raise `ArgumentError` unless a dataclass's texts, truth values and tuples of texts are what they say."""
    for name, kind, said in _checked_fields(value.__class__):
        given = getattr(value, name)
        texts = given if isinstance(given, tuple) else ()
        if not isinstance(given, kind) or not all(isinstance(text, str) for text in texts):
            raise ArgumentError(f"{name}{of} must be {said}, not {type(given).__name__}.")


# Every value of a day's releases is checked and written: what its class says is read once.
@functools.cache
def _checked_fields(kind: type[Any]) -> tuple[tuple[str, Any, str], ...]:
    return tuple((field.name, *_TYPES[str(field.type)]) for field in fields(kind) if str(field.type) in _TYPES)


@functools.cache
def _written_fields(kind: type[Any]) -> tuple[tuple[str, bool, Any], ...]:
    return tuple((field.name, bool(field.metadata.get("rare")), field.default) for field in fields(kind))


RARE: dict[str, Any] = {"rare": True}
"""Metadata of a field that documents leave out where it is as by default."""


def written(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields as a JSON-ready dictionary, without those that are rare and as by default."""
    content = ((name, getattr(value, name), rare, default) for name, rare, default in _written_fields(value.__class__))
    return {name: _plain(entry) for name, entry, rare, default in content if not rare or entry != default}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):  # most are
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else written(value) if is_dataclass(value) else value


def in_python(value: Any) -> str:
    """Return a dataclass as it is written in Python: what is not as by default."""
    given = ((field, getattr(value, field.name)) for field in fields(value))
    stated = ", ".join(f"{field.name}={entry!r}" for field, entry in given if entry != field.default)
    return f"{type(value).__name__}({stated})"


def known_fields(kind: Any, content: object, what: str) -> dict[str, Any]:
    """Return `content` as arguments of a dataclass, or raise `ArgumentError` for a field that it does not have."""
    if not isinstance(content, Mapping):
        raise ArgumentError(f"{what} must be a mapping with its fields, not {type(content).__name__}.")
    known = {name for name, _, _ in _written_fields(kind)}
    strangers = sorted(set(content) - known, key=str)
    if strangers:
        raise ArgumentError(f"{what} has no field {strangers[0]!r}; its fields are {', '.join(sorted(known))}.")
    return dict(content)


def probability(name: str, value: object) -> float:
    """Return `value` as a float in [0, 1], or raise `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number between 0 and 1, not {type(value).__name__}.")
    number = _as_float(value)
    if not 0.0 <= number <= 1.0:
        percents = f": {number:g} % is {number / 100:g}" if 1.0 < number <= 100.0 else ""
        raise ArgumentError(f"{name} must be a probability between 0 and 1, got {number!r}{percents}.")
    return number + 0.0


def _as_float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def loss(name: str, value: object, *, limit: bool = False) -> float:
    """Return an ε of at least 0, rounded up, so far below the largest float that sums of several are finite.

    An ε that is a limit to others is rounded down.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number of at least 0, not {type(value).__name__}.")
    number = _as_float(value)
    if not 0.0 <= number < _MAX_NUMBER:
        raise ArgumentError(f"{name} must be finite and at least 0 (below 1e300), got {number!r}.")
    exact = cast("Any", value)
    short = exact < number if limit else exact > number
    return (math.nextafter(number, 0.0 if limit else math.inf) if short else number) + 0.0


def whole_number(name: str, value: object, *, least: int) -> int:
    """Return `value` as an int of at least `least`, or raise `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentError(
            f"{name} must be a whole number of at least {least}, not {type(value).__name__}: write it as an int."
        )
    number = int(value)
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}.")
    if number.bit_length() > 1024:
        raise ArgumentError(f"{name} must be a number that people can be counted with, below 2^1024.")
    return number


def positive_real(name: str, value: object) -> float:
    """Return `value` as a finite float above 0, or raise `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number above 0, not {type(value).__name__}.")
    number = _as_float(value)
    if not (math.isfinite(number) and number > 0.0):
        raise ArgumentError(f"{name} must be finite and above 0, got {number!r}.")
    return number


def choice(name: str, value: object, allowed: Iterable[str]) -> str:
    """Return `value` when it is one of `allowed`, or raise `ArgumentError` that lists them."""
    options = sorted(allowed)
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ArgumentError(f"{name} must be one of {listed}, got {value!r}.")
    return value
