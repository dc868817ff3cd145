"""Connections in which the functions are installed as a test's module says, and workers that import nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import warm

from pkdp_pipeline.extras.gate import worker


@pytest.fixture
def con(request):
    with request.module.installed() as connection:
        yield connection


@pytest.fixture(scope="module")
def refusing(request):
    """A connection through which no test publishes anything."""
    with request.module.installed() as connection:
        yield connection


@pytest.fixture(autouse=True, scope="module")
def _warm_workers() -> Iterator[None]:
    started = SimpleNamespace(Popen=warm.Popen, DEVNULL=subprocess.DEVNULL, TimeoutExpired=subprocess.TimeoutExpired)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "subprocess", started)
        yield
