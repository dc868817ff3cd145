"""By whom a certificate is tried: the strongest attackers that are known, then every extreme one of a small instance.

The divergence is convex in each chance, so the worst attackers are among those whose chances are vertices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from pkdp_pipeline.assurance.attacks.crowd import (
    Crowd,
    Group,
    Life,
    Shape,
    counted_shapes,
    histogram_shapes,
    is_admitted,
)
from pkdp_pipeline.assurance.attacks.matching import knows_total, matching
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.model.mechanisms import Count

EPSILONS = (0.1, 0.5, 1.0, 2.0)
"""At these ε the strongest attackers are looked for, unless told otherwise."""

MOST_CROWDS = 160
"""So many crowds make an instance small, in both orders of the lives together."""

_MOST_PEOPLE = 14
_MOST_KNOWN = 3


def crowds(certificate: ReleaseCertificate, *, epsilons: Sequence[float] = EPSILONS) -> tuple[Crowd, ...]:
    """Return the attackers by whom `certificate` is tried.

    Parameters
    ----------
    certificate : ReleaseCertificate
        What it says against the declared attacker is tried; where it rests on noise alone, what it says against
        anybody. For the worst case of a certificate that has both, see `pkdp_pipeline.assurance.attacks.knowing_all`.
    epsilons : sequence of float
        Where the strongest attackers are looked for. Each may be tried at every ε.

    Returns
    -------
    tuple of Crowd
        All of them keep to the declaration (`assurance.attacks.is_admitted`): those at whom each theorem is
        attained, or worst as far as is known, then all vertices of small instances.
    """
    found: dict[Crowd, None] = {}
    for epsilon in epsilons:
        found |= dict.fromkeys(matching(certificate, epsilon))
    return tuple(found | dict.fromkeys(vertices(certificate)))


def vertices(certificate: ReleaseCertificate, *, most: int = MOST_CROWDS) -> tuple[Crowd, ...]:
    """Return all extreme attackers with up to some number of unknown people; the number is as large as `most` allows.

    Notes
    -----
    Extreme means that every person's chances are a vertex of what is declared about one person. Attackers are the same
    when people change places, so what counts is how many people are of each kind. Besides, for counts, one attacker of
    each size to whom no two people are alike.
    """
    least = certificate.attacker.unknown or 0
    if not certificate.has_partial_knowledge or least > _MOST_PEOPLE:
        return ()
    cap = certificate.attacker.unknown_max
    found: dict[Crowd, None] = {}
    for people in range(least, _MOST_PEOPLE + 1):
        if cap is not None and people > cap and certificate.attacker.p_min:
            break
        crowds = [
            knows_total(crowd, certificate.attacker)
            for crowd in _with(certificate, people)
            if is_admitted(crowd, certificate)
        ]
        if len(found) + len(crowds) > most:
            break
        found |= dict.fromkeys(crowds)
    return tuple(found)


def _with(certificate: ReleaseCertificate, people: int) -> Iterator[Crowd]:
    """Yield the extreme attackers with exactly `people` unknown people."""
    cells, shapes, lives = _kinds(certificate)
    for unknown in _groups(shapes, people):
        for known, controlled in _known(certificate, shapes, cells):
            for first, second in lives:
                crowd = Crowd(
                    cells=cells, unknown=unknown, known=known, controlled=controlled, first=first, second=second
                )
                yield from (crowd, crowd.reversed())
    if cells == 1 and people > 1 and len(shapes) == 2:
        (high,), (low,) = shapes
        steps = (low + (high - low) * (people - at) / people for at in range(people))
        graded = tuple(Group(people=1, chances=(min(high, step),)) for step in steps)
        crowd = Crowd(cells=1, unknown=graded)
        yield from (crowd, crowd.reversed())


def _kinds(certificate: ReleaseCertificate) -> tuple[int, tuple[Shape, ...], tuple[tuple[Life, Life], ...]]:
    """Return (cells, what one person may be, the target's lives)."""
    attacker = certificate.attacker
    if isinstance(certificate.mechanism, Count):
        return 1, counted_shapes(attacker), ((0, None),)
    value = certificate.protects == "value"
    return 2, histogram_shapes(attacker, certificate.protects, 2), ((0, 1),) if value else ((0, None),)


def _groups(shapes: tuple[Shape, ...], people: int) -> Iterator[tuple[Group, ...]]:
    for chosen in combinations_with_replacement(range(len(shapes)), people):
        numbers = [chosen.count(at) for at in range(len(shapes))]
        yield tuple(Group(people=n, chances=shape) for n, shape in zip(numbers, shapes, strict=True) if n)


def _known(
    certificate: ReleaseCertificate, shapes: tuple[Shape, ...], cells: int
) -> Iterator[tuple[tuple[Group, ...], tuple[int, ...]]]:
    """Yield ways to know or control as many people as are declared, or a few of them."""
    attacker = certificate.attacker
    people = attacker.known
    if not people:
        yield (), ()
    elif attacker.influence == "active":
        for there in range(people + 1) if people <= _MOST_KNOWN else (0, people):
            if cells == 1:
                yield (Group(people=people - there, chances=(0.0,)),), (there,)
            else:
                yield (), (there, people - there, *[0] * (cells - 2))
    else:
        for known in _groups(shapes, min(people, _MOST_KNOWN)):
            yield known, ()
