"""Connections in which the functions are installed as a test's module says."""

from __future__ import annotations

import gc

import pytest

from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.sql import curator


@pytest.fixture
def con(request):
    with request.module.installed() as connection:
        yield connection


@pytest.fixture(scope="module")
def refusing(request):
    """A connection through which no test publishes anything."""
    with request.module.installed() as connection:
        yield connection


@pytest.fixture(scope="module")
def lasting(request):
    with request.module.installed() as connection:
        yield connection


@pytest.fixture
def shared(lasting):
    """A connection with an empty ledger, for tests that leave the module's tables as they are."""
    with Ledger.open(":memory:") as ledger:
        object.__setattr__(curator._registrations[lasting], "ledger", ledger)
        yield lasting
    lasting.execute("RESET TimeZone")


@pytest.fixture
def collector():
    """Let Python's collector look at what a test makes alone: all that is there takes it half a second."""
    gc.freeze()
