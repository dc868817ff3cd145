"""Words: texts over values, rendered last, in the speech of their reader; and numbers, rounded outward.

Reading arguments: each check returns the plain Python value or raises an error that names the rule.
"""

from __future__ import annotations

import functools
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import partial
from numbers import Integral, Real
from typing import Any, Self, cast

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.period import exactly


class Speech:
    """How values are written in a text: here for those who call the library from Python."""

    def number(self, value: float) -> str:
        """Return a number that was computed: rounded up."""
        return rounded_up(value)

    epsilon, delta, deltas = "ε", "δ", "δ"

    def named(self, epsilon: str, delta: str) -> str:
        """Return a pair (ε, δ), whose numbers are written already."""
        return f"{self.epsilon} = {epsilon}, {self.delta} = {delta}"

    def pair(self, epsilon: float, delta: float) -> str:
        """Return a pair (ε, δ) that was computed."""
        return self.named(self.number(epsilon), self.number(delta))

    def threshold(self, k: int) -> str:
        """Return the threshold k."""
        return f"k = {k}"

    def of_threshold(self, k: int | None) -> str:
        """Return the threshold, of which a share is named; None is that of each release."""
        return "its threshold k" if k is None else self.threshold(k)

    def added(self, epsilon: float) -> str:
        """Return that noise is added; a clause goes on."""
        return f"two-sided geometric noise with epsilon = {epsilon!r} is added"

    def setting(self, name: str, value: object) -> str:
        """Return how an argument is given."""
        return f"{name}={value}"

    def noise(self, epsilon: float) -> str:
        """Return how noise is asked for."""
        return f"noise=pkdp.GeometricNoise({exactly(epsilon)})"

    def evidence(self, kind: type[Any]) -> str:
        """Return how evidence is written; `kind` is its class, as in `pkdp_pipeline.model.evidence`."""
        return f"pkdp.{kind.__name__}({', '.join(kind.written)})"

    def evidence_name(self, kind: type[Any]) -> str:
        """Return how evidence is named."""
        return kind.__name__

    def declare(self, kind: type[Any]) -> str:
        """Return how evidence is declared about a data set."""
        return f"{self.declaring}: evidence={self.evidence(kind)}"

    declaring = "when you open the ledger"
    protects = "Protects"

    def budget_of_part(self, part: str) -> str:
        """Return how a budget is written that holds one total only."""
        return f'pkdp.Budget(…, part="{part}")'

    def in_ledger(self) -> Speech:
        """Return the speech for a ledger, which finds out itself which releases are about the same people."""
        speech = type(self)()
        speech.same_people = ""
        return speech

    names_releases = True
    """Whether releases that stand already may be named: their labels and periods are the curator's words."""
    names_periods = True
    """Whether the period of a release is named: where all are of the same it says nothing."""
    same_people = "; or pkdp.SamePeople() for one exact count beside noise"
    larger_budget = "open the ledger with a larger budget"
    revise = "publish with revise=True"
    no_target = "target=None"
    untouched = "Nothing was read or charged"

    reader = "release"

    def derived(self, method: str) -> str:
        """Return how totals are derived from a table, by this method of `Release`."""
        return f"{self.reader}.{method}"

    def known_total(self, by: Sequence[str] = ()) -> str:
        """Return how an exact total, or those of groups, are declared to be known."""
        return f"leakage=pkdp.Leakage.{f'totals(by={list(by)!r})' if by else 'total()'} in the attacker"


