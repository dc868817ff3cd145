"""Patching: edits made in the text of a job file, whose comments and layout stay as they are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.jobs.repairing.edits import Edit, Path, applied, at
from pkdp_pipeline.jobs.toml_text import assignments, release_tables, value_text

__all__ = ["patched"]

_HEADER = re.compile(r"\s*(\[\[?)\s*([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\s*(\]\]?)\s*(?:#.*)?$")
_BESIDE = ("release_threshold", "noise", "k_complement", "k", "domain", "where", "by", "name")
"""Keys of a release below which a new one is written, the first that is there."""


class _UnreadableError(Exception):
    """The text is written in a way that is not edited here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A table's lines: its header, where it has one, and those up to the next header."""

    path: Path
    start: int
    end: int


def patched(text: str, edits: Sequence[Edit]) -> str | None:
    """Return the text with the edits made in it; None where that cannot be done line by line.

    What is returned says exactly what the edits make of what the text says: it is read back and compared.
    """
    content = tomllib.loads(text)
    wanted = applied(content, edits)
    lines = text.split("\n")
    # Tables are removed last and from the end, so that the numbers of the others stay true.
    for edit in sorted(edits, key=lambda edit: (edit.value is None and isinstance(edit.path[-1], int), -_number(edit))):
        try:
            lines = _edited(lines, edit, wanted)
        except _UnreadableError:
            return None
    made = "\n".join(lines)
    try:
        return made if tomllib.loads(made) == wanted else None
    except tomllib.TOMLDecodeError:
        return None


def _number(edit: Edit) -> int:
    return edit.path[-1] if isinstance(edit.path[-1], int) else 0


def _edited(lines: list[str], edit: Edit, wanted: Mapping[str, Any]) -> list[str]:
    sections = _sections(lines)
    if edit.path == ("release",):
        return _releases_replaced(lines, sections, edit.value)
    below = [one for one in sections if one.path[: len(edit.path)] == edit.path]
    if below:
        if edit.value is not None:
            raise _UnreadableError
        return _without(lines, below)
    section = max((one for one in sections if one.path == edit.path[: len(one.path)]), key=lambda one: len(one.path))
    keys = edit.path[len(section.path) :]
    for length in range(len(keys), 0, -1):
        found = _assignment(lines, section, keys[:length])
        if found is None:
            continue
        value = at(wanted, (*section.path, *keys[:length]))
        if value is None:
            return lines[:found] + lines[found + 1 :]
        return [*lines[:found], _with_value(lines[found], value), *lines[found + 1 :]]
    if edit.value is None:
        raise _UnreadableError
    value = at(wanted, (*section.path, keys[0]))
    place = _place(lines, section)
    indent = re.match(r"\s*", lines[place - 1])[0] if section.path and place - 1 > section.start else ""  # type: ignore[index]
    return [*lines[:place], *(f"{indent}{line}" for line in assignments({str(keys[0]): value})), *lines[place:]]


def _sections(lines: Sequence[str]) -> list[_Section]:
    """Return the tables in order; what only looks like a header leads to a text that is not taken."""
    starts: list[tuple[Path, int]] = [((), 0)]
    often: dict[str, int] = {}
    for number, line in enumerate(lines):
        header = _HEADER.match(line)
        if header is None:
            continue
        first, *rest = header[2].split(".")
        if header[1] == "[[" and not rest:
            often[first] = often.get(first, -1) + 1
        path: Path = (first, often[first], *rest) if first in often else (first, *rest)
        starts.append((path, number))
    ends = [start for _, start in starts[1:]] + [len(lines)]
    return [_Section(path=path, start=start, end=end) for (path, start), end in zip(starts, ends, strict=True)]


def _assignment(lines: Sequence[str], section: _Section, keys: Path) -> int | None:
    """Return the line in which a key gets its value, whole; None where there is none."""
    if not all(isinstance(key, str) for key in keys):
        return None
    name = r"\s*\.\s*".join(rf'(?:"{re.escape(str(key))}"|{re.escape(str(key))})' for key in keys)
    for number in range(section.start, section.end):
        if re.match(rf"\s*{name}\s*=", lines[number]):
            _value_end(lines[number])
            return number
    return None


def _value_end(line: str) -> int:
    """Return where the value in a line ends: before its comment, or at the line's end."""
    for end in [*(mark.start() for mark in re.finditer("#", line)), len(line)]:
        try:
            if tomllib.loads(line[:end]):
                return len(line[:end].rstrip())
        except tomllib.TOMLDecodeError:
            continue
    raise _UnreadableError


def _with_value(line: str, value: Any) -> str:
    end = _value_end(line)
    start = re.match(r"[^=]*=\s*", line)
    if start is None:
        raise _UnreadableError
    return f"{start[0]}{value_text(value)}{line[end:]}"


def _place(lines: Sequence[str], section: _Section) -> int:
    """Return where a new key is written: below one that it belongs to, or below the last of the table."""
    if section.path[:1] == ("release",):
        for key in _BESIDE:
            try:
                found = _assignment(lines, section, (key,))
            except _UnreadableError:
                continue
            if found is not None:
                return found + 1
    return _last(lines, section) + 1


def _last(lines: Sequence[str], section: _Section) -> int:
    """Return the last line of a table that says something."""
    told = [number for number in range(section.start, section.end) if re.match(r"\s*[^\s#]", lines[number])]
    if not told:
        raise _UnreadableError
    return told[-1]


def _without(lines: list[str], sections: Sequence[_Section]) -> list[str]:
    """Remove tables, with the empty lines below them; comments below them may be about the next one and stay."""
    kept = list(lines)
    for section in sorted(sections, key=lambda one: one.start, reverse=True):
        end = _last(lines, section) + 1
        while end < section.end and not lines[end].strip():
            end += 1
        del kept[section.start : end]
    return kept


def _releases_replaced(lines: list[str], sections: Sequence[_Section], tables: Any) -> list[str]:
    old = [section for section in sections if section.path[:1] == ("release",)]
    if not old:
        raise _UnreadableError
    start = old[0].start
    return [*lines[:start], *release_tables(tables).split("\n"), *_without(lines, old)[start:]]
