"""The command line, ``pkdp``; its exit codes are those of `errors`."""

from __future__ import annotations

import functools
import inspect
import io
import logging
import math
import re
import shutil
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Console
from typer.models import OptionInfo

from pkdp_pipeline.cli.file_commands import STEPS_OF_SUMS, file_commands, sum_of
from pkdp_pipeline.cli.job_commands import backfill, ledger_app, run
from pkdp_pipeline.cli.options import (
    CELLS_FROM_DATA,
    INTERRUPTED,
    SEVERAL,
    AsJson,
    Protects,
    attacker_options,
    for_mechanisms,
    of_share,
    several,
    taking,
)
from pkdp_pipeline.cli.screen import error_document, message_of, option_names, print_document
from pkdp_pipeline.errors import ConfigError, PkdpError, exit_code
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism, Sum
from pkdp_pipeline.plugins import hooks, load, view
from pkdp_pipeline.schemas import VERSION


def schema(
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="As in certificate.v1; without a version, the newest. Left out: all are listed."
        ),
    ] = None,
    path: Annotated[bool, typer.Option("--path", help="Print where the file is, not what it says.")] = False,
) -> None:
    """Print a JSON schema of what pkdp writes or reads, for an editor or a validator."""
    from pkdp_pipeline import schemas
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.errors import ArgumentError

    if name is not None:
        file = schemas.schema_file(name)
        typer.echo(str(file) if path else file.read_text(encoding="utf-8"), nl=path)
    elif path:
        raise ArgumentError("--path is about one schema: name it, as in pkdp schema certificate --path.")
    else:
        Screen().pairs((title, schemas.schema(title)["description"]) for title in schemas.schema_names())


_PUBLISHING = ("run", "backfill")
_GUARDED = "_pkdp_has_exit_codes"

certify_app = typer.Typer(help="Print the certificate of a mechanism; no data is needed.", no_args_is_help=True)


