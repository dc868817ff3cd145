"""Words: texts over values, rendered last, in the speech of their reader; and numbers, rounded outward."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Self

from pkdp_pipeline.model.spelling import exactly


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


class _Analyst(Speech):
    def setting(self, name: str, value: object) -> str:
        return f"{name} := {value}"

    def noise(self, epsilon: float) -> str:
        return f"noise := {exactly(epsilon)}"

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
_VALUE = r"""\s?=\s?(\{[^}]*\}|\[[^\]]*\]|"[^"]*"|'[^']*'|[\w.+-]*\w)( in source)?"""


def with_arguments(message: str, names: Mapping[str, str], write: Callable[[str, str], str]) -> str:
    """Return a message in which each argument of `names` has its name there, and is set as `write` sets it.

    It is an argument where it is set (``missing_unit="drop"``, ``types = { age = "number" } in source``), where its
    name is no word of a sentence (``one_cell``, ``source.types``), and where the message begins with it. A key of a job
    file's table is one where both have names: ``period.time_zone``.
    """
    message = re.sub(_STARTS + r"(\w+)\.(\w+)" + _ENDS, partial(_of_table, names), message)
    for name, typed in names.items():
        values = re.compile(_STARTS + rf"(?<!\.){name}" + _VALUE)
        message = values.sub(partial(_rewritten, write, typed), message)
        message = re.sub(_STARTS + rf"(?:source\.)?{name}\.(?=\w)", f"{typed} ", message)
        alone = rf"(?:source\.)?{name}" if "_" in name else rf"(?:source\.|^){name}"
        message = re.sub(_STARTS + alone + _ENDS, typed, message)
    return message


def _of_table(names: Mapping[str, str], match: re.Match[str]) -> str:
    return names[match[2]] if match[1] in names and match[2] in names else match[0]


def _rewritten(write: Callable[[str, str], str], name: str, match: re.Match[str]) -> str:
    return write(name, match[1])


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
