"""Options that several commands take: read into values of the model, and written again as they are typed."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel, Leakage
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.model.wording import Speech

Command = Callable[..., None]
Flag = tuple[Any, Any]
Options = dict[str, Flag]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobFile = Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.", show_default=False)]
Protects = Annotated[str, typer.Option(metavar="presence|value", help="value of a count: its total is declared known.")]


class _Command(Speech):
    """Advice as options of a command."""

    larger_budget = "open the ledger with a larger budget"
    revise = "publish with revise=True from Python"
    leakage_of_total = "--total-known"
    no_target = ""

    def setting(self, name: str, value: object) -> str:
        return f"--{name.replace('_', '-')} {value}"

    def noise(self, epsilon: float) -> str:
        return f"--noise {epsilon:g}"


COMMAND: Speech = _Command()

_HELP = {
    "p_max": "How sure the attacker can be, at most; for a histogram: told that it is that cell or absence.",
    "p_min": "How sure the attacker is, at least, that another person counts.",
    "p_max_between": "Told that a person is in one of two cells of a histogram, how sure which, at most.",
    "unknown": "At least so many people are unknown to the attacker.",
    "unknown_max": "At most so many people are unknown to the attacker.",
    "known": "People the attacker knows or controls.",
    "influence": "passive: known for other reasons; active: known to be there, or put there.",
    "dependent": "Whose records depend on one another, such as household.",
    "secret": "record, or conditional: a person's record given those of all on whom it depends.",
    "k": "Published only when the count is at least this.",
    "k_complement": "Published only when the rest is at least this.",
    "noise": "Epsilon of two-sided geometric noise.",
    "release_threshold": "Published only when the noisy count reaches this.",
}


def flag(
    hint: Any,
    default: object,
    words: str | None,
    metavar: str | None = None,
    name: str | None = None,
    parser: Callable[[str], Any] | None = None,
) -> Flag:
    """Return an option for `taking`: its type, default, help, name where typer would add another, and its reading."""
    names = () if name is None else (name,)
    return Annotated[hint, typer.Option(*names, metavar=metavar, help=words, parser=parser)], default


def share(given: str | float) -> float:
    """Return a probability, written as 0.2 or as 20%; a default is one already."""
    text = str(given).replace(" ", "")
    with suppress(ValueError, ZeroDivisionError, OverflowError):
        value = float(Fraction(text[:-1]) / 100 if text.endswith("%") else text)
        if 0.0 <= value <= 1.0:
            return value
    raise ArgumentError("It must be a probability between 0 and 1: write 0.1 or 10 %.")


_KNOWN_BESIDES: Options = {
    "total_known": flag(bool, False, "The exact number of people is published, or known.", name="--total-known"),
    "leakage": flag(
        list[str] | None,
        None,
        "What else is published exactly or known about the same people, with the fields of Leakage, such as "
        '\'{"name": "who is present", "tells": "people_present"}\'; may be repeated.',
        "JSON",
    ),
}

AtDelta = Annotated[
    float, typer.Option("--delta", parser=share, metavar="FLOAT|PERCENT", help="State epsilon at this delta.")
]


def at_a_terminal() -> bool:
    """Return whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def taking(name: str, options: Options, make: Callable[..., object]) -> Callable[[Command], Command]:
    """Return the decorator that gives a command options, and to the command what they make.

    Parameters
    ----------
    name : str
        The command's parameter that the options stand in for.
    options : mapping of str to (annotation, default)
    make : callable
        Takes the options by name.
    """
    listed = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for option, (hint, default) in options.items()
    ]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(*args: Any, **given: Any) -> None:
            made = make(**{option: given.pop(option) for option in options})
            command(*args, **given, **{name: made})

        signature, parameters = inspect.signature(command, eval_str=True), []
        for parameter in signature.parameters.values():
            parameters += listed if parameter.name == name else [parameter]
        annotations = {one: hint for one, hint in command.__annotations__.items() if one != name}
        run.__annotations__ = annotations | {option: hint for option, (hint, _) in options.items()}
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def attacker_options(kind: type[Count | Histogram]) -> Callable[[Command], Command]:
    """Return the decorator that gives a command an option for each field of `AttackerModel`, as `attacker`.

    Parameters
    ----------
    kind : type
        What is attacked: with a `Count`, the field that is for histograms is left out.
    """
    options = _of_fields(AttackerModel) | _KNOWN_BESIDES
    if kind is Count:
        del options["p_max_between"]
    return taking("attacker", options, _attacker)


def mechanism_options(kind: type[Count | Histogram]) -> Callable[[Command], Command]:
    """Return the decorator that gives a command an option for each field of a mechanism, as `mechanism`."""
    options = _of_fields(kind) | {"noise": flag(float | None, None, _HELP["noise"])}
    return taking("mechanism", options, partial(_mechanism, kind))


def for_mechanisms(app: typer.Typer, verb: str) -> Callable[[Command], Command]:
    """Return the decorator that makes of one function the commands ``histogram`` and ``count``.

    The function's parameters `mechanism` and `attacker` become the options of their fields.
    """

    def decorate(command: Command) -> Command:
        for kind, words in _KINDS.items():
            made = mechanism_options(kind)(attacker_options(kind)(command))
            app.command(name=kind.__name__.lower(), help=f"{verb} {words}")(made)
        return command

    return decorate


_KINDS = {
    Histogram: "a histogram: counts per cell, each published on its own merits.",
    Count: "a count: how many people satisfy a predicate.",
}


def _mechanism(kind: type[Count | Histogram], noise: float | None, **others: Any) -> Count | Histogram:
    return kind(noise=None if noise is None else GeometricNoise(noise), **others)


def attacker_flags(attacker: AttackerModel) -> list[str]:
    """Return the options that name an attacker, as they are typed."""
    words: list[str] = []
    for one in fields(AttackerModel):
        value = getattr(attacker, one.name)
        if one.name == "leakage":
            for leakage in value:
                listed = json.dumps(leakage.to_dict(), ensure_ascii=False)
                words += ["--total-known"] if leakage == Leakage.total() else ["--leakage", listed]
        elif value != one.default:
            words += [f"--{one.name.replace('_', '-')}", value if isinstance(value, str) else exactly(value)]
    return words


def _of_fields(kind: type[AttackerModel | Count | Histogram]) -> Options:
    found: Options = {}
    for one, hint in zip(fields(kind), get_type_hints(kind).values(), strict=True):
        choices = "|".join(get_args(hint)) if get_origin(hint) is Literal else None
        default = None if one.default is MISSING else one.default
        if one.name != "leakage":
            parser, metavar = (share, "FLOAT|PERCENT") if one.name.startswith("p_") else (None, choices)
            found[one.name] = flag(
                hint if choices is None else str, default, _HELP.get(one.name), metavar, parser=parser
            )
    return found


def _attacker(total_known: bool, leakage: Sequence[str] | None, **others: Any) -> AttackerModel:
    known = [Leakage.total()] if total_known else []
    return AttackerModel(leakage=(*known, *map(_leakage, leakage or ())), **others)


def _leakage(text: str) -> Leakage:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ArgumentError(
            "--leakage must be a JSON object with the fields of Leakage: write "
            '--leakage \'{"name": "who is present", "tells": "people_present"}\', or --total-known.'
        )
    return Leakage.from_dict(values)
