"""Complaints: what pydantic says of a file, in our words: the key, the rule and the fix, and never the value."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, DecimalException
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.model.wording import JOB_FILE, Worded, worded_for

_WRITTEN: Mapping[str, str] = MappingProxyType(
    {
        "attacker": "attacker = { p_max = 0.1 }",
        "budget": "budget = { epsilon = 2.0, delta = 1e-6 }, or a list of such tables",
        "changes": "changes = 2",
        "bins": "bins = [0, 18, 65]",
        "checks": "[checks], and below it rows = { min = 100 }",
        "column": 'column = "date"',
        "columns": 'columns = { tailnum = "text" }',
        "dataset": 'dataset = "flights"',
        "days": "days = 7",
        "delta": "delta = 1e-6",
        "directory": 'directory = "out"',
        "duckdb": 'duckdb = "warehouse.duckdb"',
        "epsilon": "epsilon = 1.0",
        "evidence": 'evidence = { kind = "one_day_protected" }, or a list of such tables',
        "expect": '[[checks.expect]], with two brackets, and below it type = "…"',
        "files": 'files = "data/*.parquet"',
        "formats": 'formats = ["parquet", "csv"]',
        "fresh": 'fresh = { column = "date", days = 1 }',
        "ibis": 'ibis = "${PKDP_SOURCE}"',
        "k": "k = 50",
        "kind": 'kind = "one_day_protected"',
        "leakage": '[[attacker.leakage]], and below it name = "…" and tells = "people_present"',
        "ledger": 'ledger = "out/ledger.sqlite"',
        "limits": "limits = { seconds = 30 }",
        "name": 'name = "people"',
        "noise": "noise = { epsilon = 0.5 }",
        "null": 'null = ["", "NA"]',
        "output": '[output], and below it directory = "out"',
        "period": 'period = { column = "date" }',
        "postgres": 'postgres = "${PKDP_SOURCE}"',
        "records": '[records], and below it directory = "runs"',
        "release": '[[release]], with two brackets, and below it name = "people" and k = 50',
        "retention": 'retention = { directory = "private", days = 7 }',
        "rows": "rows = { min = 100, max = 100000 }",
        "shared_by": 'shared_by = ["value"]',
        "source": 'source = "data/*.parquet", or a table: source = { postgres = "…", table = "…" }',
        "tables": 'tables = { visits = { unit = "person", columns = ["country"], k = 20 } }',
        "tables.columns": 'columns = ["country"]',
        "times": "times = 10",
        "types": 'types = { tailnum = "text" }',
        "unit": 'unit = "person"',
    }
)
"""How each key is written that has to be there, or holds more than one value."""

_RULES: Mapping[str, str] = MappingProxyType(
    {
        "bool_type": "must be true or false.",
        "string_type": "must be text in quotes.",
        "string_too_short": "must not be empty.",
        "too_short": "must not be empty.",
        "string_pattern_mismatch": "must fit the pattern of a plain name: letters, digits and _, in files' names -, "
        "beginning with a letter.",
    }
)
"""The meaning of pydantic's errors here; others are told in its own words."""

_UNIONS = MappingProxyType({"source": 1, "evidence": 2, "target": 1})
"""At which step of a place pydantic names which of several tables it takes a value for; no key of the file."""


def text_of(file: Path, name: str) -> str:
    """Return the text of a file, which is called `name` in a complaint.

    Raises `ConfigError` if it cannot be read, or is no text.
    """
    problem = ""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = f"cannot be read: {error.strerror}."
    except UnicodeDecodeError:
        problem = "is not UTF-8 text."
    raise ConfigError(f"{name} {problem}")


def toml_of(text: str, name: str) -> dict[str, Any]:
    """Return what the text of a file says; an error keeps nothing of it, because it can hold passwords.

    Raises `ConfigError` if it is no TOML.
    """
    problem = ""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = f"is not valid TOML: {error}."
    except (ValueError, RecursionError):
        problem = "is not valid TOML: it has a number that is too long, or is nested too deeply."
    raise ConfigError(f"{name} {problem}")


