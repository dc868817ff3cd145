"""What tests of verification share."""

from __future__ import annotations

from importlib import import_module

import pytest
from published_files import certificate, composed, release, written

from pkdp_pipeline.extras.assurance.verification import verify


@pytest.fixture(scope="session", autouse=True)
def genuine(tmp_path_factory):
    """Make genuine files and verify one, before the tests: all that they alter is made and loaded once."""
    certificate()
    composed()
    assert verify(written(tmp_path_factory.mktemp("genuine"), release())).passed


@pytest.fixture
def unattacked(monkeypatch):
    """Try no attackers, where what was altered is found by computing it again: they take most of the time."""
    module = import_module("pkdp_pipeline.extras.assurance.verification")
    monkeypatch.setattr(module, "attack_claims", lambda *_: ())
