"""pkdp_delta and pkdp_epsilon: what `certify` gives, row by row."""

from __future__ import annotations

import math

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb import install
from pkdp_pipeline.sql import curator


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        install(connection, attacker=pkdp.AttackerModel(p_max=0.1), unit="uid")
        yield connection


def scalar(connection, call):
    ((value,),) = connection.sql(f"SELECT {call}").fetchall()
    return value


def test_a_curve_over_a_column_is_what_certify_gives(con):
    curve = con.sql(
        "SELECT k, pkdp_epsilon('histogram', k := k, p_max := 0.1, delta := 1e-6) FROM range(10, 60, 5) t(k)"
    ).fetchall()
    attacker = pkdp.AttackerModel(p_max=0.1)
    assert curve == [(k, pkdp.certify(pkdp.Histogram(k=k), attacker).epsilon(1e-6)) for k in range(10, 60, 5)]
    kinds = con.sql("SELECT pkdp_delta('histogram', k := 20, p_max := 0.1, epsilon := 1)").types
    assert [str(kind) for kind in kinds] == ["DOUBLE"]


@given(
    k=st.integers(min_value=2, max_value=60),
    p_max=st.floats(min_value=0.01, max_value=0.6),
    epsilon=st.floats(min_value=0.0, max_value=5.0),
    protects=st.sampled_from(["presence", "value"]),
    noise=st.sampled_from([None, 0.5]),
    known=st.sampled_from([None, 3]),
)
@settings(max_examples=25)
def test_delta_is_the_very_number_of_certify(con, k, p_max, epsilon, protects, noise, known):
    mechanism = pkdp.Histogram(k=k, noise=None if noise is None else pkdp.GeometricNoise(noise))
    attacker = pkdp.AttackerModel(p_max=p_max, known=known or 0)
    try:
        expected = pkdp.certify(mechanism, attacker, protects=protects).delta(epsilon)
    except pkdp.NotCertifiableError:
        expected = 1.0
    delta = con.execute(
        "SELECT pkdp_delta('histogram', k := $k, p_max := $p_max, noise := $noise, known := $known, "
        "protects := $protects, epsilon := $epsilon)",
        {"k": k, "p_max": p_max, "noise": noise, "known": known, "protects": protects, "epsilon": epsilon},
    ).fetchall()
    assert delta == [(expected,)]


def test_every_parameter_reaches_certify(con):
    count = pkdp.Count(k=5, k_complement=7, noise=pkdp.GeometricNoise(0.5), release_threshold=6)
    attacker = pkdp.AttackerModel(p_min=0.2, p_max=0.4, unknown=50, unknown_max=60, known=2, influence="active")
    assert scalar(
        con,
        "pkdp_delta('count', k := 5, k_complement := 7, noise := 0.5, release_threshold := 6, p_min := 0.2, "
        "p_max := 0.4, unknown := 50, unknown_max := 60, known := 2, influence := 'active', epsilon := 0.3)",
    ) == pkdp.certify(count, attacker).delta(0.3)
    between = pkdp.AttackerModel(p_max_between=0.6)
    assert scalar(
        con, "pkdp_delta('histogram', k := 30, p_max_between := 0.6, protects := 'value', epsilon := 1)"
    ) == pkdp.certify(pkdp.Histogram(k=30), between, protects="value").delta(1.0)


def test_noise_below_k_promises_what_hiding_does_and_less_below_its_own_epsilon(con):
    noised = pkdp.Histogram(k=30, noise=pkdp.GeometricNoise(0.8), below="noise")
    attacker = pkdp.AttackerModel(p_max=0.1)
    call = "pkdp_delta('histogram', k := 30, noise := 0.8, below := 'noise', p_max := 0.1, epsilon := {})"
    hidden = scalar(con, "pkdp_delta('histogram', k := 30, p_max := 0.1, epsilon := 1)")
    assert scalar(con, call.format(1)) == pkdp.certify(noised, attacker).delta(1.0) == pytest.approx(hidden, rel=1e-6)
    assert scalar(con, call.format(0.5)) > 0.1
    with pytest.raises(duckdb.InvalidInputException, match="give k and noise"):
        scalar(con, "pkdp_delta('histogram', k := 30, below := 'noise', p_max := 0.1, epsilon := 1)")


def test_a_rule_of_display_is_certified_at_its_first_boundary(con):
    hidden = scalar(con, "pkdp_delta('histogram', k := 10, p_max := 0.1, epsilon := 1)")
    bands = "pkdp_delta('histogram', display := {}, p_max := 0.1, epsilon := 1)"
    assert scalar(con, bands.format("{'bands': [0, 10, 20]}")) == hidden
    assert scalar(con, bands.format("'{\"bands\": [0, 10, 20]}'")) == hidden
    assert scalar(con, bands.format("{'random_rounding': 3}")) == 1.0
    with pytest.raises(duckdb.InvalidInputException, match="display must be one rule"):
        scalar(con, bands.format("5"))


