"""Options that several commands take: read into values of the model, and written again as they are typed."""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel, Leakage
from pkdp_pipeline.model.display import Display, read_display
from pkdp_pipeline.model.evidence import KINDS, Evidence, evidence_from_dicts, evidence_to_dicts
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Mechanism, Sum
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import Speech, whole_number
from pkdp_pipeline.schemas import field_texts

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

Command = Callable[..., None]
Flag = tuple[Any, Any]
Options = dict[str, Flag]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobFile = Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.", show_default=False)]
Protects = Annotated[str, typer.Option(metavar="presence|value", help="value of a count: its total is declared known.")]


EVIDENCE = {key: tuple(field.name for field in fields(kind)) for key, kind in KINDS.items() if kind.holds}
"""Evidence that may be declared about several releases, and its numbers, as in ``bounded_participation:5``."""


class _Command(Speech):
    """Advice as options of a command."""

    larger_budget = "declare a larger budget"
    revise = "publish with revise=True from Python"
    no_target = "--delta with a larger delta, which is then stated"
    same_people = ""

    def known_total(self, by: Sequence[str] = ()) -> str:
        return f"--leakage '{json.dumps(Leakage.totals(by).to_dict())}'" if by else "--total-known"

    def setting(self, name: str, value: object) -> str:
        return f"--{name.replace('_', '-')} {value}"

    def noise(self, epsilon: float) -> str:
        return self.setting("noise", exactly(epsilon))

    def evidence(self, kind: type[Any]) -> str:
        numbers = ",".join(EVIDENCE.get(kind.key, ())).upper()
        return self.setting("evidence", f"{kind.key}:{numbers}" if numbers else kind.key)

    def evidence_name(self, kind: type[Any]) -> str:
        return str(kind.key)

    def declare(self, kind: type[Any]) -> str:
        return self.evidence(kind)


COMMAND: Speech = _Command()


def flag(
    hint: Any,
    default: object,
    words: str | None,
    metavar: str | None = None,
    name: str | None = None,
) -> Flag:
    """Return an option for `taking`: its type, default, help, and its name where typer would add another."""
    names = () if name is None else (name,)
    return Annotated[hint, typer.Option(*names, metavar=metavar, help=words)], default


def share(given: str | float) -> float:
    """Return a probability, written as 0.2 or as 20%; a default is one already."""
    text = str(given).replace(" ", "")
    value = math.nan
    with suppress(ValueError, ZeroDivisionError, OverflowError):
        value = float(Fraction(text[:-1]) / 100 if text.endswith("%") else text)
    if 0.0 <= value <= 1.0:
        return value
    meant = f" Write {value / 100:g} or {value:g}%." if 1.0 < value <= 100.0 and not text.endswith("%") else ""
    raise ArgumentError(f"It must be a probability: a number from 0 to 1, or one from 0 to 100 followed by %.{meant}")


def percentage(given: str | float) -> float:
    """Return what `share` does; as an option's parser, which adds no words of its own to these."""
    try:
        return share(given)
    except ArgumentError as error:
        raise typer.BadParameter(str(error)) from None


def of_share(words: str, *names: str) -> Any:
    """Return what makes an option of a probability."""
    return typer.Option(*names, parser=percentage, metavar="FLOAT|PERCENT", help=words)


_DECLARED: Options = {
    "evidence": flag(
        list[str] | None,
        None,
        "The evidence by which several releases add up, such as disjoint_units; one that takes a number has it "
        "behind a colon. Again for a second kind.",
        "KIND",
    ),
}
SEVERAL: Options = {"days": flag(int, 1, "How many such releases are taken together."), **_DECLARED}
CELLS_FROM_DATA: Options = {
    "cells_from_data": flag(
        bool, False, "The cells are not declared: their names come from the data.", name="--cells-from-data"
    ),
}


_KNOWN_BESIDES: Options = {
    "total_known": flag(bool, False, "The exact number of people is published, or known.", name="--total-known"),
    "leakage": flag(
        list[str] | None,
        None,
        "Anything else published exactly or known about the same people, with the fields of Leakage, such as "
        '\'{"name": "who is present", "tells": "people_present"}\'; may be repeated.',
        "JSON",
    ),
}

AtDelta = Annotated[float, of_share("State epsilon at this delta.", "--delta")]


