"""Theorem F in a table of one, two and three declared cells, against every attacker that fits, in fractions."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pandas as pd
import pytest
from oracle.releases import table_losses
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import release_certificate
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.dry_run import plan_job


def corners(cells: int, least: Fraction, p: Fraction) -> list[list[Fraction]]:
    """Return the vertices of all laws over cells and absence with `least` in every cell, at most `p` of it told so."""
    vertices, odds = [], p / (1 - p)
    for up in product((False, True), repeat=cells):
        absent = (1 - least * up.count(False)) / (1 + odds * up.count(True))
        law = [odds * absent if more else least for more in up]
        if min(law) >= least and max(law) <= odds * absent:
            vertices.append([*law, absent])
    return vertices


def exp(exponent: float) -> Fraction:
    return Fraction(math.exp(exponent))


def truth(cells: int, box: tuple[float, float], people: int, epsilon: float, noise: float | None = None) -> float:
    return float(
        max(
            max(table_losses(crowd, (0,) * cells, epsilon, exp, cells=cells, lives=(0, cells), noise=noise))
            for crowd in combinations_with_replacement(corners(cells, *map(Fraction, box)), people)
        )
    )


def certificate(cells: int | None, box: tuple[float, float], people: int, noise: float | None = None):
    mechanism = pkdp.Histogram(noise=None if noise is None else pkdp.GeometricNoise(noise))
    attacker = pkdp.AttackerModel(p_min=box[0], p_max=box[1], unknown=people)
    return pkdp.certify(mechanism, attacker, cells=cells)


@thinned(6)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("box", [(0.125, 0.5), (0.125, 0.75), (0.25, 0.5)])
@pytest.mark.parametrize(("cells", "people"), [(1, 1), (1, 5), (2, 4), (3, 2)])
def test_what_is_attained_is_reached_in_a_table_of_so_many_cells(cells, people, box, epsilon):
    # A cell more than there is room for is not among them.
    most = truth(cells, box, people, epsilon)
    attained, certified = certificate(cells, box, people).delta_bounds(epsilon)
    assert attained <= most * (1 + 1e-9)
    assert most <= certified * (1 + 1e-9)
    assert attained >= 0.5 * most
    if cells == 1:
        assert certified <= 1.01 * most
        assert attained >= 0.99 * most


@pytest.mark.parametrize("epsilon", [0.0, 0.4])
@pytest.mark.parametrize(("cells", "people"), [(1, 4), (2, 2)])
def test_with_noise_too(cells, people, epsilon):
    most = truth(cells, (0.125, 0.5), people, epsilon, noise=0.7)
    attained, certified = certificate(cells, (0.125, 0.5), people, noise=0.7).delta_bounds(epsilon)
    assert 0.5 * most <= attained <= most * (1 + 1e-9)
    assert most <= certified * (1 + 1e-9)
    if cells == 1:
        assert certified <= 1.01 * most


def test_one_cell_is_a_count():
    box, epsilons = pkdp.AttackerModel(p_min=0.1, p_max=0.5, unknown=60), [0.0, 0.5, 1.0, 2.0]
    people = pd.DataFrame({"person": range(9), "cell": "a"})
    release = people.pkdp.histogram(by="cell", domain=["a"], unit="person", attacker=box, target=None)
    counted = pkdp.certify(pkdp.Count(), box)
    for of_table, of_count in zip(
        release.certificate.delta_bounds(epsilons), counted.delta_bounds(epsilons), strict=True
    ):
        assert list(of_table) == list(of_count)
    assert release.certificate.delta_bounds(1.0)[0] == pytest.approx(0.0155951, rel=1e-5)
    assert release_certificate(release.certificate.to_json()) == release.certificate
    stated = {row["epsilon"]: row for row in json.loads(release.certificate.to_json())["grid"]}[1.0]
    assert (stated["attained"], stated["delta"]) == pytest.approx(release.certificate.delta_bounds(1.0), rel=0.01)


def test_a_ledger_replays_it_and_certifies_it_anew(tmp_path):
    people = pd.DataFrame({"person": range(9), "cell": "a"})
    ledger = pkdp.Ledger.open(tmp_path / "ledger.db")
    arguments = {
        "by": "cell",
        "domain": ["a"],
        "unit": "person",
        "target": None,
        "ledger": ledger,
        "period": "2013-01-02",
    }
    box = pkdp.AttackerModel(p_min=0.1, p_max=0.5, unknown=60)
    first = people.pkdp.histogram(**arguments, attacker=box)
    assert people.pkdp.histogram(**arguments, attacker=box).certificate == first.certificate
    fewer = people.pkdp.histogram(**arguments, attacker=replace(box, unknown=50)).certificate
    counted = pkdp.certify(pkdp.Count(), replace(box, unknown=50))
    assert fewer.delta_bounds(1.0) == counted.delta_bounds(1.0)
    ledger.verify()


def test_more_cells_attain_no_less_and_certify_what_is_certified_of_any_number():
    alone = certificate(None, (0.1, 0.5), 60)
    tables = [certificate(cells, (0.1, 0.5), 60) for cells in range(1, 10)]
    attained = [table.delta_bounds(1.0)[0] for table in tables]
    assert attained == sorted(attained)
    assert attained[-1] == alone.delta_bounds(1.0)[0]
    assert [table.delta(1.0) for table in tables[1:]] == [alone.delta(1.0)] * 8


@pytest.mark.parametrize("cells", [0, -1, 1.5, "1"])
def test_a_number_of_cells_is_a_whole_number(cells):
    with pytest.raises(ArgumentError, match="cells must be"):
        pkdp.certify(pkdp.Histogram(noise=pkdp.GeometricNoise(1.0)), cells=cells)
    with pytest.raises(ArgumentError, match="a count has none"):
        pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(1.0)), cells=2)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_cells_of_several_periods_are_one_histogram_where_everybody_appears_once(epsilon):
    alone = certificate(1, (0.25, 0.5), 4)
    most = truth(2, (0.25, 0.5), 4, epsilon)
    assert alone.delta(epsilon) < most
    assert most <= pkdp.compose([(alone, 2)], pkdp.OncePerUnit()).delta(epsilon) * (1 + 1e-9)
    assert pkdp.compose([alone], pkdp.OncePerUnit()).delta(epsilon) == alone.delta(epsilon)
    noised = pkdp.certify(pkdp.Histogram(noise=pkdp.GeometricNoise(1.0)), protects="value", cells=1)
    nested = pkdp.compose([noised])
    for parts in ([(noised, 2)], [nested, nested], [noised, nested]):
        # Who moves from one period to the other leaves one cell and enters another.
        assert pkdp.compose(parts, pkdp.OncePerUnit()).worst_case.epsilon(0.0) >= 2.0 * (1 - 1e-9)


ONE_CELL = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    ledger = "out/ledger.sqlite"

    [attacker]
    p_min = 0.1
    p_max = 0.5
    unknown = 1000

    [[release]]
    name = "town"
    by = "town"
    domain = ["Oslo"]

    [output]
    directory = "out"
"""


