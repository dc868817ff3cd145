"""The command line, ``pkdp``; its exit codes are those of `errors`."""

from __future__ import annotations

import functools
import io
import re
import shutil
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec, TextIO

import typer
from rich.console import Console

from pkdp_pipeline.cli.audit_commands import audit_app
from pkdp_pipeline.cli.gate_commands import gate_app
from pkdp_pipeline.cli.job_commands import backfill, run
from pkdp_pipeline.cli.ledger_commands import ledger_app
from pkdp_pipeline.cli.options import AsJson, attacker_options, mechanism_options
from pkdp_pipeline.cli.plan_commands import plan_app
from pkdp_pipeline.cli.report_commands import report
from pkdp_pipeline.cli.schema_commands import schema
from pkdp_pipeline.cli.verify_commands import verify
from pkdp_pipeline.errors import DEFECT, PkdpError, exit_code
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram
from pkdp_pipeline.model.version import VERSION

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate

__all__ = ["app", "exit_code", "main"]

_INTERRUPTED = 130

app = typer.Typer(
    name="pkdp",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
certify_app = typer.Typer(help="Print the certificate of a mechanism; no data is needed.", no_args_is_help=True)
app.add_typer(certify_app, name="certify")

P = ParamSpec("P")


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
            raise typer.Exit(DEFECT) from None

    return run


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"pkdp {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Publish counts and k-anonymous histograms with a certified guarantee."""


commands: tuple[Callable[..., None], ...] = (run, backfill, report, schema, verify)
for command in commands:
    app.command()(command)

Epsilon = Annotated[float | None, typer.Option(help="Print delta at this epsilon.")]
Delta = Annotated[float | None, typer.Option(help="Print epsilon at this delta.")]
Protects = Annotated[str, typer.Option(metavar="presence|value", help="value of a count: its total is declared known.")]


@certify_app.command()
@mechanism_options(Histogram)
@attacker_options(Histogram)
def histogram(
    *,
    mechanism: Histogram,
    protects: Protects = "presence",
    attacker: AttackerModel,
    epsilon: Epsilon = None,
    delta: Delta = None,
    as_json: AsJson = False,
) -> None:
    """Certify a histogram: counts per cell, each published on its own merits."""
    from pkdp_pipeline.certificates.release_certificate import certify

    _print_certificate(certify(mechanism, attacker, protects=protects), epsilon, delta, as_json)


@certify_app.command()
@mechanism_options(Count)
@attacker_options(Count)
def count(
    *,
    mechanism: Count,
    protects: Protects = "presence",
    attacker: AttackerModel,
    epsilon: Epsilon = None,
    delta: Delta = None,
    as_json: AsJson = False,
) -> None:
    """Certify a count: how many people satisfy a predicate."""
    from pkdp_pipeline.certificates.release_certificate import certify

    _print_certificate(certify(mechanism, attacker, protects=protects), epsilon, delta, as_json)


app.add_typer(plan_app(), name="plan")
app.add_typer(audit_app(), name="audit")
app.add_typer(ledger_app(), name="ledger")
app.add_typer(gate_app(), name="gate")


def _guarded(commands: typer.Typer) -> None:
    """Let the errors of every command have the exit codes of the whole command line."""
    for one in (*commands.registered_commands, commands.registered_callback):
        if one is not None and one.callback is not None:
            one.callback = _with_exit_codes(one.callback)
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _guarded(group.typer_instance)


_guarded(app)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no Greek must not stop a job
    shown = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category is UserWarning and "pkdp_pipeline" in filename:
            _complain(f"warning: {message}")
        else:
            shown(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    app()


def _print_certificate(certificate: Certificate, epsilon: float | None, delta: float | None, as_json: bool) -> None:
    from pkdp_pipeline.model.wording import rounded_up

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
    text = f"pkdp: {message}"
    typer.echo(_wrapped(text, shutil.get_terminal_size().columns) if sys.stderr.isatty() else text, err=True)


def _wrapped(text: str, width: int) -> str:
    """Return a text in lines that fit a terminal; what can be pasted into a job file stays as it is."""
    return "\n".join(
        line
        if re.match(r"\[|[\w\"-]+ = ", line)
        else textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )


def _defect(error: Exception) -> str:
    """Say what broke and where; an unexpected error's own message may quote the data."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "pkdp_pipeline" in frame.filename]
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"a defect of pkdp_pipeline: {type(error).__name__}{place}. Please report it."


if __name__ == "__main__":
    main()
