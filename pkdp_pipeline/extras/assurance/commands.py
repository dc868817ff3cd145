"""Commands ``pkdp verify`` and ``pkdp audit``: claims recomputed or attacked, operators held to certificates."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pkdp_pipeline.cli.options import AsJson, JobFile, Options, Protects, flag, for_mechanisms, of_share, taking
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.schemas import VERSION

if TYPE_CHECKING:
    from pkdp_pipeline.extras.assurance.audit import Audit
    from pkdp_pipeline.extras.assurance.verification import Verification


CLAIM_FAILED = 3
"""Exit code where a claim failed."""

_MARKS = {"fail": "✗ FAIL", "pass": "✓ pass", "not_checked": "– not checked"}
_PLAIN = {"fail": "x FAIL", "pass": "  pass", "not_checked": "- not checked"}
"""Failures first, which is the order of the table."""


def verify(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A release, a certificate or a report.", show_default=False)
    ] = None,
    *,
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="The ledger it was published through; it is only read.")
    ] = None,
    draws: Annotated[int, typer.Option(min=100, help="Draws of every simulated attack.")] = 20_000,
    confidence: Annotated[float, of_share("The probability that a sound file passes all simulations.")] = 0.999999,
    rows: Annotated[int, typer.Option(min=1, help="Read no release with more rows.")] = 200_000,
    page: Annotated[
        Path | None, typer.Option(metavar="HTML", help="Write a page that checks releases in a browser, offline.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every claim of a release, certificate or report; exit with 3 where one fails."""
    if (file is None) is (page is None):
        raise ArgumentError("name one FILE to check, or with --page a file to write the page to that checks others.")
    if file is None:
        _write_page(cast("Path", page))
        return
    from pkdp_pipeline.extras.assurance.verification import verify as verified

    verification = verified(file, ledger=ledger, draws=draws, confidence=confidence, rows=rows)
    if as_json:
        typer.echo(verification.to_json())
    else:
        _show_claims(verification)
    if not verification.passed:
        raise typer.Exit(CLAIM_FAILED)


def _write_page(page: Path) -> None:
    from pkdp_pipeline.ledger.reading import write_out

    if page.exists() and not page.read_bytes().startswith(_DOCTYPE):
        raise ArgumentError(f"--page {str(page)!r} is another file, and would be overwritten: name a new one.")
    write_out([verifier_page()], page, ledger="")
    typer.echo(f"{page} checks releases in a browser: open it, and drop a release on it.")


def verifier_page() -> str:
    """Return the HTML page that checks releases and certificates in a browser, without any connection.

    The schema of certificates stands in it; its content policy allows the script and the style sheet in it, nothing
    else.
    """
    package = resources.files("pkdp_pipeline")
    text = package.joinpath("extras", "assurance", "page", "verify.html").read_text(encoding="utf-8")
    schema = json.loads(package.joinpath("schemas", "certificate.v1.json").read_text(encoding="utf-8"))
    filled = {
        "version": VERSION,
        # Within a script element "<" could end it.
        "schema": json.dumps(schema, separators=(",", ":")).replace("<", "\\u003c"),
        "script": _source(text, "<script>", "</script>"),
        "style": _source(text, "<style>", "</style>"),
    }
    for name, value in filled.items():
        text = text.replace(f"{{{{{name}}}}}", value, 1)
    return text


_DOCTYPE = b"<!DOCTYPE html>"


def _source(text: str, begin: str, end: str) -> str:
    """Return the content policy's name of an element's content: its hash."""
    content = text.rpartition(begin)[2].partition(end)[0]
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _show_claims(verification: Verification) -> None:
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.model.period import printable

    screen = Screen()
    screen.title(f"{printable(verification.file)}: a {verification.kind}")
    marks = _PLAIN if screen.plain else _MARKS
    # Failures first; the claims of a kind stay in their order.
    listed = sorted(verification.claims, key=lambda claim: list(marks).index(claim.outcome))
    screen.table(
        ("outcome", "claim", "what was found"), [(marks[claim.outcome], claim.key, claim.detail) for claim in listed]
    )
    for outcome, title in (("fail", "Claims that do not hold"), ("not_checked", "Claims that were not checked")):
        chosen = [claim for claim in verification.claims if claim.outcome == outcome]
        if chosen:
            screen.head(title)
            for claim in chosen:
                screen.item(f"{claim.words} ({claim.key})")
    screen.head("Verdict")
    screen.say(verification.verdict)


FAILED = 1
"""Exit code where a loss above a certificate was found: a defect of this program."""

_WORKERS = min(2, os.cpu_count() or 1)