@pytest.mark.parametrize(("cells_found", "threshold"), [(False, None), (True, 60)])
def test_a_sum_is_certified_with_its_bounds(con, cells_found, threshold):
    mechanism = pkdp.Sum((-1, 5), pkdp.GeometricNoise(1.0), release_threshold=threshold, cells_found=cells_found)
    steps = f"bounds := [-1, 5], noise := 1.0, release_threshold := {threshold or 'NULL'}, cells_found := {cells_found}"
    own = pkdp.certify(mechanism, protects="value")
    assert scalar(con, f"pkdp_delta('sum', {steps}, protects := 'value', epsilon := 0.5)") == own.delta(0.5)


def test_where_nothing_is_certified_nothing_is_promised(con):
    assert scalar(con, "pkdp_delta('histogram', k := 1, p_max := 0.1, epsilon := 1)") == 1.0
    assert scalar(con, "pkdp_epsilon('histogram', k := 1, p_max := 0.1, delta := 1e-6)") == math.inf
    curve = con.sql(
        "SELECT pkdp_delta('histogram', k := k, p_max := 0.1, epsilon := 1) FROM range(1, 5) t(k)"
    ).fetchall()
    assert [value for (value,) in curve] == sorted((value for (value,) in curve), reverse=True)
    assert curve[0] == (1.0,)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ("pkdp_delta('histogram', k := 20, p_max := 0.1)", "epsilon is needed"),
        ("pkdp_epsilon('histogram', k := 20, p_max := 0.1, delta := NULL)", "delta is needed"),
        (
            "pkdp_delta('histogramm', k := 20, p_max := 0.1, epsilon := 1)",
            "mechanism must be one of 'count', 'histogram'",
        ),
        ("pkdp_epsilon('sum', noise := 1.0, delta := 1e-6)", "a sum needs bounds"),
        ("pkdp_epsilon('sum', bounds := [5], noise := 1.0, delta := 1e-6)", "bounds must be two whole numbers"),
        ("pkdp_delta(NULL, k := 20, p_max := 0.1, epsilon := 1)", "mechanism must be one of"),
        ("pkdp_delta('histogram', k := 20, p_max := 1.5, epsilon := 1)", "p_max must be a probability"),
        ("pkdp_delta('histogram', k := 20, p_max := 0.1, epsilon := -1)", "epsilon"),
        ("pkdp_delta('histogram', k := 20, p_max := 0.1, epsilon := 'nan')", "epsilon"),
        ("pkdp_epsilon('histogram', k := 20, p_max := 0.1, delta := 2)", "delta must be a probability"),
        ("pkdp_delta('histogram', k := 1, p_max := 0.1, epsilon := -1)", "epsilon"),
        ("pkdp_epsilon('histogram', k := 1, p_max := 0.1, delta := 2)", "delta"),
        ("pkdp_delta('histogram', k := 20, k_complement := 3, p_max := 0.1, epsilon := 1)", "k_complement is about"),
        ("pkdp_delta('histogram', k := -2, p_max := 0.1, epsilon := 1)", "k must be at least"),
        ("pkdp_delta('histogram', k := 20, release_threshold := 3, p_max := 0.1, epsilon := 1)", "release_threshold"),
        (
            "pkdp_delta('histogram', k := 20, p_max := 0.1, influence := 'some', epsilon := 1)",
            "influence must be one of",
        ),
        ("pkdp_delta('histogram', k := 20, p_max := 0.1, protects := 'me', epsilon := 1)", "protects must be one of"),
    ],
)
def test_malformed_arguments_are_errors(con, call, rule):
    with pytest.raises(duckdb.InvalidInputException, match=f"ArgumentError: .*{rule}"):
        con.sql(f"SELECT {call}").fetchall()


@pytest.mark.parametrize("k", ["20.5", "2e1", "true", "'20.7'", "'20'"])
def test_numbers_are_not_rounded_to_fit(con, k):
    with pytest.raises(duckdb.BinderException):
        con.sql(f"SELECT pkdp_delta('histogram', k := {k}, p_max := 0.1, epsilon := 1)")
    for name in ("k_complement", "release_threshold", "unknown", "unknown_max", "known"):
        with pytest.raises(duckdb.BinderException):
            con.sql(f"SELECT pkdp_epsilon('count', k := 5, {name} := {k}, p_max := 0.1, delta := 0.5)")


def test_equal_rows_are_computed_once(con, monkeypatch):
    calls = []
    certify = curator.certify
    monkeypatch.setattr(curator, "certify", lambda *given, **more: calls.append(given) or certify(*given, **more))
    rows = con.sql(
        "SELECT DISTINCT pkdp_delta('histogram', k := 33 + i % 2, p_max := 0.123, epsilon := 1) FROM range(9999) t(i)"
    )
    assert len(rows.fetchall()) == 2
    assert len(calls) == 2
