"""The macros of sql/pkdp_certificates.sql: never below the library or an attacker, and within 1e-9 of both."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import flint
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle.laws import exact_exp, lower_end
from oracle.releases import count_losses
from thorough import few

import pkdp_pipeline as pkdp
import pkdp_pipeline.duckdb

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "sql" / "pkdp_certificates.sql"
VECTORS = {
    **json.loads((ROOT / "tests" / "data" / "exact.json").read_text(encoding="utf-8")),
    **json.loads((ROOT / "tests" / "data" / "rules.json").read_text(encoding="utf-8")),
}
CLOSE = 1 + 1e-9


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(SCRIPT.read_text(encoding="utf-8"))
        yield connection


def evaluated(con: duckdb.DuckDBPyConnection, macro: str, rows: list[tuple[Any, ...]]) -> list[float]:
    """Return what a macro gives for rows of arguments, in one statement: to bind one takes longer than to run it."""
    arguments = [
        f"rows[place][{index + 1}]::{'VARCHAR' if type(value) is str else 'DOUBLE'}"
        for index, value in enumerate(rows[0])
    ]
    query = f"SELECT {macro}({', '.join(arguments)}) FROM (SELECT $rows::VARCHAR[][] AS rows), range(1, $many) t(place)"
    given = {
        "rows": [[repr(value) if type(value) is float else str(value) for value in row] for row in rows],
        "many": len(rows) + 1,
    }
    return [value for (value,) in con.execute(query, given).fetchall()]


def threshold(k: int, attacker: pkdp.AttackerModel) -> Any:
    return pkdp.certify(pkdp.Histogram(k=k), attacker)


def test_the_exact_vectors_are_reproduced_and_never_undercut(con):
    cases = [case for case in VECTORS["thresholding"] if case["unknown_max"] is None]
    deltas = evaluated(con, "pkdp_threshold_delta", [(case["k"], case["p_max"], case["epsilon"]) for case in cases])
    drawn = VECTORS["sampled_presence"]
    deltas += evaluated(con, "pkdp_sampled_delta", [(case["k"], case["sampled"], case["epsilon"]) for case in drawn])
    for case, delta in zip([*cases, *drawn], deltas, strict=True):
        assert case["delta"] <= delta <= case["delta"] * CLOSE, case
    # The file averages over the worst number of unknown people for each number of known ones, as the macro does.
    known = VECTORS["thresholding_passive"]
    rows = [(case["k"], case["p_max"], case["epsilon"], case["known"]) for case in known]
    for case, delta in zip(known, evaluated(con, "pkdp_threshold_delta", rows), strict=True):
        assert case["delta"] <= delta <= case["delta"] * 1.0011, case


CHANCES = st.floats(1e-9, 0.999) | st.floats(1e-3, 0.9)
EPSILONS = st.floats(1e-3, 3.0) | st.floats(0.0, 40.0)
WHOLES = st.integers(2, 40) | st.integers(2, 1000)


@given(st.lists(st.tuples(WHOLES, CHANCES, EPSILONS), min_size=20, max_size=20))
@settings(max_examples=few(40, 3))
def test_delta_is_at_most_1e_9_above_the_library_and_never_below_it(con, rows):
    for macro, attacker in (("pkdp_threshold_delta", "p_max"), ("pkdp_sampled_delta", "sampled")):
        for (k, chance, epsilon), delta in zip(rows, evaluated(con, macro, rows), strict=True):
            certified = threshold(k, pkdp.AttackerModel(**{attacker: chance})).delta(epsilon)
            # A sample's a = β - (1 - β) E is raised by 2e-15, the library's by as much.
            width = 1e-9 if attacker == "p_max" else max(1e-9, 1e-14 / chance)
            assert certified <= delta <= certified * (1 + width) + 1e-289, (macro, k, chance, epsilon)


@given(st.lists(st.tuples(st.integers(2, 120), st.floats(1e-3, 0.9), st.floats(-60.0, -0.1)), min_size=4, max_size=4))
@settings(max_examples=few(30, 2))
def test_epsilon_is_certified_and_close(con, rows):
    rows = [(k, chance, 10.0**power) for k, chance, power in rows]
    for macro, attacker in (("threshold", "p_max"), ("sampled", "sampled")):
        epsilons = evaluated(con, f"pkdp_{macro}_epsilon", rows)
        again = [(k, chance, min(epsilon, 700.0)) for (k, chance, _), epsilon in zip(rows, epsilons, strict=True)]
        reached = evaluated(con, f"pkdp_{macro}_delta", again)
        for (k, chance, delta), epsilon, value in zip(rows, epsilons, reached, strict=True):
            certificate = threshold(k, pkdp.AttackerModel(**{attacker: chance}))
            if math.isinf(epsilon):
                assert certificate.delta(700.0) * CLOSE > delta
                continue
            assert value <= delta
            # Where δ hardly falls any more, many an ε has nearly this δ.
            before = epsilon * (1 - 1e-9)
            assert epsilon == 0.0 or certificate.epsilon(delta) >= before or certificate.delta(before) * CLOSE > delta


@given(
    st.lists(st.floats(0.0, 0.3), max_size=25), st.integers(2, 9), st.floats(0.0, 2.0), st.integers(0, 6), st.booleans()
)
@settings(max_examples=few(80))
def test_no_attacker_exceeds_delta(con, chances, k, epsilon, known, active):
    (delta,) = evaluated(con, "pkdp_threshold_delta", [(k, 0.3, epsilon, known, "active" if active else "passive")])
    with flint.ctx.workprec(320):
        people = [[flint.arb(chance) for chance in crowd] for crowd in (chances, [0.3] * known)]
        sides = count_losses(people[0], known if active else people[1], epsilon, exact_exp, k=k)
        assert all(lower_end(flint.arb(side)) <= delta for side in sides)
    try:
        attacker = pkdp.AttackerModel(p_max=0.3, known=known, influence="active" if active else "passive")
        certified = threshold(k, attacker).delta(epsilon)
    except pkdp.NotCertifiableError:
        assert delta == pytest.approx(1.0, abs=1e-3)
        return
    # One number of unknown people for all who are merely known tells less than the worst for each.
    assert certified <= delta <= certified * (CLOSE if active or not known else 10.0)


@pytest.mark.parametrize("protects", ["presence", "value"])
@given(st.floats(1e-6, 20.0), st.floats(0.0, 1.1), st.floats(-12.0, -0.01))
@example(500.0, 1.999999999, -6.0)
@settings(max_examples=few(60))
def test_noise(con, protects, noise, share, power):
    certificate = pkdp.certify(pkdp.Histogram(noise=pkdp.GeometricNoise(noise)), protects=protects)
    epsilon, delta = share * noise, 10.0**power
    (delta_of_macro,) = evaluated(con, "pkdp_noise_delta", [(noise, epsilon, protects)])
    assert certificate.delta(epsilon) <= delta_of_macro <= certificate.delta(epsilon) * CLOSE
    (reached,) = evaluated(con, "pkdp_noise_epsilon", [(noise, delta, protects)])
    assert certificate.delta(reached) <= delta
    assert reached <= certificate.epsilon(delta) * CLOSE + 1e-14
    assert evaluated(con, "pkdp_noise_delta", [(noise, reached, protects)])[0] <= delta


@pytest.mark.parametrize(
    ("display", "rule"),
    [
        ("{'rounding': 5}", pkdp.Rounding(5)),
        ("{'rounding': 6, 'mode': 'nearest'}", pkdp.Rounding(6)),
        ("{'rounding': 5, 'mode': 'down'}", pkdp.Rounding(5, mode="down")),
        ("{'rounding': 7, 'mode': 'midpoint'}", pkdp.Rounding(7, mode="midpoint")),
        ("{'bands': [0, 15, 20]}", pkdp.Bands([0, 15, 20])),
    ],
)
def test_rules_of_display_are_thresholds(con, display, rule):
    query = f"SELECT pkdp_display_k({display}), pkdp_threshold_delta(pkdp_display_k({display}), 0.1::DOUBLE, 1)"
    ((first, delta),) = con.execute(query).fetchall()
    assert first == rule.first_boundary
    certified = pkdp.certify(pkdp.Histogram(display=rule), pkdp.AttackerModel(p_max=0.1)).delta(1.0)
    assert certified <= delta <= certified * CLOSE


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("pkdp_threshold_delta(NULL, 0.1, 1)", "k must be a whole number from 1 to 1000"),
        ("pkdp_threshold_delta(0, 0.1, 1)", "k must be"),
        ("pkdp_threshold_delta(1001, 0.1, 1)", "k must be"),
        ("pkdp_threshold_delta(20.5, 0.1, 1)", "k must be"),
        ("pkdp_threshold_delta('nan'::DOUBLE, 0.1, 1)", "k must be"),
        ("pkdp_threshold_delta(20, 0, 1)", "p_max must be a probability above 0 and below 1"),
        ("pkdp_threshold_delta(20, 1, 1)", "p_max must be"),
        ("pkdp_threshold_delta(20, 'nan'::DOUBLE, 1)", "p_max must be"),
        ("pkdp_threshold_delta(20, NULL, 1)", "p_max must be"),
        ("pkdp_threshold_delta(20, 0.1, NULL)", "epsilon must be finite and at least 0"),
        ("pkdp_threshold_delta(20, 0.1, 'inf'::DOUBLE)", "epsilon must be"),
        ("pkdp_threshold_delta(20, 0.1, -1)", "epsilon must be"),
        ("pkdp_threshold_delta(20, 0.1, 1, known := NULL)", "known must be a whole number from 0"),
        ("pkdp_threshold_delta(20, 0.1, 1, known := -1)", "known must be"),
        ("pkdp_threshold_delta(20, 0.1, 1, influence := 'some')", "influence must be 'passive' or 'active'"),
        ("pkdp_threshold_delta(20, 0.1, 1, influence := NULL)", "influence must be"),
        ("pkdp_threshold_epsilon(20, 0.1, NULL)", "delta must be a probability from 0 to 1"),
        ("pkdp_threshold_epsilon(20, 0.1, 'nan'::DOUBLE)", "delta must be"),
        ("pkdp_sampled_delta(20, 1.5, 1)", "sampled must be"),
        ("pkdp_sampled_epsilon(20, 0.1, 2)", "delta must be"),
        ("pkdp_noise_delta(0, 1)", "noise must be finite and above 0"),
        ("pkdp_noise_delta('inf'::DOUBLE, 1)", "noise must be"),
        ("pkdp_noise_epsilon(1, 0.1, protects := 'me')", "protects must be 'presence' or 'value'"),
        ("pkdp_display_k({'rounding': 1})", "display must"),
        ("pkdp_display_k({'bands': [0, 5, 5]})", "display must"),
        ("pkdp_display_k({'random_rounding': 3})", "display must"),
        ("pkdp_display_k(NULL)", "display must"),
        ("pkdp_display_k({'rounding': 5, 'mode': 'up'})", "mode must be"),
    ],
)
def test_no_number_for_malformed_arguments(con, call, names):
    with pytest.raises(duckdb.InvalidInputException, match=names):
        con.execute(f"SELECT {call}").fetchall()


def test_the_macros_stand_beside_those_of_install(con):
    with duckdb.connect() as connection:
        connection.execute(SCRIPT.read_text(encoding="utf-8"))
        pkdp.duckdb.install(connection, unit="person")
        ((alone, library),) = connection.execute(
            "SELECT pkdp_threshold_delta(20, 0.1, 1), pkdp_delta('histogram', k := 20, p_max := 0.1, epsilon := 1)"
        ).fetchall()
    assert library <= alone <= library * CLOSE


def test_what_underflows_is_not_rounded_to_0(con):
    drawn = [(2, 1e-200, 0.001), (20, 1e-300, 50.0)]
    assert min(evaluated(con, "pkdp_sampled_delta", drawn)) >= 1e-290
    noised = [(1e-300, 0.9999999999999999e-300), (1e-300, 0.0)]
    for (noise, epsilon), delta in zip(noised, evaluated(con, "pkdp_noise_delta", noised), strict=True):
        assert delta >= (Fraction(noise) - Fraction(epsilon)) / 2
