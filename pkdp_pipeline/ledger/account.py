"""The account: what a data set's charged releases add up from, as one pure function of them.

Releases whose periods overlap, each leading to the next, form a component. Its releases for one privacy
unit are a `Bundle`; totals are added up from bundles and how often each occurs. A charge, a total, a budget's window,
a report and a verification all ask the same `Account`, made anew from one row for every charged release.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Literal, NamedTuple

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate, compose, promised_by, releases_in
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger.rows import Row, sha256
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    Evidence,
    IndependentGivenHabits,
    SamePeople,
)
from pkdp_pipeline.model.mechanisms import Kind, kind_of
from pkdp_pipeline.model.wording import Worded

Beside = Literal["alone", "same unit", "other units"]


class Bundle(NamedTuple):
    """The parts that a component's releases for one unit add up from.

    Attributes
    ----------
    beside : {"alone", "same unit", "other units"}
        Whether the component is one release, releases about one unit, or about several.
    parts : tuple of (str, int)
        The sha256 of every different part and how often it occurs, sorted.
    """

    beside: Beside
    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, beside: Beside, parts: Mapping[str, int]) -> Bundle:
        """Return the bundle of these parts, sorted."""
        return cls(beside, tuple(sorted(parts.items())))


Bundles = Mapping[Bundle, int]
"""Bundles of one unit, and how often each occurs."""


class Account:
    """The parts that charged releases add up from; it is never changed.

    `rows`: every release of the data set that is charged and not given back.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)

    def plus(self, row: Row) -> Account:
        """Return the account with one release more."""
        return Account((*self.rows, row))

    def without(self, entry: int | None) -> Account:
        """Return the account as it would be had a release not been charged."""
        return Account(row for row in self.rows if row.id != entry)

    @cached_property
    def units(self) -> list[str]:
        """The privacy units, as `unit_text`."""
        return sorted({row.unit for row in self.rows})

    @cached_property
    def components(self) -> list[list[Row]]:
        """The releases whose periods overlap, each leading to the next, as one list each."""
        dated = sorted((row for row in self.rows if row.first_day is not None), key=attrgetter("first_day"))
        labelled: dict[str | None, list[Row]] = defaultdict(list)
        for row in self.rows:
            if row.first_day is None:
                labelled[row.label].append(row)
        if dated and labelled:  # a label may mean any day, so it connects all
            return [list(self.rows)]
        groups = list(labelled.values())
        # Interval sweep by first day: a period that begins after all before it have ended meets none of them.
        until = 0
        for row in dated:
            if (row.first_day or 0) <= until:
                groups[-1].append(row)
            else:
                groups.append([row])
            until = max(until, row.last_day or 0)
        return groups

    def component(self, entry: int) -> list[Row]:
        """Return the component of a release that is charged."""
        return next(group for group in self.components if any(row.id == entry for row in group))

    def met(self, release: Row) -> list[list[Row]]:
        """Return the components that the period of a release meets."""
        return [group for group in self.components if any(row.meets(release) for row in group)]

    def bundles(self, unit: str, only: Container[int] | None = None) -> Counter[Bundle]:
        """Return what a unit's releases add up from, and how often; `only` leaves out all entries but these."""
        counts = _bundled(self._equal_releases(unit, only))
        # In one order: sums of floats depend on it, and a total is the same to its last bit however its releases came.
        return Counter({bundle: counts[bundle] for bundle in sorted(counts, key=_digest)})

    def window(self, unit: str, days: int, start: int | None) -> Counter[Bundle]:
        """Return what counts in the window of `days` days from `start` (None: what counts in every window)."""
        return _bundled(
            group for group in self._equal_releases(unit) if group.first is None or group.meets(start, days)
        )

    def windows(
        self, unit: str, days: int, changed: Sequence[Row] | None = None
    ) -> Iterator[tuple[int | None, Counter[Bundle]]]:
        """Yield the first day of every window of consecutive days that meets a changed release, and what counts in it.

        Windows that hold no more than another one, and windows that add up from the same, are left out. A release
        counts in a window that its period meets, with what stands beside it in the whole ledger; a label without
        dates counts in every window; where there is nothing else, the first day is None. `changed`: the releases that
        are new, or count for more than before. None: any.

        Notes
        -----
        A window is known by its first day s. The release of the days a to b counts where a - days < s <= b. Of all
        windows that hold some releases together, the one that ends on the latest of their first days,
        ``s = max a - days + 1``, is the first, and holds all that later ones hold of them; so only windows that end
        on some release's first day need to be looked at.
        """
        groups = self._equal_releases(unit)
        undated = [group for group in groups if group.first is None]
        dated = sorted((group for group in groups if group.first is not None), key=lambda group: group.first or 0)
        starts = sorted({(group.first or 0) - days + 1 for group in dated})
        if changed is not None and all(row.first_day is not None for row in changed):
            ranges = [((row.first_day or 0) - days, row.last_day or 0) for row in changed]
            starts = [start for start in starts if any(low < start <= high for low, high in ranges)]
        yielded: set[frozenset[tuple[Bundle, int]]] = set()
        inside: list[_EqualReleases] = []
        position = 0
        # A sliding window over the sorted first days: each release enters once, and leaves where its period has ended.
        for start in starts:
            while position < len(dated) and (dated[position].first or 0) < start + days:
                inside.append(dated[position])
                position += 1
            inside = [group for group in inside if (group.last or 0) >= start]
            counts = _bundled([*inside, *undated])
            key = frozenset(counts.items())
            if key not in yielded:
                yielded.add(key)
                yield start, counts
        if not starts and undated:
            yield None, _bundled(undated)

    def _equal_releases(self, unit: str, only: Container[int] | None = None) -> list[_EqualReleases]:
        counts = Counter(
            (row.first_day, row.last_day, number, beside, row.part)
            for number, group in enumerate(self.components)
            for beside in [_beside(group)]
            for row in group
            if row.unit == unit and (only is None or row.id in only)
        )
        return [_EqualReleases(*group, times) for group, times in counts.items()]


