"""The user's own expectations, read from the job file and from a suite; checked without any data."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.check_tables import ChecksTable
from pkdp_pipeline.jobs.checks.allowed import allowed, refusal
from pkdp_pipeline.jobs.checks.arguments import columns_of_condition

__all__ = ["Expectation", "read_expectations"]

_SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One rule in the words of Great Expectations.

    Parameters
    ----------
    place : str
        Where it is written, such as ``checks.expect[1]``.
    type : str
    arguments : dict
    columns : tuple of str
        The columns it looks at.
    stops : bool
        Whether the job stops where it is not met; otherwise the curator is warned.
    """

    place: str
    type: str
    arguments: Mapping[str, Any]
    columns: tuple[str, ...]
    stops: bool

    @property
    def rule(self) -> str:
        """The rule as the curator reads it: where it is written, its type and its columns."""
        named = f" of {', '.join(map(repr, self.columns))}" if self.columns else ""
        return f"{self.type}{named} ({self.place})"


class _ComplaintError(Exception):
    """What is wrong with one expectation, and under which key."""


def read_expectations(checks: ChecksTable) -> tuple[Expectation, ...]:
    """Return the expectations of a job's ``[checks]``, first those of the suite.

    Raises
    ------
    ConfigError
        If the suite cannot be read or an expectation cannot be used; one line for each complaint.
    """
    read, complaints = [], []
    for place, type_, arguments, severity in [*_of_suite(checks.expectations), *_of_tables(checks.expect)]:
        try:
            read.append(_read(place, type_, arguments, severity))
        except _ComplaintError as complaint:
            complaints.append(str(complaint))
    if complaints:
        raise ConfigError("\n  ".join(complaints))
    return tuple(read)


_Entry = tuple[str, object, dict[str, Any], object]


def _of_tables(tables: Sequence[Mapping[str, Any]]) -> Iterator[_Entry]:
    for number, table in enumerate(tables, 1):
        arguments = {key: value for key, value in table.items() if key not in ("type", "severity")}
        yield f"checks.expect[{number}]", table.get("type"), arguments, table.get("severity")


def _of_suite(path: str | None) -> Iterator[_Entry]:
    if path is None:
        return
    file, problem = Path(path), ""
    try:
        suite = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"cannot be read: {error.strerror}."
    except (ValueError, RecursionError):
        problem = "is not valid JSON."
    if problem:
        raise ConfigError(f"checks.expectations: {str(file)!r} {problem}")
    entries = suite.get("expectations") if isinstance(suite, dict) else None
    if not isinstance(entries, list):
        raise ConfigError(
            f"checks.expectations: {str(file)!r} is no suite of Great Expectations 1.x; write it with "
            "json.dump(suite.to_json_dict(), file)."
        )
    if suite.get("suite_parameters"):
        raise ConfigError(f"checks.expectations: {str(file)!r} has suite_parameters; write their values instead.")
    for number, entry in enumerate(entries, 1):
        place = f"{file.name}[{number}]"
        arguments = entry.get("kwargs") if isinstance(entry, dict) else None
        if not isinstance(arguments, dict) or "type" not in entry:
            raise ConfigError(
                f"checks.expectations: {place} is no expectation of Great Expectations 1.x: it needs type and kwargs."
            )
        given = {key: value for key, value in arguments.items() if value is not None}
        yield place, entry["type"], given, entry.get("severity")


def _read(place: str, type_: object, arguments: dict[str, Any], severity: object) -> Expectation:
    if not isinstance(type_, str) or type_ not in allowed:
        raise _ComplaintError(f"{place}.type: {refusal(type_)}")
    if severity not in (None, *_SEVERITIES):
        raise _ComplaintError(f"{place}.severity: must be 'critical', 'warning' or 'info'.")
    # A suite says which language its conditions are in; only one of them is no code.
    if arguments.get("condition_parser") in ("great_expectations", "great_expectations__experimental__"):
        arguments = {key: value for key, value in arguments.items() if key != "condition_parser"}
    known = {**allowed[type_].needs, **allowed[type_].may_have}
    read = {}
    for key, value in arguments.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}."
            raise _ComplaintError(f"{place}: {type_} has no argument {key!r}; {hint}")
        try:
            read[key] = known[key](value)
        except ValueError as error:
            raise _ComplaintError(f"{place}.{key}: {error}") from None
    missing = [key for key in allowed[type_].needs if key not in read]
    if missing:
        raise _ComplaintError(f"{place}: {type_} needs {', '.join(missing)}.")
    if {"min_value", "max_value"} & set(known) and not {"min_value", "max_value"} & set(read):
        raise _ComplaintError(f"{place}: {type_} needs min_value, max_value or both.")
    columns = [read[key] for key in ("column", "column_A", "column_B") if key in read]
    columns += read.get("column_list", [])
    if "row_condition" in read:
        columns += columns_of_condition(read["row_condition"])
        read["condition_parser"] = "great_expectations"
    return Expectation(
        place=place,
        type=type_,
        arguments=read,
        columns=tuple(dict.fromkeys(columns)),
        stops=severity in (None, "critical"),
    )
