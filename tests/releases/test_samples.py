"""Estimates from a secret sample, and totals with publicly fixed weights: compared with pandas and with the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pkdp_pipeline as pkdp

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
    assert "error" not in total.columns


def test_a_weighted_total_of_noised_cells_says_how_far_off_it_may_be():
    release = table(below="noise", noise=pkdp.GeometricNoise(1.0))
    total = release.weighted({"stratum": {"x": 10.0, "y": 12.5}}, by=[])
    noised = (~release.table["exact"].astype(bool)).to_numpy()
    weights = np.where(release.table["stratum"] == "x", 10.0, 12.5)
    assert total.loc[0, "error"] == pytest.approx(
        release.error.standard_deviation * np.sqrt((weights[noised] ** 2).sum())
    )


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
