"""publish: the one way out, from a question to a `Release`: what is refused or replayed before any data are read."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.certificates import release_certificate
from pkdp_pipeline.certificates.release_certificate import (
    Asked,
    ReleaseCertificate,
    Target,
    attacker_of,
    certify,
    read_target,
)
from pkdp_pipeline.errors import REFUSED, ArgumentError, LedgerError, PkdpError, TemporaryError, exit_code
from pkdp_pipeline.model.attacker import AttackerModel, beside_groups
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, Protects, Sum
from pkdp_pipeline.model.question import Question, determines
from pkdp_pipeline.releases.public_table import Counted, count_units, public_table, shown_again
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.ledger import Entry, Ledger, Reservation
    from pkdp_pipeline.ledger.admission import Admission
    from pkdp_pipeline.ledger.charging import Work

__all__ = ["Counted", "Publication", "count_units", "failures_logged", "publish", "read_through"]

LOGGER = logging.getLogger("pkdp_pipeline")
"""Says what is charged, published, replayed, refused and tried again: by public names, ids and types of errors alone.

No predicate, message, cell or number of a table is in it. Without a handler of the program it says nothing.
"""
LOGGER.addHandler(logging.NullHandler())
#: Releases up to this size are kept as they were read, for those who ask for them again.
_MAX_KEPT_BYTES = 2**15


@contextmanager
def failures_logged(title: str) -> Iterator[None]:
    """Log that something was not published, and the type of the error: its message is for who asked."""
    try:
        yield
    except BaseException as error:
        code = exit_code(error)
        outcome = "refused" if code == REFUSED else "not published"
        LOGGER.warning("%s%s: %s (%s)", outcome, ", try again" * (code == 75), title, type(error).__name__)
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Certifying:
    """A certificate that is still to be computed.

    Raises `NotCertifiableError` when it is called if there is none, or it promises less than the target.
    """

    mechanism: Mechanism
    attacker: AttackerModel
    protects: Protects
    context: Context
    target: Target | None
    cells: int | None

    @property
    def key(self) -> Certifying:
        """See `Work`."""
        return self

    def __call__(self, offered: Callable[[ReleaseCertificate], None] | None = None) -> ReleaseCertificate:
        """Compute it; `offered` is told it before it is held to the target."""
        certificate = certify(self.mechanism, self.attacker, protects=self.protects, cells=self.cells)
        certificate = certificate.in_context(self.context)
        if offered is not None:
            offered(certificate)
        if self.target is not None:
            self.target.hold(certificate)
        return certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One question, whom its answer is certified against, where it is charged, and what it has to promise.

    Parameters
    ----------
    question : Question
        A bare histogram by the columns of exact totals that the attacker knows is taken for these totals.
    attacker : AttackerModel, optional
        May be left out where there is noise, which asks nothing of an attacker.
    ledger : Ledger, optional
        Charges, replays the same question, and refuses what its rules or its budgets do not allow. The same
        question against another attacker certifies the stored table again, beside what has been charged since;
        nothing more is published.
    alone : bool, default True
        False where something else, noised as this is, is published about these people and this period:
        then only the worst-case guarantee is claimed.
    revise : bool, default False
        Publish changed data under the same question as a new release, charged and checked as any other.
    target : Target, None or "default"
        The least it has to promise to be published. None: nothing. "default": the ledger's, or a finite ε at
        δ = 1e-6.
    run : callable, optional
        Does what takes long, which is a `Work`; see `Ledger.reserve`.
    reading : str, optional
        The mark of the reading of the data that the table is counted from; see `Context`.
    """

    question: Question
    attacker: AttackerModel = None  # type: ignore[assignment]  # where there is noise, one is made of it
    ledger: Ledger | None = None
    alone: bool = True
    revise: bool = False
    target: Asked = "default"
    run: Callable[[Work], Any] | None = None
    reading: str | None = None

    def __post_init__(self) -> None:
        read_target(self.target)
        if not isinstance(self.revise, bool):
            raise ArgumentError("revise must be True or False.")
        if self.ledger is not None:
            from pkdp_pipeline.ledger import Ledger

            if not isinstance(self.ledger, Ledger):
                raise ArgumentError(
                    f"ledger must be a Ledger, not {type(self.ledger).__name__}: open one with pkdp.Ledger.open(path)."
                )
        elif self.revise:
            raise ArgumentError("revise is about what a ledger holds: give a ledger, or leave revise out.")
        question = self.question
        attacker = attacker_of(question.mechanism, self.attacker)
        if isinstance(question.mechanism, Histogram):
            cells = None if question.domain is None else len(question.domain.cells)
            if cells is not None and question.mechanism.k is None and question.mechanism.noise is None:
                attacker.check_cells(cells)  # nothing but p_min hides exact counts
            attacker = attacker.among(cells)
        object.__setattr__(self, "attacker", attacker)
        mechanism = beside_groups(question.mechanism, question.grouping, question.protects, attacker)
        if mechanism != question.mechanism:
            object.__setattr__(self, "question", replace(question, mechanism=mechanism))

    @property
    def title(self) -> str:
        """The question in a few words, its period and data set, for a log."""
        period, dataset = self.question.period, None if self.ledger is None else self.ledger.dataset
        named = [repr(self.question.description), period and f"of {period}", dataset and f"in data set {dataset!r}"]
        return " ".join(filter(None, named))

    def certified_alone(self) -> ReleaseCertificate:
        """Certify the question as it is published without a ledger.

        Raises `NotCertifiableError` if it may not be published.
        """
        return self._certifying(self.question.context(), claims=self.alone)()

    def published(self) -> Entry | None:
        """Return the entry that answers the question; None where there is none, or a revision is asked for.

        It is that of the question itself, or of a finer display of it, from which the answer is derived.
        """
        assert self.ledger is not None
        if self.revise:
            return None
        return self.ledger.find(self.question.key(self.ledger.dataset)) or self._finer()

    def _finer(self) -> Entry | None:
        """Return the first published display of this question from which this one follows."""
        assert self.ledger is not None
        if self.question.mechanism.display is None:
            return None
        for mechanism in self.ledger.records.mechanisms_beside(self.question.facts()):
            if determines(mechanism, self.question.mechanism):
                finer = replace(self.question, mechanism=mechanism)
                if (entry := self.ledger.find(finer.key(self.ledger.dataset))) is not None:
                    return entry
        return None

    def reserve(self, offered: Callable[[ReleaseCertificate], None] | None = None) -> Reservation | Entry:
        """Charge what is asked for, or return the entry that answers it; what needs no data of `publish`.

        `offered` is for a rehearsal, whose ledger is thrown away and stores drafts: it is told every certificate that
        the ledger is asked to charge, also one that it then refuses. Raises
        `BudgetExceededError`, `DifferencingError`, `NoEvidenceError` or `NotCertifiableError` if it may not be
        published (nothing was charged then), `LedgerError` or `TemporaryError` if the ledger cannot be used.
        """
        ledger, question = self.ledger, self.question
        assert ledger is not None
        key = question.key(ledger.dataset)

        def offer(admission: Admission, head: str) -> Certifying | ReleaseCertificate:
            beside = not (self.alone and admission.alone)
            context = question.context(ledger.dataset, reading=self.reading, head=head, beside=beside)
            certifying = self._certifying(context, claims=self._claims(admission))
            if offered is None:
                return certifying
            certificate = certifying(offered)
            # What another run has reserved stands before the ledger's head, and is compared word by word.
            return certificate.draft() if head == ledger.records.head() else certificate

        return self.published() or ledger.reserve(
            key, question.facts(), offer, revise=self.revise, attacker=self.attacker, run=self.run
        )

    def replayed(self, entry: Entry) -> Release:
        """Return the published release that answers the question, certified anew where another attacker is asked about.

        From a finer display of the question the answer is derived, with the certificate of that release.
        Raises `LedgerError` if the ledger holds something else than was asked (it was altered), and `NoEvidenceError`,
        `NotCertifiableError` or `TemporaryError` if it cannot be certified anew.
        """
        question, finer = self.question, entry.standing.mechanism
        if finer != question.mechanism and determines(finer, question.mechanism):
            published = replace(self, question=replace(question, mechanism=finer)).replayed(entry)
            return derived_release(published, question.mechanism)
        release = _stored(entry)
        if question.has_opaque_where:
            warnings.warn(
                f"this release was published for the label {question.label!r} before: whether where is the "
                "predicate of that time cannot be compared. Give another predicate another label, or write it as a "
                "query string.",
                stacklevel=2,
            )
        self._check_answers(entry, release)
        return self._certified_again(entry, release)

    def _claims(self, admission: Admission) -> bool:
        """Return whether more may be claimed than what noise gives against anybody."""
        return admission.claims and (self.alone or admission.covered or self.question.facts().exact_count)

    def _certifying(self, context: Context, *, claims: bool) -> Certifying:
        """Return what certifies it; where nothing more may be claimed, only what noise gives against anybody."""
        target = self.ledger.target if self.target == "default" and self.ledger is not None else self.target
        domain, by = self.question.domain, self.question.by
        summed = isinstance(self.question.mechanism, Sum)
        return Certifying(
            mechanism=self.question.mechanism,
            attacker=self.attacker if claims else self.attacker.against_anyone(),
            protects=self.question.protects,
            context=context,
            target=release_certificate.DEFAULT_TARGET if target == "default" else target,
            cells=len(domain.cells) if domain is not None else 1 if summed and not by else None,
        )

    def _check_answers(self, entry: Entry, release: Release) -> None:
        """Refuse a stored release that is not about what was asked."""
        assert self.ledger is not None
        question, stored = self.question, release.certificate
        context = stored.context
        if context is not None:
            # The checks may have been others when it was published.
            context = replace(context, units=question.units, checks=question.checks)
            context = replace(context, beside=False, head=None, reading=None)
        if stored.mechanism != question.mechanism or context not in (None, question.context(self.ledger.dataset)):
            raise LedgerError(
                f"the ledger's entry {entry.sequence} holds a release of something else than was asked: it was "
                "altered. Check the ledger with verify()."
            )

    def _certified_again(self, entry: Entry, release: Release) -> Release:
        """Return the release; the same table with a new certificate where another attacker or aim is asked about.

        A new certificate claims what the ledger allows beside all that has been charged since, and no more than
        the worst case where the first one had to do with that.
        """
        assert self.ledger is not None
        stored = release.certificate
        limited = not stored.has_partial_knowledge and (stored.context is None or stored.context.beside)
        answers = (self.attacker, self.attacker.against_anyone()) if limited else (self.attacker,)
        if stored.protects == self.question.protects and stored.attacker in answers:
            return release
        allowed = self.ledger.admission(entry)
        context = stored.context or self.question.context(self.ledger.dataset)
        context = replace(context, beside=context.beside or not (self.alone and allowed.alone))
        certifying = self._certifying(context, claims=not limited and self._claims(allowed))
        if (certifying.attacker, certifying.protects, context) == (stored.attacker, stored.protects, stored.context):
            return release
        anew = Release.seal(release.table, certifying() if self.run is None else self.run(certifying))
        text = anew.certificate.to_json()
        return _stored(self.ledger.recertify(entry, text, anew.id, anew.to_bytes(), run=self.run))


