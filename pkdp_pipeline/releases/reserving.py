"""Reserving: what answers a question before any data are read: a certificate, a charge, or what is published."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.target import DEFAULT, Asked, read_target
from pkdp_pipeline.errors import ArgumentError, LedgerError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.ledger import Entry, Ledger, Reservation
    from pkdp_pipeline.ledger.admission import Admission

__all__ = ["certified_alone", "check_beside", "replayed", "reserve"]


def check_beside(ledger: object, *, revise: object, target: object) -> None:
    """Refuse what is no ledger, a revision without one, and what is no target, as an `ArgumentError`."""
    read_target(target)
    if not isinstance(revise, bool):
        raise ArgumentError("revise must be True or False.")
    if ledger is None:
        if revise:
            raise ArgumentError("revise is about what a ledger holds: give a ledger, or leave revise out.")
        return
    from pkdp_pipeline.ledger import Ledger

    if not isinstance(ledger, Ledger):
        raise ArgumentError(
            f"ledger must be a Ledger, not {type(ledger).__name__}: open one with pkdp.Ledger.open(path)."
        )


def certified_alone(
    question: Question, attacker: AttackerModel, *, claims: bool = True, target: Asked = "default"
) -> ReleaseCertificate:
    """Certify the question as it is published without a ledger.

    Raises
    ------
    NotCertifiableError
        If it may not be published.
    """
    certificate = _certified(question, attacker, claims=claims)
    _hold(certificate, target, None)
    return certificate.in_context(question.context())


def reserve(
    question: Question,
    *,
    attacker: AttackerModel,
    ledger: Ledger,
    alone: bool = True,
    revise: bool = False,
    target: Asked = "default",
    offered: Callable[[ReleaseCertificate], None] | None = None,
) -> Reservation | Entry:
    """Charge what `question` asks for, or return the entry that answers it; the part of `publish` that needs no data.

    `offered` is told every certificate that the ledger is asked to charge, also one that it then refuses.

    Raises
    ------
    BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError
        If it may not be published; nothing was charged.
    LedgerError, TemporaryError
        If the ledger cannot be used.
    """
    key, facts = question.key(ledger.dataset), question.facts()

    def offer(admission: Admission, head: str) -> ReleaseCertificate:
        claims = admission.claims and (alone or admission.covered or facts.exact_count)
        context, beside = question.context(ledger.dataset), not (alone and admission.alone)
        certificate = _certified(question, attacker, claims=claims)
        certificate = certificate.in_context(replace(context, beside=beside, head=head))
        if offered is not None:
            offered(certificate)
        _hold(certificate, target, ledger)
        return certificate

    entry = None if revise else ledger.find(key)
    if entry is not None:
        return entry
    told = attacker if isinstance(attacker, AttackerModel) else None
    return ledger.reserve(key, facts, offer, revise=revise, attacker=told)


def replayed(
    question: Question,
    attacker: AttackerModel,
    ledger: Ledger,
    entry: Entry,
    *,
    alone: bool = True,
    target: Asked = "default",
) -> Release:
    """Return the published release that answers `question`, certified anew where another attacker is asked about.

    Raises
    ------
    LedgerError
        If the ledger holds something else than was asked: it was altered.
    NoEvidenceError, NotCertifiableError, TemporaryError
        If it cannot be certified anew.
    """
    if question.has_opaque_where:
        warnings.warn(
            f"what is returned was published for the label {question.label!r} before: whether where is the predicate "
            "of that time cannot be compared. Give another predicate another label, or write it as a query string.",
            stacklevel=2,
        )
    release = _replayed(entry)
    _check_answers(question, ledger, entry, release)
    return _certified_again(question, attacker, ledger, entry, release, alone=alone, target=target)


def _certified(question: Question, attacker: AttackerModel, *, claims: bool) -> ReleaseCertificate:
    """Certify the question; where nothing more may be claimed, only what noise gives against anybody."""
    from pkdp_pipeline.certificates.release_certificate import certify

    return certify(question.mechanism, attacker if claims else _anyone(attacker), protects=question.protects)


def _hold(certificate: ReleaseCertificate, asked: Asked, ledger: Ledger | None) -> None:
    """Refuse a release that promises less than the target: its own, the ledger's, or the default."""
    if asked == "default":
        asked = "default" if ledger is None else ledger.target
    held = DEFAULT if asked == "default" else asked
    if held is not None:
        held.hold(certificate)


def _anyone(attacker: AttackerModel) -> AttackerModel:
    """Return anybody at all, to whom the same is told beside the releases; what is no attacker is left to `certify`."""
    return attacker.against_anyone() if isinstance(attacker, AttackerModel) else attacker


def _certified_again(
    question: Question,
    attacker: AttackerModel,
    ledger: Ledger,
    entry: Entry,
    release: Release,
    *,
    alone: bool,
    target: Asked,
) -> Release:
    """Return the release; the same table with a new certificate where another attacker or aim is asked about.

    A new certificate claims what the ledger allows beside all that has been charged since, and no more than
    the worst case where the first one had to do with that.
    """
    stored = release.certificate
    limited = not stored.has_partial_knowledge and (stored.context is None or stored.context.beside)
    answers = (attacker, _anyone(attacker)) if limited else (attacker,)
    if stored.protects == question.protects and stored.attacker in answers:
        return release
    allowed = ledger.admission(entry)
    claims = allowed.claims and not limited and (alone or allowed.covered or entry.standing.exact_count)
    asked = _certified(question, attacker, claims=claims)
    context = stored.context or question.context(ledger.dataset)
    context = replace(context, beside=context.beside or not (alone and allowed.alone))
    if (asked.attacker, asked.protects, context) == (stored.attacker, stored.protects, stored.context):
        return release
    _hold(asked, target, ledger)
    anew = Release.seal(release.table, asked.in_context(context))
    return _replayed(ledger.recertify(entry, anew.certificate.to_json(), anew.id, anew.to_bytes()))


def _replayed(entry: Entry) -> Release:
    """Return the release a ledger holds, from its stored bytes."""
    if entry.content is None:
        raise LedgerError(f"the ledger's entry {entry.sequence} holds no release: it was altered.")
    try:
        release = Release.from_bytes(entry.content, replayed=True)
    except ArgumentError as error:
        raise LedgerError(f"the ledger's entry {entry.sequence} cannot be replayed: {error}") from error
    if release.id != entry.release_id:
        raise LedgerError(f"the ledger's entry {entry.sequence} holds another release than it says: it was altered.")
    return release


def _check_answers(question: Question, ledger: Ledger, entry: Entry, release: Release) -> None:
    """Refuse a stored release that is not about what was asked."""
    stored = release.certificate
    facts = stored.context
    if facts is not None:
        # The checks may have been others when it was published.
        facts = replace(facts, units=question.units, checks=question.checks, beside=False, head=None)
    if stored.mechanism != question.mechanism or facts not in (None, question.context(ledger.dataset)):
        raise LedgerError(
            f"the ledger's entry {entry.sequence} holds a release of something else than was asked: it was altered. "
            "Check the ledger with verify()."
        )
