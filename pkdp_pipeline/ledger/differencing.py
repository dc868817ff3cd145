"""The differencing rule: what may stand published together about the same people in the same period."""

from __future__ import annotations

from collections.abc import Iterable

from pkdp_pipeline.errors import DifferencingError
from pkdp_pipeline.ledger.period import Period
from pkdp_pipeline.ledger.standing import Standing

__all__ = ["check_differencing", "overlapping"]


def overlapping(standing: Standing, others: Iterable[Standing]) -> list[Standing]:
    """Return those of `others` whose period overlaps that of `standing`."""
    period = Period.parse(standing.period)
    return [other for other in others if period.overlaps(Period.parse(other.period))]


def check_differencing(standing: Standing, others: Iterable[Standing], *, dataset: str) -> None:
    """Refuse a release that cannot stand beside the others of its data set.

    Two different releases about the same people in overlapping periods may stand together only when noise
    gives all of them a finite worst case. A noiseless release is protected by what the attacker does not know
    about the other people, and any other release about them, noised or not, tells some of it.

    Parameters
    ----------
    standing : Standing
        The release to be made.
    others : iterable of Standing
        Different releases of the same data set that stand already, or are to be made together with it.
    dataset : str
        The data set's name, for the message.

    Raises
    ------
    DifferencingError
        Naming both releases and the three ways out.

    Notes
    -----
    `docs/mathematics.md`, section "Composition over a schedule", rule 7. People are the same when the data
    set is: the columns of the privacy unit are not compared.
    """
    for other in overlapping(standing, others):
        if standing.noiseless or other.noiseless:
            raise DifferencingError(
                f"{_named(standing)} and {_named(other)} are two releases about the same people (data set "
                f"{dataset!r}) in the same or overlapping periods, and not all of them are noised: what one "
                "tells about other people takes away the uncertainty that protects a person in the other. "
                "Three ways out: (1) publish one cross-tabulated histogram and derive everything from it; "
                "(2) put noise with a finite worst case on all of them (noise without k, or noise with a "
                "release_threshold), so that their worst-case guarantees add up; "
                "(3) evidence of bounded dependence between them, which this version cannot yet add up."
            )


def _named(standing: Standing) -> str:
    kind = "noiseless" if standing.noiseless else "noised"
    return f"{standing.label!r} ({kind}, period {standing.period})"
