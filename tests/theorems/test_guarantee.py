"""A guarantee is the pointwise smallest of its bounds, and its ε that of the first to reach the target."""

from __future__ import annotations

import math
import signal
import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from thorough import spread, thinned

from pkdp_pipeline import ArgumentError, AttackerModel, Count, GeometricNoise, Histogram, PkdpError, certify
from pkdp_pipeline.theorems.bound import Bound, Guarantee, epsilon_points


@dataclass(frozen=True, kw_only=True)
class Line(Bound):
    """A bound that falls exponentially from `start`."""

    theorem: str = "line"
    start: float = 1.0
    rate: float = 1.0

    def bracket(self, epsilons):
        values = self.start * np.exp(-self.rate * epsilons)
        return np.zeros(len(epsilons)), values


def test_without_bounds_there_is_no_guarantee():
    nothing = Guarantee(())
    assert nothing.delta(3.0) == 1.0
    assert nothing.delta([0.0, 1e6]).tolist() == [1.0, 1.0]
    assert nothing.epsilon(0.999) == math.inf
    assert nothing.epsilon(1.0) == 0.0
    assert nothing.parameters is None


def test_the_smallest_bound_holds_at_every_point():
    steep, flat = Line(start=0.9, rate=3.0), Line(start=0.1, rate=0.5)
    both = Guarantee((steep, flat))
    points = np.linspace(0.0, 3.0, 13)
    expected = np.minimum(steep.bracket(points)[1], flat.bracket(points)[1])
    assert both.delta(points).tolist() == expected.tolist()
    assert both.epsilon(0.05) == min(Guarantee((steep,)).epsilon(0.05), Guarantee((flat,)).epsilon(0.05))
    assert both.epsilon(1e-6) == pytest.approx(math.log(0.9e6) / 3.0, rel=1e-9)


def test_a_bound_above_one_says_nothing():
    assert Guarantee((Line(start=7.0, rate=0.0),)).delta(0.5) == 1.0


def test_a_bound_that_is_no_number_says_nothing():
    assert Guarantee((Line(start=math.nan, rate=0.0),)).delta(0.5) == 1.0


@pytest.mark.parametrize(
    "given",
    [0, 0.5, 2, np.float32(0.5), np.float64(0.5), np.int64(2), Fraction(1, 2), np.array(0.5), 1e300, 5e-324],
)
def test_one_number_gives_one_float(given):
    points, scalar = epsilon_points(given)
    assert scalar
    assert points.tolist() == [float(given)]
    assert type(Guarantee((Line(start=0.5, rate=1.0),)).delta(given)) is float


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ([0.5], (1,)),
        ((0.5, 1), (2,)),
        (np.array([[1, 2], [3, 4]]), (2, 2)),
        (np.zeros((2, 0)), (2, 0)),
        ([], (0,)),
        (pd.Series([0.1, 0.2]), (2,)),
        (np.arange(3, dtype=np.uint8), (3,)),
        (np.array([0.5], dtype=np.float16), (1,)),
    ],
)
def test_an_array_keeps_its_shape(given, shape):
    result = Guarantee((Line(start=0.5, rate=1.0),)).delta(given)
    assert isinstance(result, np.ndarray)
    assert result.shape == shape
    assert result.dtype == np.float64


@pytest.mark.parametrize(
    "given",
    [
        -1e-300,
        -1,
        math.nan,
        math.inf,
        -math.inf,
        [0.1, -0.1],
        [0.1, math.nan],
        [math.inf],
        True,
        np.bool_(True),
        [True, False],
        "0.5",
        ["0.5"],
        None,
        [None],
        1j,
        [1j],
        {"a": 1},
        [[1.0], [1.0, 2.0]],
        10**400,
        [10**400],
        b"1",
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        object(),
    ],
)
def test_epsilon_is_checked(given):
    with pytest.raises(ArgumentError, match="epsilon must be"):
        Guarantee((Line(start=0.5, rate=1.0),)).delta(given)


@pytest.mark.parametrize(
    "delta", [-1e-9, 1.1, math.nan, math.inf, True, "0.1", None, [0.1], np.array([0.1]), 1j, 10**400]
)
def test_delta_is_checked(delta):
    with pytest.raises(ArgumentError, match="delta must be"):
        Guarantee((Line(start=0.5, rate=1.0),)).epsilon(delta)


def test_the_inputs_are_left_alone():
    points = np.array([0.1, 0.5])
    Guarantee((Line(start=0.5, rate=1.0),)).delta(points)
    assert points.tolist() == [0.1, 0.5]