def unusable(name: str, wrong: Sequence[str]) -> ConfigError:
    """Return the error about what is called `name`, with all that is wrong in it, which is its reason."""
    reason = "\n  ".join(wrong)
    return ConfigError(Worded(lambda _: f"{name} cannot be used:\n  {reason}", reason))


def complaints(error: ValidationError, first: Collection[str] = ()) -> list[str]:
    """Return one line for each thing that is wrong; the keys of `first` stand above the first table of a file."""
    details = error.errors(include_url=False)
    # A list whose only table is wrong counts as empty; the table's own complaint says more.
    inside = {detail["loc"][:length] for detail in details for length in range(len(detail["loc"]))}
    reported = [detail for detail in details if detail["type"] != "too_short" or detail["loc"] not in inside]
    return list(dict.fromkeys(_complaint(detail, first) for detail in reported))


def _complaint(detail: ErrorDetails, first: Collection[str]) -> str:
    steps = [step for step in detail["loc"] if not isinstance(step, str) or step.strip()]  # blanks are no keys
    union = _UNIONS.get(str(steps[0])) if steps else None
    if union is not None and len(steps) > union and isinstance(steps[union], str):
        del steps[union]
    place = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    written = _WRITTEN.get(f"{steps[0] if steps else ''}.{key}", _WRITTEN.get(key))
    message = _message(detail, key, written)
    stranger = re.match(r"unknown key '(\w+)'; known", message)
    if stranger and steps and stranger[1] in first:
        message += f" A key of the job itself, as {stranger[1]} is, stands above the first [table]."
    return f"{place}: {message}" if place else message


def _message(detail: ErrorDetails, key: str, written: str | None) -> str:
    sort, given, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    if sort == "value_error":
        raised = context.get("error")
        text = worded_for(raised, JOB_FILE) if isinstance(raised, ValueError) else detail["msg"]
        return text.removeprefix("Value error, ")
    if sort == "missing":
        return f"is required: write {written}."
    if sort == "literal_error":
        return _choice(str(context["expected"]), given)
    if sort == "union_tag_invalid":
        return f"kind: {_choice(str(context['expected_tags']), given.get('kind') if isinstance(given, dict) else None)}"
    if sort in ("int_type", "int_from_float", "float_type"):
        whole, meant = sort != "float_type", _meant(given)
        rule = f"must be a {'whole ' * whole}number{', without quotes' * isinstance(given, str)}"
        if meant is None or (whole and not meant.is_integer()):
            return f"{rule}."
        return f"{rule}: write {key} = {f'{meant:.0f}' if whole else _spelled(meant)}."
    if sort in _RULES:
        return _RULES[sort]
    if sort in ("tuple_type", "model_type", "model_attributes_type", "dict_type", "union_tag_not_found"):
        return f"has another form: write {written}." if written else "must be a table."
    return re.sub(r"^(Input|String|Value) should ", "must ", detail["msg"]).rstrip(".") + "."


def _meant(given: object) -> float | None:
    """Return the number that stands there as another kind of number, or as text, perhaps as a percentage."""
    text = given.replace(" ", "") if isinstance(given, str) else repr(given)
    with suppress(DecimalException):
        number = float(Decimal(text.removesuffix("%")) / (100 if text.endswith("%") else 1))
        return number if math.isfinite(number) else None
    return None


def _spelled(number: float) -> str:
    """Return a number as TOML and YAML both read it: YAML takes 1e-6 for text."""
    mantissa, mark, exponent = repr(number).partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{mark}{exponent}"


def _choice(expected: str, given: object) -> str:
    """Return what may stand there, and the nearest to what does."""
    known = re.findall(r"'([^']+)'", expected)
    close = difflib.get_close_matches(given.casefold(), known, n=1, cutoff=0.5) if isinstance(given, str) else []
    return f"must be {expected}; did you mean {close[0]!r}?" if close else f"must be {expected}."
