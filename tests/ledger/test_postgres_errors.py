"""The one table of PostgreSQL's errors: what passes by itself, and what somebody must mend."""

from __future__ import annotations

import pytest

from pkdp_pipeline.ledger.database import trouble_of


@pytest.mark.parametrize(
    ("state", "said", "lost", "trouble"),
    [
        ("53300", "too many connections", False, "passing"),
        ("57P01", "terminating connection", True, "passing"),
        ("40001", "could not serialize access", False, "passing"),
        ("", "server closed the connection unexpectedly", True, "passing"),
        ("", "failed to resolve host 'no-host.invalid'", True, "passing"),
        ("53100", "could not extend file: No space left on device", False, "other"),
        ("53200", "out of memory", False, "other"),
        ("58030", "could not write", False, "other"),
        ("42P01", 'relation "x" does not exist', False, "other"),
        ("28P01", "password authentication failed", True, "refused"),
        ("", 'connection failed: FATAL: role "x" does not exist', True, "refused"),
        ("", 'invalid integer value "x" for connection option "port"', True, "malformed"),
        ("", "invalid URI query parameter", True, "malformed"),
    ],
)
def test_what_passes(state, said, lost, trouble):
    assert trouble_of(state, said, lost=lost) == trouble
