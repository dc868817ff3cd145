"""The rules by which guarantees add up: which evidence calls which, what each refuses, and what leaks beside all.

The bounds for one release: those of theorems, and rule 10, by which a person may be in several cells of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from types import MappingProxyType

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import Directions, directions
from pkdp_pipeline.composition.part import Part, Smallest, Total, WorstMaximum, best_attack
from pkdp_pipeline.composition.same_people import bounded_sensitivity, in_one_part, same_people, same_table
from pkdp_pipeline.composition.schedule import (
    bounded_dependence,
    bounded_participation,
    disjoint_units,
    independent_draws,
    independent_given_habits,
    one_day_protected,
    without_evidence,
)
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.model.attacker import AttackerModel, Leakage, leakages
from pkdp_pipeline.model.evidence import KINDS, BoundedParticipation, Evidence, OncePerUnit
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, Protects, cells_per_unit, within_table
from pkdp_pipeline.model.wording import Speech, Worded, listed
from pkdp_pipeline.theorems.bound import Applied, ProductLosses
from pkdp_pipeline.theorems.hull import ProfileLosses
from pkdp_pipeline.theorems.theorems import THEOREMS, Applicable, Surviving
from pkdp_pipeline.theorems.theorems import bounds_of as bounds_of_theorems
from pkdp_pipeline.theorems.thresholding import Thresholding
from pkdp_pipeline.theorems.worst_case import Leaked

Rule = Callable[[tuple[Part, ...], tuple[Evidence, ...]], Total]

_REGISTRY: dict[frozenset[str], Rule] = {
    frozenset[str](): without_evidence,
    frozenset({"disjoint_units"}): disjoint_units,
    frozenset({"independent_given_habits"}): independent_given_habits,
    frozenset({"independent_given_habits", "bounded_participation"}): independent_given_habits,
    frozenset({"independent_draws"}): independent_draws,
    frozenset({"one_day_protected"}): one_day_protected,
    frozenset({"one_day_protected", "bounded_participation"}): one_day_protected,
    frozenset({"bounded_dependence"}): bounded_dependence,
    frozenset({"bounded_participation"}): bounded_participation,
    frozenset({"same_people"}): same_people,
    frozenset({"same_table"}): same_table,
    frozenset({OncePerUnit.key}): in_one_part,
    frozenset({"bounded_sensitivity"}): bounded_sensitivity,
}
RULES: Mapping[frozenset[str], Rule] = MappingProxyType(_REGISTRY)
"""The evidence declared → the rule that uses it."""


def apply_rule(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up `parts` by the rule for `evidence`.

    Raises `NoEvidenceError` if neither a partial-knowledge nor a worst-case total follows.
    """
    if not parts:
        nothing = WorstMaximum(theorem="worst_case_parts", parts=())
        return Total(rule="nothing", partial=(), worst=nothing, protection="There is nothing to learn from.")
    if not all(part.bounds for part in parts):
        raise NoEvidenceError(
            "the parts protect different things: a part that hides which cell a person is in says nothing about "
            "whether she is there. Certify all parts with the same protects."
        )
    _check_draws(parts, _keys(evidence))
    total = RULES[_keys(evidence)](parts, evidence)
    if len(parts) == 1 and parts[0].times == 1 and total.partial:
        total = replace(total, partial=_as_certified(parts[0], total.partial[0].bound.theorem))
    if not total.partial and total.worst is None:
        reason = total.reason or "no rule makes a total of them"
        declared = frozenset(type(item) for item in evidence)
        excepted = bool(same_people(parts, ()).partial)
        raise NoEvidenceError(Worded(partial(_unsummed, reason, declared, excepted)))
    return total


_DRAWS = frozenset({"independent_draws", "disjoint_units", "same_table"})
"""Evidence under which certificates of secret samples add up."""


def _check_draws(parts: tuple[Part, ...], keys: frozenset[str]) -> None:
    """Raise `NoEvidenceError` where several releases of samples are added up by what says nothing about draws."""
    drawn = any(True in part.samples for part in parts)
    if "independent_draws" in keys and any(False in part.samples for part in parts):
        raise NoEvidenceError(
            "independent draws are about releases of secret samples, and some of these are none: certify all of them "
            "with sampled in the attacker, or declare evidence about people's records."
        )
    if drawn and keys and not keys & _DRAWS:
        raise NoEvidenceError(
            "releases of secret samples add up by their draws: what is declared says nothing of these. Declare "
            "pkdp.IndependentDraws() where each is of a sample of its own; releases of one sample, or of a panel, are "
            "published as one table."
        )


def _as_certified(part: Part, theorem: str) -> tuple[Applied, ...]:
    """Return what a single release tells by itself: its own certificate's numbers, to the last digit."""
    bound = Smallest(theorem=theorem, bounds=tuple(applied.bound for applied in part.partial))
    return (Applied(bound=bound, attack=best_attack(theorem, part.partial)),)


def _keys(evidence: Iterable[Evidence]) -> frozenset[str]:
    return frozenset(item.key for item in evidence)


