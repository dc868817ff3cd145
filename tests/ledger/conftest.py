"""What the tests of the ledger share."""

from __future__ import annotations

import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def no_waiting(monkeypatch):
    """Let a lock that is held be an error at once."""
    from pkdp_pipeline.ledger import database

    monkeypatch.setattr(database, "LOCK_SECONDS", 0.05)
