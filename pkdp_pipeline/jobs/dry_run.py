"""A dry run: what a job would publish, charge and replay, and where it would be refused; nothing is touched.

A run shares its checks: whose output folder it is, and whether the ledger holds what was written there from it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.errors import ConfigError, DifferencingError, NoEvidenceError, NotCertifiableError, PkdpError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs.files import check_formats, day_folders, write_atomically
from pkdp_pipeline.ledger import Entry, Ledger, Reservation, check_differencing
from pkdp_pipeline.ledger.admission import check_time_zone
from pkdp_pipeline.ledger.reading import charging_together, copied
from pkdp_pipeline.ledger.rows import certificate_of, describe
from pkdp_pipeline.model.period import folded, in_markdown
from pkdp_pipeline.model.wording import JOB_FILE, WITHIN_JOB, Speech, worded_for
from pkdp_pipeline.releases.publish import failures_logged

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.model.question import Question
    from pkdp_pipeline.releases.publish import Publication


DELTA = 1e-6
"""Where ε is stated."""

Outcome = Literal["publish", "replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRelease:
    """One release of one day.

    Parameters
    ----------
    outcome : {"publish", "replay"}
    certificate : Certificate
        The promise it makes, or made when it was published.
    """

    name: str
    outcome: Outcome
    certificate: Certificate = field(compare=False, repr=False)

    @property
    def epsilon(self) -> float:
        """The ε of its certificate at `DELTA`; `math.inf` where no ε reaches it."""
        return self.certificate.epsilon(DELTA)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDay:
    """One period, by its first day; where it would be refused, nothing of it would be published."""

    day: date
    releases: tuple[PlannedRelease, ...]
    refused: PkdpError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The outcome of a run, were it started.

    Parameters
    ----------
    days : tuple of PlannedDay
        In order, up to the first that would be refused.
    unreached : int
        How many days would come after that one.
    before, after : Certificate or None
        The total of everything that the ledger holds about the job's unit, now and then; None where it does not
        add up.
    period : Certificate or None
        The total of those of its releases that are about the days of the plan.
    """

    days: tuple[PlannedDay, ...]
    unreached: int
    before: Certificate | None
    after: Certificate | None
    period: Certificate | None

    @property
    def refused(self) -> PlannedDay | None:
        """The day that would be refused."""
        last = self.days[-1] if self.days else None
        return last if last is not None and last.refused is not None else None


def check_together(job: Job) -> None:
    """Refuse releases that cannot be published side by side, before anything is opened or read.

    Raises `ConfigError` if two of them ask for the same thing under two names, or a format cannot hold a declared
    domain, `DifferencingError` if they are about the same people and period and one of them is noiseless.
    """
    dataset, evidence = job.dataset, job.declared()
    earlier: list[Publication] = []
    publications = job.publications()  # what may stand together does not depend on the day
    domains = {str(publication.question.label): publication.question.domain for publication in publications}
    check_formats(job.output.formats, domains)
    for publication in publications:
        question = publication.question
        for other in (before.question for before in earlier):
            if question.key(dataset) == other.key(dataset):
                raise ConfigError(
                    f"releases {other.label!r} and {question.label!r} ask for the same; remove one of them."
                )
        finer = next((before for before in earlier if question.follows_from(before.question)), None)
        if finer is not None:
            _check_same_promise(publication, finer)
            continue
        others = [(other.question.facts(), other.attacker) for other in earlier]
        refusal = None
        try:
            check_differencing(
                question.facts(), others, dataset=dataset, evidence=evidence, attacker=publication.attacker
            )
        except DifferencingError as error:
            refusal = worded_for(error, WITHIN_JOB)
        if refusal is not None:
            raise DifferencingError(refusal)
        earlier.append(publication)