_SAMPLING: Options = {
    "samples": flag(int, 120, "Data sets of each kind; more of them show smaller losses."),
    "confidence": (Annotated[float, of_share("The probability that correct operators pass.")], 0.999999),
    "seed": flag(int, 0, "The seed of the data sets; noise has none."),
}
_sampling = taking("sampling", _SAMPLING, dict)
_ENGINES = "pandas, duckdb, sql, polars, pyarrow, ibis or spark"
Engines = Annotated[
    list[str] | None, typer.Option("--engine", metavar="NAME", help=f"{_ENGINES}; may be repeated.", show_default=False)
]
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
    engine: Engines = None,
    workers: Workers = _WORKERS,
    as_json: AsJson = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    from pkdp_pipeline.extras.assurance.audit import audit_cases
    from pkdp_pipeline.extras.assurance.audit.cases import battery
    from pkdp_pipeline.extras.assurance.audit.operators import STANDARD, check_engine, installed

    engines = tuple(map(check_engine, engine)) if engine else installed(STANDARD)
    with _progress() as progress:
        audited = audit_cases(battery(), engines=engines, **sampling, workers=workers, paced=True, progress=progress)
    _show_audit(audited, "The battery", as_json)


@for_mechanisms(audit_app, "Audit")
@_sampling
def _audit(
    *,
    mechanism: Mechanism,
    protects: Protects = "presence",
    attacker: AttackerModel,
    sampling: dict[str, Any],
    engine: Annotated[str, typer.Option(metavar="NAME", help=f"{_ENGINES}.")] = "pandas",
    as_json: AsJson = False,
) -> None:
    from pkdp_pipeline.extras.assurance.audit import audit_cases
    from pkdp_pipeline.extras.assurance.audit.cases import case_of
    from pkdp_pipeline.extras.assurance.audit.operators import check_engine

    cases = [case_of(mechanism, attacker, cast("Any", protects))]
    with _progress() as progress:
        audited = audit_cases(cases, engines=(check_engine(engine),), **sampling, progress=progress)
    _show_audit(audited, f"A {type(mechanism).__name__.lower()}", as_json)


@audit_app.command()
@_sampling
def job(
    job_file: JobFile,
    *,
    sampling: dict[str, Any],
    engine: Engines = None,
    workers: Workers = _WORKERS,
    as_json: AsJson = False,
) -> None:
    """Audit each release of a job, on synthetic frames with its columns; none of its data are read."""
    from pkdp_pipeline.extras.assurance.audit import audit_job
    from pkdp_pipeline.jobs import load_job
    from pkdp_pipeline.model.period import printable

    with _progress() as progress:
        audited = audit_job(load_job(job_file), engines=engine or (), **sampling, workers=workers, progress=progress)
    _show_audit(audited, f"The job {printable(job_file.name)}", as_json)


_SECONDS = 15.0  # of silence between two lines about an audit


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Say how far it is on standard error: a terminal has one line for it, anything else gets a line now and then."""
    on_terminal, spoken = sys.stderr.isatty(), time.monotonic()

    def progress(text: str) -> None:
        nonlocal spoken
        if on_terminal:
            typer.echo(f"\r\x1b[2K{text[:70]}", nl=False, err=True)
        elif time.monotonic() - spoken >= _SECONDS:
            spoken = time.monotonic()
            typer.echo(f"pkdp: {text}", err=True)

    try:
        yield progress
    finally:
        if on_terminal:
            typer.echo("\r\x1b[2K", nl=False, err=True)


def _show_audit(audited: Audit, title: str, as_json: bool) -> None:
    if as_json:
        typer.echo(audited.to_json())
    else:
        from pkdp_pipeline.cli.screen import Screen

        screen = Screen()
        screen.title(f"{title}, audited")
        for engine in dict.fromkeys(finding.engine for finding in audited.findings):
            screen.head(engine)
            screen.table(("", "published", *_NUMBERS), _rows(audited, engine), right=_NUMBERS)
        if audited.not_audited:
            screen.head("Not audited")
            for omission in audited.not_audited:
                screen.item(f"{omission.case} ({omission.engine}): {omission.reason}.")
        screen.head("Result")
        screen.say(audited.conclusion)
        for finding in audited.findings:
            if not finding.passed:
                screen.item(finding.words)
    if not audited.passed:
        raise typer.Exit(FAILED)


_NUMBERS = ("ε", "certified δ", "at least", "noticed from")


def _rows(audited: Audit, engine: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each case: where it fails, the finding that tells most; else the one that could see most."""
    from pkdp_pipeline.model.wording import rounded_down, rounded_up

    for finding in audited.cases():
        if finding.engine == engine:
            yield (
                "passed" if finding.passed else "FAILED",
                finding.case,
                f"{finding.epsilon:g}",
                rounded_up(finding.certified),
                rounded_down(max(0.0, finding.attained_lower)),
                "–" if finding.could_see is None else rounded_up(finding.could_see),
            )