EPSILONS = [0.0, 5e-324, 1e-300, 1e-12, 0.3, 700.0, 720.0, 1024.0, 1e6, 1e300]
SHARES = [0.0, 5e-324, 1e-300, 1e-12, 0.5, 1 - 2**-53, 1.0]
CROWDS = [1, 10**30]
EXTREME = [
    *(
        (Count(k=k), {"p_max": p, "unknown_max": cap}, "presence")
        for p in SHARES
        for k, cap in [(2, None), (2, 0), (60, 30), (60, 10**30), (10**6, None), (10**6, 10**6 + 5)]
    ),
    *((Count(k=10**9), {"p_max": p, "unknown_max": cap}, "presence") for p in (1e-12, 0.5) for cap in (None, 2**53)),
    *(
        (Count(k=k), {"p_max": p, "known": known, "influence": influence}, "presence")
        for p in (5e-324, 0.5, 1 - 2**-53)
        for influence in ("active", "passive")
        for k, known in [(60, 7), (60, 1000), (10**6, 10**5), (10**9, 10**9)]
    ),
    *((Count(k_complement=60), {"p_min": p, "unknown": n}, "presence") for p in SHARES for n in (0, 10**30)),
    *((Count(k=9), {"p_min": p, "p_max": p, "unknown": n}, "presence") for p in SHARES for n in CROWDS),
    *(
        (Count(noise=noise), {"p_min": low, "p_max": high, "unknown": n}, "presence")
        for noise in (None, GeometricNoise(1e-9), GeometricNoise(0.5), GeometricNoise(1e5))
        for low, high in [(5e-324, 1 - 2**-53), (1e-12, 0.5), (0.5, 0.5)]
        for n in CROWDS
    ),
    *(
        (Histogram(k=k), {"p_max": p, "unknown_max": cap, "known": known}, "value")
        for p in SHARES
        for k, cap, known in [(3, None, 0), (60, 30, 0), (60, 10**30, 3), (1000, None, 0)]
    ),
    *((Histogram(k=60), {"p_max_between": p, "known": 9}, "value") for p in (0.5, 1 - 2**-53, 1.0)),
    *((Histogram(), {"p_min": p, "unknown": n}, "value") for p in (0.0, 5e-324, 1e-12, 0.3, 0.5) for n in CROWDS),
    *(
        (Histogram(k=k, noise=GeometricNoise(noise), release_threshold=r), {"p_max": 0.5}, protects)
        for noise in (1e-9, 0.5, 1e5)
        for k, r in [(60, 0), (60, 10**9), (10**9, 1)]
        for protects in ("presence", "value")
        if (k, protects) != (10**9, "value")
    ),
]


LONG = {60, 160}
"""Cases that take seconds: a hundred thousand known people; more people who choose than are looked at."""


@pytest.fixture
def alarm():
    """Stop a test that computes without end."""

    def stop(*_):
        raise TimeoutError("computes without end")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 40)  # seconds of processors, whatever else they do
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@thinned(4)
@pytest.mark.usefixtures("alarm")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if case % 9 == 0 and case not in LONG else [pytest.mark.slow])
        for case in range(len(EXTREME))
    ],
)
def test_extremes_give_probabilities_quickly_and_quietly(case):
    mechanism, attacker, protects = EXTREME[case]
    started = time.process_time()

    def lap():
        nonlocal started
        before, started = started, time.process_time()
        assert started - before < 5.0, (mechanism, attacker, protects)

    try:
        certificate = certify(mechanism, AttackerModel(**attacker), protects=protects)
    except PkdpError:
        lap()
        return
    lap()
    for deltas in (certificate.delta(np.array(EPSILONS)), certificate.worst_case.delta(np.array(EPSILONS))):
        lap()
        assert np.all((deltas >= 0.0) & (deltas <= 1.0))
        assert np.all(deltas[1:] <= deltas[:-1] * 1.01 + 1e-300)
    attained, certified = certificate.delta_bounds(np.array(EPSILONS))
    lap()
    assert np.all((attained >= 0.0) & (attained <= certified) & (certified <= 1.0))
    for epsilon in (0.0, 0.3, 1024.0):
        assert 0.0 <= certificate.delta(epsilon) <= 1.0
        lap()


@thinned(3)
@pytest.mark.usefixtures("alarm")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("case", "delta"), spread(3, range(0, len(EXTREME), 19), [5e-324, 1e-9, 0.5]))
def test_extremes_invert(case, delta):
    mechanism, attacker, protects = EXTREME[case]
    try:
        certificate = certify(mechanism, AttackerModel(**attacker), protects=protects)
    except PkdpError:
        return
    started = time.process_time()
    epsilon = certificate.epsilon(delta)
    assert time.process_time() - started < 5.0, (mechanism, attacker, protects)
    assert epsilon >= 0.0
    assert epsilon == math.inf or certificate.delta(epsilon) <= delta
    assert certificate.sentence(delta).startswith(("Private at ε = ", "No protection is certified at ε = 1"))