def _check_same_promise(coarser: Publication, finer: Publication) -> None:
    """Refuse a display with a promise of its own: one table has one certificate, which is that of the finer display."""
    if (coarser.attacker, coarser.question.protects) != (finer.attacker, finer.question.protects):
        raise ConfigError(
            f"release {coarser.question.label!r} shows {finer.question.label!r} more coarsely: it is derived from that "
            "table and has its promise. Give both the same attacker and protects; what the table promises another "
            "attacker: pkdp certify."
        )


@contextmanager
def in_job_words(release: str | None, speech: Speech = JOB_FILE) -> Iterator[None]:
    """Let an error from inside name the release, and say what to write in the job file, or in another speech."""
    reworded = None
    try:
        yield
    except PkdpError as error:
        message = worded_for(error, speech)
        if isinstance(error, NoEvidenceError | NotCertifiableError):
            message = f"release {release!r}: {message}"
        if message == str(error):
            raise
        reworded = type(error)(message)
    if reworded is not None:
        raise reworded


def plan_job(
    job: Job, days: Sequence[date], *, revise: bool = False, ahead: bool = False, speech: Speech = JOB_FILE
) -> Plan:
    """Return what a job would do about the periods of some days, in this order.

    It charges a copy of the ledger, in memory. No data are read, so whether a day would pass its input check is not
    known; neither the ledger nor the output folder is touched. With `ahead` periods that are not over are planned as if
    they were. `speech`: how a refusal says what to write. Raises `ConfigError` or `DifferencingError` if the job's
    releases cannot stand together, or the output folder is another job's or another ledger's; `LedgerError` or
    `TemporaryError` if the ledger cannot be read.
    """
    check_together(job)
    budget, evidence = job.budgets() or None, job.declared() or None
    planned: list[PlannedDay] = []
    certificates = check_folder(job)
    with copied(job.ledger, dataset=job.dataset, budget=budget, evidence=evidence) as ledger:
        check_ledger(job, ledger, certificates)
        before = ledger.known_total(job.unit)
        for day in days:
            planned.append(plan_day(job, ledger, day, revise=revise, ahead=ahead, speech=speech))
            if planned[-1].refused is not None:
                break
        allowed = [planned_day.day for planned_day in planned if planned_day.refused is None]
        return Plan(
            days=tuple(planned),
            unreached=len(days) - len(planned),
            before=before,
            after=ledger.known_total(job.unit),
            period=ledger.known_total(job.unit, min(allowed), job.period.span(max(allowed))[1])
            if allowed
            else compose([]),
        )


def plan_day(
    job: Job,
    ledger: Ledger,
    day: date,
    *,
    revise: bool = False,
    ahead: bool = False,
    speech: Speech = JOB_FILE,
    publications: Sequence[Publication] | None = None,
) -> PlannedDay:
    """Return what would become of a day's period, and charge it to a copy of the ledger; see `plan_job`.

    `publications` are those of the day, where they are at hand.
    """
    releases, offered = list[PlannedRelease](), list[Any]()
    charged: dict[Question, ReleaseCertificate] = {}
    for publication in job.publications(day) if publications is None else publications:
        question, name = publication.question, str(publication.question.label)
        finer = next(filter(question.follows_from, charged), None)
        try:
            if not ahead:
                job.period.check_open(day)
            if finer is not None:
                certificate = charged[finer].derived(question.mechanism)
                releases.append(PlannedRelease(name=name, outcome="replay", certificate=certificate))
                continue
            with in_job_words(name, speech):
                requested = replace(publication, ledger=ledger, revise=revise)
                answer = requested.reserve(offered.append)
                certificate = _shown(requested, answer) if isinstance(answer, Entry) else offered[-1]
        except PkdpError as error:
            return PlannedDay(day=day, releases=tuple(releases), refused=error)
        if isinstance(answer, Entry):
            releases.append(PlannedRelease(name=name, outcome="replay", certificate=certificate))
        else:
            certificate = replace(certificate, context=None)  # which names the copy's head
            charged[question] = certificate
            releases.append(PlannedRelease(name=name, outcome="publish", certificate=certificate))
    return PlannedDay(day=day, releases=tuple(releases))


