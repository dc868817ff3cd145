"""Totals: what the releases of a data set add up to for one privacy unit, from their account."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger.account import Bundle, Held
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    Evidence,
    IndependentGivenHabits,
    SamePeople,
)
from pkdp_pipeline.model.mechanisms import kind_of
from pkdp_pipeline.model.wording import Worded

Parts = list[tuple[Certificate, int]]


def unit_named(unit: str) -> str:
    """Return a unit (see `unit_text`) in words."""
    columns = json.loads(unit)
    return ", ".join(map(repr, columns)) if columns else "each row"


def whole_parts(held: Held, parts: Mapping[str, ReleaseCertificate]) -> list[tuple[ReleaseCertificate, int]]:
    """Return every different certificate and how often it occurs, whatever stands beside it."""
    often: Counter[str] = Counter()
    for bundle, times in held.items():
        for key, number in bundle.parts:
            often[key] += number * times
    return [(parts[key], times) for key, times in sorted(often.items())]


def add_up(
    held: Held,
    parts: Mapping[str, ReleaseCertificate],
    evidence: tuple[Evidence, ...],
    *,
    beside_others: bool,
) -> Certificate:
    """Return what components add up to with the evidence declared.

    A release that stands alone in its component counts with its whole certificate; where others stand beside
    it, with what noise gives against any attacker, except for a single exact count beside pure noise. A total takes
    nothing from those beside it, which are certified given what it tells.

    Parameters
    ----------
    held : mapping of Bundle to int
        The components, as bundles of one unit, and how often each occurs.
    parts : mapping of str to ReleaseCertificate
        The certificates of the bundles' parts.
    evidence : tuple of Evidence
    beside_others : bool
        Whether the data set has releases for other units, which are not in the total.

    Raises
    ------
    NoEvidenceError
        If they do not add up.

    Notes
    -----
    *Guarantee*: that of `compose`; a component's total is that of all its releases. *Source*:
    `docs/composition.md`, rules 1 to 8.
    """
    try:
        return _added_up(held, parts, evidence, beside_others=beside_others)
    except NoEvidenceError as error:
        message = error.args[0]
        if not isinstance(message, Worded):
            raise
        # A ledger finds out itself which releases are about the same people.
        raise NoEvidenceError(Worded(lambda say: message.spoken(say).replace(say.same_people, ""))) from None


def _added_up(
    held: Held,
    parts: Mapping[str, ReleaseCertificate],
    evidence: tuple[Evidence, ...],
    *,
    beside_others: bool,
) -> Certificate:
    kinds = {type(one) for one in evidence}
    if BoundedDependence in kinds:
        # What is declared covers releases about the same period too, so each counts with its own certificate.
        return compose(whole_parts(held, parts), evidence)
    if not evidence and beside_others:
        # Without evidence, what other units' releases tell about these people may undo what is not known.
        held = _beside_others(held)
    if not evidence or kinds == {IndependentGivenHabits}:
        # Another period's total may tell in which cell a person is in this one, unless days are independent.
        totals = any(_stands_as(parts[key]) == "total" for bundle in held for key, _ in bundle.parts)
        apart = totals and sum(held.values()) > 1 and IndependentGivenHabits not in kinds
        flat: Parts = []
        for bundle, times in held.items():
            flat += [(part, number * times) for part, number in _parts_of(bundle, parts, apart=apart)]
        if not evidence and len(flat) == 1 and flat[0][1] == 1:
            part = flat[0][0]
            return compose([part]) if isinstance(part, ReleaseCertificate) else part
        return compose(flat, evidence or None)
    periods = [(_total_of(bundle, parts), times) for bundle, times in held.items()]
    if BoundedParticipation in kinds and len(periods) > 1:
        # As totals they are known to be about different periods.
        periods = [(compose([one]) if isinstance(one, ReleaseCertificate) else one, times) for one, times in periods]
    return compose(periods, evidence)


def _beside_others(held: Held) -> Held:
    found: Counter[Bundle] = Counter()
    for bundle, times in held.items():
        found[Bundle("other units", bundle.parts)] += times
    return found


def _total_of(bundle: Bundle, parts: Mapping[str, ReleaseCertificate]) -> Certificate:
    """Return what one component adds up to."""
    listed = _parts_of(bundle, parts)
    if len(listed) == 1 and listed[0][1] == 1:
        return listed[0][0]
    return compose(listed)


def _parts_of(bundle: Bundle, parts: Mapping[str, ReleaseCertificate], *, apart: bool = False) -> Parts:
    """Return what a component counts with; `apart` where totals of other periods are among the releases."""
    certificates = [(parts[key], number) for key, number in bundle.parts]
    if bundle.beside == "alone" and not apart:
        return list(certificates)
    totals, exact, rest = (
        [(one, number) for one, number in certificates if _stands_as(one) == kind] for kind in ("total", "exact", "")
    )
    if bundle.beside != "alone":
        _check(bundle, totals, exact, rest)
    if totals and not apart and sum(number for _, number in rest) == 1:
        # What is certified given the total keeps all it promises.
        return [*totals, *rest]
    if apart and (exact or any(one.worst_case_bound is None for one, _ in rest)):
        start = (
            "these releases do not add up: the number of people in one period may tell in which cell somebody is in "
            "another, and not all of them are noised. Declare evidence that holds, "
        )
        raise NoEvidenceError(Worded(lambda say: f"{start}{say.declare(IndependentGivenHabits)}, for example."))
    noised: Parts = [(one.worst_case_only(), number) for one, number in rest]
    if not exact:
        return _merged([*totals, *noised])
    return [(compose([*exact, *_merged(noised)], SamePeople()), 1)]


def _stands_as(certificate: ReleaseCertificate) -> str:
    kind = kind_of(certificate.mechanism, certificate.protects)
    return {"total": "total", "exact count": "exact"}.get(kind, "")


def _check(
    bundle: Bundle,
    totals: Sequence[tuple[ReleaseCertificate, int]],
    exact: Sequence[tuple[ReleaseCertificate, int]],
    rest: Sequence[tuple[ReleaseCertificate, int]],
) -> None:
    """Refuse what could not have been let in without evidence that covers it."""
    kinds = {kind_of(one.mechanism) for one, _ in rest}
    count, single = sum(number for _, number in exact), sum(number for _, number in rest) == 1
    apart = bundle.beside != "same unit"
    told = all(one.attacker.total_is_known for one, _ in (*totals, *exact, *rest))
    unknown = bool(totals) and (apart or bool(exact) or not told or sum(number for _, number in totals) > 1)
    suppressed = "noiseless" in kinds and not (totals and single)
    if suppressed or unknown or count > 1 or (count and (kinds - {"pure noise"} or apart)):
        start = (
            "these releases do not add up: noiseless ones stand beside others about the same people in overlapping "
            "periods. They were let in under bounded dependence; declare it if it can be argued, "
        )
        raise NoEvidenceError(Worded(lambda say: f"{start}{say.declare(BoundedDependence)}."))


def _merged(listed: Iterable[tuple[Certificate, int]]) -> Parts:
    often: dict[Certificate, int] = {}
    for one, number in listed:
        often[one] = often.get(one, 0) + number
    return list(often.items())
