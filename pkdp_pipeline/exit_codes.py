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

__all__ = ["DEFECT", "exit_code"]

DEFECT = 1
_INTERRUPTED = 130
_CODES: tuple[tuple[type[PkdpError], int], ...] = (
    (ArgumentError, 2),
    (ConfigError, 2),
    (LedgerError, 2),
    (InputCheckError, 3),
    (NotCertifiableError, 4),
    (NoEvidenceError, 4),
    (BudgetExceededError, 4),
    (DifferencingError, 4),
    (TemporaryError, 75),
)


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error; what is not one of ours is a defect, 1."""
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    return next((code for kind, code in _CODES if isinstance(error, kind)), DEFECT)
