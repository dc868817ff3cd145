"""Why two releases cannot stand together, in words: which case it is, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pkdp_pipeline.model.columns import grouped_column
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)
from pkdp_pipeline.model.mechanisms import Histogram, Sum
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.wording import Speech, Worded, listed


def overlap(
    standing: Facts, other: Facts, dataset: str, *, through: Facts | None = None, total_known: bool = False
) -> Worded:
    """Return why two releases about the same people in overlapping periods are refused.

    Parameters
    ----------
    standing, other : Facts
        The release asked for, and the one it cannot stand beside.
    through : Facts, optional
        A release whose period leads from one to the other, where their own periods share nothing.
    total_known : bool, default False
        Whether both are certified against attackers who are told who is there.
    """
    case, repair = _beside_total(standing, other, total_known=total_known) or _case(standing, other)
    middle = (
        "; (2) put noise with a finite worst case on all of them (noise without k, or noise with a release_threshold), "
        "so that their worst-case guarantees add up (a single exact count, without k and k_complement, may stand "
        "beside noise that no k precedes, about the same unit); (3) declare bounded dependence between them, where you "
        "can argue it, "
    )

    def said(say: Speech) -> str:
        if not say.names_releases:
            return unnamed(repr(standing.label))
        requested, named = _named(standing, say), _named(other, say)
        named = named if named != requested else "the release of this name that stands already"
        met = "the same or overlapping periods" if through is None else f"periods that {_named(through, say)} connects"
        start = (
            f"{requested} and {named} are two releases about the same people (data set {dataset!r}) in {met}, and not "
            f"all of them are noised: {case}. Knowledge of other people from one takes away the uncertainty that "
            "protects a person in the other; noise hides a person in its own table only. Ways out: (1) "
        )
        first = repair if isinstance(repair, str) else repair(say)
        known = _as_known(say) if _is_near_total(standing, other) else ""
        return f"{start}{first}{middle}{say.declare(BoundedDependence)}{known}."

    return Worded(said)


def unnamed(request: str) -> str:
    """Return why a release is refused, in words for somebody who may not know what else the ledger holds."""
    return (
        f"{request} cannot be published beside what is published about these people already: what one of the releases "
        "tells about other people takes away the uncertainty that protects a person in another. Ask what was asked "
        "before, or ask the curator."
    )


def untold(other: str, by: Sequence[str] = ()) -> Worded:
    """Return why a release must be certified against an attacker who is told a total.

    `other`: the label of the total that stands beside it; or of what stands beside the total. `by`: the columns of its
    groups.
    """
    start = (
        f"{other!r} stands beside this release, so its certificate must be about an attacker who knows how many people "
        "there are; about anybody else it would say what holds no more. Nothing was changed. Declare "
    )
    return Worded(lambda say: f"{start}{say.known_total(by)}." if say.names_releases else unnamed("this release"))


def promised(total: Facts, other: Facts) -> Worded:
    """Return why a total is refused beside a release that has a certificate without it, whatever evidence there is."""

    def said(say: Speech) -> str:
        if not say.names_releases:
            return unnamed(repr(total.label))
        return (
            f"{_named(total, say)} would make a certificate of {_named(other, say)} false, which is about an attacker "
            f"who does not know how many people there are. {say.untouched}. Publish a noised total, or none."
        )

    return Worded(said)


def crossing(standing: Facts, other: Facts, dataset: str, *, total_known: bool = False) -> Worded:
    """Return why releases about different periods of one data set need evidence.

    `total_known`: whether one of them is certified against an attacker who is told who is there.
    """
    case, repair = _crossing_case(standing, other)
    end = (
        "; (2) put noise with a finite worst case on all of them; (3) publish one release for the whole stretch "
        "instead of one for each period"
    )
    # Without noise OncePerUnit adds up histograms with one cell for each person, and nothing beside what is told.
    exact = (release.mechanism for release in (standing, other) if release.noiseless)
    one_cell_each = not total_known and all(
        isinstance(mechanism, Histogram) and mechanism.cells_per_unit == 1 for mechanism in exact
    )
    kinds = (OneDayProtected, *((OncePerUnit,) if one_cell_each else ()), BoundedDependence)

    def said(say: Speech) -> str:
        if not say.names_releases:
            return unnamed(repr(standing.label))
        start = (
            f"{_named(standing, say)} and {_named(other, say)} are about the same people (data set {dataset!r}) in "
            f"different periods, one after the other, and not all of them are noised: {case}. Ways out: (1) "
        )
        if repair is not None:
            return f"{start}{repair(say)}{end}."
        habits = say.evidence(IndependentGivenHabits)
        others = ", ".join(map(say.evidence, kinds))
        return (
            f"{start}declare what you can argue {say.declare(IndependentGivenHabits)}, {others}, or "
            f"{say.evidence(DisjointUnits)} where different periods are about different people by a list fixed "
            f"beforehand ({say.evidence(BoundedParticipation)} alone is enough only for noised releases; with "
            f"{habits} it serves here too){end}."
        )

    return Worded(said)


def _crossing_case(standing: Facts, other: Facts) -> tuple[str, Callable[[Speech], str] | None]:
    """Return which case it is, and the first way out where it is not evidence."""
    depends = "what they add up to depends on how a person's periods depend on each other"
    if any(release.noiseless and not release.total for release in (standing, other)) or not (
        standing.total or other.total
    ):
        return f"anyone who changes between two tables shows, above all where a cell crosses k, and {depends}", None
    if sorted(standing.unit) != sorted(other.unit):
        return (
            "they count by different units, and only what is about the same unit is certified given an exact total; "
            f"{depends}"
        ), None
    return (
        "an exact total tells who comes and who goes, and not all of them are certified against an attacker who knows "
        "that"
    ), _tell


def _named(standing: Facts, say: Speech) -> str:
    kind = "exact total" if standing.total else "noiseless" if standing.noiseless else "noised"
    return f"{standing.label!r} ({kind}{f', period {standing.period}' if say.names_periods else ''})"


def _is_near_total(standing: Facts, other: Facts) -> bool:
    """Return whether one is the exact number of everybody whom the other is about, and could be a total."""
    if any(release.total or isinstance(release.mechanism, Sum) for release in (standing, other)):
        return False
    if sorted(standing.unit) != sorted(other.unit) or standing.table != other.table:
        return False
    everybody = [release.exact_count and release.where is None and not release.opaque for release in (standing, other)]
    return sum(everybody) == 1 and Period.parse(standing.period).days() == Period.parse(other.period).days()


def _as_known(say: Speech) -> str:
    return (
        f"; (4) where everybody may know how many people there are, say so: {say.known_total()} for every release "
        f"of this period, all with {say.setting('protects', _VALUE)}, the total too (it has no predicate). Histograms "
        "that rest on p_max_between then keep all they promise, and whether a person is there is not protected"
    )


_VALUE = '"value"'

Repair = str | Callable[[Speech], str]


def _beside_total(standing: Facts, other: Facts, *, total_known: bool) -> tuple[str, Repair] | None:
    """Return why the exact total cannot stand beside the other, and the first way out; None where neither is one."""
    if not (standing.total or other.total) or sorted(standing.unit) != sorted(other.unit):
        return None
    if standing.total and other.total:
        return (
            "a second total of the same people, or of some of them, tells who came and who went",
            "let the first release stand",
        )
    if Period.parse(standing.period).days() != Period.parse(other.period).days():
        return (
            "who is there in one period may depend on the cell a person is in during the other",
            "publish the total of the very period that the other release is about",
        )
    if standing.table != other.table:
        return (
            "who is in one table may depend on the cell a person is in in the other",
            "publish the total of the very table that the other release is about",
        )
    if standing.exact_count or other.exact_count:
        return (
            "an exact count hides people only while nobody knows who is counted; the total tells how many there are",
            "publish the histogram of those who are counted and those who are not, with k, to protect the value",
        )
    if not total_known:
        return (
            "the total tells how many people there are, and not both releases are certified against an attacker who "
            "knows that",
            partial(_tell, by=(standing if standing.total else other).by or ()),
        )
    return None


def _tell(say: Speech, by: Sequence[str] = ()) -> str:
    return (
        f"declare {say.known_total(by)} for both before the first of them is published; a release that stands already "
        "keeps what any of its certificates promised, so beside it there is no total: let it stand alone"
    )


def _case(standing: Facts, other: Facts) -> tuple[str, Repair]:
    """Return which case it is and the first way out."""
    period, other_period = Period.parse(standing.period), Period.parse(other.period)
    if sorted(standing.unit) != sorted(other.unit):
        return (
            "they count by different units of one data set, which may be the same people under two names",
            "count by one unit everywhere, or keep data about other people in a data set of their own",
        )
    if period.days() is None or other_period.days() is None:
        if (period.days() is None) != (other_period.days() is None):
            return (
                "one period is a label without dates, which may be any time, the other's included",
                "give both releases calendar periods, such as 2013-01-02",
            )
    elif period.days() != other_period.days():
        return (
            "one period overlaps the other, as with rolling windows, running totals, corrections or a week beside its "
            "days, and the difference is what entered and left",
            "publish one release for each stretch of a calendar without overlaps, and add up what is published (who "
            "comes in several stretches counts in each of them)",
        )
    return _same_period(standing, other)


def _same_period(standing: Facts, other: Facts) -> tuple[str, Repair]:
    if standing.table != other.table:
        return (
            "they count the rows of two tables of one data set, whose people are the same",
            "publish one histogram of a table that joins them, or keep data about other people in a data set of their "
            "own",
        )
    kinds = {type(standing.mechanism), type(other.mechanism)}
    same_rows = standing.where == other.where and not standing.opaque and not other.opaque
    if Sum in kinds and len(kinds) == 2:
        return (
            "one is of people and the other of what they add, so that neither is derived from the other",
            "publish one of them alone",
        )
    if standing.opaque or other.opaque:
        if standing.opaque and other.opaque and _query(standing) == _query(other):
            return _revision()
        return (
            "a predicate given as a Series or a callable cannot be compared and counts as overlapping everything",
            _cross_tabulated(standing, other, "the columns the predicates read"),
        )
    if not same_rows:
        return (
            "their filters may overlap or be nested, however they are spelled; predicates are not compared"
            if standing.where and other.where
            else "one has a filter and the other none, so that its people are among those of the other",
            _cross_tabulated(standing, other, "the filters' columns"),
        )
    if _query(standing) == _query(other):
        return _revision()
    if len(kinds) == 2:
        return (
            "a total beside its histogram gives back what suppressed cells withhold",
            lambda say: (
                "publish the cross-tabulated histogram alone, its cells declared in domain, and derive the total from "
                f"it: {say.derived('rollup')} (where cells are suppressed it is an interval, without domain nothing "
                "bounds it)"
            ),
        )
    if standing.by != other.by:
        return (
            "the same people are counted by other columns, and a person alone in a cell of one is found in the other",
            _finest_groups(standing, other) or _cross_tabulated(standing, other, "both sets of columns"),
        )
    if standing.mechanism.display is not None and other.mechanism.display is not None:
        return (
            "they are the same question with other thresholds or another display, which does not follow from that of "
            "the release that stands, and what appears in one of them only is told from it",
            "publish the finest of several displays first: coarser ones are derived from it, and charged nothing",
        )
    return (
        "they are the same question with other thresholds or other noise, and what appears in one of them only is "
        "told from it",
        "publish one of them, or one cross-tabulated histogram with its cells declared in domain, and derive "
        "everything else from it",
    )


def _query(standing: Facts) -> object:
    return standing.label if standing.opaque else None, standing.where, standing.by, standing.mechanism


def _revision() -> tuple[str, Repair]:
    return (
        "a revision of the same query, or the same query with another domain or other rules for rows, whose difference "
        "shows whose records changed and who is in which cell",
        "let the first release stand, which the same query with its domain and rules returns, and publish corrected "
        "data with the next period, or plan one cross-tabulated release that needs no revision",
    )


def _finest_groups(standing: Facts, other: Facts) -> Repair | None:
    """Return what to do where both count a column, in other groups; None where they do not."""
    names = {*(standing.by or ()), *(other.by or ())}
    columns = [grouped_column(name) or name for name in names]
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if not twice:
        return None
    return lambda say: (
        f"publish one histogram with the finest groups of {listed(twice)}, its cells declared in domain, and add these "
        f"up: {say.derived('along')}"
    )


def _cross_tabulated(standing: Facts, other: Facts, columns: str) -> Repair:
    known = list(dict.fromkeys((*(standing.by or ()), *(other.by or ()))))
    named = f" (by {', '.join(known)} and those)" if known and columns != "both sets of columns" else ""
    if columns == "both sets of columns":
        columns = ", ".join(known)
    return lambda say: (
        f"publish one histogram cross-tabulated by {columns}{named}, its cells declared in domain, and derive "
        f"everything from it: {say.derived('rollup')} (without domain nothing bounds its totals)"
    )
