"""The guarantee in words: whom it holds against, its assumptions, and what it does not protect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pkdp_pipeline.model.attacker import AttackerModel, Leakage
from pkdp_pipeline.model.evidence import SamePeople
from pkdp_pipeline.model.mechanisms import (
    Count,
    Histogram,
    Mechanism,
    Protects,
    Sum,
    cells_per_unit,
    noised_below,
    sensitivity,
)
from pkdp_pipeline.model.wording import ELSEWHERE, Protection, Worded, capital, listed, rounded_up
from pkdp_pipeline.theorems.theorems import THEOREMS

_AS_DECLARED = (
    "anyone who, for every release, fits the attacker declared in its certificate, including the independence of "
    "people's records"
)
_OF_ONE = "anyone who fits the attacker declared in one of these certificates"
FIXED_BEFOREHAND = (
    "Which releases are made, and with which parameters, was fixed before the first of them; where later ones were "
    "chosen after seeing earlier ones, only the sums of worst-case ε and δ hold."
)
BEFORE_LOOKING = "These numbers were declared before looking at the data, and not estimated from them."
CELLS_DECLARED = "This holds for cells that are declared beforehand, not taken from the data."
NOTHING_ASSUMED = "Nothing is assumed about what the attacker knows."
OWN_PERIODS = "Equal parts that name no period, and totals among them, are about different periods."
_MAX_NAMED = 3
"""Up to this many different attackers are described in a sentence."""


class _Certified(Protocol):
    def delta(self, epsilon: float) -> float: ...


def named_pair(certified: _Certified, epsilon: float, delta: float) -> tuple[float, float]:
    """Return the ε certified at `delta`, and `delta`; or ε as words show it and 0, where that is certified there."""
    if epsilon == math.inf:
        return epsilon, delta
    shown = float(rounded_up(epsilon))
    return (shown, 0.0) if certified.delta(shown) == 0.0 else (epsilon, delta)


def stated_pair(certified: _Certified, epsilon: float, delta: float) -> tuple[float, float]:
    """Return the pair (ε, δ) that is stated where `epsilon` is certified at `delta`; that at ε = 1 where none is."""
    return named_pair(certified, epsilon, delta) if epsilon < math.inf else (1.0, certified.delta(1.0))


def promised(certified: _Certified, epsilon: float, delta: float, whom: str) -> Worded:
    """Return what is certified at `delta`, where `epsilon` is, against whom; to follow what is private."""
    pair = stated_pair(certified, epsilon, delta)
    unreached = f" No ε reaches δ = {rounded_up(delta)}." if epsilon == math.inf else ""
    if unreached and rounded_up(pair[1]) == "1":
        return Worded(lambda say: f"no protection is certified at ε = 1 against {whom}.{unreached}")
    return Worded(lambda say: f"private at {say.pair(*pair)} against {whom}.{unreached}")


def implies(stronger: tuple[float, float], weaker: tuple[float, float]) -> bool:
    """Return whether one pair (ε, δ), as both are printed, says all that another one does; δ = 1 says nothing."""
    (epsilon, delta), (most, least) = ([float(rounded_up(value)) for value in pair] for pair in (stronger, weaker))
    return delta <= least and (epsilon <= most or least >= 1.0)


def known_exactly(leakage: tuple[Leakage, ...]) -> tuple[str, ...]:
    """Return the names of what is known exactly, whatever noise there is."""
    return tuple(leak.name for leak in leakage if not leak.is_private)


def anyone(
    given: tuple[str, ...], *, if_declared: bool = False, whom: str = "anyone at all", short: bool = False
) -> str:
    """Return against whom noise holds: everybody, given what is known exactly beside it."""
    if given or not short:
        whom += f", given {listed(given)}" if given else ", whatever they know"
    return f"{whom}, if what was declared is true" if if_declared else whom


def given(leakage: tuple[Leakage, ...]) -> tuple[str, ...]:
    """Return what a statement beside these leakages means and does not mean, as plain sentences."""
    exact = known_exactly(leakage)
    sentences = []
    groups = list(dict.fromkeys(column for leak in leakage for column in leak.by))
    if groups:
        columns = _columns(groups)
        sentences.append(
            f"Only cells with the same {columns} are compared, since the people of each group may be counted exactly: "
            f"a person's {columns} {'is' if len(groups) == 1 else 'are'} not protected."
        )
    if exact:
        tell, by = ("it tells", "itself") if len(exact) == 1 else ("they tell", "themselves")
        sentences.append(
            f"{capital(listed(exact))} may be known exactly: what {tell} by {by} is not protected, nor are two "
            f"possibilities for a person that {tell} apart to somebody who knows everybody else."
        )
    sentences += [
        f"{capital(leak.name)} may be known as well, and counts in these numbers."
        for leak in leakage
        if leak.is_private
    ]
    return tuple(sentences)


def _columns(names: Sequence[str]) -> str:
    return listed(list(map(repr, names)))


@dataclass(frozen=True, slots=True)
class OfSome:
    """A sentence, or the description of an attacker, that is true of so many of the releases.

    Attributes
    ----------
    text : str
        The sentence about each of these releases.
    number, releases : int
        How many they are, of how many.
    """

    text: str
    number: int
    releases: int

    def __str__(self) -> str:
        return (
            self.text
            if self.number == self.releases
            else f"In {self.number} of the {self.releases} releases: {self.text}"
        )


def leaking(leakage: tuple[Leakage, ...]) -> tuple[str, ...]:
    """Return what is assumed about leakages, one plain sentence each."""
    if not leakage:
        return ()
    sentences = [
        f"Nothing else is published or leaks about these people than {listed([leak.name for leak in leakage])}."
    ]
    for leak in leakage:
        name = capital(leak.name)
        if leak.tells == "people_present":
            who = "who is in the table at all, whichever cells they are in"
            if leak.by:
                who = f"who is in the table at all and from everybody's {_columns(leak.by)}, and nothing else"
            sentences.append(f"{name} follows from {who}.")
        if leak.epsilon is not None:
            private = f"{name} is itself differentially private at"
            sentences.append(_numbered(private, leak.epsilon, leak.delta, _REPLACED))
        elif leak.tells != "people_present" or leak.is_shared("presence"):
            lives = {"presence": "in the table or absent from it", "value": "in one cell or in another"}
            ways = [lives[aim] for aim in leak.shared_by]
            sentences.append(
                f"{name} can be the same whether a person is {', or '.join(ways)}."
                if ways
                else f"{name} may be different for any two lives of a person."
            )
        if leak.is_dependent:
            depends = f"{name} depends on the release's noise by at most"
            sentences.append(_numbered(depends, leak.dependence_epsilon, leak.dependence_delta))
        else:
            sentences.append(f"{name} does not depend on the release's noise: it has no randomness, or its own.")
    return tuple(sentences)


_REPLACED = " when one record is replaced by any other, absence included"


def _numbered(before: str, epsilon: float, delta: float, after: str = "") -> Worded:
    numbers = rounded_up(epsilon), rounded_up(delta)
    return Worded(lambda say: f"{before} {say.named(*numbers)}{after}.")


def against(theorem: str, attacker: AttackerModel) -> str:
    """Return whom the guarantee holds against, for the theorem with this key."""
    described = THEOREMS[theorem].against
    if described is None:
        return anyone(known_exactly(attacker.leakage))
    whom = described(attacker)
    if attacker.secret == "conditional":
        whom += f". The attacker may also know the records of all but one of each {attacker.dependent}"
    names = [leak.name for leak in attacker.leakage]
    return f"{whom}. Beside this the attacker may know {listed(names)}" if names else whom


def against_several(described: Mapping[str, int], *, one_of: bool) -> str:
    """Return whom a total is about: anyone who fits all of these, each about so many releases, or one of them.

    With none of these, or many, the certificates describe them.
    """
    if len(described) == 1:
        return next(iter(described))
    if not 0 < len(described) <= _MAX_NAMED:
        return _OF_ONE if one_of else _AS_DECLARED
    if one_of:
        return f"anyone who fits one of these descriptions. {'. Or: '.join(map(capital, described))}"
    each = (f"In {times} of the releases: {words}" for words, times in described.items())
    return f"anyone who fits all of these descriptions. {'. '.join(each)}"


def protection(
    mechanism: Mechanism,
    protects: Protects,
    theorem: str,
    attacker: AttackerModel | None = None,
    *,
    one_number: bool = False,
) -> tuple[str, ...]:
    """Return what the statement protects and what it does not, in plain English: first the `Protection`, if any.

    `one_number`: whether a sum is one of everybody, without cells.
    """
    to_cells = "" if one_number else ", and to which cells"
    sentences = [_protection(mechanism, protects, theorem, attacker, to_cells)]
    sentences += [] if one_number else [declared_cells(mechanism)]
    if attacker is not None:
        sentences += [following(mechanism, attacker), depending(attacker)]
    if isinstance(mechanism, Sum):
        lower, upper = mechanism.bounds
        bounded = f"Each person adds at least {lower} and at most {upper}{'' if one_number else ' to a cell'}"
        rows = "her rows" if one_number else "her rows there"
        sentences.insert(1, f"{bounded}: sums of {rows} beyond these bounds are cut to them.")
    if noised_below(mechanism):
        sentences.insert(
            1,
            f"Counts of at least {mechanism.k} are {'exact' if mechanism.display is None else 'without noise'} and "
            "protected by what the attacker does not know; smaller ones are protected by noise.",
        )
    return tuple(filter(None, sentences))


def declared_cells(mechanism: Mechanism) -> str:
    """Return that cells were declared, where noise alone would not hide which cells the data have; else nothing."""
    # Where small counts are noised, those of 0 are, too, unless cells are found in the data.
    if isinstance(mechanism, Count) or mechanism.noise is None or (mechanism.k and mechanism.below != "noise"):
        return ""
    if isinstance(mechanism, Sum) and mechanism.cells_found:
        return ""
    return CELLS_DECLARED


def following(mechanism: Mechanism, attacker: AttackerModel) -> str:
    """Return that suppressed counts follow from exact totals, where such are known, and that one is taken as public."""
    totals = [leak.name for leak in attacker.leakage if leak.tells_total]
    sentences = []
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        sentences.append("How many people are in the table is public: whether a person is in it is not protected.")
    if mechanism.k is not None and totals:
        sentences.append(
            f"Suppressed counts can follow from those shown and {listed(totals)}, exactly where no other one is "
            "suppressed beside it: these numbers allow for that."
        )
    return " ".join(sentences)


def depending(attacker: AttackerModel) -> str:
    """Return what is not protected where people's records depend on one another; empty where they do not."""
    name = attacker.dependent
    if name is None:
        return ""
    if attacker.secret == "conditional":
        return (
            f"The secret is a person's record, given those of all others of her {name}: what these tell about her is "
            "not protected."
        )
    return (
        f"Records of people of one {name} depend on one another: what others' records tell about a person is not "
        "protected."
    )


