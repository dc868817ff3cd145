"""PostgreSQL's errors: the one table of what passes by itself, for ledgers, sources and outputs."""

from __future__ import annotations

import re
from typing import Literal

Trouble = Literal["passing", "refused", "malformed", "other"]

LOCKED = "55P03"
"""PostgreSQL's word for a lock that was not to be had in time."""

_PASSING = ("08", "40", "55", "57", "53300", "25P03")
"""Connection lost, serialization, locks, server starting or stopping, too many connections, idle for too long.

A full disk (53100), no memory (53200) and a failing disk (58) do not pass: somebody must make room first.
"""

_REFUSED = (
    "authentication failed",
    "does not exist",
    "is not permitted to log in",
    "no pg_hba.conf entry",
    "no password supplied",
    "permission denied for database",
)
_MALFORMED = re.compile(
    r'\bURI\b|invalid (?:[\w"]+ value|port number|connection option|percent-encoded)|for connection option|'
    r"weak sslmode|sslmode value .* invalid|definition of service"
)
"""What libpq says of an address that it does not understand; no server was asked."""


def trouble_of(state: str, said: str, *, lost: bool) -> Trouble:
    """Return what an error means for who meets it.

    Parameters
    ----------
    state : str
        The SQLSTATE; empty where the error came before a server answered.
    said : str
        The words of the server or of libpq.
    lost : bool
        Whether the connection is lost, or none was had.

    Returns
    -------
    str
        "passing": try again later. "refused": the server knows no such user, password or database. "malformed":
        libpq does not understand the address. "other": see the SQLSTATE.
    """
    if not state and _MALFORMED.search(said):
        return "malformed"
    if state[:2] in ("28", "3D") or (not state and any(hint in said for hint in _REFUSED)):
        return "refused"
    return "passing" if state.startswith(_PASSING) or lost else "other"
