"""Structure: whether a document is built as the published schema says; the schemas' own keywords, read strictly."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any

from pkdp_pipeline.model.plain_text import printable

__all__ = ["KEYWORDS", "fault"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "object": lambda value: isinstance(value, dict),
        "array": lambda value: isinstance(value, list),
        "string": lambda value: isinstance(value, str),
        "boolean": lambda value: isinstance(value, bool),
        "null": lambda value: value is None,
        "number": _is_number,
        "integer": lambda value: _is_number(value) and value == value // 1,
    }
)

_NOTES = frozenset({"$schema", "$id", "$defs", "title", "description", "default", "examples", "format", "then", "else"})
"""Keywords that say nothing by themselves."""


def fault(document: Any, schema: str) -> str:
    """Return where and how `document` departs from a published schema first; empty where it does not.

    Parameters
    ----------
    document : JSON value
    schema : str
        Name of a file in ``pkdp_pipeline/schemas``.
    """
    root = _schema(schema)
    return next(_faults(document, root, root, ""), "")


@functools.cache
def _schema(name: str) -> dict[str, Any]:
    text = resources.files("pkdp_pipeline").joinpath("schemas", name).read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def _faults(value: Any, schema: Any, root: Mapping[str, Any], path: str) -> Iterator[str]:
    if schema is True:
        return
    if schema is False:
        yield f"{_at(path)} is not expected"
        return
    for keyword, wanted in schema.items():
        if keyword in _NOTES:
            continue
        check = KEYWORDS.get(keyword)
        if check is None:
            raise RuntimeError(f"the schema's keyword {keyword!r} is not known here.")
        yield from check(value, wanted, schema, root, path)


def _at(path: str) -> str:
    return f"field {path!r}" if path else "the document"


def _inside(path: str, name: str) -> str:
    shown = printable(name)
    shown = shown if len(shown) <= 40 else shown[:40] + "…"
    return f"{path}.{shown}" if path else shown


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return (type(one) is type(other) and one == other) or (_is_number(one) and _is_number(other) and one == other)


def _type(value: Any, wanted: Any, _: Any, __: Any, path: str) -> Iterator[str]:
    names = [wanted] if isinstance(wanted, str) else wanted
    if not any(_TYPES[name](value) for name in names):
        yield f"{_at(path)} must be {' or '.join(names)}"


def _const(value: Any, wanted: Any, _: Any, __: Any, path: str) -> Iterator[str]:
    if not _same(value, wanted):
        yield f"{_at(path)} must be {json.dumps(wanted)}"


def _enum(value: Any, wanted: Any, _: Any, __: Any, path: str) -> Iterator[str]:
    if not any(_same(value, one) for one in wanted):
        yield f"{_at(path)} must be one of {', '.join(map(json.dumps, wanted))}"


def _required(value: Any, wanted: Any, _: Any, __: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{_at(_inside(path, name))} is missing" for name in wanted if name not in value)


def _properties(value: Any, wanted: Any, _: Any, root: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in wanted.items():
            if name in value:
                yield from _faults(value[name], inner, root, _inside(path, name))


def _additional(value: Any, wanted: Any, schema: Any, root: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name in sorted(set(value) - set(schema.get("properties", {}))):
            yield from _faults(value[name], wanted, root, _inside(path, name))


def _items(value: Any, wanted: Any, _: Any, root: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for place, one in enumerate(value):
            yield from _faults(one, wanted, root, f"{path}[{place}]")


def _unique(value: Any, wanted: Any, _: Any, __: Any, path: str) -> Iterator[str]:
    if wanted and isinstance(value, list):
        texts = [json.dumps(one, sort_keys=True) for one in value]
        if len(set(texts)) < len(texts):
            yield f"{_at(path)} holds the same twice"


def _limit(kind: type | tuple[type, ...], fits: Callable[[Any, Any], bool], words: str) -> Any:
    def check(value: Any, wanted: Any, _: Any, __: Any, path: str) -> Iterator[str]:
        if isinstance(value, kind) and not isinstance(value, bool) and not fits(value, wanted):
            yield f"{_at(path)} must {words.format(wanted)}"

    return check


def _reference(value: Any, wanted: Any, _: Any, root: Any, path: str) -> Iterator[str]:
    target: Any = root
    for step in wanted.removeprefix("#").strip("/").split("/"):
        target = target[step] if step else target
    yield from _faults(value, target, root, path)


def _all_of(value: Any, wanted: Any, _: Any, root: Any, path: str) -> Iterator[str]:
    for one in wanted:
        yield from _faults(value, one, root, path)


def _some_of(value: Any, wanted: Any, root: Any, path: str, most: int) -> Iterator[str]:
    found = [next(_faults(value, one, root, path), "") for one in wanted]
    held = found.count("")
    if held > most:
        yield f"{_at(path)} has several of the forms of which it may have one"
    if not held:
        # Of several forms the one that goes wrong deepest inside is the one that was meant.
        deeper = [text for text in found if not text.startswith(f"{_at(path)} ")]
        yield deeper[0] if len(deeper) == 1 else f"{_at(path)} has none of the forms that it may have"


def _any_of(value: Any, wanted: Any, _: Any, root: Any, path: str) -> Iterator[str]:
    yield from _some_of(value, wanted, root, path, len(wanted))


def _one_of(value: Any, wanted: Any, _: Any, root: Any, path: str) -> Iterator[str]:
    yield from _some_of(value, wanted, root, path, 1)


def _if(value: Any, wanted: Any, schema: Any, root: Any, path: str) -> Iterator[str]:
    holds = not next(_faults(value, wanted, root, path), "")
    yield from _faults(value, schema.get("then" if holds else "else", True), root, path)


def _has_form(value: str, pattern: str) -> bool:
    # In a schema $ is the very end; in Python a line break may follow it.
    return re.search(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), value) is not None


_NUMBERS = (int, float)

KEYWORDS: Mapping[str, Callable[[Any, Any, Any, Any, str], Iterator[str]]] = MappingProxyType(
    {
        "$ref": _reference,
        "additionalProperties": _additional,
        "allOf": _all_of,
        "anyOf": _any_of,
        "const": _const,
        "enum": _enum,
        "exclusiveMaximum": _limit(_NUMBERS, lambda value, most: value < most, "be below {}"),
        "exclusiveMinimum": _limit(_NUMBERS, lambda value, least: value > least, "be above {}"),
        "if": _if,
        "items": _items,
        "maxItems": _limit(list, lambda value, most: len(value) <= most, "have at most {} items"),
        "maximum": _limit(_NUMBERS, lambda value, most: value <= most, "be at most {}"),
        "minItems": _limit(list, lambda value, least: len(value) >= least, "have at least {} items"),
        "minLength": _limit(str, lambda value, least: len(value) >= least, "have at least {} characters"),
        "minimum": _limit(_NUMBERS, lambda value, least: value >= least, "be at least {}"),
        "oneOf": _one_of,
        "pattern": _limit(str, _has_form, "be of the form {}"),
        "properties": _properties,
        "required": _required,
        "type": _type,
        "uniqueItems": _unique,
    }
)
"""Every keyword that the schemas use, with what checks it."""
