"""What is wrong with a job file: where in it, the rule, and what to write. Never the value: it may be a password."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from types import MappingProxyType

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.model.wording import JOB_FILE, worded_for

__all__ = ["complaints"]

_SHAPES: Mapping[str, str] = MappingProxyType(
    {
        "release": "must be a list of tables: write [[release]], with two brackets.",
        "budget": "must be a table or a list of tables: write budget = { epsilon = 2.0, delta = 1e-6 }.",
        "evidence": 'must be a table or a list of tables: write evidence = { kind = "one_day_protected" }.',
        "source": 'must be a file, a list of files or a table: write source = "data/*.parquet".',
        "period": 'must be a table: write period = { column = "date" }.',
        "output": 'must be a table: write [output], and below it directory = "out".',
        "attacker": "must be a table: write attacker = { p_max = 0.1 }.",
        "leakage": "must be a table or a list of tables: write [[attacker.leakage]], and below it "
        'name = "the number of people present" and tells = "people_present".',
        "shared_by": 'must be a list: write shared_by = ["value"].',
        "noise": "must be a table: write noise = { epsilon = 0.5 }.",
        "rows": "must be a table: write rows = { min = 100, max = 100000 }.",
        "fresh": 'must be a table: write fresh = { column = "date", days = 1 }.',
        "expect": "must be a list of tables: write [[checks.expect]], with two brackets.",
        "formats": 'must be a list: write formats = ["parquet", "csv"].',
        "types": 'must be a table: write types = { tailnum = "text" }.',
        "columns": 'must be a table: write columns = { tailnum = "text" }.',
        "retention": 'must be a table: write retention = { directory = "private", days = 7 }.',
        "records": 'must be a table: write [records], and below it directory = "runs".',
        "checks": "must be a table: write [checks], and below it rows = { min = 100 }.",
        "null": 'must be a text or a list of texts: write null = ["", "NA"].',
    }
)
"""What to write where something else stands than the key holds."""

_EXAMPLES = MappingProxyType(
    {
        "column": 'column = "date"',
        "dataset": 'dataset = "flights"',
        "days": "days = 7",
        "delta": "delta = 1e-6",
        "directory": 'directory = "out"',
        "duckdb": 'duckdb = "warehouse.duckdb"',
        "epsilon": "epsilon = 1.0",
        "files": 'files = "data/*.parquet"',
        "kind": 'kind = "one_day_protected"',
        "ledger": 'ledger = "out/ledger.sqlite"',
        "name": 'name = "people_by_town"',
        "output": '[output], and below it directory = "out"',
        "period": 'period = { column = "date" }',
        "postgres": 'postgres = "${PKDP_SOURCE}"',
        "release": '[[release]], and below it name = "people" and k = 50',
        "source": 'source = "data/*.parquet"',
        "times": "times = 10",
        "changes": "changes = 2",
        "unit": 'unit = "person"',
    }
)
"""How each key is written that has to be there."""

_TAGS = MappingProxyType({"source": 1, "evidence": 2, "target": 1})
"""At which step of a place pydantic names which of several tables it takes a value for; no key of the file."""


def complaints(error: ValidationError) -> list[str]:
    """Return one line for each thing that is wrong."""
    details = error.errors(include_url=False)
    # A list whose only table is wrong counts as empty; the table's own complaint says more.
    inside = {detail["loc"][:length] for detail in details for length in range(len(detail["loc"]))}
    told = [detail for detail in details if detail["type"] != "too_short" or detail["loc"] not in inside]
    return list(dict.fromkeys(map(_complaint, told)))


def _complaint(detail: ErrorDetails) -> str:
    steps = list(detail["loc"])
    tag = _TAGS.get(str(steps[0])) if steps else None
    if tag is not None and len(steps) > tag and isinstance(steps[tag], str):
        del steps[tag]
    place = ""
    for step in steps:
        place += f"[{step + 1}]" if isinstance(step, int) else f".{step}"
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    message = _message(detail, key)
    stranger = re.match(r"unknown key '(\w+)'; known", message)
    if stranger and steps and stranger[1] in Job.model_fields:
        message += f" A key of the job itself, as {stranger[1]} is, stands above the first [table]."
    return f"{place.lstrip('.')}: {message}" if place else message


def _message(detail: ErrorDetails, key: str) -> str:
    sort, given = detail["type"], detail.get("input")
    if sort == "value_error":
        raised = detail.get("ctx", {}).get("error")
        said = worded_for(raised, JOB_FILE) if isinstance(raised, ValueError) else detail["msg"]
        return said.removeprefix("Value error, ")
    if sort == "missing":
        example = 'name = "the number of people present"' if "leakage" in detail["loc"] else _EXAMPLES[key]
        return f"is required: write {example}."
    if sort == "literal_error":
        return _choice(str(detail["ctx"]["expected"]), given)
    if sort == "union_tag_invalid":
        return f"kind: {_choice(str(detail['ctx']['expected_tags']), given.get('kind') if _is_table(given) else None)}"
    if sort == "union_tag_not_found" and key == "evidence":
        return 'kind is required: write which evidence it is, such as { kind = "one_day_protected" }.'
    if sort == "int_type":
        whole = isinstance(given, float)
        meant = _number(given, "50")
        return f"must be an integer: write {key} = {meant}, without {'a decimal point' if whole else 'quotes'}."
    if sort == "float_type":
        return f"must be a number: write {key} = {_number(given, '0.5')}, without quotes."
    if sort == "bool_type":
        return "must be true or false."
    if sort == "string_pattern_mismatch" and key == "name":
        return "must fit the pattern of a file's name: letters, digits, _ and -, beginning with a letter or a digit."
    if sort == "string_pattern_mismatch" and key == "schema":
        return "must be the plain name of a schema: letters, digits and _, beginning with no digit."
    if sort == "string_too_short":
        return "must not be empty."
    if sort == "too_short":
        return "must not be an empty list."
    if sort in ("tuple_type", "model_type", "model_attributes_type", "dict_type", "union_tag_not_found"):
        return _SHAPES.get(key, "must be a table.")
    message = re.sub(r"^(Input|String|Value) should ", "must ", detail["msg"]).replace(
        "a valid string", "text in quotes"
    )
    return message if message.endswith((".", "?")) else f"{message}."


def _number(given: object, otherwise: str) -> str:
    """Return the number that somebody wrote as text, or as a whole number with a decimal point; else an example."""
    text = f"{given:.0f}" if isinstance(given, float) and given.is_integer() else str(given)
    example = re.fullmatch(r"\d+", otherwise) is not None
    return text if re.fullmatch(r"\d+" if example else r"\d+(\.\d+)?(e-?\d+)?", text) else otherwise


def _choice(expected: str, given: object) -> str:
    """Return what may stand there, and the nearest to what does."""
    known = re.findall(r"'([^']+)'", expected)
    close = difflib.get_close_matches(given.casefold(), known, n=1, cutoff=0.5) if isinstance(given, str) else []
    return f"must be {expected}; did you mean {close[0]!r}?" if close else f"must be {expected}."


def _is_table(value: object) -> bool:
    return isinstance(value, dict)
