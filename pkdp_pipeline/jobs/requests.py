"""What a job asks for on one date: requests, which are checked and compared without data."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError, ConfigError, DifferencingError, PkdpError
from pkdp_pipeline.jobs.job import Job, ReleaseTable
from pkdp_pipeline.ledger import check_differencing
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.wording import JOB_FILE, worded_for
from pkdp_pipeline.releases.request import Request

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.repairs import Repair

__all__ = ["NamedRequest", "check_together", "requests_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRequest:
    """One of a job's releases on one date."""

    name: str
    request: Request
    attacker: AttackerModel
    job: Job


def requests_of(job: Job, day: date) -> tuple[NamedRequest, ...]:
    """Return what the job asks for on this date, in the file's order.

    Raises
    ------
    ArgumentError
        If a release cannot be asked for like this; the message starts with the release's name.
    """
    return tuple(
        NamedRequest(name=release.name, request=_request(job, release, day), attacker=job.attacker_of(release), job=job)
        for release in job.release
    )


def check_together(named: Sequence[NamedRequest], *, dataset: str, evidence: tuple[Evidence, ...] = ()) -> None:
    """Refuse releases that cannot be published side by side, before anything is opened or read.

    Raises
    ------
    ConfigError
        If two of them ask for the same thing under two names.
    DifferencingError
        If they are about the same people and period and one of them is noiseless. The message ends with what works
        instead, as TOML that can be pasted into the job file, where there is such a thing.
    """
    refusal = ""
    try:
        _check_together(named, dataset, evidence)
    except DifferencingError as error:
        # All releases of a job are of the same day, so to name it says nothing.
        refusal = worded_for(error, JOB_FILE).replace(f", period {named[0].request.period}", "")
    if refusal:
        repair = _repair(named[0].job, date.fromisoformat(str(named[0].request.period)))
        raise DifferencingError(refusal if repair is None else f"{refusal}\n\n{repair.words}\n\n{repair.toml}")


def _check_together(named: Sequence[NamedRequest], dataset: str, evidence: tuple[Evidence, ...]) -> None:
    for position, one in enumerate(named):
        earlier = named[:position]
        for other in earlier:
            if one.request.key(dataset) == other.request.key(dataset):
                raise ConfigError(f"releases {other.name!r} and {one.name!r} ask for the same; remove one of them.")
        others = [(other.request.standing(), other.attacker) for other in earlier]
        check_differencing(one.request.standing(), others, dataset=dataset, evidence=evidence, attacker=one.attacker)


def _request(job: Job, release: ReleaseTable, day: date) -> Request:
    histogram = release.by is not None
    try:
        return Request(
            mechanism=release.mechanism(),
            protects=release.protects,
            unit=job.unit,
            by=release.by,
            domain=release.domain,
            where=release.where,
            missing_unit=job.missing_unit,
            units=job.units,
            one_cell=(release.one_cell or job.one_cell) if histogram else "error",
            order_by=(release.order_by or job.order_by) if histogram else None,
            undeclared=release.undeclared,
            period=day.isoformat(),
            label=release.name,
            time_zone=job.period.time_zone,
            checks=job.checks.look_at_rows,
            target=job.asked_target(),
        )
    except ArgumentError as error:
        raise ArgumentError(f"release {release.name!r}: {error}") from error


def _repair(job: Job, day: date) -> Repair | None:
    """Return the first repair that works: the job can be read with it, certified, and held to its budgets."""
    from pkdp_pipeline.jobs.repairs import repairs

    return next((repair for repair in repairs(job) if _works(job, repair, day)), None)


def _works(job: Job, repair: Repair, day: date) -> bool:
    from pkdp_pipeline.certificates.compose import compose
    from pkdp_pipeline.certificates.release_certificate import certify
    from pkdp_pipeline.model.evidence import SamePeople

    releases = tuple(ReleaseTable.model_validate(table) for table in tomllib.loads(repair.toml)["release"])
    update = {"release": releases, "attacker": repair.attacker}
    try:
        repaired = Job.model_validate({**dict(job), **update})
        named = requests_of(repaired, day)
        _check_together(named, job.dataset, job.declared())
        parts = [certify(one.request.mechanism, one.attacker, protects=one.request.protects) for one in named]
        total = parts[0] if len(parts) == 1 else compose([part.worst_case_only() for part in parts], SamePeople())
    except (ValueError, PkdpError):
        return False
    return all(
        (total if measure == "partial_knowledge" else total.worst_case).delta(budget.epsilon) <= budget.delta
        for budget in job.budgets()
        for measure in budget.measures
    )
