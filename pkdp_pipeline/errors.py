"""Every error a user can meet, in one tree.

::

    PkdpError
    ├── ArgumentError (also ValueError)   an argument is malformed, or arguments contradict each other
    ├── NotCertifiableError               no honest guarantee exists for this mechanism and attacker
    ├── NoEvidenceError                   guarantees cannot be added up without declared evidence
    ├── BudgetExceededError               the ledger's budget does not allow the release
    ├── DifferencingError                 the release would undo another one about the same people
    ├── InputCheckError                   the input does not look as declared; nothing was charged
    ├── ConfigError                       a job file or a source cannot be used
    ├── LedgerError                       the ledger cannot be used, or was altered
    └── TemporaryError                    locked or unreachable; the same call may succeed later

A message names the argument, the rule and the fix. About data it names columns and rules only, never a
value or a count found in the data: an error is read by people who may not see the data.
"""

from __future__ import annotations


class PkdpError(Exception):
    """Base of every error raised on purpose by this library."""


class ArgumentError(PkdpError, ValueError):
    """An argument is malformed, or two arguments contradict each other."""


class NotCertifiableError(PkdpError):
    """There is neither a partial-knowledge nor a worst-case guarantee to give."""


class NoEvidenceError(PkdpError):
    """Guarantees were to be added up without evidence that says how."""


class BudgetExceededError(PkdpError):
    """A release would spend more than the ledger's budget allows."""


class DifferencingError(PkdpError):
    """A release, next to what is already public, would undo the protection."""


class InputCheckError(PkdpError):
    """The input does not look as the caller declared; nothing was published or charged."""


class ConfigError(PkdpError):
    """A job file, a policy or a data source cannot be used as it stands."""


class LedgerError(PkdpError):
    """The ledger cannot be used, or its content was altered."""


class TemporaryError(PkdpError):
    """Something outside is locked or unreachable; the same call may succeed later."""


#: Exit codes of the command line, also recorded with every run of a job: 0 done or replayed, 1 a defect of ours,
#: 2 configuration or unreadable source, 3 input check failed, 4 refused for privacy, 75 temporary (the only one after
#: which the same command is worth repeating), 130 Ctrl-C, 143 SIGTERM.
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