def derived_release(release: Release, mechanism: Mechanism) -> Release:
    """Return a coarser display of a published release, which determines it; no data are read, nothing is charged."""
    certificate = release.certificate
    found_cells = certificate.context is not None and certificate.context.cells == "found"
    table = shown_again(release.table, certificate.mechanism, mechanism, found_cells=found_cells)
    return replace(Release.seal(table, certificate.derived(mechanism)), replayed=True)


@lru_cache(maxsize=256)
def _read_once(content: bytes) -> Release:
    """Return a published release from its bytes; a frozen value, which depends on nothing else."""
    return Release.from_bytes(content, replayed=True)


def _stored(entry: Entry) -> Release:
    """Return the release a ledger holds, from its stored bytes."""
    if entry.content is None:
        raise LedgerError(f"the ledger's entry {entry.sequence} holds no release: it was altered.")
    try:
        small = len(entry.content) <= _MAX_KEPT_BYTES
        release = _read_once(entry.content) if small else Release.from_bytes(entry.content, replayed=True)
    except ArgumentError as error:
        raise LedgerError(f"the ledger's entry {entry.sequence} cannot be replayed: {error}") from error
    if release.id != entry.release_id:
        raise LedgerError(f"the ledger's entry {entry.sequence} holds another release than it says: it was altered.")
    return release