def _shown(publication: Publication, entry: Entry) -> ReleaseCertificate:
    """Return the certificate under which a run shows what was published; about another attacker, it is made anew."""
    certificate, question = certificate_of(describe(entry.certificate)), publication.question
    if (certificate.attacker, certificate.protects) != (publication.attacker, question.protects):
        return publication.replayed(entry).certificate
    return certificate if certificate.mechanism == question.mechanism else certificate.derived(question.mechanism)


Charged = list[Reservation | Entry | None]
"""Of each publication its charge, or the entry that answers it; None: it follows from another one of the same day."""


def charge_day(job: Job, ledger: Ledger, publications: Sequence[Publication], speech: Speech = JOB_FILE) -> Charged:
    """Charge what is asked of a period in one transaction, all or nothing; see `Publication.reserve`.

    `speech`: that of a refusal.
    """
    charged = Charged()
    with charging_together(ledger) as inside:
        for place, (table, publication) in enumerate(zip(job.release, publications, strict=True)):
            earlier = (other.question for other in publications[:place])
            with failures_logged(publication.title), in_job_words(table.name, speech):
                follows = publication.question.follows_from_any(earlier)
                charged.append(None if follows else replace(publication, ledger=inside).reserve())
    return charged


def give_back(ledger: Ledger, charged: Charged) -> None:
    """Give back what is charged and not begun to be published, as far as the ledger can be used."""
    with suppress(PkdpError):  # where one cannot be given back, each of the others would be waited for as long
        for reservation in charged:
            if isinstance(reservation, Reservation):
                ledger.give_back(reservation)


OWNER_FILE = ".pkdp.job"
"""The file in the output folder that names the job file that wrote there last, by its path from there."""

_HEAD = re.compile(r"in the ledger's chain: `([0-9a-f]{64})`")
_MAX_NAMED = 3
_SUFFIX = ".certificate.json"

Certificates = Mapping[str, Mapping[str, Any]]
"""The certificates in an output folder, by day folder and name; each has at least an object `context`."""


def check_folder(job: Job) -> Certificates:
    """Refuse an output folder with what is not this job's, which it would overwrite; return the certificates in it.

    Raises `ConfigError` if it holds releases of another job file, of another data set, or about other units.
    """
    directory, certificates = Path(job.output.directory).resolve(), certificates_of(job)
    names, own_names = {where.partition("/")[2] for where in certificates}, {release.name for release in job.release}
    owner = this = _seen_from_folder(job)
    with suppress(OSError):
        owner = os.fsdecode((directory / OWNER_FILE).read_bytes()).strip()
    if certificates and this and owner not in ("", this):
        other = directory / owner
        # Where there is no such file any more, this job file may be that one under another name.
        moved = os.path.realpath(other) == os.path.realpath(job.file) if os.path.exists(other) else names <= own_names
        if not moved:
            raise ConfigError(
                f"output.directory {str(directory)!r} holds releases of the job file {owner!r}, and this is {this!r} "
                "(both as seen from that folder): they would overwrite each other's summary.md. Choose a folder of its "
                f"own; where the job file was only moved or copied, remove {OWNER_FILE!r} there."
            )
    for where, certificate in certificates.items():
        context, name = certificate["context"], where.partition("/")[2]
        other_data, unit, period = (context.get(key) for key in ("dataset", "unit", "period"))
        if isinstance(other_data, str) and folded(other_data) != folded(job.dataset):
            raise ConfigError(
                f"output.directory {str(directory)!r} holds releases of the data set {other_data!r}, this job's is "
                f"{job.dataset!r}, and their files would overwrite each other: choose a folder of its own."
            )
        if name in own_names and isinstance(period, str) and job.period.start(period) is None:
            raise ConfigError(
                f"output.directory {str(directory)!r} holds a release {name!r} about {period}, and this job publishes "
                f"by the {job.period.every}: choose a folder of its own, or another name for the release."
            )
        if name in own_names and unit not in (None, list(job.unit)):
            raise ConfigError(
                f"output.directory {str(directory)!r} holds a release {name!r} about other units than this job's "
                f"{', '.join(job.unit)}: choose a folder of its own, or another name for the release."
            )
    return certificates


