"""Foreseeing: what would become of a request, asked of a ledger that may be charged: a copy, or a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import (
    BudgetExceededError,
    DifferencingError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
)
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.releases.request import Request
from pkdp_pipeline.releases.reserving import certified_alone, replayed, reserve

if TYPE_CHECKING:
    from pkdp_pipeline.ledger import Ledger

__all__ = ["Foreseen", "Outcome", "foresee", "foresee_alone"]

Outcome = Literal["publish", "replay", "refused"]

_REFUSALS = (BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What would become of a request.

    Parameters
    ----------
    outcome : {"publish", "replay", "refused"}
    certificate : ReleaseCertificate or None
        What the release would carry; of one that is refused, what it was offered to the ledger with, None where
        it did not come to that.
    refused : PkdpError or None
        What `publish` would raise.
    """

    outcome: Outcome
    certificate: ReleaseCertificate | None
    refused: PkdpError | None = None


def foresee_alone(request: Request, attacker: AttackerModel) -> Foreseen:
    """Return what would become of a request that is made without a ledger."""
    try:
        return Foreseen(outcome="publish", certificate=certified_alone(request, attacker))
    except NotCertifiableError as error:
        return Foreseen(outcome="refused", certificate=None, refused=_bare(error))


def foresee(
    request: Request, *, attacker: AttackerModel, ledger: Ledger, alone: bool = True, revise: bool = False
) -> Foreseen:
    """Return what would become of a request, and charge it: `ledger` is a copy or a rehearsal.

    After a refusal a rehearsal's ledger may hold part of the charge; a copy's does not.

    Raises
    ------
    ArgumentError
        If an argument is malformed.
    LedgerError, TemporaryError
        If the ledger cannot be used.
    """
    from pkdp_pipeline.ledger import Entry

    offered: list[ReleaseCertificate] = []
    try:
        found = reserve(request, attacker=attacker, ledger=ledger, alone=alone, revise=revise, offered=offered.append)
        if isinstance(found, Entry):
            release = replayed(request, attacker, ledger, found, alone=alone)
            return Foreseen(outcome="replay", certificate=release.certificate)
    except _REFUSALS as error:
        return Foreseen(outcome="refused", certificate=offered[-1] if offered else None, refused=_bare(error))
    return Foreseen(outcome="publish", certificate=found.certificate)


def _bare(error: PkdpError) -> PkdpError:
    """Return an error that holds on to nothing it passed through."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
