"""Reading a job file; every complaint names the file, the key, the rule and the fix.

It never names the value, which may be a password. Paths become absolute; some must not lie inside others.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.environment import public_address
from pkdp_pipeline.jobs.expectations import check_expectations
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.requests import requests_of
from pkdp_pipeline.jobs.source_tables import PostgresSourceTable
from pkdp_pipeline.model.wording import JOB_FILE, worded_for

_WRITTEN: Mapping[str, str] = MappingProxyType(
    {
        "attacker": "attacker = { p_max = 0.1 }",
        "budget": "budget = { epsilon = 2.0, delta = 1e-6 }, or a list of such tables",
        "changes": "changes = 2",
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
        "kind": 'kind = "one_day_protected"',
        "leakage": '[[attacker.leakage]], and below it name = "…" and tells = "people_present"',
        "ledger": 'ledger = "out/ledger.sqlite"',
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
        "too_short": "must not be an empty list.",
        "string_pattern_mismatch": "must fit the pattern of a plain name: letters, digits and _, in files' names -, "
        "beginning with a letter.",
    }
)
"""What pydantic's errors mean here; others are told in its own words."""

_UNIONS = MappingProxyType({"source": 1, "evidence": 2, "target": 1})
"""At which step of a place pydantic names which of several tables it takes a value for; no key of the file."""


def load_job(path: str | os.PathLike[str]) -> Job:
    """Read and check a job file, without looking at any data.

    Parameters
    ----------
    path : path-like
        A TOML file.

    Returns
    -------
    Job
        With absolute paths.

    Raises
    ------
    ConfigError
        If the file cannot be read, is not TOML, or says something a job cannot mean.
    """
    file = Path(path)
    return read_job(job_text(file), file)


def read_job(text: str, file: Path) -> Job:
    """Read and check the text of a job file as if `file` held it; its paths are relative to that.

    Raises
    ------
    ConfigError
        See `load_job`.
    """
    content = _content(text, file)
    wrong: list[str] = []
    try:
        job = Job.model_validate(content, context=file.resolve().parent)
        wrong += misplaced(job)
        requests_of(job, date(2000, 1, 1))  # any date: a request is checked without data
        check_expectations(job.checks)
    except ValidationError as error:
        wrong += _complaints(error)
    except (ArgumentError, ConfigError) as error:
        wrong.append(str(error))
    if wrong:
        raise ConfigError("\n  ".join([f"the job file {str(file)!r} cannot be used:", *wrong]))
    return job.read_from(file.absolute(), _digest(content, job))


def job_text(file: Path) -> str:
    """Return the text of a job file.

    Raises
    ------
    ConfigError
        If it cannot be read, or is no text.
    """
    problem = ""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = f"cannot be read: {error.strerror}."
    except UnicodeDecodeError:
        problem = "is not UTF-8 text."
    raise ConfigError(f"the job file {str(file)!r} {problem}")


def _content(text: str, file: Path) -> dict[str, Any]:
    """Return what the text says; an error keeps nothing of it, because it can hold passwords."""
    problem = ""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = f"is not valid TOML: {error}."
    except (ValueError, RecursionError):
        problem = "is not valid TOML: it has a number that is too long, or is nested too deeply."
    raise ConfigError(f"the job file {str(file)!r} {problem}")


def _digest(said: dict[str, Any], job: Job) -> str:
    """Return the hash of what a job says, its paths as written, and of its suite of expectations."""
    content = Job.model_validate(said).model_dump(mode="json", by_alias=True)
    if job.checks.expectations is not None:
        content["suite"] = hashlib.sha256(Path(job.checks.expectations).read_bytes()).hexdigest()
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _complaints(error: ValidationError) -> list[str]:
    """Return one line for each thing that is wrong."""
    details = error.errors(include_url=False)
    # A list whose only table is wrong counts as empty; the table's own complaint says more.
    inside = {detail["loc"][:length] for detail in details for length in range(len(detail["loc"]))}
    told = [detail for detail in details if detail["type"] != "too_short" or detail["loc"] not in inside]
    return list(dict.fromkeys(map(_complaint, told)))


