"""Rule 10: no random attacker learns more from the cells of a person than is certified, capped or independent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from oracle.joint import Day, Lives, Person, capped, independent, joint_losses, mixed
from oracle.laws import BITS, exact_exp, lower_end
from thorough import examples, thinned

import pkdp_pipeline as pkdp

_BATCH = 6
"""So many attackers of one form are enumerated at once, each with chances of its own."""

_EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.5)


@dataclass(frozen=True, kw_only=True)
class _Attacker:
    """A table whose cells are the oracle's days, the other people, and the two lives of the target."""

    mechanism: pkdp.Histogram
    declared: pkdp.AttackerModel
    cells: int
    people: tuple[Person, ...]
    known: tuple[Person, ...]
    lives: Lives

    @property
    def protects(self) -> str:
        return "presence" if any(set(life) == {None} for life in self.lives) else "value"

    @property
    def days(self) -> list[Day]:
        noise = self.mechanism.noise
        epsilon = None if noise is None else noise.epsilon
        return [Day(k=self.mechanism.k, noise=epsilon, release=self.mechanism.release_threshold)] * self.cells


def _somewhere(rng: np.random.Generator, cells: int, most: int) -> tuple[int | None, ...]:
    """Return a life in one to `most` of the cells."""
    chosen = rng.choice(cells, size=rng.integers(1, most + 1), replace=False)
    return tuple(0 if cell in chosen else None for cell in range(cells))


def _lives(rng: np.random.Generator, cells: int, most: int, protects: str) -> Lives:
    """Return two lives, as far apart as may be in half of the cases; those of a value may share cells."""
    nobody, full = (None,) * cells, (*([0] * most), *([None] * (cells - most)))
    if protects == "presence":
        there = full if rng.random() < 0.5 else _somewhere(rng, cells, most)
        return (there, nobody) if rng.random() < 0.5 else (nobody, there)
    if rng.random() < 0.5:
        return full, full[::-1]
    first = second = _somewhere(rng, cells, most)
    while first == second:
        second = _somewhere(rng, cells, most)
    return first, second


def _chances(rng: np.random.Generator, p: float, life: tuple[int | None, ...]) -> list[list[Any]]:
    """Return a person's chances of the cells that she may be in, at most `p`; in half of the cases just that."""
    extreme = rng.random() < 0.5
    return [[0 if cell is None else p if extreme else np.minimum(p, p * rng.beta(4.0, 1.0, _BATCH))] for cell in life]


def _independent(rng: np.random.Generator, protects: str) -> _Attacker:
    """Return an attacker to whom people's cells are independent given their habits, which she may not know."""
    most = int(rng.integers(2, 4)) if protects == "presence" else 2
    cells = most + int(rng.integers(0, 2)) if protects == "presence" else int(rng.integers(3, 5))
    k, p = int(rng.integers(2, 5)), float(rng.choice([0.03, 0.2, 0.5, 0.75, 0.95]))
    active = bool(rng.random() < 0.5)
    # Every known person multiplies what is enumerated by all places where she may be.
    known = int(rng.choice([0, 0, 1, 2] if active or cells < 3 else [0, 0, 1]))
    number = int(rng.integers(max(1, k - 1), 6 if cells < 3 else 5 if cells < 4 and not known else 4))

    def person() -> Person:
        return independent(_chances(rng, p, _somewhere(rng, cells, most) if rng.random() < 0.5 else (0,) * cells))

    def unsure() -> Person:
        return person() if rng.random() < 0.8 else mixed([(0.25, person()), (0.75, person())])

    shown = [unsure() for _ in range(known)]
    if active:
        shown = [{_somewhere(rng, cells, most): 1} for _ in range(known)]
    return _Attacker(
        mechanism=pkdp.Histogram(k=k, cells_per_unit=most),
        declared=pkdp.AttackerModel(
            p_max=p,
            known=known,
            influence="active" if active else "passive",
            unknown_max=number if rng.random() < 0.4 else None,
            independent_cells=True,
        ),
        cells=cells,
        people=tuple(unsure() for _ in range(number)),
        known=tuple(shown),
        lives=_lives(rng, cells, most, protects),
    )


