"""The audit of a job: each of its own requests, on synthetic frames with its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from pkdp_pipeline.assurance.audit.cases import Case, case_of
from pkdp_pipeline.assurance.audit.findings import Audit, NotAudited
from pkdp_pipeline.assurance.audit.operators import check_engine
from pkdp_pipeline.assurance.audit.people import Columns, Layout, filtered
from pkdp_pipeline.assurance.audit.running import CONFIDENCE, SAMPLES, audit_cases, obstacle
from pkdp_pipeline.errors import NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.question import Question

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.target import Asked
    from pkdp_pipeline.jobs import Job

__all__ = ["audit_job"]

_ANY_DAY = date(2000, 1, 1)


def audit_job(
    job: Job,
    *,
    samples: int = SAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Audit:
    """Audit every release of a job by itself, with the job's engine; no data of the job are read.

    What cannot be audited is listed with the reason: a filter for which no rows were found, for instance.

    Raises
    ------
    ArgumentError
        If an argument is malformed, or the job's engine is not installed.
    """
    from pkdp_pipeline.jobs.requests import requests_of

    engine = check_engine(job.engine)
    cases, left_out = [], []
    named = requests_of(job, _ANY_DAY)
    for asked, one in zip(job.release, named, strict=True):
        case = _case(one.name, one.request, job.attacker_of(asked), alone=job.alone, target=job.asked_target())
        if isinstance(case, Case) and not (reason := obstacle(case, engine)):
            cases.append(case)
        else:
            reason = case if isinstance(case, str) else f"its frames could not be published: {reason}"
            left_out.append(NotAudited(case=one.name, engine=engine, reason=reason))
    found = audit_cases(
        cases,
        engines=(engine,),
        samples=samples,
        confidence=confidence,
        seed=seed,
        workers=workers,
        progress=progress,
    )
    return replace(found, not_audited=(*left_out, *found.not_audited))


def _case(name: str, request: Question, attacker: AttackerModel, *, alone: bool, target: Asked) -> Case | str:
    """Return the case of one request; a text says why there is none."""
    values = filtered(request.where)
    if values is None:
        return "no rows were found that its filter keeps, and none that it drops"
    columns = (*request.unit, *request.by, *request.order_by)
    if set(values.kept) & set(columns):
        return "its filter is about the columns that name people or cells"
    try:
        plain = case_of(request.mechanism, attacker if alone else attacker.against_anyone(), request.protects)
    except NotCertifiableError:
        return "nothing is certified about it"
    cells = None if request.domain is None else request.domain.cells
    if any(name in request.by for name in request.unit):
        return "a column names both people and cells"
    named = Columns(unit=request.unit, by=request.by, order_by=request.order_by, cells=cells, where=values)
    layout = _layout(plain, request, named)
    copies = plain.copies
    if cells is not None:
        width = plain.trials[0].days[0].cells + len(layout.companions)
        if width > len(cells):
            return "its domain has fewer cells than the two that are compared"
        copies = len(cells) // width
    return replace(
        plain, name=name, layout=layout, copies=copies, request=request, alone=alone, target=target, options={}
    )


def _layout(plain: Case, request: Question, columns: Columns) -> Layout:
    """Return what frames look like for which the request is made."""
    if not request.unit:
        plain = replace(plain, layout=replace(plain.layout, rows=(1,)))  # every row is a person
    if not request.by:
        # Without a filter everybody in the frame is counted, and who is not counted is not in it.
        return replace(plain.layout, counts=request.where is not None, text=True, columns=columns)
    compared, companions = plain.trials[0].days[0].cells, plain.layout.companions
    if columns.cells is not None:
        companions = companions[: max(0, len(columns.cells) - compared)]
    several = request.one_cell in ("most_frequent", "first") and bool(request.unit)
    strays = several and len(companions) + compared > 1
    return replace(
        plain.layout,
        companions=companions,
        text=True,
        strays=strays,
        rows=(2, 3) if strays else plain.layout.rows,
        columns=columns,
    )
