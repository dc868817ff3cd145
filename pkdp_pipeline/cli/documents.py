"""The output of commands with ``--json``, a document, and what is told of an error: with options, as they are typed."""

from __future__ import annotations

import inspect
import json
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

import typer
from typer.models import OptionInfo

from pkdp_pipeline.cli.options import COMMAND
from pkdp_pipeline.errors import PkdpError, exit_code
from pkdp_pipeline.model import VERSION
from pkdp_pipeline.model.wording import with_arguments, worded_for

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.jobs import Job, JobResult
    from pkdp_pipeline.jobs.backfilling import BackfillResult
    from pkdp_pipeline.jobs.dry_run import Plan


def print_document(document: dict[str, Any]) -> None:
    """Print a document, on one line."""
    typer.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


_NONE: Mapping[str, str] = MappingProxyType({})
_RESULTS = ("epsilon", "delta", "column")
"""Options of these names say what is asked for, messages what is reached, or which of all columns is wrong."""


def option_names(command: Callable[..., None]) -> dict[str, str]:
    """Return how the arguments of a command are typed, by their names."""
    names = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        for option in (hint for hint in get_args(parameter.annotation) if isinstance(hint, OptionInfo)):
            typed = [text for text in (option.default, *(option.param_decls or ())) if isinstance(text, str)]
            names[name] = (*typed, f"--{name.replace('_', '-')}")[0]
    return names


def message_of(error: PkdpError, options: Mapping[str, str] = _NONE) -> str:
    """Return what an error says; an argument that it names is written as the option of a command."""
    options = {name: option for name, option in options.items() if name not in _RESULTS}
    return with_arguments(worded_for(error, COMMAND), options, _typed)


def _typed(option: str, value: str) -> str:
    """Return an option with its value, or once with each of several."""
    values = [value] if value[0] not in "{[\"'" else re.findall(r"""["']([^"']*)["']""", value)
    if value[0] == "{":
        values = [
            f"{key.strip()}={item}" for key, item in zip(re.findall(r"([^{},]+?) = ", value), values, strict=False)
        ]
    return " ".join(option + (" ','" if item == "," else f" {shlex.quote(item)}") for item in values)


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
    failed = {failure.day: error_document(failure.error) for failure in result.failed if failure.error is not None}
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


def plan_document(job: Job, days: Sequence[date], plan: Plan | None, error: PkdpError | None) -> dict[str, Any]:
    """Return what a job would do; `pkdp_pipeline/schemas/plan_job.v1.json` describes it.

    `plan`: None where the job's releases cannot stand together on any day. `error`: why it is refused.
    """
    from pkdp_pipeline.jobs.dry_run import DELTA

    day = None if plan is None or plan.refused is None else plan.refused.day.isoformat()
    return {
        "schema": "pkdp-plan-job/1",
        "library": {"name": "pkdp_pipeline", "version": VERSION},
        "job": Path(job.file).name,
        "from": days[0].isoformat(),
        "to": days[-1].isoformat(),
        "days": len(days),
        "delta": DELTA,
        "refused": error and {"day": day, "error": type(error).__name__, "message": str(error)},
        "short": False,
        "target": None,
        "releases": [
            {
                "day": planned.day.isoformat(),
                "name": release.name,
                "outcome": release.outcome,
                "epsilon": release.epsilon if release.epsilon < math.inf else None,
            }
            for planned in (() if plan is None else plan.days)
            if planned.refused is None
            for release in planned.releases
        ],
        "total": epsilon_of(plan),
        "tried_days": 0,
        "offers": [],
    }


def epsilon_of(plan: Plan | None) -> float | None:
    """Return the ε that what is planned about one period adds up to; None where there is none."""
    from pkdp_pipeline.jobs.dry_run import DELTA

    epsilon = math.inf if plan is None or plan.period is None else plan.period.epsilon(DELTA)
    return epsilon if epsilon < math.inf else None


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
