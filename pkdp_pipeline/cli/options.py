"""Options that several commands take: read into values of the model, and written again as they are typed."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.leakage import Leakage
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram
from pkdp_pipeline.model.plain_text import exactly

__all__ = ["AsJson", "Command", "attacker_flags", "attacker_options", "mechanism_options", "taking"]

Command = Callable[..., None]
Options = dict[str, tuple[Any, Any]]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

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
_KNOWN_BESIDES = {
    "total_known": (
        Annotated[bool, typer.Option("--total-known", help="The exact number of people is published, or known.")],
        False,
    ),
    "leakage": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--leakage",
                metavar="JSON",
                help="What else is published exactly or known about the same people, with the fields of Leakage, such "
                'as \'{"name": "who is present", "tells": "people_present"}\'; may be repeated.',
            ),
        ],
        None,
    ),
}


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

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(*args: Any, **given: Any) -> None:
            made = make(**{option: given.pop(option) for option in options})
            command(*args, **given, **{name: made})

        signature, parameters = inspect.signature(command, eval_str=True), []
        for parameter in signature.parameters.values():
            parameters += list(_parameters(options)) if parameter.name == name else [parameter]
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

    def make(noise: float | None, **others: Any) -> Count | Histogram:
        return kind(noise=None if noise is None else GeometricNoise(noise), **others)

    noise = Annotated[float | None, typer.Option(help=_HELP["noise"])]
    return taking("mechanism", _of_fields(kind) | {"noise": (noise, None)}, make)


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
            words += [_flag(one.name), value if isinstance(value, str) else exactly(value)]
    return words


def _parameters(options: Options) -> Iterator[inspect.Parameter]:
    for name, (hint, default) in options.items():
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _of_fields(kind: type[AttackerModel | Count | Histogram]) -> Options:
    hints = get_type_hints(kind)
    return {
        one.name: (_option(one.name, hints[one.name]), None if one.default is MISSING else one.default)
        for one in fields(kind)
        if one.name != "leakage"
    }


def _option(name: str, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        return Annotated[str, typer.Option(metavar="|".join(get_args(hint)), help=_HELP.get(name))]
    return Annotated[hint, typer.Option(help=_HELP.get(name))]


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


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