def certificates_of(job: Job) -> Certificates:
    """Return the certificates in the job's output folder."""
    return {
        f"{folder.name}/{path.name.removesuffix(_SUFFIX)}": _read(path)
        for folder in day_folders(Path(job.output.directory))
        for path in sorted(folder.glob(f"*{_SUFFIX}"))
    }


def own(job: Job) -> None:
    """Name the job file in its output folder, which must exist."""
    if job.file:
        write_atomically(Path(job.output.directory) / OWNER_FILE, os.fsencode(f"{_seen_from_folder(job)}\n"))


def check_ledger(job: Job, ledger: Ledger, certificates: Certificates) -> None:
    """Refuse a ledger that does not hold what the output folder shows of the job's data set, or cuts other days.

    `certificates` are those in the folder. Raises `ArgumentError` if releases of the data set have another time zone;
    a `ConfigError` names releases that the ledger misses.
    """
    check_time_zone(ledger.records, job.period.time_zone)
    # They say the data set and where in the chain they stand, unless somebody else has written them.
    contexts = {where: certificate["context"] for where, certificate in certificates.items()}
    heads = {where: about["head"] for where, about in contexts.items() if _are_text(about, "dataset", "head")}
    ends = dict(_summaries(job))
    known = ledger.records.certificates_after({*heads.values(), *ends.values()})
    lost = [
        where
        for where, head in heads.items()
        if not any(_is_of(json.loads(text), certificates[where]) for text in known.get(head, ()))
    ]
    lost += [where for where, head in ends.items() if head not in known]
    if not lost:
        return
    lost.sort()
    more = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
    raise ConfigError(
        f"output.directory holds releases that the ledger does not know ({', '.join(lost[:_MAX_NAMED])}{more}): it was "
        "restored from an old backup, its end was cut off, or it is another ledger, and the next release would be "
        "charged as if these had told nothing. Correct its path, or put the newer one back, with its -wal file; if "
        "it is lost, go on with a new output.directory, and a budget that leaves room for what these have told."
    )


def _is_of(published: Mapping[str, Any], certificate: Mapping[str, Any]) -> bool:
    """Return whether a certificate is that of a published table, or of another display that follows from it."""
    if "derived_from" not in certificate:
        return published == certificate
    source = {**certificate, "mechanism": certificate["derived_from"]}
    del source["derived_from"]
    of_display = ("sentence", "steps")
    return source.keys() == published.keys() and all(
        source[name] == published[name] for name in source if name not in of_display
    )


def _are_text(context: Mapping[str, Any], *keys: str) -> bool:
    return all(isinstance(context.get(key), str) for key in keys)


def _seen_from_folder(job: Job) -> str:
    """Return the job file's path from its output folder, which stays the same when both are moved together."""
    return os.path.relpath(job.file, Path(job.output.directory).resolve()) if job.file else ""


def _read(path: Path) -> Mapping[str, Any]:
    """Return a certificate as JSON; one without context where it is none."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        document = None
    is_certificate = isinstance(document, dict) and isinstance(document.get("context"), dict)
    return document if is_certificate else {"context": {}}


def _summaries(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the heads that the summaries of the data set name."""
    for folder in day_folders(Path(job.output.directory)):
        with suppress(OSError, ValueError):
            text = (folder / "summary.md").read_text(encoding="utf-8")
            title = text.partition("\n")[0].removeprefix("# ").rpartition(",")[0]
            heads = _HEAD.findall(text)
            if heads and folded(title) in map(folded, (job.dataset, in_markdown(job.dataset))):
                yield f"{folder.name}/summary.md", heads[-1]