def _with_exit_codes(command: Callable[..., None]) -> Callable[..., None]:
    """Let every error of a command be a complaint and the exit code of the whole command line, and numbers checked."""

    @functools.wraps(command)
    def run(*args: Any, **given: Any) -> None:
        try:
            command(*args, **given)
        except typer.Exit:
            raise
        except KeyboardInterrupt:
            publishes = command.__name__ in _PUBLISHING and not given.get("dry_run")
            if publishes or (command.__name__ == "_publish" and given["ledger"] is not None):
                _complain("interrupted; what was published stays published, and running again replays it.")
            else:
                _complain("interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            options = option_names(command)
            _complain(message_of(error, options) if isinstance(error, PkdpError) else _defect(error))
            if given.get("as_json"):
                print_document(error_document(error, options))
            raise typer.Exit(exit_code(error)) from None

    signature = _checking_numbers(command)
    setattr(run, _GUARDED, True)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return run


def _checking_numbers(command: Callable[..., None]) -> inspect.Signature:
    """Return the signature of a command whose options say in plain words which numbers they take, and flags none."""
    signature = inspect.signature(command, eval_str=True)
    for parameter in signature.parameters.values():
        hint, *options = get_args(parameter.annotation) or (None,)
        kind = next((number_type for number_type in (int, float) if hint in (number_type, number_type | None)), None)
        for option in options:
            if kind and isinstance(option, OptionInfo) and option.parser is None:
                option.parser = functools.partial(_number, kind, option.min, option.max)
                option.metavar = option.metavar or ("INTEGER" if kind is int else "FLOAT")
            elif hint in (bool, bool | None) and isinstance(option, OptionInfo):
                option.metavar = ""  # a flag takes no value
    return signature


def _number(kind: type[int | float], least: float | None, most: float | None, given: str | float) -> float:
    """Return a number within limits; as an option's parser, which adds no words of its own to these."""
    words = f"a {'whole ' * (kind is int)}number"
    if least is not None:
        words += f" of at least {least:g}" if most is None else f" from {least:g} to {most:g}"
    try:
        value = kind(given)
    except ValueError:
        value = None
    if value is None or not (-math.inf if least is None else least) <= value <= (math.inf if most is None else most):
        raise typer.BadParameter(f"It must be {words}.")
    return value


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"pkdp {VERSION}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Publish counts and k-anonymous histograms with a certified guarantee."""


@for_mechanisms(certify_app, "Certify")
@taking("together", SEVERAL, several)
def _certify(
    *,
    mechanism: Mechanism,
    protects: Protects = "presence",
    attacker: AttackerModel,
    together: Callable[[Any], Any],
    epsilon: Annotated[float | None, typer.Option(help="Print delta at this epsilon.")] = None,
    delta: Annotated[float | None, of_share("Print epsilon at this delta.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print too what it rests on, and how far that is checked by machine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    from pkdp_pipeline.certificates.release_certificate import certify
    from pkdp_pipeline.errors import ArgumentError
    from pkdp_pipeline.model.wording import rounded_up

    if explain and as_json:
        raise ArgumentError("--explain prints words beside the certificate, --json prints it alone: leave one out.")
    certificate = together(certify(mechanism, attacker, protects=cast("Any", protects)))
    if as_json:
        typer.echo(certificate.to_json())
        return
    at_epsilon, at_delta = 1.0 if epsilon is None else epsilon, 1e-6 if delta is None else delta
    console = Console(markup=False, highlight=False, emoji=False)
    console.print(certificate.sentence(delta=at_delta), "\n", sep="")
    if epsilon is not None or delta is None:
        console.print(f"delta({rounded_up(at_epsilon, 12)}) = {rounded_up(certificate.delta(at_epsilon), 4)}")
    if delta is not None or epsilon is None:
        console.print(f"epsilon({rounded_up(at_delta, 12)}) = {rounded_up(certificate.epsilon(at_delta), 4)}")
    if explain:
        _explain(view("statement").of(certificate, at_delta).foundations)


certify_app.command(name="sum", help="Certify sums of whole numbers with noise, per cell or in all.")(
    taking("mechanism", STEPS_OF_SUMS | CELLS_FROM_DATA, sum_of)(attacker_options(Sum)(_certify))
)


@certify_app.command(name="rule")
def _rule(
    key: Annotated[
        str | None, typer.Argument(metavar="RULE", help="Such as ehrql, cms or stats-nz.", show_default=False)
    ] = None,
    *,
    listed: Annotated[bool, typer.Option("--list", help="List the rules there are.")] = False,
    p_max: Annotated[float | None, of_share("How sure the attacker can be, at most; beside 5, 10 and 20 %.")] = None,
    epsilon: Annotated[float, typer.Option(help="Print delta at this epsilon.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Say what a published rule of display hides and promises, and what to change where it promises nothing."""
    from pkdp_pipeline.errors import ArgumentError

    if listed == (key is not None):
        raise ArgumentError("name one rule, as in pkdp certify rule ehrql, or list them: pkdp certify rule --list.")
    if key is None:
        view("rules")(as_json)
    else:
        view("rule")(key, p_max, epsilon, as_json)


def _explain(foundations: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    """Print what the theorems say, and how far their proofs are checked by machine."""
    from pkdp_pipeline.cli.screen import Screen

    screen = Screen()
    screen.head("Foundations")
    for foundation, sentences in foundations:
        (screen.item if sentences else screen.say)(foundation)
        for sentence in sentences:
            screen.item(sentence, indent=4)


_ORDER = (
    "demo",
    "init",
    "run",
    "backfill",
    "report",
    "schema",
    "verify",
    "histogram",
    "count",
    "sum",
    "certify",
    "plan",
    "audit",
)
"""The commands that help shows first, in this order; those of other packages come last."""


@functools.cache
def application(command_name: str | None = None) -> typer.Typer:
    """Return the command line, or enough of it for one command: others of plugins are not imported.

    Raises `ConfigError` if a plugin cannot be loaded, or adds a command that there is.
    """
    app = typer.Typer(
        name="pkdp",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    app.callback()(_with_exit_codes(_options))
    own: dict[str, Callable[..., None] | typer.Typer] = {"run": run, "backfill": backfill, "schema": schema}
    own |= file_commands() | {"certify": certify_app, "ledger": ledger_app}
    places: dict[str, str] = {} if command_name in own else dict(hooks("commands"))
    if twice := own.keys() & places.keys():
        raise ConfigError(f"a plugin adds the command {min(twice)!r}, which pkdp has: uninstall its package.")
    places = {command_name: places[command_name]} if command_name in places else places
    commands = own | {name: load(place) for name, place in places.items()}
    order = {name: place for place, name in enumerate(_ORDER)}
    for name in sorted(commands, key=lambda name: order.get(name, len(order))):
        command = commands[name]
        if isinstance(command, typer.Typer):
            app.add_typer(_guarded(command), name=name)
        else:
            app.command(name=name)(_with_exit_codes(command))
    return app


def _guarded(group: typer.Typer) -> typer.Typer:
    """Let the errors of every command of a group have the exit codes of the whole command line; once."""
    for command in (*group.registered_commands, group.registered_callback):
        if command is not None and command.callback is not None and not hasattr(command.callback, _GUARDED):
            command.callback = _with_exit_codes(command.callback)
    for nested in group.registered_groups:
        if nested.typer_instance is not None:
            _guarded(nested.typer_instance)
    return group


def __getattr__(name: str) -> Any:
    """Load the whole command line, `app`, with the commands of all plugins, when it is first used."""
    if name == "app":
        return application()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no Greek must not stop a job
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, *rest: Any, **named: Any) -> None:
        if category is UserWarning and "pkdp_pipeline" in filename:
            _complain(f"warning: {message}")
        else:
            shown(message, category, filename, *rest, **named)

    warnings.showwarning = show
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where it keeps its fonts is nothing to be mailed
    command_name = next((word for word in sys.argv[1:] if not word.startswith("-")), None)
    try:
        app = application(command_name)
    except PkdpError as error:
        _complain(str(error))
        sys.exit(exit_code(error))
    app()


def _complain(message: str) -> None:
    """Print an error, in lines that fit a terminal; what can be pasted into a job file stays as it is."""
    text = f"pkdp: {message}"
    if sys.stderr.isatty():
        wrap = textwrap.TextWrapper(shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
        pasted = re.compile(r"\[|[\w\"-]+ = |pkdp \w")
        text = "\n".join(line if pasted.match(line) else wrap.fill(line) for line in text.split("\n"))
    typer.echo(text, err=True)


def _defect(error: Exception) -> str:
    """Say what broke and where; an unexpected error's own message may quote the data."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "pkdp_pipeline" in frame.filename]
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"a defect of pkdp_pipeline: {type(error).__name__}{place}. Please report it."


if __name__ == "__main__":
    main()