def _unsummed(reason: str, declared: frozenset[type[Evidence]], excepted: bool, say: Speech) -> str:
    # What was declared and led nowhere is no choice; bounded participation is one beside other evidence.
    choices = ", ".join(
        f"{say.evidence(kind)} ({kind.holds})"
        for kind in KINDS.values()
        if kind.holds and kind not in declared - {BoundedParticipation}
    )
    beside = say.same_people if excepted else ""
    return (
        f"these releases do not add up: {reason}, and not all of them are noised with a finite worst case. Declare "
        f"evidence that holds: {choices}{beside}. Or put noise on all of them; or publish one cross-tabulated "
        "histogram, its cells declared in domain, and derive the others from it."
    )


def leakage_of(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> tuple[Leakage, ...]:
    """Return all that leaks beside any of the parts.

    Raises `NoEvidenceError` if the leakages of different parts say nothing together, or not what the rule needs.
    """
    leaks = tuple(dict.fromkeys(leak for part in parts for leak in part.leakage))
    if not leaks:
        return ()
    try:
        leakages(leaks)
    except ArgumentError as error:
        raise NoEvidenceError(f"the leakages beside the parts do not add up: {error}") from error
    dependent = next((leak for leak in leaks if leak.is_dependent), None)
    if dependent is not None and sum(part.times for part in parts) > 1 and "same_table" not in _keys(evidence):
        raise NoEvidenceError(
            f"{dependent.name} may depend on the releases' noise: how much it does on each does not bound how much it "
            "does on all of them, as two noises and their sum show. Publish it with randomness of its own, or certify "
            "the releases one by one."
        )
    private = next((leak for leak in leaks if leak.is_private), None)
    if private is not None and "bounded_sensitivity" in _keys(evidence):
        raise NoEvidenceError(
            f"{private.name} may change with every record, whichever counts the record changes, so that a bound on the "
            "changes of the counts does not hold for it. Leave the evidence out: worst cases then add up, with it."
        )
    return leaks


def total_beside(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up parts by the rule for `evidence`; exact totals, which the other parts count with, are set aside.

    Raises `NoEvidenceError` if an exact total stands beside parts that were certified without it, or nothing follows.
    """
    aside = tuple(part for part in parts if isinstance(part.worst, Leaked))
    if not aside:
        return apply_rule(parts, evidence)
    others = tuple(part for part in parts if not isinstance(part.worst, Leaked))
    if not others:
        hidden = (
            "These releases are numbers of people present, which may be known anyhow: they do not tell which "
            "cell a person is in, and they do not protect whether she is included."
        )
        rule = "single" if len(parts) == 1 and parts[0].times == 1 else "worst_case_parts"
        reason = "they are part of what leaks"
        return Total(rule=rule, partial=(), worst=aside[0].worst, protection=hidden, reason=reason)
    groupings = {by for part in aside for by in _tells(part)}
    if not all(groupings <= part.totals_known for part in others):
        start = (
            "the exact number of people present is among the releases, and some of the others were certified without "
            "it: certify all of them with "
        )
        by = sorted(frozenset[str]().union(*groupings))
        raise NoEvidenceError(Worded(lambda say: f"{start}{say.known_total(by)}."))
    total, keys = apply_rule(others, evidence), _keys(evidence)
    own, rest = _publications(aside), _publications(others)
    if total.partial and "bounded_dependence" in keys:
        # Another day's total is a release that depends on earlier ones; the day's own counts as part of its table.
        counted = (*others, *(part for part in aside if not _is_beside(_publications([part]), rest)))
        total = replace(total, partial=apply_rule(counted, evidence).partial)
    if total.partial and not keys & _COVER_PERIODS and any(_differ(first, second) for first in own for second in rest):
        # Who is there in one period, or table, may depend on the cell a person is in in another.
        total = replace(total, partial=(), reason="an exact total is about another period or table than the rest")
        if total.worst is None:
            raise NoEvidenceError(f"these releases do not add up: {total.reason}, and not all of them are noised.")
    return replace(total, rule="worst_case_parts") if total.rule == "single" else total


def _tells(part: Part) -> frozenset[frozenset[str]]:
    """Return by which columns exact totals count people, at most."""
    if part.inside:
        return frozenset[frozenset[str]]().union(*map(_tells, part.inside))
    return part.totals_known if isinstance(part.mechanism, Histogram) else frozenset({frozenset[str]()})


_COVER_PERIODS = frozenset(
    {"disjoint_units", "independent_given_habits", "independent_draws", "one_day_protected", "bounded_dependence"}
)
"""Evidence that says how the records of different periods depend on one another."""

Publication = tuple[str | None, str | None, str | None]
"""Data set, table and period."""


def _publications(parts: Iterable[Part]) -> set[Publication]:
    return {(context.dataset, context.table, context.period) for part in parts for context in part.contexts}


def _differ(first: Publication, second: Publication) -> bool:
    """Return whether two publications are known to be about different periods or tables."""
    pairs = zip(first[::2], second[::2], strict=True)
    return first[1] != second[1] or any(mine != theirs and None not in (mine, theirs) for mine, theirs in pairs)


def _is_beside(total: set[Publication], others: set[Publication]) -> bool:
    """Return whether an exact total is known to be about the same period and table as one of the other parts."""
    return bool(total) and total <= others and all(period is not None for *_, period in total)


def assumed_beside(
    parts: tuple[Part, ...], evidence: tuple[Evidence, ...], leakage: tuple[Leakage, ...]
) -> tuple[str, ...]:
    """Return what a total assumes about leakages and draws, besides what its parts assume; as plain sentences."""
    sentences, keys = [], _keys(evidence)
    if "same_table" in keys:
        return ()
    # Worst cases, and rule 7, count with every leakage, whichever release names it.
    on_others = keys - {"same_people", "bounded_participation", "bounded_sensitivity"}
    if on_others and any(set(part.leakage) != set(leakage) for part in parts):
        sentences.append(
            "A leakage beside one release tells nothing about the records of releases that do not name it."
        )
    several = sum(part.times for part in parts) > 1
    if "disjoint_units" in keys and several and any(True in part.samples for part in parts):
        sentences.append("The draw of one part tells nothing about the draws of others.")
    if leakage and "bounded_dependence" in keys:
        sentences.append("A leakage beside a release counts as part of it where releases depend on earlier ones.")
    private = [leak.name for leak in leakage if leak.is_private]
    if private and several:
        # One that follows from many days differs in as many records, and not independently from day to day.
        own = "follows from the records of one release alone, each release having its own, with randomness of its own"
        if "same_people" in keys:
            own = "is one and the same beside all of the releases"
        elif "independent_given_habits" not in keys:
            own = f"is so for everything that a person did in the releases, or {own}"
        sentences.append(f"A leakage that is itself private ({listed(private)}) {own}.")
    return tuple(sentences)


@lru_cache(maxsize=1024)
def bounds_of(
    mechanism: Mechanism, attacker: AttackerModel, protects: Protects, declared: int | None = None
) -> Applicable:
    """Return every bound that holds for `mechanism` against `attacker`; once for a release and all that is made of it.

    `declared`: how many cells are declared, where that is known.

    Notes
    -----
    *Guarantee*: where nothing is added to the counts and a person may be in c cells, the cells of which are independent
    given her habits, every cell is a thresholded count of its own, independent of the others, and the dominating pair
    of the whole is the product of those of c cells; that of lives in different cells has c more in the other order. In
    a table of fewer cells than these together the product is that of all its cells, in the worst orders.
    *Rounding*: that of `Convolved`. *Source*: `docs/composition.md`, rule 10.
    """
    applicable = bounds_of_theorems(mechanism, attacker, protects, declared)
    mechanism = within_table(mechanism, declared)
    cells = cells_per_unit(mechanism)
    if cells == 1:
        return applicable
    table = declared if protects == "value" and declared is not None and declared < 2 * cells else None
    surviving = Surviving(attacker, mechanism.noise is not None)
    about = (
        (key, theorem.rule)
        for key, theorem in THEOREMS.items()
        if theorem.is_rule and theorem.about == (type(mechanism), protects)
    )
    partial: list[Applied] = []
    obstacles = list(applicable.obstacles)
    for key, rule in about:
        applied = (
            rule(mechanism, attacker, surviving.theorems) if rule is not None and key in surviving.theorems else None
        )
        if isinstance(applied, Applied):
            partial += _of_all(key, cells, table, applied)
        else:
            obstacles.append(applied or surviving.obstacle or (_OF_A_SAMPLE if attacker.sampled is not None else ""))
    depended = declared if table is not None and partial else applicable.cells
    obstacles = list(filter(None, dict.fromkeys(obstacles)))
    return replace(applicable, partial=tuple(partial), obstacles=tuple(obstacles), cells=depended)


_OF_A_SAMPLE = "what a person's several cells tell together is not certified of a sample: count her in one cell"


def _of_all(theorem: str, cells: int, table: int | None, applied: Applied) -> list[Applied]:
    """Return the bounds on all cells of a person, from that on one of them; hulls, where there are some, last.

    `table`: how many cells there are, where two lives cannot be in `cells` different ones each.
    """
    attack = applied.attack
    if not isinstance(attack, Thresholding) or (attack.known and not attack.active):
        attack = None
    elif attack.known:
        attack = replace(attack, k=attack.k - attack.known, known=0)
    laws = [directions((applied.bound,), "presence")]
    if laws[0].averages:
        # No crowd is the worst beside any number of known people who count.
        laws.append(Directions(right=ProfileLosses(bounds=(applied.bound,))))
    totals: list[Applied] = []
    for law in laws:
        both = law
        if THEOREMS[theorem].hides_presence_too:
            both = Directions(right=ProductLosses(members=(law.right, law.left or law.right)))
        # Another life in some cell leaves all others but that one to be entered.
        apart = cells if table is None else min(cells, table - 1)
        reached = Convolved(theorem=theorem, parts=((replace(both, attack=attack), apart),))
        ways = [] if table is None else [(law, table)] if table == cells else [(law, table), (both, cells)]
        bounds = [Convolved(theorem=theorem, parts=(way,)) for way in ways] or [reached]
        totals += [Applied(bound=bound, attack=None if attack is None else reached) for bound in bounds]
    return totals