def several(days: int, evidence: list[str] | None) -> Callable[[Certificate], Certificate]:
    """Return what makes of the certificate of one release that of `days` of them."""
    declared, times = read_evidence_flags(evidence or ()), whole_number("days", days, least=1)

    def together(certificate: Certificate) -> Certificate:
        from pkdp_pipeline.certificates.composed import compose

        return certificate if times == 1 else compose([(certificate, times)], declared)

    return together


def taking(name: str, options: Options, make: Callable[..., object]) -> Callable[[Command], Command]:
    """Return the decorator that gives a command options, and to the command what they make.

    `name`: the command's parameter that the options stand in for. `make` takes the options by name.
    """
    listed = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for option, (hint, default) in options.items()
    ]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(*args: Any, **given: Any) -> None:
            value = make(**{option: given.pop(option) for option in options})
            command(*args, **given, **{name: value})

        signature, parameters = inspect.signature(command, eval_str=True), []
        for parameter in signature.parameters.values():
            parameters += listed if parameter.name == name else [parameter]
        annotations = {argument: hint for argument, hint in command.__annotations__.items() if argument != name}
        run.__annotations__ = annotations | {option: hint for option, (hint, _) in options.items()}
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def attacker_options(kind: type[Count | Histogram | Sum]) -> Callable[[Command], Command]:
    """Return the decorator that gives a command an option for each field of `AttackerModel`, as `attacker`.

    `kind`: the mechanism attacked: with a `Count`, the field for histograms is left out.
    """
    options = _of_fields(AttackerModel) | _KNOWN_BESIDES
    if kind is Count:
        del options["p_max_between"]
    return taking("attacker", options, _attacker)


def mechanism_options(kind: type[Count | Histogram], more: Options | None = None) -> Callable[[Command], Command]:
    """Return the decorator that gives a command an option for each field of a mechanism, as `mechanism`.

    `more`: `CELLS_FROM_DATA` where no data say whether the cells are declared.
    """
    return taking("mechanism", _of_fields(kind) | (more or {}), partial(_mechanism, kind))


def evidence_option(command: Command) -> Command:
    """Give a command an option for what is declared, as `evidence`."""
    return taking("evidence", _DECLARED, lambda evidence: read_evidence_flags(evidence or ()))(command)


def for_mechanisms(app: typer.Typer, verb: str) -> Callable[[Command], Command]:
    """Return the decorator that makes of one function the commands ``histogram`` and ``count``.

    The function's parameters `mechanism` and `attacker` become the options of their fields.
    """

    def decorate(command: Command) -> Command:
        for kind, words in _KINDS.items():
            more = CELLS_FROM_DATA if kind is Histogram else {}
            decorated = mechanism_options(kind, more)(attacker_options(kind)(command))
            app.command(name=kind.__name__.lower(), help=f"{verb} {words}")(decorated)
        return command

    return decorate


_KINDS = {
    Histogram: "a histogram: counts per cell, each published on its own merits.",
    Count: "a count: how many people satisfy a predicate.",
}


def _mechanism(
    kind: type[Count | Histogram],
    noise: float | None,
    display: str | None,
    cells_from_data: bool = False,
    **others: Any,
) -> Mechanism:
    steps: dict[str, Any] = {
        "noise": None if noise is None else GeometricNoise(noise),
        "display": None if display is None else _display(display),
    }
    mechanism = kind(**steps, **others)
    # What a question without declared cells implies, and refuses.
    if not cells_from_data:
        return mechanism
    from pkdp_pipeline.model.question import Question

    return Question(mechanism=mechanism, unit="unit", by="cell").mechanism


def _display(text: str) -> Display:
    """Return the rule of display that is written as a name and whole numbers, or as JSON."""
    if text.lstrip().startswith("{"):
        return read_display(text)
    name, _, given = text.partition("=")
    words = [word.strip() for word in given.split(",")]
    numbers = [int(word) if word.isdecimal() else word for word in words]
    content: dict[str, Any] = {name.strip(): numbers if name.strip() == "bands" else numbers[0]}
    if name.strip() != "bands" and len(words) > 1:
        content["mode"] = ",".join(words[1:])
    return read_display(content)


def display_text(display: Display) -> str:
    """Return a rule of display as `_display` reads it."""
    (name, value), *mode = display.to_dict().items()
    if name == "perturbation":
        return json.dumps(display.to_dict())
    numbers = value if isinstance(value, list) else [value]
    return f"{name}={','.join(map(str, [*numbers, *(word for _, word in mode)]))}"