def _protection(
    mechanism: Mechanism, protects: Protects, theorem: str, attacker: AttackerModel | None, to_cells: str
) -> str:
    if isinstance(mechanism, Histogram) and mechanism.totals:
        return (
            "This release is the number of people present in each group, which may be known anyhow: it does not tell "
            "in which of a group's cells a person is, and it protects neither whether she is included nor her group."
        )
    if THEOREMS[theorem].protection:
        return THEOREMS[theorem].protection
    several = cells_per_unit(mechanism) > 1
    cells = "published cells"
    if attacker is not None and attacker.groups:
        cells += f" with the same {_columns(attacker.groups)}"
    if isinstance(mechanism, Count):
        return Protection("whether a person is counted in this release", ELSEWHERE)
    if protects == "presence":
        which, person = ("in which cells she is", "in which cells a person is") if several else _WHICH_CELL
        if isinstance(mechanism, Sum):
            which, person = (f"what {who} adds{to_cells}{',' * bool(to_cells)}" for who in ("she", "a person"))
        cell = f"{which} once that is known", f"{person} once it is known that she is there"
        return Protection("whether a person is included in this release", cell, ELSEWHERE)
    hidden = f"in which {cells} a person is" if several else f"which of two {cells} a person is in"
    if isinstance(mechanism, Sum):
        hidden = f"what a person adds to this release{to_cells}"
    return Protection(hidden, ("whether she is included", "whether she is included"), ELSEWHERE)