def publish(
    source: Callable[[], Any],
    publication: Publication,
    *,
    check: Callable[[Release], None] | None = None,
    trusted: bool = True,
    reserved: Reservation | Entry | None = None,
) -> Release:
    """Publish what a question asks for.

    All that can be refused is refused before any data is read, and what the ledger holds is replayed without
    reading any. With a ledger the charge comes first: it is reserved, then the data are read, then the
    release is stored; only then does it exist.

    Parameters
    ----------
    source : callable
        Returns the frame, of any kind that `histogram` takes, or what `count_units` made of one for this very
        question; called once, and only when data must be read.
    check : callable, optional
        Looks at a new release before it is stored; what it raises stops the publication, and nothing is charged.
    trusted : bool, default True
        False where the asker may not see the data: what fails once they were read stays charged, because a failure
        can tell about them, too.
    reserved : Reservation or Entry, optional
        The result of `Publication.reserve`, where it was charged together with others.

    Raises
    ------
    ArgumentError
        If an argument is malformed, or names what the frame does not have.
    BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError
        If it may not be published; no data was read.
    InputCheckError
        If the data are not as the question declares them; nothing was charged to who is trusted.
    LedgerError, TemporaryError
        If the ledger cannot be used. Nothing was published; where the charge was reserved already, the same
        question, asked again, takes it over and is charged once.
    """
    title = publication.title
    with failures_logged(title):
        release = _published(source, publication, check, trusted, reserved)
    LOGGER.info("%s: %s, release %s", "replayed" if release.replayed else "published", title, release.id)
    return release


