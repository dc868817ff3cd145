"""Next steps: what may be published beside what stands, which evidence or noise it would need, and how much fits."""

from __future__ import annotations

from collections.abc import Iterator

from pkdp_pipeline.display.ledger.words import mechanism_words, number_of
from pkdp_pipeline.ledger.differencing import allows_overlap, covers_periods
from pkdp_pipeline.ledger.views.history import History
from pkdp_pipeline.ledger.views.spent import MOST_MORE, how_many_more
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    Evidence,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)
from pkdp_pipeline.model.wording import JOB_FILE as SAY

__all__ = ["next_steps"]

_CHOICES: tuple[Evidence, ...] = (IndependentGivenHabits(), OneDayProtected(), DisjointUnits(), OncePerUnit())
_LEAKAGE = SAY.leakage_of_total
_PROTECTS = SAY.setting("protects", '"value"')
_GIVEN_IT = f"all with {_PROTECTS} and certified given it ({_LEAKAGE}) from the first"
_LIKE_THE_OTHERS = f", protects the value and is certified given the totals ({_LEAKAGE})"
_NOISED = "noise with a finite worst case (noise without k, or with a release_threshold)"


def next_steps(history: History) -> Iterator[str]:
    """Yield what the next release of the data set may be, one sentence or two each.

    Parameters
    ----------
    history : History
    """
    if not history.lines:
        yield "Any release that can be certified: nothing stands that it could undo."
        return
    yield from _elsewhere(history)
    yield from _same_period(history)
    yield "What follows from published tables (release.rollup, shares, rounded) costs nothing, at any time."
    last = history.lines[-1]
    more = how_many_more(history.totals, last.holding.unit, last.holding.part)
    if more is not None and (covers_periods(history.evidence) or not last.standing.noiseless):
        what = mechanism_words(last.standing.mechanism, last.standing.protects)
        like = f"like the last one ({last.standing.label}, {what})"
        room = f"room for {number_of(more, 'more release')}" if more else "no room for another release"
        if more == MOST_MORE:
            room = f"room for at least {MOST_MORE:,} more releases"
        each = "each in a period of its own" if more > 1 else "in a period of its own"
        yield f"The budgets of the whole history have {room} {like}, {each}."
    if any(budget.window_days is not None for budget in history.terms.budgets):
        yield "Budgets of some days allow more once earlier periods have left their window."


def _elsewhere(history: History) -> Iterator[str]:
    """Yield what may be published about other periods."""
    noiseless = [line for line in history.lines if line.standing.noiseless and not line.standing.total]
    total = any(line.standing.total for line in history.lines)
    if covers_periods(history.evidence):
        yield (
            "About a period that no release is about yet: anything that can be certified, with noise or without; the "
            "evidence declared covers it, and it counts with its whole certificate."
        )
        return
    if not noiseless:
        yield (
            f"About a period that no release is about yet: what carries {_NOISED}"
            f"{_LIKE_THE_OTHERS if total else ''}. Without noise it would need "
            "evidence about how people's periods depend on one another."
        )
    else:
        yield (
            f"About another period: nothing yet. {noiseless[0].standing.label!r} ({noiseless[0].standing.period}) has "
            "no noise, and who crosses its threshold from one table to the next would show."
        )
    # Beside what leaks nothing adds up by OncePerUnit.
    leaks = any(part.leakage for part in history.parts.values())
    for one in _CHOICES:
        if leaks and isinstance(one, OncePerUnit):
            continue
        when = "With" if noiseless else "Without noise, with"
        yield f"{when} {SAY.evidence(type(one))}, if this is true: {one.declares}"
    once = f"with {SAY.evidence_name(OncePerUnit)} that of one histogram over all of them; "
    yield (
        f"Or {SAY.evidence(BoundedDependence)}, if each release depends on all earlier ones together by at most so "
        f"much. With {SAY.evidence_name(DisjointUnits)} and {SAY.evidence_name(OneDayProtected)} the total is that "
        f"of the largest release; {'' if leaks else once}with the others it grows with every release. The project's "
        "docs/composition.md has the rules, and what breaks each of them."
    )
    if any(isinstance(one, BoundedParticipation) for one in history.evidence):
        yield (
            f"{SAY.evidence_name(BoundedParticipation)} by itself covers noised releases only; "
            f"{SAY.evidence_name(IndependentGivenHabits)} goes with it."
        )


def _same_period(history: History) -> Iterator[str]:
    """Yield what may be published about periods that have a release."""
    if allows_overlap(history.evidence):
        declared = next(one for one in history.evidence if isinstance(one, BoundedDependence))
        yield (
            "About a period that has a release already, or overlaps one: anything that can be certified, as long as "
            f"this stays true of it: {declared.declares}"
        )
        return
    kinds = {line.standing.kind for line in history.lines}
    where = "About a period that has a release already, or overlaps one (another query, filter or window)"
    if kinds & {"noiseless"}:
        yield (
            f"{where}: nothing beside a release without noise, not even a noisy one, which tells about the people who "
            "protect by being unknown. Publish one cross-tabulated histogram, its cells declared in domain, and derive "
            f"the rest with release.rollup; or plan {_NOISED} for all of them; or declare "
            f"{SAY.evidence(BoundedDependence)}."
            + (
                ""
                if "total" in kinds
                else f" Only the exact total of the same people may stand beside it: {_GIVEN_IT}."
            )
        )
    if "total" in kinds:
        yield (
            f"{where}: beside the exact total of the same people, what protects the value and is certified given it "
            f"({_LEAKAGE}), as if the total did not stand there."
        )
    if "exact count" in kinds:
        yield f"{where}: beside one exact count, pure noise (noise without k) about the same unit."
    if kinds & {"pure noise", "noised"}:
        also = "; beside pure noise also one exact count" if "pure noise" in kinds else ""
        yield (
            f"{where}: beside noised releases, what carries {_NOISED}{also}. From then on each of them counts only "
            "with what its noise gives against anybody."
        )
