"""The output of commands with ``--json``: a document on standard output, and one about the error where they fail."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import typer

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


def error_document(error: BaseException) -> dict[str, Any]:
    """Return what is told of an error; one that is not ours keeps its words, which may quote data, to itself."""
    message = worded_for(error, COMMAND) if isinstance(error, PkdpError) else None
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
