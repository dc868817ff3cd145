"""The command line, ``pkdp``.

Exit codes: 0 done or replayed · 1 a defect of ours · 2 configuration, unreadable source · 3 input check
failed · 4 refused for privacy · 75 temporary, try again later.
"""

from __future__ import annotations

import datetime
import functools
import io
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    InputCheckError,
    LedgerError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
    TemporaryError,
)
from pkdp_pipeline.gate_commands import gate_app
from pkdp_pipeline.ledger_commands import ledger_app

if TYPE_CHECKING:
    from pkdp_pipeline.certificate import Certificate
    from pkdp_pipeline.jobs import JobRelease, JobResult

__all__ = ["app", "exit_code", "main"]

_EXIT_CODES: tuple[tuple[type[PkdpError], int], ...] = (
    (ArgumentError, 2),
    (ConfigError, 2),
    (LedgerError, 2),
    (InputCheckError, 3),
    (NotCertifiableError, 4),
    (NoEvidenceError, 4),
    (BudgetExceededError, 4),
    (DifferencingError, 4),
    (TemporaryError, 75),
)
_DEFECT = 1
_INTERRUPTED = 130
_ROWS_SHOWN = 20

app = typer.Typer(
    name="pkdp",
    help="Publish counts and k-anonymous histograms with a certified guarantee.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
certify_app = typer.Typer(help="Print the certificate of a mechanism; no data is needed.", no_args_is_help=True)
app.add_typer(certify_app, name="certify")

P = ParamSpec("P")


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error; what is not one of ours is a defect, 1."""
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), _DEFECT)


def _with_exit_codes(command: Callable[P, None]) -> Callable[P, None]:
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except PkdpError as error:
            _complain(str(error))
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            _complain("interrupted; what was published stays published, and running again replays it.")
            raise typer.Exit(_INTERRUPTED) from None
        except typer.Exit:
            raise
        except Exception as error:
            _complain(_defect(error))
            raise typer.Exit(_DEFECT) from None

    return run


@app.command()
@_with_exit_codes
def run(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.")],
    date: Annotated[str, typer.Option("--date", metavar="YYYY-MM-DD", help="The date to publish.")],
    revise: Annotated[
        bool,
        typer.Option(
            "--revise",
            help="Publish changed data as one more charged release; refused without noise.",
        ),
    ] = False,
) -> None:
    """Publish what a job asks for on one date, or replay what it has published."""
    day = _day(date)
    from pkdp_pipeline.jobs import load_job, run_job

    _print_result(run_job(load_job(job_file), day, revise=revise))


PMax = Annotated[float | None, typer.Option(help="See AttackerModel; conditional on absence for histograms.")]
PMin = Annotated[float | None, typer.Option(help="Smallest probability of an unknown person.")]
Unknown = Annotated[int | None, typer.Option(help="At least this many unknown people.")]
UnknownMax = Annotated[int | None, typer.Option(help="At most this many unknown people.")]
Known = Annotated[int, typer.Option(help="People the attacker knows or controls.")]
InfluenceOption = Annotated[str, typer.Option(help="passive or active.")]
K = Annotated[int | None, typer.Option(help="Published only when the count is at least this.")]
Noise = Annotated[float | None, typer.Option(help="Epsilon of two-sided geometric noise.")]
ReleaseThreshold = Annotated[int | None, typer.Option(help="Published only when the noisy count reaches this.")]
Epsilon = Annotated[float | None, typer.Option(help="Print delta at this epsilon.")]
Delta = Annotated[float | None, typer.Option(help="Print epsilon at this delta.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")]


@certify_app.command()
@_with_exit_codes
def histogram(
    *,
    k: K = None,
    noise: Noise = None,
    release_threshold: ReleaseThreshold = None,
    protects: Annotated[str, typer.Option(help="presence or value.")] = "presence",
    p_max: PMax = None,
    p_min: PMin = None,
    p_max_between: Annotated[float | None, typer.Option(help="Told one of two cells, how sure which.")] = None,
    unknown: Unknown = None,
    unknown_max: UnknownMax = None,
    known: Known = 0,
    influence: InfluenceOption = "passive",
    epsilon: Epsilon = None,
    delta: Delta = None,
    as_json: AsJson = False,
) -> None:
    """Certify a histogram: counts per cell, each published on its own merits."""
    from pkdp_pipeline.attacker import AttackerModel
    from pkdp_pipeline.mechanisms import GeometricNoise, Histogram
    from pkdp_pipeline.release_certificate import certify

    mechanism = Histogram(
        k=k, noise=None if noise is None else GeometricNoise(noise), release_threshold=release_threshold
    )
    attacker = AttackerModel(
        p_max=p_max,
        p_min=p_min,
        p_max_between=p_max_between,
        unknown=unknown,
        unknown_max=unknown_max,
        known=known,
        influence=influence,  # type: ignore[arg-type]  # checked by AttackerModel
    )
    _print_certificate(certify(mechanism, attacker, protects=protects), epsilon, delta, as_json)


@certify_app.command()
@_with_exit_codes
def count(
    *,
    k: K = None,
    k_complement: Annotated[int | None, typer.Option(help="Published only when the rest is at least this.")] = None,
    noise: Noise = None,
    release_threshold: ReleaseThreshold = None,
    p_max: PMax = None,
    p_min: PMin = None,
    unknown: Unknown = None,
    unknown_max: UnknownMax = None,
    known: Known = 0,
    influence: InfluenceOption = "passive",
    epsilon: Epsilon = None,
    delta: Delta = None,
    as_json: AsJson = False,
) -> None:
    """Certify a count: how many people satisfy a predicate."""
    from pkdp_pipeline.attacker import AttackerModel
    from pkdp_pipeline.mechanisms import Count, GeometricNoise
    from pkdp_pipeline.release_certificate import certify

    mechanism = Count(
        k=k,
        k_complement=k_complement,
        noise=None if noise is None else GeometricNoise(noise),
        release_threshold=release_threshold,
    )
    attacker = AttackerModel(
        p_max=p_max,
        p_min=p_min,
        unknown=unknown,
        unknown_max=unknown_max,
        known=known,
        influence=influence,  # type: ignore[arg-type]  # checked by AttackerModel
    )
    _print_certificate(certify(mechanism, attacker), epsilon, delta, as_json)


app.add_typer(ledger_app(_with_exit_codes), name="ledger")
app.add_typer(gate_app(_with_exit_codes), name="gate")


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no Greek must not stop a job
    app()


def _day(text: str) -> datetime.date:
    """Read ``--date``; only YYYY-MM-DD, so that nobody means another day."""
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        try:
            return datetime.date.fromisoformat(text)
        except ValueError:
            raise ArgumentError(f"--date {text} is not in the calendar.") from None
    raise ArgumentError(f"--date must be written YYYY-MM-DD, got {text!r}.")


def _print_result(result: JobResult) -> None:
    from pkdp_pipeline.composition import ComposedCertificate

    console = _console()
    for published in result.releases:
        _print_release(console, result.day, published)
    if result.together is not None:
        console.print(result.together.sentence(result.day), "\n", sep="")
    here = len(result.releases) if result.together is None else result.together.releases
    if isinstance(result.total, ComposedCertificate) and result.total.releases > here:
        console.print(f"The ledger so far. {result.total.sentence()}\n")
    if result.new_ledger:
        console.print(
            "A new ledger was started for this data set: nothing was known to be published about these people before."
        )
    console.print(f"Files in {result.summary.parent}", soft_wrap=True)


def _print_release(console: Console, day: datetime.date, published: JobRelease) -> None:
    from pkdp_pipeline.jobs.summary import noise_line, public_rows

    header, rows = public_rows(published.release.table)
    table = Table()
    for column in header[:-1]:
        table.add_column(Text(column))
    table.add_column(Text(header[-1]), justify="right")
    for row in rows[:_ROWS_SHOWN]:
        table.add_row(*map(Text, row))
    if len(rows) > _ROWS_SHOWN:
        table.caption = f"and {len(rows) - _ROWS_SHOWN} more in the file"
    console.print(f"{published.asked.name}, {day.isoformat()}")
    console.print(table)
    for line in filter(None, noise_line(published.release)):
        console.print(line)
    console.print(published.release.certificate.sentence())
    if published.release.replayed:
        console.print("replayed: published before; no data was read, nothing was charged.\n")
    else:
        console.print("published, and charged to the ledger.\n")


def _print_certificate(certificate: Certificate, epsilon: float | None, delta: float | None, as_json: bool) -> None:
    from pkdp_pipeline.sentences import rounded_up

    if as_json:
        typer.echo(certificate.to_json())
        return
    at_epsilon = 1.0 if epsilon is None else epsilon
    at_delta = 1e-6 if delta is None else delta
    lines = []
    if epsilon is not None or delta is None:
        lines.append(f"delta({rounded_up(at_epsilon, 12)}) = {rounded_up(certificate.delta(at_epsilon), 4)}")
    if delta is not None or epsilon is None:
        lines.append(f"epsilon({rounded_up(at_delta, 12)}) = {rounded_up(certificate.epsilon(at_delta), 4)}")
    console = _console()
    console.print(certificate.sentence(delta=at_delta), "\n", sep="")
    console.print("\n".join(lines))


def _console() -> Console:
    return Console(markup=False, highlight=False, emoji=False)


def _complain(message: str) -> None:
    typer.echo(f"pkdp: {message}", err=True)


def _defect(error: Exception) -> str:
    """Say what broke and where; an unexpected error's own message may quote the data."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "pkdp_pipeline" in frame.filename]
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"a defect of pkdp_pipeline: {type(error).__name__}{place}. Please report it."


if __name__ == "__main__":
    main()
