"""A schedule of counts that are exact from k on and noised below pays for the noised ones as for noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp

K, P, NOISE = 3, 0.25, 0.7
WIDTH = 40


def published(others: int, present: int) -> np.ndarray:
    """Return the law of what a day shows beside so many unknown people: each exact count, then each noised value."""
    values, alpha = np.arange(-WIDTH, WIDTH + 1), math.exp(-NOISE)
    exact, noised = np.zeros(others + 2), np.zeros(len(values))
    for counted in range(others + 1):
        chance = math.comb(others, counted) * P**counted * (1.0 - P) ** (others - counted)
        if counted + present >= K:
            exact[counted + present] += chance
        else:
            noised += chance * (1.0 - alpha) / (1.0 + alpha) * alpha ** np.abs(values - counted - present)
    return np.concatenate([exact, noised])


def attained(crowds: tuple[int, ...], epsilon: float) -> float:
    """Return δ(ε) of days with these numbers of unknown people, in the worse order: a lower bound on every total."""
    first, second = np.ones(1), np.ones(1)
    for others in crowds:
        first = np.outer(first, published(others, 1)).ravel()
        second = np.outer(second, published(others, 0)).ravel()
    ratio = math.exp(epsilon)
    return max(float(np.maximum(0.0, p - ratio * q).sum()) for p, q in ((first, second), (second, first)))


@thinned(4)
@pytest.mark.parametrize("kind", [pkdp.Count, pkdp.Histogram])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, NOISE, 1.0, 2.0 * NOISE, 2.5])
def test_a_total_of_days_is_at_least_what_is_attained_and_not_far_above(kind, epsilon):
    of_one_day = pkdp.certify(kind(k=K, noise=pkdp.GeometricNoise(NOISE), below="noise"), pkdp.AttackerModel(p_max=P))
    for days in (1, 2):
        total = of_one_day if days == 1 else pkdp.compose([(of_one_day, days)], pkdp.IndependentGivenHabits())
        crowds = itertools.combinations_with_replacement(range(12), days)
        lower = max(attained(each, epsilon) for each in crowds)
        assert lower * (1.0 - 1e-9) <= total.delta(epsilon) <= (1.0 + 1e-6 if days == 1 else 2.0) * lower


def test_what_adds_up_costs_what_noise_costs_and_what_does_not_costs_nothing():
    attacker, noise = pkdp.AttackerModel(p_max=0.1), pkdp.GeometricNoise(0.5)
    below = pkdp.certify(pkdp.Histogram(k=40, noise=noise, below="noise"), attacker)
    hidden = pkdp.certify(pkdp.Histogram(k=40), attacker)
    pure = pkdp.certify(pkdp.Histogram(noise=noise), attacker)
    days, habits = 30, pkdp.IndependentGivenHabits()
    spent, shown, noised = (pkdp.compose([(each, days)], habits).epsilon(1e-6) for each in (hidden, below, pure))
    assert spent < 0.5 * noised < noised <= shown < 1.01 * noised
    assert below.epsilon(1e-6) == pytest.approx(hidden.epsilon(1e-6), rel=1e-4)
    for evidence in (pkdp.DisjointUnits(), pkdp.OncePerUnit(), pkdp.OneDayProtected()):
        assert pkdp.compose([(below, days)], evidence).epsilon(1e-6) == below.epsilon(1e-6)
    capped = pkdp.compose([(below, days)], [pkdp.BoundedParticipation(3), habits]).epsilon(1e-6)
    assert pkdp.compose([(below, 3)], habits).epsilon(1e-6) <= capped * (1.0 + 1e-9) < shown


def test_two_about_the_same_people_do_not_add_up():
    noised = pkdp.Count(k=40, noise=pkdp.GeometricNoise(0.5), release_threshold=60, below="noise")
    certificate = pkdp.certify(noised, pkdp.AttackerModel(p_max=0.1))
    with pytest.raises(pkdp.NoEvidenceError, match="do not add up"):
        pkdp.compose([certificate, certificate], pkdp.SamePeople())
