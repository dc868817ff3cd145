"""One release: its theorems are looked for once, and its certificate is handed on as it is, not through JSON."""

from __future__ import annotations

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.theorems.theorems import bounds_of

PEOPLE = pd.DataFrame({"person": range(200), "town": ["a", "b"] * 100})
ATTACKER = pkdp.AttackerModel(p_max=0.1)


@pytest.fixture(params=["alone", "in a ledger"])
def release(request, tmp_path, monkeypatch):
    bounds_of.cache_clear()
    ledger = None if request.param == "alone" else pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="towns")

    def read(text):
        raise AssertionError("a certificate was written and read in one process")

    with monkeypatch.context() as patch:
        patch.setattr(pkdp.Certificate, "from_json", staticmethod(read))
        published = pkdp.histogram(
            PEOPLE, "town", unit="person", k=60, attacker=ATTACKER, ledger=ledger, period=ledger and "2026-01-01"
        )
    yield published
    if ledger is not None:
        ledger.close()


def test_a_release_asks_once_which_theorems_apply(release):
    assert bounds_of.cache_info().misses == 1
    assert release.certificate.has_partial_knowledge


def test_the_release_that_is_handed_on_is_the_one_that_its_bytes_hold(release):
    back = Release.from_bytes(release.to_bytes())
    assert back.certificate == release.certificate
    assert back.certificate.to_json() == release.certificate.to_json()
    assert back.certificate.sentence() == release.certificate.sentence()
    assert back.certificate.delta_bounds([0.1, 1.0, 3.0])[1].tolist() == (
        release.certificate.delta_bounds([0.1, 1.0, 3.0])[1].tolist()
    )
    assert back.id == release.id
    pd.testing.assert_frame_equal(back.table, release.table)
    assert back.verify()
    assert release.verify()
