"""A kernel is a public map from a count to a symbol: a toy is certified by the search, against enumeration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
from scipy.stats import binom

import pkdp_pipeline as pkdp
from pkdp_pipeline.model import mechanisms
from pkdp_pipeline.model.mechanisms import Count, mechanism_from_dict, mechanism_to_dict
from pkdp_pipeline.theorems import theorems as registry
from pkdp_pipeline.theorems.bound import Applied, Bound, Theorem
from pkdp_pipeline.theorems.channel import ExactFromK, Kernel
from pkdp_pipeline.theorems.kernel_search import Coins, supremum
from pkdp_pipeline.theorems.theorems import bounds_of

BASE, P, UNKNOWN_MAX = 4, 0.3, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiples(Count):
    """Hidden below `k`; from there on one of the neighbouring multiples of 4, drawn at random."""


@dataclass(frozen=True, slots=True)
class RandomMultiples(Kernel):
    k: int

    @property
    def for_large_counts(self):
        return ExactFromK(0, None, 1.0), 0  # what is shown is a function of the count, which more people hide

    def budget(self, counts):
        return (counts + 4.0) * 2.0**-53  # sums of positive terms, each of one product

    def published(self, laws):
        counts = np.arange(laws.shape[1])
        low, share, shown = counts // BASE, counts % BASE / BASE, counts >= self.k
        kernel = np.zeros((len(counts), low[-1] + 3))
        kernel[counts, low] = shown * (1.0 - share)
        kernel[counts, low + 1] = shown * share
        kernel[:, -1] = ~shown
        return laws @ kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched(Bound):
    k: int
    p: float
    cap: int | None

    @property
    def slack(self):
        return 0.01

    def bracket(self, epsilons):
        coins = Coins(self.p, math.inf if self.cap is None else self.cap)
        optimum = supremum(RandomMultiples(self.k), coins, epsilons, self.slack)
        return optimum.best, optimum.top


def multiples(mechanism, attacker, left):
    if attacker.p_max in (None, 1.0) or attacker.known:
        return "the toy needs p_max < 1 and known = 0"
    bound = Searched(theorem="multiples", k=mechanism.k, p=attacker.p_max, cap=attacker.unknown_max)
    return Applied(bound=bound, attack=bound)


TOY = Theorem(
    key="multiples",
    title="A toy",
    citation="docs/mathematics.md, section 6",
    against=lambda attacker: "anyone who plays",
    rests_on=("known", "p_max"),
    about=(Multiples, "presence"),
    rule=multiples,
)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(registry._REGISTRY, "multiples", TOY)
    names = MappingProxyType({**mechanisms.MECHANISMS, "multiples": Multiples})
    monkeypatch.setattr(mechanisms, "MECHANISMS", names)
    bounds_of.cache_clear()
    yield
    bounds_of.cache_clear()


def enumerated(people, epsilon):
    """The larger divergence of what is shown with one person more and without, symbol by symbol."""
    lives = []
    for target in (0, 1):
        shown = dict.fromkeys(("hidden", *range(people)), 0.0)
        for count, chance in enumerate(binom.pmf(range(people + 1), people, P), start=target):
            low, rest = divmod(count, BASE)
            for symbol, share in ((low, 1.0 - rest / BASE), (low + 1, rest / BASE)) if count >= 8 else (("hidden", 1),):
                shown[symbol] = shown.get(symbol, 0.0) + share * chance
        lives.append(shown)
    return max(
        sum(max(0.0, first[symbol] - math.exp(epsilon) * second.get(symbol, 0.0)) for symbol in first)
        for first, second in (lives, lives[::-1])
    )


def test_a_toy_kernel_is_certified_tightly_and_read_again():
    mechanism = Multiples(k=8)
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=P, unknown_max=UNKNOWN_MAX))
    assert "anyone who plays" in certificate.sentence()
    assert certificate.verify()
    assert mechanism_from_dict(mechanism_to_dict(mechanism)) == mechanism
    for epsilon in (0.0, 0.5, 2.0):
        worst = max(enumerated(people, epsilon) for people in range(UNKNOWN_MAX + 1))
        assert worst * (1.0 - 1e-9) <= certificate.delta(epsilon) <= worst * 1.01


def test_no_epsilon_is_too_large_for_the_search():
    """A certificate asks for what is left at an ε beyond any use."""
    at_600, at_700 = Searched(theorem="multiples", k=8, p=P, cap=UNKNOWN_MAX).bracket(np.array([600.0, 700.0]))[1]
    assert at_700 == at_600 < 1.0
