"""The JSON form of certificates: read strictly; and how a stored document differs from a recomputed one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, Literal

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.wording import Speech, Worded, rounded_up
from pkdp_pipeline.schemas import VERSION
from pkdp_pipeline.theorems.numerics import EVALUATED, TINY

Reader = Callable[[Mapping[str, Any]], Any]

READERS: dict[str, Reader] = {}
"""The field that tells a kind of certificate → what makes one of a document; each kind adds its own."""

SCHEMA = "pkdp-certificate/1"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/certificate.v1.json` describes it."""


LIBRARY = {"name": "pkdp_pipeline", "version": VERSION}
"""The version that writes documents here."""


def is_ours(document: Mapping[str, Any]) -> bool:
    """Return whether a certificate's document says that this version wrote it, whose words can be compared."""
    return bool(document.get("library") == LIBRARY)


# A ledger asks for what a certificate follows from, for its head and for its numbers; nobody changes a document.
_loaded = lru_cache(maxsize=16)(json.loads)


def parsed(text: str) -> Mapping[str, Any]:
    """Return the document of a certificate's JSON text, or raise `ArgumentError` where its shape is wrong."""
    try:
        document = _loaded(text)
    except (TypeError, ValueError, RecursionError):
        raise ArgumentError("a certificate must be JSON text as written by Certificate.to_json.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ArgumentError(f"not a certificate this version reads: its schema must be {SCHEMA!r}.")
    if not isinstance(document.get("context"), dict | None):
        raise ArgumentError("the certificate's field 'context' is malformed.")
    about: dict[str, type] = {"mechanism": dict, "attacker": dict}
    if "parts" in document:
        about = {"parts": list, "evidence": list}
    kinds = {**about, "protects": str, "caveats": list, "grid": list, "library": dict}
    for name, kind in kinds.items():
        if not isinstance(document.get(name), kind):
            raise ArgumentError(f"the certificate's field {name!r} is missing or malformed.")
    return document


SEARCHED = 1e-4
"""A search for the ε of a δ stops this close, relatively, at the latest: at a hundredth of a bound's slack."""

Direction = Literal["below", "above", "length", "other", "words"]
Steps = tuple[str | int, ...]
"""The members of a document that lead to a place in it."""
Rounding = Callable[[Steps], float]

_DOWN = frozenset({"attained"})
"""Numbers that some attacker reaches: of these, more is the bolder claim."""

_UP = frozenset({"certified", "delta", "delta_at_one", "epsilon", "epsilons", "floor", "spent", "worst_case"})
"""Numbers that are promised: of these, less is the bolder claim."""

_PROBABILITIES = frozenset({"certified", "delta", "delta_at_one"})

_REQUESTED = frozenset({"grid", "numbers", "curve"})
"""An ε in these, at which something is stated, is no promise."""

_MAX_LISTED = 3

REWORDED = (
    "An earlier state of this version wrote other words, or somebody altered them: do not rely on them. Certify the "
    "same again with pkdp.certify to read what is certified."
)
"""Why words differ where the version is the same: nobody can tell which of the two it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where a stored document is not what is recomputed.

    Parameters
    ----------
    direction : {"below", "above", "length", "other", "words"}
        Whether the stored number is below or above the recomputed one; a list is not as long; something else that is
        no text; or a text.
    """

    path: str
    steps: Steps
    direction: Direction
    stored: Any
    fresh: Any

    @property
    def overclaims(self) -> bool:
        """Whether the stored number promises more than what is certified."""
        return self.direction == ("above" if self._name in _DOWN else "below")

    @property
    def is_weaker(self) -> bool:
        """Whether the stored number is a true promise, weaker than necessary."""
        if self.overclaims or self.direction not in ("below", "above"):
            return False
        if self._name in _DOWN:
            return bool(self.stored >= 0)
        if self._name not in _UP or (self._name in ("epsilon", "epsilons") and _REQUESTED & set(self.steps)):
            return False
        return self._name not in _PROBABILITIES or self.stored <= 1

    @property
    def _name(self) -> str:
        return next((step for step in reversed(self.steps) if isinstance(step, str)), "")

    def __str__(self) -> str:
        if self.direction == "words":
            return f"{self.path} has other words"
        if self.direction == "length":
            return f"{self.path} has {self.stored} entries, recomputed {self.fresh}"
        if self.direction == "other":
            return f"{self.path} is {_shown(self.stored)}, recomputed {_shown(self.fresh)}"
        attained = self._name in _DOWN
        bolder = "more than any attack is known to reach" if attained else "lower than what is certified"
        harmless = "less than an attack is known to reach" if attained else "higher than what is certified"
        why = bolder if self.overclaims else harmless
        return f"{self.path} is {_shown(self.stored)}, {why}: {_shown(self.fresh)}"


def differences(
    path: str,
    stored: Any,
    fresh: Any,
    *,
    skip: Collection[str] = frozenset(),
    none_is_infinite: bool = False,
    rounding: Rounding = lambda steps: EVALUATED,
) -> list[Difference]:
    """Return where `stored` is not what some processor makes of `fresh`.

    Parameters
    ----------
    skip : collection of str
        Members that are not looked at, wherever they are.
    none_is_infinite : bool, default False
        Whether null stands for an ε that does not exist, which is above every number.
    rounding : callable, optional
        Of the number that steps lead to: the share of it by which processors may differ; see
        `pkdp_pipeline.theorems.bound.Bound`. It is asked only where numbers differ.

    Notes
    -----
    A text over numbers, `Worded`, may be stored as it is printed for numbers that differ as much as searches do.
    """

    def walk(steps: Steps, stored: Any, fresh: Any) -> Iterator[Difference]:
        def different(direction: Direction, mine: Any = stored, other: Any = fresh, *inner: str) -> Difference:
            place = (*steps, *inner)
            named = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
            return Difference(
                path=(path + named).lstrip("."), steps=place, direction=direction, stored=mine, fresh=other
            )

        if isinstance(fresh, dict) and isinstance(stored, dict):
            for name in sorted((set(fresh) | set(stored)) - set(skip)):
                if (name in fresh) != (name in stored):
                    yield different("other", stored.get(name), fresh.get(name), name)
                else:
                    yield from walk((*steps, name), stored[name], fresh[name])
        elif isinstance(fresh, list) and isinstance(stored, list):
            if len(fresh) != len(stored):  # which of them is missing, cannot be told
                words = all(isinstance(item, str) for item in (*fresh, *stored))
                yield different("words" if words else "length", len(stored), len(fresh))
                return
            for place, (mine, other) in enumerate(zip(stored, fresh, strict=True)):
                yield from walk((*steps, place), mine, other)
        elif isinstance(fresh, str) and isinstance(stored, str):
            if fresh != stored and not (isinstance(fresh, Worded) and stored in _printings(fresh)):
                yield different("words")
        elif _is_number(fresh) and _is_number(stored) and (isinstance(fresh, float) or isinstance(stored, int)):
            if stored != fresh and not (isinstance(fresh, float) and _is_near(stored, fresh, steps, rounding)):
                yield different("below" if stored < fresh else "above" if stored > fresh else "other")
        elif none_is_infinite and _is_number(_or_infinite(fresh)) and _is_number(_or_infinite(stored)):
            if fresh is not stored:
                yield different("below" if fresh is None else "above")
        elif type(fresh) is not type(stored) or fresh != stored:
            yield different("other")

    return list(walk((), stored, fresh))


def described(deviations: Collection[Difference]) -> str:
    """Return the first of several differences in words, the bold ones before the harmless."""
    ordered = sorted(deviations, key=lambda difference: not difference.overclaims)
    more = len(ordered) - _MAX_LISTED
    listed = [str(difference) for difference in ordered[:_MAX_LISTED]]
    return "; ".join(listed) + (f"; and {more} more" if more > 0 else "")


def is_word(difference: Difference) -> bool:
    """Return whether a difference is in what a certificate says, and in none of its numbers or facts."""
    return difference.direction == "words" and "rule" not in difference.steps


def refuse_altered(deviations: Collection[Difference]) -> None:
    """Raise `ArgumentError` at the first difference that no processor can have produced, words last."""
    altered = sorted((difference for difference in deviations if not difference.is_weaker), key=is_word)
    if altered and is_word(altered[0]):
        raise ArgumentError(
            f"the certificate's numbers are right, but {altered[0].path} is worded otherwise than this version words "
            f"it. {REWORDED}"
        )
    if altered:
        raise ArgumentError(
            f"{altered[0].path} is not what the mechanism and the attacker give: the certificate was altered or is not "
            "ours. Certify again with pkdp.certify."
        )


def outcome_of(deviations: Collection[Difference]) -> str:
    """Return that numbers are the same, or which of them are weaker than necessary and so differ from what is ours."""
    if not deviations:
        return "all the same"
    return f"all true, {len(deviations)} of them weaker than necessary: {described(deviations)}"


def _is_near(stored: float, fresh: float, steps: Steps, rounding: Rounding) -> bool:
    """Say whether two numbers, the stored one of any size, differ by no more than rounding elsewhere."""
    if not (math.isfinite(fresh) and (isinstance(stored, int) or math.isfinite(stored))):
        return False
    apart, size = abs(Fraction(stored) - Fraction(fresh)), abs(Fraction(fresh))
    if apart <= Fraction(EVALUATED) * size:
        return True
    # What is below this has lost digits to underflow; nothing that is exactly 0 has.
    return bool(fresh) and apart <= Fraction(rounding(steps)) * size + Fraction(TINY)


class _Printing(Speech):
    """Prints the numbers of a text as they were chosen, and notes how processors may print each."""

    def __init__(self, chosen: tuple[str, ...] = ()) -> None:
        self._chosen, self.choices = iter(chosen), list[list[str]]()

    def number(self, value: float) -> str:
        ends = (value, value * (1.0 - SEARCHED), value * (1.0 + SEARCHED))
        self.choices.append(list(dict.fromkeys(map(rounded_up, ends))))
        return next(self._chosen, self.choices[-1][0])


def _printings(text: Worded) -> Iterator[str]:
    """Yield a text as processors may print it: a number changes its last digit where it lies near to the end of it."""
    first = _Printing()
    text.spoken(first)
    return (text.spoken(_Printing(chosen)) for chosen in product(*first.choices))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _or_infinite(value: Any) -> Any:
    return math.inf if value is None else value


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 10**18:
        return f"a number of {len(str(abs(value)))} digits" if abs(value) < 10**4000 else "a very large number"
    return repr(value) if _is_number(value) else f"a {type(value).__name__}"