class _EqualReleases(NamedTuple):
    """Equal releases of one component."""

    first: int | None
    last: int | None
    component: int
    beside: Beside
    part: str
    times: int

    def meets(self, start: int | None, days: int) -> bool:
        return start is not None and (self.first or 0) < start + days and (self.last or 0) >= start


def _bundled(groups: Iterable[_EqualReleases]) -> Counter[Bundle]:
    parts: dict[tuple[int, Beside], Counter[str]] = defaultdict(Counter)
    alone: Counter[str] = Counter()
    for _, _, component, beside, part, times in groups:
        counts = alone if beside == "alone" else parts[component, beside]
        counts[part] += times
    bundles = Counter(Bundle.of(beside, counts) for (_, beside), counts in parts.items())
    return bundles + Counter({Bundle("alone", ((part, 1),)): times for part, times in alone.items()})


def _digest(bundle: Bundle) -> str:
    return sha256(json.dumps([bundle.beside, [list(part) for part in bundle.parts]], separators=(",", ":")))


def _beside(group: Sequence[Row]) -> Beside:
    return "alone" if len(group) == 1 else "same unit" if len({row.unit for row in group}) == 1 else "other units"


Parts = list[tuple[Certificate, int]]


def unit_named(unit: str) -> str:
    """Return a unit (see `unit_text`) in words."""
    columns = json.loads(unit)
    return ", ".join(map(repr, columns)) if columns else "each row"


def whole_parts(bundles: Bundles, parts: Mapping[str, Certificate]) -> Parts:
    """Return every different certificate and how often it occurs, whatever stands beside it."""
    counts: Counter[str] = Counter()
    for bundle, times in bundles.items():
        for key, number in bundle.parts:
            counts[key] += number * times
    return [(parts[key], times) for key, times in sorted(counts.items())]


def add_up(
    bundles: Bundles,
    parts: Mapping[str, Certificate],
    evidence: tuple[Evidence, ...],
    *,
    beside_others: bool,
) -> Certificate:
    """Return what components add up to with the evidence declared.

    A release that stands alone in its component counts with the largest promise it ever made; where others stand beside
    it, with what noise gives against any attacker, except for a single exact count beside pure noise. A total takes
    nothing from those beside it, which are certified given what it tells. `bundles` are those of one unit;
    `beside_others` says whether the data set has releases for other units, which are not in the total.

    Notes
    -----
    *Guarantee*: that of `compose`; a component's total is that of all its releases. *Source*:
    `docs/composition.md`, rules 1 to 8 and 11.
    """
    needed = tuple((key, parts[key]) for key in dict.fromkeys(key for bundle in bundles for key, _ in bundle.parts))
    try:
        return _added_up(tuple(bundles.items()), needed, evidence, beside_others)
    except NoEvidenceError as error:
        message = error.args[0]
        if not isinstance(message, Worded):
            raise
        # Without the advice to declare SamePeople: a ledger finds out itself which releases are about the same people.
        raise NoEvidenceError(Worded(lambda say: message.spoken(say.in_ledger()))) from None


