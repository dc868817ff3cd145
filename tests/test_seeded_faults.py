"""Mistakes that look right: each is made here on purpose, and an enumerated attacker exceeds what it claims."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracle.laws import coin_sum
from oracle.releases import count_losses, table_losses

import pkdp_pipeline as pkdp

E = np.exp


def test_looking_only_at_everybody_at_p_min() -> None:
    people, low, high = 100, 0.05, 0.95
    losses = [max(count_losses([high] * j + [low] * (people - j), 0, 1.0, E)) for j in range(people + 1)]
    assert int(np.argmax(losses)) in {2, 98}  # the box is symmetric: 2 and 98 mirror each other
    assert losses[98] == pytest.approx(0.021794575300113916, rel=1e-9)
    assert losses[98] > 1.038 * losses[0]
    attacker = pkdp.AttackerModel(p_min=low, p_max=high, unknown=people)
    attained, certified = pkdp.certify(pkdp.Count(), attacker).delta_bounds(1.0)
    assert losses[98] <= certified <= 1.01 * losses[98]
    assert attained <= losses[98] * (1 + 1e-12)


def test_looking_only_at_the_two_ends() -> None:
    people, low, high, epsilon = 3000, 0.2, 0.8, 0.2282177
    exact = {0: 9.618842488814617e-09, 1: 9.657419826260728e-09}
    attacker = pkdp.AttackerModel(p_min=low, p_max=high, unknown=people)
    certified = pkdp.certify(pkdp.Count(), attacker).delta(epsilon)
    assert exact[0] < exact[1] <= certified


@pytest.mark.parametrize(("k", "p", "epsilon"), [(3, 0.2, 1.0), (6, 0.5, 0.5), (10, 0.1, 2.0)])
def test_certifying_more_than_k_and_publishing_from_k_on(k: int, p: float, epsilon: float) -> None:
    most = int(k + E(epsilon) * k / p) + 2
    truth = max(max(count_losses([p] * m, 0, epsilon, E, k=k)) for m in range(k - 1, min(most, 60)))
    attacker = pkdp.AttackerModel(p_max=p)
    assert pkdp.certify(pkdp.Count(k=k + 1), attacker).delta(epsilon) < 0.95 * truth
    assert pkdp.certify(pkdp.Count(k=k), attacker).delta(epsilon) >= truth * (1 - 1e-12)


def frame_of(counts: dict[str, int], rows_each: int = 1) -> pd.DataFrame:
    """Return a frame with so many people per cell, each in so many rows."""
    people = [(cell, f"{cell}{i}") for cell, count in counts.items() for i in range(count)]
    return pd.DataFrame(people * rows_each, columns=["cell", "person"])


@pytest.mark.parametrize("k", [2, 5, 12])
@pytest.mark.parametrize("declared", [True, False])
def test_a_cell_appears_from_k_on(k: int, declared: bool) -> None:
    frame = frame_of({"below": k - 1, "at": k, "above": k + 1})
    release = frame.pkdp.histogram(
        "cell",
        unit="person",
        k=k,
        attacker=pkdp.AttackerModel(p_max=0.1),
        domain=["above", "at", "below"] if declared else None,
    )
    shown = release.table.dropna().set_index("cell")["count"].to_dict()
    assert shown == {"at": k, "above": k + 1}
    assert len(release.table) == (3 if declared else 2)


@pytest.mark.parametrize("k", [2, 5, 12])
def test_a_count_appears_from_k_on(k: int) -> None:
    attacker = pkdp.AttackerModel(p_max=0.1)
    values = [frame_of({"a": n}).pkdp.count(unit="person", k=k, attacker=attacker).value for n in (k - 1, k, k + 1)]
    assert values[0] is None or pd.isna(values[0])
    assert values[1:] == [k, k + 1]


def test_lemma_three_on_a_thresholded_law() -> None:
    # Revealing people is said to help the attacker. With k it hides the count instead: fewer people, less told.
    k, low, high, epsilon, people = 10, 0.05, 0.3, 0.5, 20
    revealed = max(max(count_losses([high] * j + [low] * (5 - j), 0, epsilon, E, k=k)) for j in range(6))
    truth = max(max(count_losses([high] * j + [low] * (people - j), 0, epsilon, E, k=k)) for j in range(people + 1))
    assert revealed == 0.0
    assert truth == pytest.approx(0.034, abs=0.001)
    for unknown in (5, people):
        attacker = pkdp.AttackerModel(p_min=low, p_max=high, unknown=unknown)
        assert pkdp.certify(pkdp.Count(k=k), attacker).delta(epsilon) >= truth * (1 - 1e-12)


def test_lemma_three_with_a_threshold_after_scanning_j() -> None:
    # Within one number of people: the block 0 … w bounded by its first vertex with w people revealed.
    k, low, high, epsilon, people, width = 4, 0.05, 0.4, 0.5, 12, 8
    block_bound = max(count_losses([low] * (people - width), 0, epsilon, E, k=k))
    in_block = [max(count_losses([high] * j + [low] * (people - j), 0, epsilon, E, k=k)) for j in range(width + 1)]
    assert block_bound < max(in_block)
    attacker = pkdp.AttackerModel(p_min=low, p_max=high, unknown=people, unknown_max=people)
    assert pkdp.certify(pkdp.Count(k=k), attacker).delta(epsilon) >= max(in_block) * (1 - 1e-12)


@pytest.mark.parametrize("influence", ["active", "passive"])
def test_k_left_as_it_is_for_known_people_in_a_value_histogram(influence: str) -> None:
    k, p, known, epsilon = 4, 0.4, 2, 1.0
    odds = p / (1 - p)
    person = [odds / (1 + 2 * odds), odds / (1 + 2 * odds), 1 / (1 + 2 * odds)]
    knowledge = (known, 0) if influence == "active" else [person] * known
    truth = max(max(table_losses([person] * m, knowledge, epsilon, E, cells=2, lives=(0, 1), k=k)) for m in range(1, 9))
    mechanism = pkdp.Histogram(k=k)
    faulty = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=p), protects="value").delta(epsilon)
    attacker = pkdp.AttackerModel(p_max=p, known=known, influence=influence)
    certified = pkdp.certify(mechanism, attacker, protects="value").delta(epsilon)
    if influence == "active":
        assert truth > 1.2 * faulty
    assert certified >= truth * (1 - 1e-12)
    assert certified > faulty


def test_k_left_as_it_is_for_known_people_between_cells() -> None:
    k, between, known, epsilon = 6, 0.6, 3, 1.0
    truth = max(
        max(table_losses([[between, 1 - between, 0.0]] * m, counts, epsilon, E, cells=2, lives=(0, 1), k=k, total=True))
        for m in range(1, 16)
        for counts in [(known, 0), (0, known)]
    )
    mechanism = pkdp.Histogram(k=k)
    faulty = pkdp.certify(mechanism, pkdp.AttackerModel(p_max_between=between), protects="value").delta(epsilon)
    assert truth > 1.5 * faulty
    for influence in ("active", "passive"):
        attacker = pkdp.AttackerModel(p_max_between=between, known=known, influence=influence)
        assert pkdp.certify(mechanism, attacker, protects="value").delta(epsilon) >= truth * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_combined_noise_profile_of_zero_with_k(epsilon: float) -> None:
    truth = max(count_losses([0.5], 0, epsilon, E, k=2, noise=1.0, release=2))
    assert truth == pytest.approx(0.366, abs=0.001)
    # The fault: S + Z looks the same up to e^ε0 in both lives, so nothing is said to be told from ε0 on.
    assert max(count_losses([0.5], 0, epsilon, E, noise=1.0, release=2)) <= 1e-15
    mechanism = pkdp.Count(k=2, noise=pkdp.GeometricNoise(1.0), release_threshold=2)
    for attacker in (
        pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=1),
        pkdp.AttackerModel(p_max=0.5),
        pkdp.AttackerModel(),
    ):
        assert pkdp.certify(mechanism, attacker).delta(epsilon) >= truth * (1 - 1e-12)


def test_a_hard_threshold_under_noise_alone_promises_nothing() -> None:
    truth = max(count_losses([], 1, 5.0, E, k=2, noise=0.5))
    assert truth == pytest.approx(1.0)
    with pytest.raises(pkdp.NotCertifiableError):
        pkdp.certify(pkdp.Count(k=2, noise=pkdp.GeometricNoise(0.5)), pkdp.AttackerModel())


def test_counting_rows_instead_of_people() -> None:
    # Three people with four rows each; k = 4 must not see twelve.
    frame, attacker = frame_of({"few": 3, "many": 5}, rows_each=4), pkdp.AttackerModel(p_max=0.1)
    release = frame.pkdp.histogram("cell", unit="person", k=4, attacker=attacker, domain=["few", "many"])
    assert release.table["count"].isna().tolist() == [True, False]
    assert release.table["count"].iloc[1] == 5
    assert frame.pkdp.count(unit="person", k=4, attacker=attacker).value == 8
    few = frame.pkdp.count("cell == 'few'", unit="person", k=4, attacker=attacker).value
    assert few is None or pd.isna(few)


def test_averaging_known_people_over_one_cell_only() -> None:
    # A known person may be in either cell: told "v or w", the chance is 2p/(1+p), not p.
    p = 0.4
    odds = p / (1 - p)
    person = [odds / (1 + 2 * odds), odds / (1 + 2 * odds), 1 / (1 + 2 * odds)]
    assert person[0] / (person[0] + person[2]) == pytest.approx(p)
    assert person[0] + person[1] == pytest.approx(2 * p / (1 + p))
    assert sum(coin_sum([person[0] + person[1]] * 3)[1:]) > sum(coin_sum([p] * 3)[1:])
