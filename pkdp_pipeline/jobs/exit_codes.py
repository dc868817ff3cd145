"""Exit codes of the command line, also recorded with every run of a job.

0 done or replayed · 1 a defect of ours · 2 configuration, unreadable source · 3 input check failed · 4 refused for
privacy · 75 temporary, the only one after which the same command is worth repeating · 130 Ctrl-C · 143 SIGTERM.
"""

from __future__ import annotations

from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    InputCheckError,
    LedgerError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
    TemporaryError,
)

__all__ = ["DEFECT", "REFUSED", "exit_code"]

DEFECT = 1
REFUSED = 4
_INTERRUPTED = 130
_CODES: tuple[tuple[type[PkdpError], int], ...] = (
    (ArgumentError, 2),
    (ConfigError, 2),
    (LedgerError, 2),
    (InputCheckError, 3),
    (NotCertifiableError, REFUSED),
    (NoEvidenceError, REFUSED),
    (BudgetExceededError, REFUSED),
    (DifferencingError, REFUSED),
    (TemporaryError, 75),
)


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error; what is not one of ours is a defect, 1."""
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    return next((code for kind, code in _CODES if isinstance(error, kind)), DEFECT)