# The same job holds the same releases of every period, so totals are remembered by all that they depend on.
@lru_cache(maxsize=64)
def _added_up(
    occurrences: tuple[tuple[Bundle, int], ...],
    certificates: tuple[tuple[str, Certificate], ...],
    evidence: tuple[Evidence, ...],
    beside_others: bool,
) -> Certificate:
    bundles: Bundles = dict(occurrences)
    parts = dict(certificates)
    kinds = {type(declaration) for declaration in evidence}
    if BoundedDependence in kinds:
        # What is declared covers releases about the same period too, so each counts with its own certificate.
        return compose(whole_parts(bundles, parts), evidence)
    if not evidence and beside_others:
        # Without evidence, what other units' releases tell about these people may undo what is not known.
        bundles = _beside_others(bundles)
    if not evidence or kinds == {IndependentGivenHabits}:
        # Another period's total may tell in which cell a person is in this one, unless days are independent.
        totals = any(_stands_as(parts[key]) == "total" for bundle in bundles for key, _ in bundle.parts)
        apart = totals and sum(bundles.values()) > 1 and IndependentGivenHabits not in kinds
        flat: Parts = []
        for bundle, times in bundles.items():
            flat += [(part, number * times) for part, number in _parts_of(bundle, parts, apart=apart)]
        if not evidence and len(flat) == 1 and flat[0][1] == 1:
            part = flat[0][0]
            return part if isinstance(part, ComposedCertificate) else compose([part])
        return compose(flat, evidence or None)
    periods = [(_total_of(bundle, parts), times) for bundle, times in bundles.items()]
    if BoundedParticipation in kinds and len(periods) > 1:
        # As totals they are known to be about different periods.
        periods = [(compose([total]) if _is_release(total) else total, times) for total, times in periods]
    return compose(periods, evidence)


def _beside_others(bundles: Bundles) -> Bundles:
    relabelled: Counter[Bundle] = Counter()
    for bundle, times in bundles.items():
        relabelled[Bundle("other units", bundle.parts)] += times
    return relabelled


def _is_release(certificate: Certificate) -> bool:
    return not isinstance(certificate, ComposedCertificate) or certificate.is_table


def _total_of(bundle: Bundle, parts: Mapping[str, Certificate]) -> Certificate:
    """Return what one component adds up to."""
    listed = _parts_of(bundle, parts)
    if len(listed) == 1 and listed[0][1] == 1:
        return listed[0][0]
    return compose(listed)


def _parts_of(bundle: Bundle, parts: Mapping[str, Certificate], *, apart: bool = False) -> Parts:
    """Return what a component counts with; `apart` where totals of other periods are among the releases."""
    certificates = [(parts[key], number) for key, number in bundle.parts]
    if bundle.beside == "alone" and not apart:
        return list(certificates)
    totals, exact, rest = (
        [(certificate, number) for certificate, number in certificates if _stands_as(certificate) == kind]
        for kind in ("total", "exact", "")
    )
    if bundle.beside != "alone":
        _check(bundle, totals, exact, rest)
    if totals and not apart and sum(number for _, number in rest) == 1:
        # What is certified given the total keeps all it promises.
        return [*totals, *rest]
    if apart and (exact or any(certificate.worst_case_bound is None for certificate, _ in rest)):
        start = (
            "these releases do not add up: the number of people in one period may tell in which cell somebody is in "
            "another, and not all of them are noised. Declare evidence that holds, "
        )
        raise NoEvidenceError(Worded(lambda say: f"{start}{say.declare(IndependentGivenHabits)}, for example."))
    noised = [
        (promised_by([release.worst_case_only() for release in releases_in(certificate)]), number)
        for certificate, number in rest
    ]
    if not exact:
        return _merged([*totals, *noised])
    return [(compose([*exact, *_merged(noised)], SamePeople()), 1)]


def kind_counted(certificate: Certificate) -> Kind:
    """Return how a release stands beside others, of which totals count with `certificate`."""
    return kind_of(next(releases_in(certificate)).mechanism, certificate.protects)


def knows_total(certificate: Certificate) -> bool:
    """Return whether all attackers of a release, of which totals count with `certificate`, may know who is there."""
    return all(release.attacker.total_is_known for release in releases_in(certificate))


def _stands_as(certificate: Certificate) -> str:
    return {"total": "total", "exact count": "exact"}.get(kind_counted(certificate), "")


def _check(bundle: Bundle, totals: Parts, exact: Parts, rest: Parts) -> None:
    """Refuse what could not have been let in without evidence that covers it."""
    kinds = {kind_counted(certificate) for certificate, _ in rest}
    count, single = sum(number for _, number in exact), sum(number for _, number in rest) == 1
    apart = bundle.beside != "same unit"
    total_known = all(knows_total(certificate) for certificate, _ in (*totals, *exact, *rest))
    unknown = bool(totals) and (apart or bool(exact) or not total_known or sum(number for _, number in totals) > 1)
    suppressed = "noiseless" in kinds and not (totals and single)
    if suppressed or unknown or count > 1 or (count and (kinds - {"pure noise"} or apart)):
        start = (
            "these releases do not add up: noiseless ones stand beside others about the same people in overlapping "
            "periods. They were let in under bounded dependence; declare it if it can be argued, "
        )
        raise NoEvidenceError(Worded(lambda say: f"{start}{say.declare(BoundedDependence)}."))


def _merged(listed: Iterable[tuple[Certificate, int]]) -> Parts:
    counts: dict[Certificate, int] = {}
    for certificate, number in listed:
        counts[certificate] = counts.get(certificate, 0) + number
    return list(counts.items())