_WHICH_CELL = "which cell she is in", "which cell a person is in"


def the_attacker_is(whom: str) -> str:
    """Return who the attacker is, as a sentence."""
    return f"The attacker is {whom}."


def assumptions(theorem: str, attacker: AttackerModel) -> tuple[str, ...]:
    """Return what is assumed about the attacker, one plain sentence each; `leaking` says what is about leakages."""
    if THEOREMS[theorem].against is None:
        return (NOTHING_ASSUMED,)
    if attacker.sampled is not None:
        return (the_attacker_is(against(theorem, attacker)), *THEOREMS[theorem].assumes)
    return (
        _independence(attacker),
        the_attacker_is(against(theorem, attacker)),
        BEFORE_LOOKING,
        *THEOREMS[theorem].assumes,
    )


def same_in_all(attacker: AttackerModel) -> str:
    """Return what a conditional secret of one release assumes where there are several."""
    name = attacker.dependent
    return (
        f"A person's record given those of all others of her {name} is given all of theirs, in all of these releases; "
        f"and the one unknown person of each {name} is the same in all of them."
    )


def _independence(attacker: AttackerModel) -> str:
    if attacker.dependent is None:
        return (
            "From the attacker's point of view people's records are independent of one another, given what the "
            "attacker knows; people whose records depend on one another belong to the same privacy unit."
        )
    name = attacker.dependent
    return (
        f"From the attacker's point of view records of people of different units ({name}) are independent of one "
        f"another, given what the attacker knows; the declared numbers hold for a person's record given those of all "
        f"others of her {name}, and of each {name} one unknown person at most is counted as unknown."
    )


