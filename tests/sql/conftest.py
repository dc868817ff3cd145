"""Connections in which the functions are installed as a test's module says."""

from __future__ import annotations

import pytest


@pytest.fixture
def con(request):
    with request.module.installed() as connection:
        yield connection


@pytest.fixture(scope="module")
def refusing(request):
    """A connection through which no test publishes anything."""
    with request.module.installed() as connection:
        yield connection