def test_plan_release_and_total_of_one_release_state_the_same_number(tmp_path):
    pd.DataFrame({"day": [date(2020, 1, 1)] * 9, "person": range(9), "town": "Oslo"}).to_parquet(
        tmp_path / "visits.parquet"
    )
    path = tmp_path / "job.toml"
    path.write_text(textwrap.dedent(ONE_CELL), encoding="utf-8")
    job, day = load_job(path), date(2020, 1, 1)
    counted = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.1, p_max=0.5, unknown=1000))
    numbers = [list(side) for side in counted.delta_bounds([0.0, 1.0, 2.0])]
    (planned,) = plan_job(job, [day]).days
    run_job(job, day)
    (replayed,) = plan_job(job, [day]).days
    with pkdp.Ledger.open(tmp_path / "out/ledger.sqlite", dataset="visits") as ledger:
        (entry,) = ledger.entries()
        total = ledger.total()
        ledger.verify()
    stated = [planned.releases[0].certificate, replayed.releases[0].certificate, release_certificate(entry.certificate)]
    for certificate in (*stated, total):
        assert [list(side) for side in certificate.delta_bounds([0.0, 1.0, 2.0])] == numbers


@pytest.mark.parametrize("mechanism", [pkdp.Histogram(k=5), pkdp.Histogram(noise=pkdp.GeometricNoise(1.0))])
def test_one_cell_has_no_other_to_tell_it_from(mechanism):
    attacker = pkdp.AttackerModel(p_max=0.3)
    whole, alone = (pkdp.certify(mechanism, attacker, protects="value", cells=cells) for cells in (2, 1))
    assert whole.delta_bounds(0.5)[0] > 0.0
    assert alone.delta_bounds(0.5)[0] == 0.0
    assert pkdp.certify(mechanism, attacker).delta(0.5) <= alone.delta(0.5) <= whole.delta(0.5)
    assert release_certificate(alone.to_json()) == alone
    alone.verify()


