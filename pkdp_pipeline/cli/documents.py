"""The output of commands with ``--json``, a document, and what is told of an error: with options, as they are typed."""

from __future__ import annotations

import inspect
import json
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

import typer
from typer.models import OptionInfo

from pkdp_pipeline.cli.options import COMMAND
from pkdp_pipeline.errors import PkdpError, exit_code
from pkdp_pipeline.model.wording import worded_for

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.jobs import Job, JobResult
    from pkdp_pipeline.jobs.backfilling import BackfillResult


def print_document(document: dict[str, Any]) -> None:
    """Print a document, on one line."""
    typer.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


_NONE: Mapping[str, str] = MappingProxyType({})
_STARTS, _ENDS = r"""(?<![\w'"-])""", r"""(?![\w'"-])"""
_VALUE = r"""\s?=\s?(\{[^}]*\}|\[[^\]]*\]|"[^"]*"|'[^']*'|[\w.+-]*\w)( in source)?"""
_RESULTS = ("epsilon", "delta")
"""Options of these names say what is asked for, messages what is reached."""


def option_names(command: Callable[..., None]) -> dict[str, str]:
    """Return how the arguments of a command are typed, by their names."""
    found = {}
    for name, one in inspect.signature(command, eval_str=True).parameters.items():
        for option in (hint for hint in get_args(one.annotation) if isinstance(hint, OptionInfo)):
            typed = [text for text in (option.default, *(option.param_decls or ())) if isinstance(text, str)]
            found[name] = (*typed, f"--{name.replace('_', '-')}")[0]
    return found


def message_of(error: PkdpError, options: Mapping[str, str] = _NONE) -> str:
    """Return what an error says; an argument that it names is written as the option of a command.

    It is one where it is set (``missing_unit="drop"``, ``types = { age = "number" } in source``), where its name is no
    word of a sentence (``one_cell``, ``source.types``), and where the message begins with it.
    """
    message = worded_for(error, COMMAND)
    message = re.sub(_STARTS + r"(\w+)\.(\w+)" + _ENDS, partial(_of_table, options), message)
    for name, option in options.items():
        if name in _RESULTS:
            continue
        message = re.sub(_STARTS + rf"(?<!\.){name}" + _VALUE, partial(_typed, option), message)
        message = re.sub(_STARTS + rf"{name}\.(?=\w)", f"{option} ", message)
        alone = name if "_" in name else rf"(?:(?<=source\.)|^){name}"
        message = re.sub(_STARTS + alone + _ENDS, option, message)
    return message.replace("source.--", "--")


def _of_table(options: Mapping[str, str], found: re.Match[str]) -> str:
    """Return the option for a key of a job file's table where both have one: ``period.time_zone`` is one option."""
    return options[found[2]] if found[1] in options and found[2] in options else found[0]


def _typed(option: str, found: re.Match[str]) -> str:
    """Return an option with its value, or once with each of several."""
    value = found[1]
    values = [value] if value[0] not in "{[\"'" else re.findall(r"""["']([^"']*)["']""", value)
    if value[0] == "{":
        values = [f"{key.strip()}={one}" for key, one in zip(re.findall(r"([^{},]+?) = ", value), values, strict=False)]
    return " ".join(option + (" ','" if one == "," else f" {shlex.quote(one)}") for one in values)


def error_document(error: BaseException, options: Mapping[str, str] = _NONE) -> dict[str, Any]:
    """Return what is told of an error; one that is not ours keeps its words, which may quote data, to itself."""
    message = message_of(error, options) if isinstance(error, PkdpError) else None
    return {"error": {"kind": type(error).__name__, "message": message}, "exit_code": exit_code(error)}


def run_document(result: JobResult) -> dict[str, Any]:
    """Return the record of a run; `pkdp_pipeline/schemas/run.v1.json` describes it."""
    document: dict[str, Any] = json.loads(result.to_json())
    return document


def backfill_document(job: Job, days: Sequence[date], result: BackfillResult) -> dict[str, Any]:
    """Return what became of the periods of a backfill, by their first days, and what the ledger adds up to."""
    failed = {one.day: error_document(one.error) for one in result.failed if one.error is not None}
    done = len(result.published) + len(result.replayed) + len(failed)
    return {
        "dataset": job.dataset,
        "every": job.period.every,
        "from": days[0].isoformat(),
        "to": days[-1].isoformat(),
        "published": [day.isoformat() for day in result.published],
        "replayed": [day.isoformat() for day in result.replayed],
        "failed": [{"day": day.isoformat(), **error} for day, error in failed.items()],
        "not_reached": len(days) - done,
        "total": _total(result.total),
        "directory": job.output.directory,
        "report": None if result.report is None else str(result.report),
        "unreported": None if result.unreported is None else error_document(result.unreported),
    }


def _total(total: Certificate | None) -> dict[str, Any] | None:
    from pkdp_pipeline.jobs.dry_run import DELTA

    if total is None:
        return None
    epsilon = total.epsilon(DELTA)
    return {
        "delta": DELTA,
        "epsilon": epsilon if epsilon < math.inf else None,
        "certificate": json.loads(total.to_json()),
    }
