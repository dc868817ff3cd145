"""Edits: keys of a job file that get another value, and what that leaves of it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pkdp_pipeline.jobs.toml_text import assignments, value_text

__all__ = ["Edit", "Path", "applied", "at", "fragment", "keys_changed", "said"]

Path = tuple[str | int, ...]
"""Where a value stands: keys, and the numbers of tables in lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One value, set or removed.

    Parameters
    ----------
    path : tuple of str and int
        ``("release", 0, "k")`` is k of the first release.
    value : object
        What stands there from now on; None where nothing does.
    """

    path: Path
    value: Any


def at(content: Any, path: Path) -> Any:
    """Return what stands at a place; None where nothing does."""
    for step in path:
        try:
            content = content[step]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def applied(content: Mapping[str, Any], edits: Iterable[Edit]) -> dict[str, Any]:
    """Return the content with the edits made in it; tables of a list are removed last, so that numbers stay true."""
    changed = copy.deepcopy(dict(content))
    gone: list[Path] = []
    for edit in edits:
        *above, last = edit.path
        if edit.value is None and isinstance(last, int):
            gone.append(edit.path)
            continue
        table = at(changed, tuple(above))
        if edit.value is None:
            table.pop(last, None)
        else:
            table[last] = copy.deepcopy(edit.value)
    for path in sorted(gone, key=str, reverse=True):
        del at(changed, path[:-1])[path[-1]]
    return changed


def keys_changed(content: Mapping[str, Any], edits: Sequence[Edit]) -> int:
    """Return how many keys are added, removed or given another value; those of a table count one by one."""
    number = 0
    for edit in edits:
        before, after = dict(_leaves(at(content, edit.path))), dict(_leaves(edit.value))
        number += sum(before.get(place) != after.get(place) for place in {*before, *after})
    return number


def said(content: Mapping[str, Any], edits: Sequence[Edit]) -> str:
    """Return in words what the edits do, the releases by their names."""
    told = []
    for place, group in groupby(sorted(edits, key=_table_order), key=lambda edit: _table_of(edit.path)):
        listed = list(group)
        inside = len(place) > 1 and len(listed[0].path) > 2
        where = f" in release {at(content, (*place, 'name'))!r}" if inside else ""
        told.append(f"{' and '.join(_said(content, edit) for edit in listed)}{where}")
    return "; ".join(told)


def fragment(content: Mapping[str, Any], edits: Sequence[Edit]) -> str:
    """Return the changed keys as lines of TOML: those that go after ``-``, those that come after ``+``.

    It shows nothing but the changed keys and the names of their releases, because other lines can hold passwords.
    """
    changed = applied(content, [edit for edit in edits if not isinstance(edit.path[-1], int)])
    lines: list[str] = []
    for place, group in groupby(sorted(edits, key=_table_order), key=lambda edit: _table_of(edit.path)):
        listed = list(group)
        if lines:
            lines.append("")
        if len(place) > 1 and listed[0].path == place:
            lines += _marked("-", ["[[release]]", *assignments(at(content, place))])
            continue
        if place:
            header = ["[[release]]", *assignments({"name": at(content, (*place, "name"))})]
            lines += _marked(" ", header if len(place) > 1 else [f"[{place[0]}]"])
        for key in dict.fromkeys(edit.path[len(place)] for edit in listed):
            for mark, held in (("-", content), ("+", changed)):
                lines += _marked(mark, _written(str(key), at(held, (*place, key)), inside=len(place) > 1))
    return "\n".join(lines) + "\n"


def _said(content: Mapping[str, Any], edit: Edit) -> str:
    name = ".".join(str(step) for step in edit.path if isinstance(step, str) and step != "release")
    if edit.path[0] == "budget" and len(edit.path) == 3:
        name = f"budget[{int(edit.path[1]) + 1}].{edit.path[2]}"  # counted as in what reading the file says
    before = at(content, edit.path)
    if len(edit.path) == 2 and isinstance(edit.path[1], int):
        return f"without {at(content, (*edit.path, 'name'))!r}" if edit.path[0] == "release" else f"without {name}"
    if edit.path == ("release",):
        return f"{', '.join(repr(table['name']) for table in edit.value)} in place of all releases"
    if edit.value is None:
        return "no [attacker]" if edit.path == ("attacker",) else f"no {name}"
    after = value_text(edit.value)
    if before is None or isinstance(before, Mapping | list):
        return f"{name} = {after}"
    return f"{name} = {after} instead of {value_text(before)}"


def _written(key: str, value: Any, *, inside: bool) -> list[str]:
    if value is None:
        return []
    if key == "release":
        return [line for table in value for line in ("[[release]]", *assignments(table))]
    if key == "attacker" and isinstance(value, Mapping) and not inside:
        return ["[attacker]", *assignments(value)]
    return assignments({key: value})


def _marked(mark: str, lines: Iterable[str]) -> list[str]:
    return [f"{mark} {line}" for line in lines]


def _table_of(path: Path) -> Path:
    """Return the table that is shown around a place: a release, the attacker's, or the file itself."""
    if path[0] == "release" and len(path) > 1:
        return path[:2]
    return path[:1] if path[0] == "attacker" and len(path) > 1 else ()


def _table_order(edit: Edit) -> tuple[bool, str, int]:
    place = _table_of(edit.path)
    return bool(place), str(place[0]) if place else "", int(place[1]) if len(place) > 1 else 0


def _leaves(value: Any, above: Path = ()) -> list[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        return [leaf for key, one in value.items() for leaf in _leaves(one, (*above, key))]
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return [leaf for number, one in enumerate(value) for leaf in _leaves(one, (*above, number))]
    return [] if value is None else [(above, value)]
