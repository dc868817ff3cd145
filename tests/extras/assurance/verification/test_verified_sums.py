"""Files of sums, and of small and empty tables: genuine ones hold; a theorem that promises too much is found out."""

from __future__ import annotations

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.worst_case import SumCurve

FRAME = pd.DataFrame(
    [(person, "ABC"[(person + row) % 3], row) for person in range(60) for row in range(3)],
    columns=["patient", "clinic", "visits"],
)
NOISE = pkdp.GeometricNoise(1.0)
CLINICS = {"by": "clinic", "cells_per_unit": 2}
FOUND = {**CLINICS, "release_threshold": 60, "target": None}
SUMS = [
    {"bounds": (0, 5), "domain": ["A", "B", "C"], **CLINICS},
    {"bounds": (-2, 5), "domain": ["A", "B", "C"], "protects": "value", **CLINICS},
    {"bounds": (-2, 5)},
    {"bounds": (-2, 5), "protects": "value"},
    {"bounds": (-4, 3), "protects": "value", **FOUND},
    {"bounds": (0, 5), **FOUND, "release_threshold": 100_000},
]


def verified(release, path):
    release.to_parquet(path)
    verification = pkdp.verify(path)
    return {claim.key: claim for claim in verification.claims}


@pytest.mark.parametrize("options", SUMS)
def test_genuine_sums_hold_and_an_attacker_comes_close(options, tmp_path):
    claims = verified(FRAME.pkdp.sum("visits", unit="patient", noise=NOISE, **options), tmp_path / "r.parquet")
    assert {claim.outcome for claim in claims.values()} == {"pass", "not_checked"}
    assert claims["certificate.anyone"].evidence["percent"] >= 99


@pytest.mark.parametrize("options", [SUMS[0], SUMS[3], SUMS[4]])
def test_a_curve_for_too_small_a_change_is_found_out(options, tmp_path, monkeypatch):
    whole = SumCurve.bracket
    monkeypatch.setattr(SumCurve, "bracket", lambda curve, epsilons: whole(curve, epsilons + 0.1))
    # Numbers with the same fault would agree with it: none is in a cache here.
    noise = pkdp.GeometricNoise(1.0 + 2.0**-20 * (1 + SUMS.index(options)))
    claims = verified(FRAME.pkdp.sum("visits", unit="patient", noise=noise, **options), tmp_path / "r.parquet")
    assert claims["certificate.numbers"].outcome == "pass"
    assert claims["certificate.anyone"].outcome == "fail"


@pytest.mark.parametrize(("domain", "cells"), [(["A"], 1), (["A", "B"], 2), (["A", "B", "C"], 2)])
def test_of_a_small_table_no_more_cells_are_tried_than_there_are(domain, cells, tmp_path):
    frame = pd.DataFrame({"patient": range(40), "clinic": ["A"] * 40})
    release = frame.pkdp.histogram(
        "clinic", unit="patient", noise=NOISE, domain=domain, protects="value", cells_per_unit=cells
    )
    claims = verified(release, tmp_path / "r.parquet")
    assert "fail" not in {claim.outcome for claim in claims.values()}


def test_a_table_in_which_everything_is_suppressed_can_be_read(tmp_path):
    release = FRAME.pkdp.histogram("clinic", unit="patient", one_cell="hash", noise=NOISE, release_threshold=10**6)
    assert len(release.table) == 0
    assert "fail" not in {claim.outcome for claim in verified(release, tmp_path / "r.parquet").values()}