def _published(
    source: Any, publication: Publication, check: Callable[[Release], None] | None, trusted: bool, reserved: Any
) -> Release:
    """Return what `publish` does."""

    def sealed_release(certificate: ReleaseCertificate) -> Release:
        release = Release.seal(public_table(source(), publication.question), certificate)
        if check is not None:
            check(release)
        return release

    ledger = publication.ledger
    if ledger is None:
        return sealed_release(publication.certified_alone())
    from pkdp_pipeline.ledger import Entry

    reserved = reserved or publication.reserve()
    if isinstance(reserved, Entry):
        return publication.replayed(reserved)
    if reserved.taken_over:
        LOGGER.warning("charge of a run that ended taken over: %s", publication.title)
    else:
        LOGGER.info("charged: %s", publication.title)
    release = None
    try:
        release = sealed_release(reserved.certificate)
        entry, was_there = ledger.publish(reserved, release.to_bytes(), release.id)
    except BaseException as error:
        # What is not stored, nobody has seen; where it was stored before a stop, this changes nothing. A charge that
        # cannot be given back now is taken over by the next run; what went wrong matters more.
        if trusted and (release is None or not isinstance(error, Exception)):
            with suppress(PkdpError):
                ledger.give_back(reserved)
                LOGGER.warning("charge given back: %s", publication.title)
        raise
    if not was_there:
        return release
    if publication.revise:
        # Another run took the same reservation and was first: its table was made from other data.
        raise TemporaryError(
            "another run has published a revision of the same question meanwhile; of this one nothing was "
            "published or charged: run again, which publishes one more revision."
        )
    return publication.replayed(entry)


def read_through(frame: Any, question: Question) -> None:
    """Read a frame as `publish` does for this question, and let nothing out but what it could fail with."""
    public_table(frame, question)