@pytest.mark.parametrize("noise", [None, pkdp.GeometricNoise(1.0)])
def test_attackers_are_those_of_the_declared_cells(noise: pkdp.GeometricNoise | None) -> None:
    def attained(protects: Any, cells: int | None, **people: Any) -> float:
        attacker = pkdp.AttackerModel(unknown=20, **people)
        return pkdp.certify(pkdp.Histogram(noise=noise), attacker, protects=protects, cells=cells).delta_bounds(0.2)[0]

    # Nobody is in four cells with 0.3 each, nor in ten with 0.1 each and absent half as often as in one of two.
    for nobody in (("value", 4, 0.3, None), ("presence", 10, 0.1, 0.5)):
        with pytest.raises(pkdp.ArgumentError):
            attained(*nobody[:2], p_min=nobody[2], p_max=nobody[3])
    # Ten of 0.1 leave nobody absent, which is allowed where only the cell is secret.
    assert attained("value", 10, p_min=0.1) > 0.0
    if noise is not None:
        # The noise of further cells hides how many are in the target's two; of two cells no other one shows it.
        two, three, ten, any_table = (attained("value", cells, p_min=0.1) for cells in (2, 3, 10, None))
        assert 0.0 < ten < three == any_table
        assert two < three


def test_people_in_several_cells_have_more_room():
    attacker = pkdp.AttackerModel(p_min=0.3, p_max=0.5, independent_cells=True)
    assert pkdp.certify(pkdp.Histogram(k=9, cells_per_unit=3), attacker, cells=10).cells is None
    with pytest.raises(pkdp.ArgumentError):
        pkdp.certify(pkdp.Histogram(k=9, cells_per_unit=2), attacker, cells=10)


@pytest.mark.parametrize(
    ("protects", "cells"), [("value", 2), ("value", 3), ("presence", 1), ("presence", 2), ("presence", 3)]
)
def test_nobody_is_surer_of_one_of_two_cells_than_declared(protects, cells):
    mechanism, epsilon, people = pkdp.Histogram(k=2), 0.3, 2
    absence = {"p_max": 0.5} if protects == "presence" else {}
    attacker = pkdp.AttackerModel(p_max_between=0.75, unknown_max=people, **absence)
    # Of any two cells one is at most three times as likely as the other, and absence as likely as any cell.
    sizes = [[*law, max(law) if absence else 0] for law in product((1, 3), repeat=cells)]
    laws = [[Fraction(size, sum(law)) for size in law] for law in sizes]
    lives = (0, cells if absence else 1)
    crowds = (crowd for few in range(1, people + 1) for crowd in combinations_with_replacement(laws, few))
    most = max(max(table_losses(crowd, (0,) * cells, epsilon, exp, cells=cells, lives=lives, k=2)) for crowd in crowds)
    attained, certified = pkdp.certify(mechanism, attacker, protects=protects, cells=cells).delta_bounds(epsilon)
    assert 0.6 * most <= attained <= most * (1 + 1e-9)
    assert most <= certified * (1 + 1e-9)
    noised = replace(mechanism, noise=pkdp.GeometricNoise(1.0), release_threshold=2)
    attained = pkdp.certify(noised, attacker, protects=protects, cells=cells).delta_bounds(epsilon)[0]
    assert (attained > 0) is (protects == "presence" or cells == 2)