class _JobFile(Speech):
    def setting(self, name: str, value: object) -> str:
        return f"{name} = {value}"

    def noise(self, epsilon: float) -> str:
        return f"noise = {{ epsilon = {exactly(epsilon)} }}"

    def evidence(self, kind: type[Any]) -> str:
        fields = "".join(f", {field} = …" for field in kind.written)
        return f'{{ kind = "{self.evidence_name(kind)}"{fields} }}'

    def evidence_name(self, kind: type[Any]) -> str:
        return str(kind.key)

    def declare(self, kind: type[Any]) -> str:
        return f"{self.declaring}: evidence = {self.evidence(kind)}"

    declaring = "in the job file, above its first [table]"

    def budget_of_part(self, part: str) -> str:
        return f'budget = {{ …, part = "{part}" }}'

    same_people = ""  # a job says so by itself
    reader = "read_release(…)"
    larger_budget = "write a larger budget in the job file"
    revise = "run with --revise"
    no_target = 'target = "none" above the first [table]'

    def known_total(self, by: Sequence[str] = ()) -> str:
        groups = f" by {listed(by)}" if by else ""
        columns = f", by = {json.dumps(list(by), ensure_ascii=False)}" if by else ""
        named = f'name = "the number of people present{groups}", tells = "people_present"{columns}'
        return f"leakage = {{ {named} }} below [attacker]"


class _WithinJob(_JobFile):
    """For what is wrong with the releases of one job, whatever the period."""

    names_periods = False


class _AfterReading(_JobFile):
    """For a refusal under the ledger's lock, when the period has been read."""

    untouched = "Nothing was charged"


class _Analyst(Speech):
    def setting(self, name: str, value: object) -> str:
        return f"{name} := {value}"

    def noise(self, epsilon: float) -> str:
        return f"noise := {exactly(epsilon)}"

    def derived(self, method: str) -> str:
        return "SELECT sum(count) … GROUP BY"

    names_releases = False
    larger_budget = "ask the curator for a larger budget"
    no_target = ""  # the curator's choice


class _Curator(_Analyst):
    """Advice as the macros take it; and where `install` was given what they do not take."""

    names_releases = True
    declaring = "when you open, in Python, the ledger that install is given"
    larger_budget = "open the ledger that install is given with a larger budget"
    revise = "publish with revise=True from Python"
    no_target = "target=None at install"

    def known_total(self, by: Sequence[str] = ()) -> str:
        return f"{Speech.known_total(self, by)} that install is given"


PYTHON = Speech()
CURATOR: Speech = _Curator()
ANALYST: Speech = _Analyst()
JOB_FILE: Speech = _JobFile()
WITHIN_JOB: Speech = _WithinJob()
AFTER_READING: Speech = _AfterReading()


class Worded(str):
    """A text over values, for Python, that can be rendered in another speech: a message or a sentence.

    `say` returns the text in a speech. `reason`: the problem, without the way out; None: the whole text. `obstacles`:
    why nothing is certified, one clause each.

    Notes
    -----
    A copy in another process, or what is made from it as from any text, speaks Python alone.
    """

    __slots__ = ("_say", "obstacles", "reason")
    _say: Callable[[Speech], str]
    reason: str | None
    obstacles: tuple[str, ...]

    def __new__(cls, say: Callable[[Speech], str], reason: str | None = None) -> Self:
        """Make the text that it is in Python."""
        text = super().__new__(cls, say(PYTHON))
        text._say, text.reason, text.obstacles = say, reason, ()
        return text

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def spoken(self, speech: Speech) -> str:
        """Return the text in another speech."""
        return self._say(speech)


def spoken(text: str, speech: Speech) -> str:
    """Return a text in a speech, where it can be had in it."""
    return text.spoken(speech) if isinstance(text, Worded) else text


def joined_texts(texts: Iterable[str]) -> Worded:
    """Return texts as one, with blanks between them."""
    parts = tuple(texts)
    return Worded(lambda say: " ".join(spoken(part, say) for part in parts))


def capital(text: str) -> Worded:
    """Return a text with a capital first letter."""
    return Worded(lambda say: spoken(text, say)[:1].upper() + spoken(text, say)[1:])


Clause = tuple[str, str]
"""A clause on a person, as a sentence has it that has named one; and as it stands alone."""


