"""Estimates from a secret sample, and totals with publicly fixed weights: compared with pandas and with the truth."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.releases.estimates import weighted

DRAWN = pkdp.AttackerModel(sampled=0.1)
ROWS = pd.DataFrame(
    {
        "person": range(240),
        "area": ["A"] * 120 + ["B"] * 90 + ["C"] * 30,
        "stratum": (["x"] * 80 + ["y"] * 40) + (["x"] * 45 + ["y"] * 45) + (["x"] * 27 + ["y"] * 3),
    }
)


def table(**more):
    domain = {"area": list("ABC"), "stratum": ["x", "y"]}
    return ROWS.pkdp.histogram(["area", "stratum"], unit="person", attacker=DRAWN, k=8, domain=domain, **more)


def test_an_estimate_is_the_count_over_the_chance_to_be_drawn():
    release = table()
    estimate = release.estimate()
    counts = release.table["count"]
    assert list(estimate.columns) == ["area", "stratum", "estimate", "error", "low", "high"]
    shown = counts.notna()
    np.testing.assert_allclose(estimate["estimate"][shown].astype(float), counts[shown].astype(float) / 0.1)
    np.testing.assert_allclose(estimate["error"][shown].astype(float), np.sqrt(counts[shown].astype(float) * 0.9) / 0.1)
    assert estimate["estimate"][~shown].isna().all()
    assert (estimate["low"][shown] <= estimate["estimate"][shown]).all()


def test_the_interval_covers_the_population_about_as_often_as_it_says():
    random = np.random.default_rng(7)
    population, covered = 3_000, 0
    for drawn in random.binomial(population, 0.1, 200).tolist():
        low, high = (drawn / 0.1 + side * 1.96 * np.sqrt(drawn * 0.9) / 0.1 for side in (-1, 1))
        covered += low <= population <= high
    assert covered / 200 >= 0.9
    error = pd.DataFrame({"person": range(300)}).pkdp.count(unit="person", attacker=DRAWN, k=8).estimate()
    assert error.loc[0, "error"] == pytest.approx(np.sqrt(300 * 0.9) / 0.1)


def test_noise_widens_the_error():
    noise = pkdp.GeometricNoise(0.5)
    release = table(below="noise", noise=noise)
    estimate, marks = release.estimate(), release.table["exact"].astype(bool)
    published = release.table["count"].astype(float)
    deviation = release.error.standard_deviation
    expected = np.sqrt(published.clip(lower=0) * 0.9 + np.where(marks, 0.0, deviation**2)) / 0.1
    np.testing.assert_allclose(estimate["error"].astype(float), expected)


def test_a_weighted_total_is_that_of_pandas():
    weights = {"x": 10.0, "y": 12.5}
    total = table().weighted({"stratum": weights}, by="area")
    counts = ROWS.groupby(["area", "stratum"]).size().rename("count").reset_index()
    counts["weighted"] = counts["count"] * counts["stratum"].map(weights)
    expected = counts.groupby("area")["weighted"].sum()
    assert total["weighted"].iloc[:2].tolist() == expected.iloc[:2].tolist()
    assert pd.isna(total.loc[2, "weighted"])
    # Three people of C are in a suppressed cell.
    assert total.loc[2, "least"] == 270.0
    assert total.loc[2, "least"] <= expected["C"] <= total.loc[2, "most"]
    # Of x one in 10 is drawn, of y one in 12.5.
    drawn = counts["count"] * counts["stratum"].map({"x": 10.0 * 9.0, "y": 12.5 * 11.5})
    expected_error = np.sqrt(drawn.groupby(counts["area"]).sum())
    np.testing.assert_allclose(total["error"].iloc[:2].astype(float), expected_error[:2])
    assert pd.isna(total.loc[2, "error"])
    everybody = ROWS.pkdp.histogram("stratum", unit="person", attacker=pkdp.AttackerModel(p_max=0.1), k=30)
    assert "error" not in everybody.weighted({"stratum": weights}, by=[]).columns


def test_the_squared_error_of_a_weighted_total_has_the_variance_of_all_draws_as_its_mean():
    people, chances = {"x": 4, "y": 3}, {"x": Fraction(1, 4), "y": Fraction(1, 10)}
    weights = {name: float(1 / chance) for name, chance in chances.items()}
    mean = variance = squared = Fraction(0)
    for drawn in itertools.product(*(range(number + 1) for number in people.values())):
        chance = Fraction(1)
        for number, (name, of) in zip(drawn, people.items(), strict=True):
            chance *= math.comb(of, number) * chances[name] ** number * (1 - chances[name]) ** (of - number)
        table = pd.DataFrame({"stratum": list(people), "count": pd.array(drawn, dtype="Int64")})
        total = weighted(table, pkdp.Histogram(k=1), {"stratum": weights}, [], 0.25, declared=True)
        mean += chance * Fraction(total.loc[0, "weighted"])
        variance += chance * (Fraction(total.loc[0, "weighted"]) - sum(people.values())) ** 2
        squared += chance * Fraction(total.loc[0, "error"]) ** 2
    assert mean == sum(people.values())
    assert float(squared) == pytest.approx(float(variance), rel=1e-12)


def test_a_weighted_total_of_noised_cells_says_how_far_off_it_may_be():
    release = table(below="noise", noise=pkdp.GeometricNoise(1.0))
    total = release.weighted({"stratum": {"x": 10.0, "y": 12.5}}, by=[])
    noised = (~release.table["exact"].astype(bool)).to_numpy()
    weights = np.where(release.table["stratum"] == "x", 10.0, 12.5)
    drawn = release.table["count"].clip(lower=0).to_numpy(dtype=float) * (1.0 - 1.0 / weights)
    noise = release.error.standard_deviation**2 * noised
    assert total.loc[0, "error"] == pytest.approx(np.sqrt((weights**2 * (drawn + noise)).sum()))
    # No chance to be drawn is above 0.1, whatever the weights are.
    halves = release.weighted({"stratum": {"x": 0.5, "y": 0.5}}, by=[]).loc[0, "error"]
    drawn = release.table["count"].clip(lower=0).to_numpy(dtype=float) * 0.9
    assert halves == pytest.approx(0.5 * np.sqrt((drawn + noise).sum()))


@pytest.mark.parametrize(
    ("weights", "named"),
    [
        ({"stratum": {"x": 1.0}}, "no weight for 'y'"),
        ({"stratum": {"x": 1.0, "y": 0.0}}, "above 0"),
        ({"age": {"x": 1.0}}, "age"),
        ({"stratum": [1.0, 2.0]}, "fixed beforehand"),
        ({}, "fixed beforehand"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights, named):
    with pytest.raises(pkdp.ArgumentError, match=named):
        table().weighted(weights, by="area")


def test_only_a_sample_is_estimated_from():
    release = ROWS.pkdp.count(unit="person", attacker=pkdp.AttackerModel(p_max=0.1), k=30)
    with pytest.raises(pkdp.ArgumentError, match="secret sample"):
        release.estimate()
