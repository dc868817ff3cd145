"""The command ``pkdp audit``: the real operators on sampled neighbouring data sets, held to their certificates."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkdp_pipeline.cli.options import AsJson, JobFile, Options, Protects, flag, for_mechanisms, taking
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism

if TYPE_CHECKING:
    from pkdp_pipeline.assurance.audit import Audit

FAILED = 1
"""Exit code where a loss above a certificate was found: a defect of this program."""

_WORKERS = min(2, os.cpu_count() or 1)

_SAMPLING: Options = {
    "samples": flag(int, 120, "Data sets per life and attacker; the more, the more is seen."),
    "confidence": flag(float, 0.999999, "With which operators that keep to it pass."),
    "seed": flag(int, 0, "Of the data sets; noise has none."),
}
_sampling = taking("sampling", _SAMPLING, dict)
_ENGINES = "pandas, duckdb, sql, polars, pyarrow, ibis or spark"
Workers = Annotated[int, typer.Option(min=1, help="Processes that share the work.")]

_HELP = """Publish sampled data sets that differ in one person, and compare what is seen with the certificate.

Without a command: everything that can be published, on every engine that is installed. Exits with 1 where a loss above
a certificate is found."""

audit_app = typer.Typer(help=_HELP, invoke_without_command=True)


@audit_app.callback()
@_sampling
def _battery(
    context: typer.Context,
    *,
    sampling: dict[str, Any],
    engine: Annotated[list[str] | None, typer.Option(help=f"{_ENGINES}; may be repeated.")] = None,
    workers: Workers = _WORKERS,
    as_json: AsJson = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    from pkdp_pipeline.assurance.audit.cases import battery
    from pkdp_pipeline.assurance.audit.operators import STANDARD, check_engine, installed
    from pkdp_pipeline.assurance.audit.running import audit_cases

    engines = tuple(map(check_engine, engine)) if engine else installed(STANDARD)
    found = audit_cases(
        battery(),
        engines=engines,
        **sampling,
        workers=workers,
        paced=True,
        progress=_progress,
    )
    _show(found, "The battery", as_json)


@for_mechanisms(audit_app, "Audit")
@_sampling
def _audit(
    *,
    mechanism: Mechanism,
    protects: Protects = "presence",
    attacker: AttackerModel,
    sampling: dict[str, Any],
    engine: Annotated[str, typer.Option(help=f"{_ENGINES}.")] = "pandas",
    as_json: AsJson = False,
) -> None:
    from pkdp_pipeline.assurance.audit import audit

    found = audit(mechanism, attacker, protects=protects, engine=engine, **sampling)
    _show(found, f"A {type(mechanism).__name__.lower()}", as_json)


@audit_app.command()
@_sampling
def job(
    job_file: JobFile,
    *,
    sampling: dict[str, Any],
    workers: Workers = _WORKERS,
    as_json: AsJson = False,
) -> None:
    """Audit each release of a job, on synthetic frames with its columns; none of its data are read."""
    from pkdp_pipeline.assurance.audit.running import audit_job
    from pkdp_pipeline.jobs import load_job
    from pkdp_pipeline.model.plain_text import printable

    found = audit_job(load_job(job_file), **sampling, workers=workers, progress=_progress)
    _show(found, f"The job {printable(job_file.name)}", as_json)


def _progress(text: str) -> None:
    """Say on a terminal how far it is, on one line that the next one covers."""
    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[2K{text[:70]}\r", nl=False, err=True)


def _show(found: Audit, title: str, as_json: bool) -> None:
    if as_json:
        typer.echo(found.to_json())
    else:
        from pkdp_pipeline.display.terminal.screen import Screen

        screen = Screen()
        screen.title(f"{title}, audited")
        for engine in dict.fromkeys(finding.engine for finding in found.findings):
            screen.head(engine)
            screen.table(("", "published", *_NUMBERS), _rows(found, engine), right=_NUMBERS)
        if found.not_audited:
            screen.head("Not audited")
            for one in found.not_audited:
                screen.item(f"{one.case} ({one.engine}): {one.reason}.")
        screen.head("Result")
        screen.say(found.conclusion)
        for finding in found.findings:
            if not finding.passed:
                screen.item(finding.words)
    if not found.passed:
        raise typer.Exit(FAILED)


_NUMBERS = ("ε", "certified δ", "at least", "noticed from")


def _rows(found: Audit, engine: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each case: where it fails, the finding that tells most; else the one that could see most."""
    from pkdp_pipeline.model.wording import rounded_down, rounded_up

    for one in found.cases():
        if one.engine == engine:
            yield (
                "passed" if one.passed else "FAILED",
                one.case,
                f"{one.epsilon:g}",
                rounded_up(one.certified),
                rounded_down(max(0.0, one.attained_lower)),
                "–" if one.could_see is None else rounded_up(one.could_see),
            )
