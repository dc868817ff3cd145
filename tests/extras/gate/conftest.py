"""One gate for all attempts on it, and workers for tests that do not look at processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from analyst import Scene, database, histogram, policy
from worker_inside import workers_inside

from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.ledger import Ledger

__all__ = ["workers_inside"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A gate that has published one histogram."""
    folder = tmp_path_factory.mktemp("gate")
    path, ledger = database(folder), folder / "ledger.sqlite"
    (folder / "people.csv").write_text("uid,country\n1,secret\n", encoding="utf-8")
    rules = policy(ledger=ledger, period="2020")
    with Gate(path, policy=rules) as gate, Ledger.open(ledger) as witness:
        gate.ask(histogram())
        yield Scene(gate=gate, folder=folder, ledger=witness)
