"""KnowledgeCurve: the certified ε as the attacker learns more than was declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Field", "KnowledgeCurve"]

Field = Literal["known", "p_max", "p_max_between", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeCurve:
    """The certified ε at one δ as one field of the attacker moves.

    Attributes
    ----------
    field : {"known", "p_max", "p_max_between", "unknown"}
        The attacker's field that is moved.
    words : str
        It in plain words, as an axis is named.
    declared : float
        Where the declared attacker is.
    values : tuple of float
        Increasing; `declared` is one of them.
    epsilons : tuple of float
        The ε certified against each; `math.inf` where there is none. More knowledge never lowers it.
    floor : float or None
        The ε of the noise alone, which holds whatever the attacker knows; None where there is none.
    delta : float
    """

    field: Field
    words: str
    declared: float
    values: tuple[float, ...]
    epsilons: tuple[float, ...]
    floor: float | None
    delta: float