class Protection(Worded):
    """A text on the protection: `hides`, a clause; and `shows`, the clauses on the rest, as they stand alone."""

    __slots__ = ("hides", "shows")
    hides: str
    shows: tuple[str, ...]

    def __init__(self, hides: str, *shows: Clause, last: Clause | None = None) -> None:
        self.hides, self.shows = hides, tuple(alone for _, alone in (*shows, *filter(None, (last,))))

    def __new__(cls, hides: str, *shows: Clause, last: Clause | None = None) -> Self:
        """Make the text of clauses; the last one has a sentence of its own."""
        words = f"; it does not protect {', nor '.join(clause for clause, _ in shows)}" if shows else ""
        text = f"{hides}{words}.{'' if last is None else f' It does not protect {last[0]}.'}"
        return super().__new__(cls, lambda say: f"{say.protects} {text}")


ELSEWHERE = (
    "what several releases, or other people's records, tell about her",
    "what several releases, or other people's records, tell about a person",
)
"""No release by itself protects it."""


class _Within(Speech):
    protects = "it protects"


WITHIN: Speech = _Within()
"""For a text that goes on a sentence."""


def worded_for(error: BaseException, speech: Speech) -> str:
    """Return an error's message, its advice in a speech where it can be had in it."""
    message = error.args[0] if error.args else ""
    return spoken(message, speech) if isinstance(message, Worded) else str(error)


_STARTS, _ENDS = r"""(?<![\w'"-])""", r"""(?![\w'"-])"""
_VALUE = r"""\s?=\s?(?P<value>\{[^}]*\}|\[[^\]]*\]|"[^"]*"|'[^']*'|[\w.+-]*\w)( in source)?"""


def with_arguments(message: str, names: Mapping[str, str], write: Callable[[str, str], str]) -> str:
    """Return a message in which each argument of `names` has its name there, and is set as `write` sets it.

    It is an argument where it is set (``missing_unit="drop"``, ``types = { age = "number" } in source``), where its
    name is no word of a sentence (``one_cell``, ``source.types``), and where the message begins with it. A key of a job
    file's table is one where both have names: ``period.time_zone``.
    """
    message = re.sub(_STARTS + r"(\w+)\.(\w+)" + _ENDS, partial(_of_table, names), message)
    every, words = "|".join(names), "|".join(name for name in names if "_" in name) or "_"
    alone = rf"(?:(?:source\.)?(?P<word>{words})|(?:source\.|^)(?P<first>{every})){_ENDS}"
    # Another table is passed over, so that a column in it is no argument: types = { date = "date" }.
    pattern = (
        rf"{_STARTS}(?<!\.)(?P<set>{every}){_VALUE}|\{{[^}}]*\}}"
        rf"|{_STARTS}(?:(?:source\.)?(?P<of>{every})\.(?=\w)|{alone})"
    )
    return re.sub(pattern, partial(_argument, names, write), message) if names else message


def _of_table(names: Mapping[str, str], match: re.Match[str]) -> str:
    return names[match[2]] if match[1] in names and match[2] in names else match[0]


def _argument(names: Mapping[str, str], write: Callable[[str, str], str], match: re.Match[str]) -> str:
    if match["set"]:
        return write(names[match["set"]], match["value"])
    name = match["of"] or match["word"] or match["first"]
    return names.get(name or "", match[0]) + " " * bool(match["of"])


def reason_of(error: BaseException | str) -> str:
    """Return what is wrong, without what to do about it, where an error, or a text, tells them apart."""
    return getattr(error if isinstance(error, str) else error.args[0], "reason", None) or str(error)


def obstacles_of(error: BaseException) -> tuple[str, ...]:
    """Return why nothing is certified, one clause each, where an error says so; else what is wrong."""
    return getattr(error.args[0], "obstacles", ()) or (reason_of(error),)


INSTALLED = "pip install '.[{}]' in the checkout"
"""How an extra is installed; the package is on no index yet. `docs/` says the same, which a test compares."""


