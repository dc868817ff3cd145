"""The numbers of ``tests/data/exact.json``, computed without the library, are reproduced and never undercut."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import flint
import pytest
from oracle.laws import exact_exp, lower_end
from oracle.releases import count_losses

import pkdp_pipeline as pkdp

VECTORS: dict[str, list[dict[str, Any]]] = json.loads((Path(__file__).parent / "data" / "exact.json").read_text())
HALF_ULP = 1.2e-16
"""The stored numbers are rounded to the nearest float."""


def box_certificate(case: dict[str, Any]) -> Any:
    noise = pkdp.GeometricNoise(case["noise_epsilon"]) if "noise_epsilon" in case else None
    attacker = pkdp.AttackerModel(p_min=case["p_min"], p_max=case["p_max"], unknown=case["unknown"])
    return pkdp.certify(pkdp.Count(noise=noise), attacker)


def vertex(case: dict[str, Any]) -> float:
    """Return the divergence at one vertex, by enumeration in ball arithmetic."""
    at_max = case["records_at_p_max"]
    with flint.ctx.workprec(320):
        chances = [flint.arb(case["p_max"])] * at_max + [flint.arb(case["p_min"])] * (case["unknown"] - at_max)
        sides = count_losses(chances, 0, case["epsilon"], exact_exp, noise=case.get("noise_epsilon"))
        return float(max(lower_end(flint.arb(side)) for side in sides))


@pytest.mark.parametrize("case", VECTORS["thresholding"], ids=str)
def test_thresholding(case: dict[str, Any]) -> None:
    attacker = pkdp.AttackerModel(p_max=case["p_max"], unknown_max=case["unknown_max"])
    for mechanism in (pkdp.Count(k=case["k"]), pkdp.Histogram(k=case["k"])):
        certified = pkdp.certify(mechanism, attacker).delta(case["epsilon"])
        assert certified >= case["delta"] * (1 - HALF_ULP)
        assert certified == pytest.approx(case["delta"], rel=1e-9, abs=0.0)


@pytest.mark.parametrize("case", VECTORS["thresholding_passive"], ids=str)
def test_thresholding_with_people_merely_known(case: dict[str, Any]) -> None:
    attacker = pkdp.AttackerModel(p_max=case["p_max"], known=case["known"], influence="passive")
    certified = pkdp.certify(pkdp.Count(k=case["k"]), attacker).delta(case["epsilon"])
    # The file averages over the worst number of unknown people for each number of known ones who count. One number has
    # to do for all, and tells less: docs/mathematics.md, section 4.
    assert case["delta"] / 1.25 <= certified <= case["delta"]


@pytest.mark.parametrize("kind", ["counting_vertex", "noisy_count_vertex"])
def test_no_vertex_exceeds_the_certificate_and_the_worst_is_near(kind: str) -> None:
    worst: defaultdict[tuple[Any, ...], float] = defaultdict(float)
    for case in VECTORS[kind]:
        certified = box_certificate(case).delta(case["epsilon"])
        assert certified >= case["delta"] * (1 - HALF_ULP), case
        key = tuple(case.get(name) for name in ("unknown", "p_min", "p_max", "noise_epsilon", "epsilon"))
        worst[key] = max(worst[key], case["delta"] / certified)
        if case["unknown"] <= 20:
            # The file has one vertex of this box; the worst is another one.
            others = (vertex({**case, "records_at_p_max": j}) for j in range(case["unknown"] + 1))
            worst[key] = max(worst[key], max(others) / certified)
    assert all(share >= 0.99 for share in worst.values()), worst


@pytest.mark.parametrize("kind", ["counting_vertex", "noisy_count_vertex"])
def test_the_oracle_reproduces_the_vertices(kind: str) -> None:
    for case in VECTORS[kind]:
        if case["unknown"] <= 100:
            assert vertex(case) == pytest.approx(case["delta"], rel=1e-12, abs=0.0)