def suppression(mechanism: Mechanism) -> str:
    """Return the order of the steps that made the table, in words."""
    subject = "The count is" if isinstance(mechanism, Count) else "Every cell is"
    steps, change = [], ""
    if isinstance(mechanism, Sum):
        lower, upper = mechanism.bounds
        steps.append(f"summed up, each person's sum held between {lower} and {upper}")
        change = f" for a change by {sensitivity(mechanism)}"
    if noised_below(mechanism):
        steps.append(f"published as counted where it is at least {mechanism.k}; a smaller one is marked")
    elif mechanism.k is not None:
        steps.append(f"published only when it is at least {mechanism.k}")
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        steps.append(f"published only when at least {mechanism.k_complement} people are not counted")
    if mechanism.noise is not None:
        steps.append(f"given two-sided geometric noise with epsilon {mechanism.noise.epsilon!r}{change}")
    if mechanism.release_threshold is not None:
        steps.append(f"published only when the noisy value is at least {mechanism.release_threshold}")
    if mechanism.display is not None:
        steps.append(f"shown {mechanism.display.words}")
    # A histogram counts each person once, in a cell that a rule may have chosen.
    whole = "exactly" if isinstance(mechanism, Count) else "as counted"
    return f"{subject} {', then '.join(steps) or f'published {whole}'}."


def in_words(declared: Iterable[str]) -> list[str]:
    """Return what was declared as sentences; that nothing was is a sentence of its own."""
    nothing = SamePeople().declares
    first, *others = [text.removesuffix(".") for text in declared if text != nothing] or [""]
    listed = "; ".join((first, *(text[0].lower() + text[1:] for text in others)))
    return [*([f"Declared: {listed}."] if listed else []), *(text for text in declared if text == nothing)]


BY_ITSELF = (
    "Other releases about these people stand beside it: this is about the release by itself, and what they tell "
    "together is stated by the ledger's total."
)
BY_NOISE = (
    "Other releases about these people stand beside it, so that only its noise counts here: what its certificate says "
    "about an attacker who is unsure of other people would hold only if nothing else were published."
)
OWN_CAVEATS = (BY_ITSELF, BY_NOISE)
"""Caveats that a report adds to certificates: how a release stands beside others."""