def fitting(number: int, most: int) -> int:
    """Return how many of so many lines are shown where there is room for about `most`.

    All of them, where leaving some out would save less than a tenth: a line says how many are left out.
    """
    return number if number <= most + max(1, most // 10) else most


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def rounded_up(value: float, digits: int = 3) -> str:
    """Return `value` as text, rounded up to `digits` significant digits."""
    if value == math.inf:
        return "infinity"
    if value == 0.0:
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(float(value))))
    exponent = rounded.adjusted()
    return f"{float(rounded):g}" if -4 <= exponent < 6 else f"{float(rounded.scaleb(-exponent)):g}e{exponent}"


def rounded_down(value: float | Fraction, digits: int = 3) -> str:
    """Return `value` as text, rounded down to `digits` significant digits: for what is attained, not for claims."""
    if value in (0, math.inf):
        return rounded_up(float(value))
    if isinstance(value, Fraction):
        exact = Context(prec=60, rounding=ROUND_FLOOR).divide(Decimal(value.numerator), Decimal(value.denominator))
    else:
        exact = Decimal(repr(float(value)))
    return rounded_up(float(Context(prec=digits, rounding=ROUND_FLOOR).plus(exact)), digits)


def shortened(value: float, digits: int = 4) -> float:
    """Return the largest number of so few significant digits that is not above `value`, which is at least 0."""
    return float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(value)))


def percent(share: float | None, *, up: bool = False) -> str:
    """Return a share as a percentage, rounded so that fewer attackers are named; only 0 and 1 are 0 % and 100 %."""
    exact = Decimal(repr(share or 0.0)) * 100
    if exact <= 50:
        short = _six_digits(exact, up=up)
    else:
        short = Context(prec=60).subtract(Decimal(100), _six_digits(100 - exact, up=not up))
    short = short.normalize()
    return f"{short:f} %" if short == 0 or short >= Decimal("1e-6") else f"{short:e} %"


def _six_digits(number: Decimal, *, up: bool) -> Decimal:
    return Context(prec=6, rounding=ROUND_CEILING if up else ROUND_FLOOR).create_decimal(number)


_GUARANTEE = re.compile(
    r"(ε|\beps(ilon)?) ?[=<≤:]? ?[0-9].*(δ|\bdelta) ?[=<≤:]? ?[0-9]|private at\b|against anyone\b", re.IGNORECASE
)


def names_guarantee(text: str) -> bool:
    """Return whether a text that somebody wrote names an ε with a δ, or speaks as a guarantee does."""
    return _GUARANTEE.search(unicodedata.normalize("NFKC", text)) is not None


_MAX_NUMBER = 1e300

#: What a field's annotation asks for, and how it is said.
_TYPES: dict[str, tuple[Any, str]] = {
    "str": (str, "a text"),
    "str | None": (str | None, "a text or None"),
    "bool": (bool, "True or False"),
    "tuple[str, ...]": (tuple, "a tuple of column names"),
    "tuple[str, ...] | None": (tuple | None, "a tuple of column names, or None"),
}


def check_types(value: Any, of: str = "") -> None:
    """Raise `ArgumentError` unless a dataclass's texts, truth values and tuples of texts are what they say."""
    for name, kind, said in _checked_fields(value.__class__):
        given = getattr(value, name)
        texts = given if isinstance(given, tuple) else ()
        if not isinstance(given, kind) or not all(isinstance(text, str) for text in texts):
            raise ArgumentError(f"{name}{of} must be {said}, not {type(given).__name__}.")


# Every value of a day's releases is checked and written: what its class says is read once.
@functools.cache
def _checked_fields(kind: type[Any]) -> tuple[tuple[str, Any, str], ...]:
    return tuple((field.name, *_TYPES[str(field.type)]) for field in fields(kind) if str(field.type) in _TYPES)


@functools.cache
def _written_fields(kind: type[Any]) -> tuple[tuple[str, bool, Any], ...]:
    return tuple((field.name, bool(field.metadata.get("rare")), field.default) for field in fields(kind))


