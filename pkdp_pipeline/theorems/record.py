"""A theorem as a record, which says when it holds, what it then proves, and all that is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism, Protects
from pkdp_pipeline.theorems.bound import Applied
from pkdp_pipeline.theorems.words import UNCHECKED, Formal

Knowledge = Literal["known", "p_max", "p_max_between", "sampled", "unknown"]
"""The attacker's fields on which a theorem's number can rest."""

PAPER = 'D. Desfontaines, E. Mohammadi, E. Krahmer and D. Basin, "Differential privacy with partial knowledge"'
LEAKAGE_PAPER = 'K. Ligett, C. Peale and O. Reingold, "Bounded-leakage differential privacy", FORC 2020'


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """One result, and all that is said of it.

    Parameters
    ----------
    citation : str
        Where statement and proof can be read.
    formal : Formal, optional
        How far its proof is checked by machine; None where no part is.
    against : callable or None
        The attackers it covers, in words, for an attacker; None for a theorem that assumes nothing of the attacker.
    assumes : tuple of str
        Its other assumptions, as plain sentences.
    protection : str
        The extent of its protection, where that is not what the mechanism says.
    rests_on : tuple of {"known", "p_max", "p_max_between", "sampled", "unknown"}
        The fields that its number rests on. One that rests on ``unknown`` but not on ``known`` lets the attacker know
        everybody else.
    averages : bool
        Whether it averages over how many of the merely known people count.
    told_absent : bool
        Whether ``p_max`` is about somebody who is told that a person is absent or in a given cell.
    reveals_who : bool
        Whether its proof lets the attacker see who is present.
    hides_presence_too : bool
        Whether its dominating pair for the value dominates that for presence as well.
    beside_private : bool
        Whether it is left beside leakages that are themselves differentially private.
    noised_below : bool
        Whether it holds where counts below k are noised and all others exact.
    needs : tuple of str
        The mechanism's and the attacker's fields without which it has nothing to say beside a threshold k.
    is_rule : bool
        Whether it adds certificates up.
    about : (mechanism class, {"presence", "value"}), optional
        Its subject, where it rests on what the attacker does not know.
    rule : callable, optional
        When it holds: takes a mechanism of that class, an attacker and the keys of the theorems that are left for
        this attacker; returns the bound as `Applied`, or why there is none, in words; None where there is nothing to
        say.
    declared : callable, optional
        Returns the bound of a table with this number of declared cells: takes both.
    """

    key: str
    title: str
    citation: str
    formal: Formal | None = None
    against: Callable[[AttackerModel], str] | None = None
    assumes: tuple[str, ...] = ()
    protection: str = ""
    rests_on: tuple[Knowledge, ...] = ()
    averages: bool = False
    told_absent: bool = False
    reveals_who: bool = False
    hides_presence_too: bool = False
    beside_private: bool = False
    noised_below: bool = False
    needs: tuple[str, ...] = ()
    is_rule: bool = False
    about: tuple[type[Mechanism], Protects] | None = None
    rule: Callable[[Any, AttackerModel, frozenset[str]], Applied | str | None] | None = None
    declared: Callable[[Applied, int], Applied] | None = None

    @property
    def checked(self) -> tuple[str, ...]:
        """How far its proof is checked by machine, one plain sentence each."""
        return UNCHECKED if self.formal is None else self.formal.sentences()