def mechanism_flags(mechanism: Mechanism) -> list[str]:
    """Return the options that name a mechanism, as they are typed."""
    given = ((field.name, getattr(mechanism, field.name)) for field in fields(mechanism))
    usual = {field.name: field.default for field in fields(mechanism)}
    values = ((name, value.epsilon if isinstance(value, GeometricNoise) else value) for name, value in given)
    return [word for name, value in values if value != usual[name] for word in _typed(name, _written(value))]


def evidence_flags(evidence: Iterable[Evidence]) -> list[str]:
    """Return the options that declare evidence, as they are typed."""
    words = []
    for document in evidence_to_dicts(evidence):
        kind = document.pop("kind")
        numbers = ",".join(map(exactly, document.values()))
        words += _typed("evidence", f"{kind}:{numbers}" if numbers else kind)
    return words


def read_evidence_flags(given: Sequence[str], also: str = "") -> tuple[Evidence, ...]:
    """Return what is declared: each is a kind, with its numbers behind a colon where it takes some.

    `also`: what an error names beside the kinds.

    Raises `ArgumentError` if it is not known, or its numbers are none.
    """
    return evidence_from_dicts([_evidence(text, also) for text in given])


def _evidence(text: str, also: str) -> dict[str, object]:
    kind, _, numbers = text.partition(":")
    name = kind.strip().lower().replace("-", "_")
    if name not in EVIDENCE:
        raise ArgumentError(f"--evidence must be one of {', '.join(EVIDENCE)}{also}, got {kind!r}.")
    takes, given = EVIDENCE[name], numbers.split(",") if numbers.strip() else []
    try:
        if len(given) > len(takes) or (takes and not given):
            raise ValueError
        read = {field: _NUMBERS[field](number) for field, number in zip(takes, given, strict=False)}
    except ValueError:
        how = f"its numbers: write --evidence {name}:{','.join(takes).upper()}" if takes else "no number"
        raise ArgumentError(f"--evidence {name} takes {how}.") from None
    return {"kind": name, **read}


_NUMBERS: dict[str, Callable[[str], float]] = {"times": int, "epsilon": float, "delta": share}


def _written(value: Any) -> str:
    if isinstance(value, Display):
        return display_text(value)
    return value if isinstance(value, str) else exactly(value)


def _typed(name: str, value: str) -> list[str]:
    return [f"--{name.replace('_', '-')}", value]


def attacker_flags(attacker: AttackerModel) -> list[str]:
    """Return the options that name an attacker, as they are typed."""
    words: list[str] = []
    for field in fields(AttackerModel):
        value = getattr(attacker, field.name)
        if field.name == "leakage":
            for leakage in value:
                listed = json.dumps(leakage.to_dict(), ensure_ascii=False)
                words += ["--total-known"] if leakage == Leakage.total() else ["--leakage", listed]
        elif value is True:
            words.append(_typed(field.name, "")[0])
        elif value != field.default:
            words += _typed(field.name, _written(value))
    return words


#: Fields that are no number, word or truth value, as they are typed; None where options of their own stand for them.
_TYPED: dict[str, Flag | None] = {
    "noise": flag(float | None, None, "The epsilon of two-sided geometric noise."),
    "display": flag(
        str | None,
        None,
        "How published counts are shown: rounding=5, rounding=5,down (or midpoint), bands=0,10,20, random_rounding=3, "
        "or JSON.",
        "RULE",
    ),
    "leakage": None,
    "totals": None,
}


def _of_fields(kind: type[AttackerModel | Count | Histogram]) -> Options:
    """Return an option for each field, which says what the field's docstring does."""
    options: Options = {}
    texts = field_texts(Histogram) | field_texts(kind)
    for field, hint in zip(fields(kind), get_type_hints(kind).values(), strict=True):
        name, text = field.name, texts.get(field.name, "")
        if name in _TYPED:
            if (option := _TYPED[name]) is not None:
                options[name] = option
        elif hint == float | None:
            options[name] = Annotated[float | None, of_share(text)], None
        elif get_origin(hint) is Literal:
            # Longer ones leave no room for names, and what cells from the data imply is not to be asked for.
            metavar = {"secret": "KIND", "below": "suppress|noise"}.get(name, "|".join(get_args(hint)))
            options[name] = flag(str, field.default, text, metavar)
        else:
            options[name] = flag(
                hint, field.default, text, name=f"--{name.replace('_', '-')}" if hint is bool else None
            )
    return options


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
