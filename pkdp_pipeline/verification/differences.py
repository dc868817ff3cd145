"""Differences between a stored document and a recomputed one: numbers by direction, words apart from them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pkdp_pipeline.certificate_json import same_number

__all__ = ["Difference", "described", "differences"]

Direction = Literal["below", "above", "length", "other", "words"]

_DOWN = frozenset({"attained"})
"""Numbers that some attacker reaches: of these, more is the bolder claim."""

_MOST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where a stored document is not what is recomputed.

    Parameters
    ----------
    path : str
    direction : {"below", "above", "length", "other", "words"}
        Whether the stored number is below or above the recomputed one; a list is not as long; something else that is
        no text; or a text.
    stored, fresh : JSON value
    """

    path: str
    direction: Direction
    stored: Any
    fresh: Any

    @property
    def overclaims(self) -> bool:
        """Whether the stored number promises more than what is certified."""
        attained = self.path.rpartition(".")[2].partition("[")[0] in _DOWN
        return self.direction == ("above" if attained else "below")

    def __str__(self) -> str:
        if self.direction == "words":
            return f"{self.path} has other words"
        if self.direction == "length":
            return f"{self.path} has {self.stored} entries, recomputed {self.fresh}"
        if self.direction == "other":
            return f"{self.path} is {_shown(self.stored)}, recomputed {_shown(self.fresh)}"
        attained = "attained" in self.path.rpartition(".")[2]
        bolder = "more than any attack is known to reach" if attained else "lower than what is certified"
        harmless = "less than an attack is known to reach" if attained else "higher than what is certified"
        why = bolder if self.overclaims else harmless
        return f"{self.path} is {_shown(self.stored)}, {why}: {_shown(self.fresh)}"


def differences(
    path: str, stored: Any, fresh: Any, *, skip: Collection[str] = frozenset(), none_is_infinite: bool = False
) -> Iterator[Difference]:
    """Yield where `stored` is not `fresh`; numbers are compared as `Certificate.verify` does.

    Parameters
    ----------
    path : str
    stored, fresh : JSON values
    skip : collection of str
        Members that are not looked at, wherever they are.
    none_is_infinite : bool, default False
        Whether null stands for an ε that does not exist, which is above every number.
    """
    if isinstance(fresh, dict) and isinstance(stored, dict):
        for name in sorted(set(fresh) | set(stored)):
            if name in skip:
                continue
            inner = f"{path}.{name}" if path else name
            if (name in fresh) != (name in stored):
                yield Difference(path=inner, direction="other", stored=stored.get(name), fresh=fresh.get(name))
            else:
                yield from differences(inner, stored[name], fresh[name], skip=skip, none_is_infinite=none_is_infinite)
    elif isinstance(fresh, list) and isinstance(stored, list):
        if len(fresh) != len(stored):  # which of them is missing, cannot be told
            words = all(isinstance(one, str) for one in (*fresh, *stored))
            yield Difference(path=path, direction="words" if words else "length", stored=len(stored), fresh=len(fresh))
            return
        for place, (mine, other) in enumerate(zip(stored, fresh, strict=True)):
            yield from differences(f"{path}[{place}]", mine, other, skip=skip, none_is_infinite=none_is_infinite)
    elif isinstance(fresh, str) and isinstance(stored, str):
        if fresh != stored:
            yield Difference(path=path, direction="words", stored=stored, fresh=fresh)
    elif _is_number(fresh) and _is_number(stored):
        exact = isinstance(stored, int) and isinstance(fresh, int)
        if stored != fresh if exact else not same_number(stored, float(fresh)):
            yield Difference(path=path, direction="below" if stored < fresh else "above", stored=stored, fresh=fresh)
    elif none_is_infinite and (fresh is None, stored is None) != (True, True) and _is_number(_or_infinite(fresh)):
        if _is_number(_or_infinite(stored)):
            yield Difference(path=path, direction="below" if fresh is None else "above", stored=stored, fresh=fresh)
        else:
            yield Difference(path=path, direction="other", stored=stored, fresh=fresh)
    elif type(fresh) is not type(stored) or fresh != stored:
        yield Difference(path=path, direction="other", stored=stored, fresh=fresh)


def described(found: Collection[Difference]) -> str:
    """Return the first of several differences in words, the bold ones before the harmless."""
    ordered = sorted(found, key=lambda one: not one.overclaims)
    more = len(ordered) - _MOST
    listed = [str(one) for one in ordered[:_MOST]]
    return "; ".join(listed) + (f"; and {more} more" if more > 0 else "")


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