def _complaint(detail: ErrorDetails) -> str:
    steps = list(detail["loc"])
    union = _UNIONS.get(str(steps[0])) if steps else None
    if union is not None and len(steps) > union and isinstance(steps[union], str):
        del steps[union]
    place = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    message = _message(detail, key)
    stranger = re.match(r"unknown key '(\w+)'; known", message)
    if stranger and steps and stranger[1] in Job.model_fields:
        message += f" A key of the job itself, as {stranger[1]} is, stands above the first [table]."
    return f"{place}: {message}" if place else message


def _message(detail: ErrorDetails, key: str) -> str:
    sort, given, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    if sort == "value_error":
        raised = context.get("error")
        told = worded_for(raised, JOB_FILE) if isinstance(raised, ValueError) else detail["msg"]
        return told.removeprefix("Value error, ")
    if sort == "missing":
        return f"is required: write {_WRITTEN[key]}."
    if sort == "literal_error":
        return _choice(str(context["expected"]), given)
    if sort == "union_tag_invalid":
        return f"kind: {_choice(str(context['expected_tags']), given.get('kind') if isinstance(given, dict) else None)}"
    if sort == "int_type":
        return f"must be an integer: write {key} = 50."
    if sort == "float_type":
        return f"must be a number: write {key} = 0.5."
    if sort in _RULES:
        return _RULES[sort]
    if sort in ("tuple_type", "model_type", "model_attributes_type", "dict_type", "union_tag_not_found"):
        return f"has another form: write {_WRITTEN[key]}." if key in _WRITTEN else "must be a table."
    return re.sub(r"^(Input|String|Value) should ", "must ", detail["msg"]).rstrip(".") + "."


def _choice(expected: str, given: object) -> str:
    """Return what may stand there, and the nearest to what does."""
    known = re.findall(r"'([^']+)'", expected)
    close = difflib.get_close_matches(given.casefold(), known, n=1, cutoff=0.5) if isinstance(given, str) else []
    return f"must be {expected}; did you mean {close[0]!r}?" if close else f"must be {expected}."


def misplaced(job: Job) -> list[str]:
    """Return what is wrong with where the files of a job lie, which has absolute paths; one line for each."""
    source, output = job.source, job.output
    kept = None if job.retention is None else job.retention.directory
    beside = [
        ("retention.directory", kept, "output.directory", output.directory),
        ("output.directory", output.directory, "retention.directory", kept),
        ("output.duckdb", output.duckdb, "retention.directory", kept),
    ]
    if job.records is not None:
        places = (("records.directory", job.records.directory), ("records.lineage", job.records.lineage))
        beside += [(key, place, "output.directory", output.directory) for key, place in places]
    found = [
        f"{key}: lies inside {other}, and what is private must not lie where the public is: put one beside the other."
        for key, place, other, folder in beside
        if place and folder and Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))
    ]
    read = {os.path.realpath(file) for file in source.own_files()}
    ledger = "" if "://" in job.ledger else os.path.realpath(job.ledger)
    written = "" if output.duckdb is None else os.path.realpath(output.duckdb)
    same = [
        ("output.duckdb", "source", written in read),
        ("ledger", "source", ledger in read),
        ("output.duckdb", "ledger", bool(written) and written == ledger),
    ]
    found += [f"{key}: is the {other}'s file: write another." for key, other, is_same in same if is_same]
    if isinstance(source, PostgresSourceTable) and output.postgres is not None and source.table is not None:
        schema, _, table = source.table.rpartition(".")
        together = public_address(source.postgres) == public_address(output.postgres)
        if together and (schema or "public") == (output.schema_ or "public"):
            found += [
                f"release[{number}].name: its table {release.name!r} would replace the source's: rename the release, "
                "or write another schema under [output]."
                for number, release in enumerate(job.release, 1)
                if release.name == table
            ]
    return found