def _capped(rng: np.random.Generator, protects: str) -> _Attacker:
    """Return an attacker on a noised table in which people count in the first cells of theirs, however they depend."""
    most, cells = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    k = None if rng.random() < 0.4 else int(rng.integers(1, 4))
    release = None if k is None else int(rng.integers(0, 7))
    noise = pkdp.GeometricNoise(float(rng.choice([0.1, 0.7, 1.5, 3.0])))

    def person() -> Person:
        if rng.random() < 0.7:
            places = [tuple(rng.choice([0, None], size=cells).tolist())]
        else:
            places = list({tuple(rng.choice([0, None], size=cells).tolist()) for _ in range(3)})
        weights = rng.dirichlet(np.ones(len(places)), _BATCH)
        return capped({place: weights[:, index] for index, place in enumerate(places)}, most)

    return _Attacker(
        mechanism=pkdp.Histogram(k=k, noise=noise, release_threshold=release, cells_per_unit=most),
        declared=pkdp.AttackerModel(),
        cells=cells,
        people=tuple(person() for _ in range(int(rng.integers(0, 4)))),
        known=(),
        lives=_lives(rng, cells, min(most, cells - (protects == "value")), protects),
    )


def _exactly(attacker: _Attacker, column: int, epsilon: float) -> Fraction:
    """Return the truth about one of the batch in ball arithmetic; its chances are made to add up to one."""

    def exact(person: Person) -> Person:
        drawn = {place: float(np.ravel(p)[column if np.size(p) > 1 else 0]) for place, p in person.items()}
        numbers = {place: flint.arb(max(0.0, weight)) for place, weight in drawn.items()}
        total = sum(numbers.values())
        return {place: weight / total for place, weight in numbers.items()}

    with flint.ctx.workprec(BITS):
        people, known = [exact(person) for person in attacker.people], [exact(person) for person in attacker.known]
        sides = joint_losses(people, attacker.days, attacker.lives, epsilon, exact_exp, known)
        return max(lower_end(flint.arb(side)) for side in sides)


def _closest(attacker: _Attacker) -> float:
    """Hold what the attackers attain against the certificate; return the largest share of it that is attained."""
    try:
        certificate = pkdp.certify(attacker.mechanism, attacker.declared, protects=attacker.protects)
    except pkdp.NotCertifiableError:
        return 0.0  # nothing is promised
    closest = 0.0
    for epsilon in _EPSILONS:
        sides = joint_losses(attacker.people, attacker.days, attacker.lives, epsilon, np.exp, attacker.known)
        truth = np.maximum(*sides) + np.zeros(_BATCH)
        certified, column = float(certificate.delta(epsilon)), int(truth.argmax())
        if truth[column] > certified * (1.0 - 1e-9) - 1e-14:
            # The rounding of the chances themselves moves the truth by a few parts in 1e16.
            exact = _exactly(attacker, column, epsilon)
            assert exact <= Fraction(certified) * (1 + Fraction(1, 10**13)) + Fraction(1, 10**16), (
                f"{attacker}, ε = {epsilon}: true {float(exact)!r}, certified {certified!r}"
            )
        if 0.0 < certified < 0.9:
            closest = max(closest, float(truth[column]) / certified)
    return closest


@thinned(2)
@pytest.mark.parametrize("protects", ["presence", "value"])
@pytest.mark.parametrize(("draw_attacker", "tight"), [(_independent, 0.8), (_capped, 0.999)])
@examples(quick=4, full=2_000)
def test_no_attacker_learns_more_than_is_certified(
    draw_attacker: Any, tight: float, protects: str, examples: int
) -> None:
    # Seeds of our own: what hypothesis draws depends on the modules that a process has loaded.
    closest = max(_closest(draw_attacker(np.random.default_rng(seed), protects)) for seed in range(examples))
    assert closest > (tight if examples >= 2_000 else 0.4)
