"""Trying: what attackers attain of one release's certificate, enumerated where that is cheap, else left over."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from pkdp_pipeline.assurance.attacks import LARGEST, Crowd, enumerated, knowing_all, matching, size, vertices
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.theorems import Protects

__all__ = ["Tried", "simulable", "tried_by_anyone", "tried_by_declared"]

_ONE_CELL = 1_000_000
_SEVERAL_CELLS = 400_000
"""How many terms are enumerated for one certificate; either takes about a second."""

_ONE_TRIAL = {True: LARGEST, False: 130_000}
"""How many of them for one trial, with a single cell and with several."""

_FIRST = (1.0, 0.5, 2.0, 0.1)
"""Tried first, so that some ε is tried even where little can be."""

_VERTICES_AT = (0.5, 1.0)
_FARTHEST = 100.0

_SIMULATED_AT = (0.1, 0.5)
"""Where a few ten thousand draws can come close to what is certified."""

_SIMULATED_EACH = 2
_MOST_PEOPLE = 10_000_000


@dataclass(slots=True, kw_only=True)
class Tried:
    """What enumerating attackers has found.

    Parameters
    ----------
    best : dict of float to Fraction
        The most that was found to be attained, by ε.
    trials : int
    crowds : set of Crowd
        Who was tried.
    left : list of (float, Crowd)
        Who was too large, in the order of importance.
    """

    best: dict[float, Fraction] = field(default_factory=dict)
    trials: int = 0
    crowds: set[Crowd] = field(default_factory=set)
    left: list[tuple[float, Crowd]] = field(default_factory=list)

    def add(self, crowd: Crowd, epsilon: float, delta: Fraction) -> None:
        """Note what a crowd attains."""
        self.trials += 1
        self.crowds.add(crowd)
        self.best[epsilon] = max(delta, self.best.get(epsilon, delta))


def tried_by_declared(certificate: ReleaseCertificate, epsilons: Sequence[float]) -> Tried:
    """Try the attackers whom the certificate's theorems are worst about, and all vertices of small instances."""
    return _by_declared(certificate.mechanism, certificate.attacker, certificate.protects, tuple(_in_order(epsilons)))


@functools.lru_cache(maxsize=64)
def _by_declared(
    mechanism: Mechanism, attacker: AttackerModel, protects: Protects, epsilons: tuple[float, ...]
) -> Tried:
    # The promises of a report are often about the same release, alone and as part of a total.
    certificate = certify(mechanism, attacker, protects=protects)

    def trials() -> Iterator[tuple[float, Crowd]]:
        for epsilon in epsilons:
            yield from ((epsilon, crowd) for crowd in matching(certificate, epsilon))
        small = vertices(certificate)
        for epsilon in _VERTICES_AT:
            yield from ((epsilon, crowd) for crowd in small if epsilon in epsilons)

    return _tried(certificate, trials())


def tried_by_anyone(certificate: ReleaseCertificate, epsilons: Sequence[float]) -> Tried:
    """Try attackers who know everybody but the target."""
    crowds = knowing_all(certificate)
    return _tried(certificate, ((epsilon, crowd) for epsilon in _in_order(epsilons) for crowd in crowds))


def _in_order(epsilons: Iterable[float]) -> list[float]:
    """Return the ε that can be tried, the ones that matter most first."""
    chosen = {float(epsilon) for epsilon in epsilons if 0.0 <= epsilon <= _FARTHEST}
    return [epsilon for epsilon in _FIRST if epsilon in chosen] + sorted(chosen - set(_FIRST))


def simulable(found: Tried) -> list[tuple[float, Crowd]]:
    """Return which of the attackers who were too large to enumerate to simulate, and at which ε."""
    listed: list[tuple[float, Crowd]] = []
    for epsilon in _SIMULATED_AT:
        listed += [trial for trial in found.left if trial[0] == epsilon and _is_drawn(trial[1])][:_SIMULATED_EACH]
    return listed


def _is_drawn(crowd: Crowd) -> bool:
    return sum(group.people for group in (*crowd.unknown, *crowd.known)) <= _MOST_PEOPLE


def _tried(certificate: ReleaseCertificate, trials: Iterable[tuple[float, Crowd]]) -> Tried:
    found, mechanism = Tried(), certificate.mechanism
    room = {True: _ONE_CELL, False: _SEVERAL_CELLS}
    for epsilon, crowd in trials:
        terms, single = size(mechanism, crowd), crowd.cells == 1
        if terms > min(_ONE_TRIAL[single], room[single]):
            found.left.append((epsilon, crowd))
            continue
        room[single] -= terms
        trial = enumerated(mechanism, crowd, epsilon)
        if trial is None:
            found.left.append((epsilon, crowd))
        else:
            found.add(crowd, epsilon, trial.lower)
    return found
