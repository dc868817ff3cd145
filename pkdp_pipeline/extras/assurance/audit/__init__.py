"""The differential audit: the real operators on sampled neighbouring data sets, compared with what is certified."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError, PkdpError
from pkdp_pipeline.extras.assurance.audit.cases import Case, Trial, case_of, case_of_request
from pkdp_pipeline.extras.assurance.audit.findings import (
    Audit,
    Features,
    Finding,
    NotAudited,
    judged,
    judgements,
    of_cell,
    of_table,
)
from pkdp_pipeline.extras.assurance.audit.operators import PACE, SQL, FrameOperator, Operator, SqlOperator, check_engine
from pkdp_pipeline.extras.assurance.audit.people import Numbers, draw, frame_of, shown_to_attacker
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism, Protects
from pkdp_pipeline.model.wording import whole_number

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.jobs import Job

__all__ = ["Audit", "Finding", "audit"]

SAMPLES = 120
CONFIDENCE = 0.999999
_MIN_SAMPLES = 8
_MIN_SAMPLES_ALONE = 100
_THOROUGH = ("pandas", "duckdb", "polars", "pyarrow")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Piece:
    """One case on one engine, by one attacker, and what it takes to judge it, in this process or in another."""

    case: Case
    engine: str
    trial: Trial
    samples: int = 0
    error: float = 0.0
    seed: tuple[int, ...] = ()

    def operator(self, copies: int) -> Operator:
        keys = self.case.layout.keys(self.trial.days[0], copies)
        if self.engine == SQL:
            return SqlOperator(case=self.case, keys=keys)
        return FrameOperator(engine=self.engine, case=self.case, keys=keys)

    @property
    def levels(self) -> tuple[bool, ...]:
        """Which samples there are, and whether the fixed events are judged by them: cells; whole tables, too."""
        return (True,) if self.case.is_count else (True, False)


def audit(
    mechanism: Mechanism,
    attacker: AttackerModel,
    *,
    protects: Protects = "presence",
    engine: str = "pandas",
    samples: int = SAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Audit:
    """Try whether publishing with `mechanism` keeps to its certificate, on sampled data sets.

    Data sets are drawn in pairs: the same people, the target in one of two lives. Each is published by the real
    operator, and everything that is seen is compared: rows, their order, dtypes, the file, errors, warnings, logs.

    Parameters
    ----------
    mechanism : Count, Histogram or Sum
    attacker : AttackerModel
    protects : {"presence", "value"}, default "presence"
    engine : str, default "pandas"
        pandas, duckdb, sql (DuckDB's macros), polars, pyarrow, ibis or spark.
    samples : int, default 120
        Data sets for each life and attacker.
    confidence : float, default 0.999999
        The least probability with which an operator that keeps to its certificate passes.
    seed : int, default 0
        Seed of the data sets. Noise is drawn from the operating system's entropy and has no seed.

    Returns
    -------
    Audit

    Raises
    ------
    NotCertifiableError
        If nothing is certified, so that nothing can be exceeded.
    ArgumentError
        If an argument is malformed.
    """
    case = case_of(mechanism, attacker, protects)
    return audit_cases([case], engines=(check_engine(engine),), samples=samples, confidence=confidence, seed=seed)


def _obstacle(case: Case, engine: str) -> str:
    """Return why frames of a case cannot be published at all; empty where they can."""
    generator = np.random.default_rng(0)
    for trial in case.trials:
        piece, copies = _Piece(case=case, engine=engine, trial=trial), case.copies_of(trial.days[0])
        try:
            _certificate(piece, piece.operator(copies), copies, generator)
        except PkdpError as error:
            return f"its frames could not be published: {str(error).rstrip('.')}"
    return ""


def audit_job(job: Job, *, engines: Sequence[str] = (), **how: Any) -> Audit:
    """Audit every release of a job by itself, with the job's engine or those named; no data of the job are read.

    `how` are further arguments of `audit_cases`. Cases that cannot be audited are listed with the reason: a filter
    for which no rows were found, for instance. Raises `ArgumentError` if an argument is malformed, or an engine is not
    installed.
    """
    named = [check_engine(engine) for engine in engines or (job.source.counted_by(job.engine),)]
    if SQL in named:
        raise ArgumentError("engine 'sql' is for mechanisms: the macros publish no job's requests; audit duckdb.")
    cases, left_out = [], []
    for publication in job.publications():
        name = str(publication.question.label)
        case = case_of_request(
            name, publication.question, publication.attacker, alone=publication.alone, target=publication.target
        )
        if isinstance(case, Case):
            cases.append(case)
        for engine in named:
            reason = case if isinstance(case, str) else _obstacle(case, engine)
            if reason:
                left_out.append(NotAudited(case=name, engine=engine, reason=reason))
    return audit_cases(cases, engines=named, left_out=left_out, **how)


def audit_cases(
    cases: Sequence[Case],
    *,
    engines: Sequence[str],
    left_out: Sequence[NotAudited] = (),
    samples: int = SAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    workers: int = 1,
    paced: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Audit several cases on several engines, but for those left out; the confidence is that of all of it together.

    Where it is `paced`, slower engines draw fewer samples (`PACE`). With several `workers`, processes of their own
    share the cases. `progress` is told what has been judged.
    """
    number = whole_number("samples", samples, least=_MIN_SAMPLES)
    start = whole_number("seed", seed, least=0)
    if not isinstance(confidence, float) or not 0.0 < confidence < 1.0:
        raise ArgumentError(f"confidence must be above 0 and below 1, got {confidence!r}.")
    pieces, not_audited = _pieces(cases, tuple(dict.fromkeys(engines)), left_out)
    events = sum(judgements(piece.levels, len(piece.case.epsilons)) for piece in pieces)
    error = (1.0 - confidence) / max(1, events)
    tasks = [
        replace(piece, samples=_samples(piece, number, paced), error=error, seed=(start, place))
        for place, piece in enumerate(pieces)
    ]
    done: dict[_Piece, list[Finding]] = {}
    for task, findings in _done(tasks, workers):
        done[task] = findings
        if progress is not None:
            progress(f"{len(done)} of {len(tasks)}: {task.engine}, {task.case.name}")
    return Audit(
        findings=tuple(finding for task in tasks for finding in done[task]),
        not_audited=tuple(dict.fromkeys(not_audited)),
        confidence=confidence,
        samples=number,
        seed=start,
    )


def _samples(piece: _Piece, samples: int, paced: bool) -> int:
    """Return how many samples are drawn of each life; slower engines draw fewer, where they may."""
    wanted = max(_MIN_SAMPLES, round(samples * piece.case.effort))
    if not paced:
        return wanted
    fewer = max(_MIN_SAMPLES, round(wanted * PACE.get(piece.engine, 1.0)))
    # With one copy in a frame and fewer samples than this, no loss whatever would be noticed.
    alone = piece.trial is piece.case.trials[0] and piece.case.copies_of(piece.trial.days[0]) == 1
    return max(fewer, min(wanted, _MIN_SAMPLES_ALONE)) if alone and piece.engine in _THOROUGH else fewer


def _done(tasks: Sequence[_Piece], workers: int) -> Iterator[tuple[_Piece, list[Finding]]]:
    """Yield the findings of every task, as they come."""
    if workers == 1:
        yield from ((task, _findings(task)) for task in tasks)
        return
    # Spawned: the engines have threads, which a fork would lose. Ctrl-C, which all get, ends them without a word.
    context, silent = multiprocessing.get_context("spawn"), (signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=signal.signal, initargs=silent) as pool:
        running = {pool.submit(_findings, task): task for task in tasks}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _pieces(
    cases: Sequence[Case], engines: Sequence[str], left_out: Sequence[NotAudited]
) -> tuple[list[_Piece], list[NotAudited]]:
    pieces, not_audited = [], list(left_out)
    without = {(entry.case, entry.engine) for entry in left_out}
    for engine in engines:
        for case in cases:
            if (case.name, engine) in without:
                continue
            if engine == SQL and case.scenario in ("revised", "days"):
                reason = "the macros answer about one period, and do not revise"
                not_audited.append(NotAudited(case=case.name, engine=engine, reason=reason))
            else:
                pieces += [_Piece(case=case, engine=engine, trial=trial) for trial in case.trials]
    return pieces, not_audited


def _findings(piece: _Piece) -> list[Finding]:
    """Sample one piece, and judge it."""
    case, crowd, generator = piece.case, piece.trial.days[0], np.random.default_rng(piece.seed)
    copies = case.copies_of(crowd)
    operator = piece.operator(copies)
    width, spelled = case.layout.cells(crowd), [tuple(map(str, key)) for key in operator.keys]
    certificate = _certificate(piece, operator, copies, generator)
    # Of the first and the second life: features of single copies, and of whole tables.
    cells: tuple[list[Features], list[Features]] = ([], [])
    tables: tuple[list[Features], list[Features]] = ([], [])
    own = frozenset(spelled[:width])
    for sample in range(piece.samples):
        for life in (0, 1):
            # The first copy has the sample's life; the others take turns, half in each. So whole tables of the two
            # lives differ in one person, and each other copy is a sample of its own life.
            lives = [life, *((copy + sample) % 2 for copy in range(1, copies))]
            drawn, frames = _days(piece, lives, generator)
            outputs = operator.outputs(frames)
            table = of_table(outputs, own)
            for copy, copy_life in enumerate(lives):
                names = None if case.is_count else spelled[copy * width : (copy + 1) * width]
                shown = (
                    shown_to_attacker(day, places[copy]) for day, places in zip(piece.trial.days, drawn, strict=True)
                )
                cell = of_cell(outputs, names, tuple(number for numbers in shown for number in numbers))
                cells[copy_life].append({**cell, **table} if case.is_count else cell)
            tables[life].append(table)
    return [
        finding
        for fixed, samples in zip(piece.levels, (cells, tables), strict=False)
        for finding in judged(
            samples,
            fixed=fixed,
            case=case.name,
            engine=piece.engine,
            trial=piece.trial.name,
            epsilons=case.epsilons,
            certified=certificate.delta,
            error=piece.error,
        )
    ]


def _certificate(piece: _Piece, operator: Operator, copies: int, generator: Generator) -> Certificate:
    """Return what is certified, as it is published; from the second life where publishing the first one fails."""
    if piece.case.refused:
        return certify(piece.case.mechanism, piece.case.attacker, protects=piece.case.protects)
    frames = [_days(piece, [life] * copies, generator)[1] for life in (0, 1)]
    try:
        return operator.certificate(frames[0])
    except Exception:
        # The operator is a black box: that it fails in one life, and how, is seen and judged like anything else.
        return operator.certificate(frames[1])


def _days(piece: _Piece, lives: Sequence[int], generator: Generator) -> tuple[list[Numbers], list[pd.DataFrame]]:
    """Draw every day of a trial, given which life (0 or 1) each copy's target has: people, and frames."""
    drawn, frames, layout = [], [], piece.case.layout
    for day, both in zip(piece.trial.days, piece.trial.lives(), strict=True):
        drawn.append(draw(day, [both[life] for life in lives], layout, generator))
        frames.append(frame_of(drawn[-1], day, layout, generator))
    return drawn, frames