RARE: dict[str, Any] = {"rare": True}
"""Metadata of a field that documents leave out where it is as by default."""


def written(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields as a JSON-ready dictionary, without those that are rare and as by default."""
    content = ((name, getattr(value, name), rare, default) for name, rare, default in _written_fields(value.__class__))
    return {name: _plain(entry) for name, entry, rare, default in content if not rare or entry != default}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):  # most are
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else written(value) if is_dataclass(value) else value


def in_python(value: Any) -> str:
    """Return a dataclass as it is written in Python: what is not as by default."""
    given = ((field, getattr(value, field.name)) for field in fields(value))
    stated = ", ".join(f"{field.name}={entry!r}" for field, entry in given if entry != field.default)
    return f"{type(value).__name__}({stated})"


def known_fields(kind: Any, content: object, what: str) -> dict[str, Any]:
    """Return `content` as arguments of a dataclass, or raise `ArgumentError` for a field that it does not have."""
    if not isinstance(content, Mapping):
        raise ArgumentError(f"{what} must be a mapping with its fields, not {type(content).__name__}.")
    known = {name for name, _, _ in _written_fields(kind)}
    strangers = sorted(set(content) - known, key=str)
    if strangers:
        raise ArgumentError(f"{what} has no field {strangers[0]!r}; its fields are {', '.join(sorted(known))}.")
    return dict(content)


def probability(name: str, value: object, *, limit: bool = False) -> float:
    """Return `value` as a float in [0, 1], rounded up, or as a limit to others down; or raise `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number between 0 and 1, not {type(value).__name__}.")
    number = _as_float(value)
    if not (0.0 <= number <= 1.0 and 0 <= cast("Any", value) <= 1):
        percents = f": {number:g} % is {number / 100:g}" if 1.0 < number <= 100.0 else ""
        raise ArgumentError(f"{name} must be a probability between 0 and 1, got {number!r}{percents}.")
    return _outward(value, number, limit=limit)


def _as_float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def loss(name: str, value: object, *, limit: bool = False) -> float:
    """Return an ε of at least 0, rounded up, so far below the largest float that sums of several are finite.

    An ε that is a limit to others is rounded down.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number of at least 0, not {type(value).__name__}.")
    number = _as_float(value)
    if not 0.0 <= number < _MAX_NUMBER:
        raise ArgumentError(f"{name} must be finite and at least 0 (below 1e300), got {number!r}.")
    return _outward(value, number, limit=limit)


def _outward(value: Real, number: float, *, limit: bool) -> float:
    """Return the float next to `value`, of which `number` is the nearest one, at or above it; of a limit below it."""
    exact = cast("Any", value)
    short = exact < number if limit else exact > number
    return (math.nextafter(number, 0.0 if limit else math.inf) if short else number) + 0.0


def whole_number(name: str, value: object, *, least: int) -> int:
    """Return `value` as an int of at least `least`, or raise `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentError(
            f"{name} must be a whole number of at least {least}, not {type(value).__name__}: write it as an int."
        )
    number = int(value)
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}.")
    if number.bit_length() > 1024:
        raise ArgumentError(f"{name} must be a number that people can be counted with, below 2^1024.")
    return number


def positive_real(name: str, value: object) -> float:
    """Return `value` as a finite float above 0, or raise `ArgumentError`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number above 0, not {type(value).__name__}.")
    number = _as_float(value)
    if not (math.isfinite(number) and number > 0.0):
        raise ArgumentError(f"{name} must be finite and above 0, got {number!r}.")
    return number


def choice(name: str, value: object, allowed: Iterable[str]) -> str:
    """Return `value` when it is one of `allowed`, or raise `ArgumentError` that lists them."""
    options = sorted(allowed)
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ArgumentError(f"{name} must be one of {listed}, got {value!r}.")
    return value
