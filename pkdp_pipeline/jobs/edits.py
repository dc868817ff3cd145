"""Edits: keys of a job file that get another value, made in its text; what they change, in words and as a diff."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Item, Table

from pkdp_pipeline.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Edit:
    """One value of a job file, set or removed.

    Parameters
    ----------
    path : tuple of str and int
        ``("release", 0, "k")`` is k of the first release.
    value : object
        What stands there from now on; None where nothing does.
    """

    path: tuple[str | int, ...]
    value: Any


Edits = tuple[Edit, ...]


def at(content: Any, path: tuple[str | int, ...]) -> Any:
    """Return what stands at a place; None where nothing does."""
    for step in path:
        try:
            content = content[step]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a TOML text with the edits made in it; comments and layout stay.

    Raises
    ------
    ConfigError
        If it is laid out in a way that cannot be edited.
    """
    try:
        document = tomlkit.parse(text)
        # Tables of a list go last and from its end, so that the numbers of the others stay true.
        for edit in sorted(edits, key=lambda edit: -edit.path[-1] if isinstance(edit.path[-1], int) else -math.inf):
            table, last = at(document, edit.path[:-1]), edit.path[-1]
            if edit.value is None:
                table.pop(last)
                continue
            body = table.value.body if isinstance(table, Table) and last not in table else []
            below = []
            while body and body[-1][0] is None:  # what stands below the last key may be about the next table
                below.append(body.pop())
            table[last] = _item(edit.value)
            body.extend(reversed(below))
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigError(f"the job file cannot be edited as it is laid out: {type(error).__name__}.") from error


def words_of(content: Mapping[str, Any], edits: Sequence[Edit]) -> str:
    """Return in words what edits do, the releases by their names."""

    def release(edit: Edit) -> int:
        return int(edit.path[1]) if edit.path[0] == "release" else -1

    told = []
    for number, group in groupby(sorted(edits, key=release), key=release):
        name = at(content, ("release", number, "name")) if number >= 0 else None
        listed = [
            f"without {name!r}" if len(edit.path) == 2 and name is not None else _said(content, edit) for edit in group
        ]
        inside = name is not None and not listed[0].startswith("without")
        told.append(" and ".join(listed) + (f" in release {name!r}" if inside else ""))
    return "; ".join(told)


def _said(content: Mapping[str, Any], edit: Edit) -> str:
    steps = edit.path[2:] if edit.path[0] == "release" else edit.path
    key = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in steps)[1:]
    if edit.value is None:
        return "no [attacker]" if edit.path == ("attacker",) else f"no {key}"
    before, after = at(content, edit.path), _item(edit.value).as_string()
    plain = before is not None and not isinstance(before, Mapping | list)
    return f"{key} = {after} instead of {_item(before).as_string()}" if plain else f"{key} = {after}"


def _item(value: Any) -> Item:
    """Return a value as TOML in one line."""
    if isinstance(value, Mapping):
        inside = (f"{tomlkit.key(key).as_string()} = {_item(one).as_string()}" for key, one in value.items())
        made: Item = tomlkit.value(f"{{ {', '.join(inside)} }}")
        return made
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        array.extend(map(_item, value))
        return array
    item: Item = tomlkit.item(value)
    return item


def diff(old: str, new: str) -> str:
    """Return the changed lines below the names of their tables; other lines can hold passwords."""
    before, after = old.splitlines(), new.splitlines()
    lines: list[str] = []
    shown = None
    for tag, start, end, first, last in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        above = [number for number in range(start) if before[number].lstrip().startswith("[")]
        if above and above[-1] != shown and not "".join(before[start:end]).lstrip().startswith("["):
            shown = above[-1]
            names = (line for line in before[shown:start] if line.split("=")[0].strip() == "name")
            lines += [*([""] if lines else []), *(f"  {line}" for line in (before[shown], *names))]
        changed = (("-", before[start:end]), ("+", after[first:last]))
        lines += [f"{mark} {line}" for mark, listed in changed for line in listed if line.strip()]
    return "\n".join(lines) + "\n"


def keys_changed(before: Any, after: Any) -> int:
    """Return how many keys differ; those of a table count one by one."""
    if isinstance(before, Mapping) or isinstance(after, Mapping):
        old, new = ({} if one is None else one for one in (before, after))
        return sum(keys_changed(old.get(key), new.get(key)) for key in {*old, *new})
    return int(before != after)


def distance(old: Any, new: Any) -> float:
    """Return how far a number goes, as ``|ln(new / old)|``; infinite where a key comes or goes."""
    numbers = all(isinstance(one, int | float) and one > 0 for one in (old, new))
    return abs(math.log(new / old)) if numbers else math.inf
