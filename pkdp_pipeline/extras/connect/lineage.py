"""OpenLineage events of a job's runs: what was read, what was written, what it guarantees.

Events are appended to a file, and sent to ``OPENLINEAGE_URL`` where that is set, by openlineage-python's transports
themselves. Its client, which would send them to wherever a file or another variable says, is not used.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pkdp_pipeline.clock import instant, midnight
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.outputs.files import FORMATS, make_folder
from pkdp_pipeline.jobs.steps import PeriodStep
from pkdp_pipeline.model import VERSION
from pkdp_pipeline.model.wording import INSTALLED

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.steps import JobResult

_PRODUCER = f"urn:pkdp-pipeline:{VERSION}"


class LineageStep(PeriodStep):
    """Appends an event when the run of a period begins, and one when it ends."""

    def check(self, job: Job) -> None:
        """See `PeriodStep.check`."""
        need_openlineage()

    def began(self, result: JobResult) -> None:
        """See `PeriodStep.began`."""
        append_event(result, "START")

    def ended(self, result: JobResult) -> None:
        """See `PeriodStep.ended`."""
        append_event(result, "COMPLETE" if result.error is None else "FAIL")


def need_openlineage() -> None:
    """Refuse to go on without openlineage-python: a `ConfigError`."""
    with suppress(ImportError):
        if importlib.util.find_spec("openlineage.client") is not None:
            return
    raise ConfigError(
        f"records.lineage needs openlineage-python, which is not installed: {INSTALLED.format('lineage')}."
    )


def append_event(result: JobResult, kind: str) -> None:
    """Append the event `kind` of a run, START, COMPLETE or FAIL, where the job keeps lineage, and send it.

    Raises `ConfigError` if it cannot be written. One that cannot be sent is a warning: the file has it.
    """
    records = result.job.records
    if records is None or records.lineage is None:
        return
    from openlineage.client.transport.file import FileConfig, FileTransport

    problem, event = "", _event(result, kind, records.namespace)
    try:
        make_folder(Path(records.lineage).parent)
        os.close(os.open(records.lineage, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))  # the curator's alone
        transport = FileTransport(FileConfig(log_file_path=records.lineage, append=True))
        transport.emit(event)
    except OSError as error:
        problem = str(error.strerror)
    except RuntimeError:  # the transport turns every error into this
        problem = "the disk may be full"
    if problem:
        raise ConfigError(f"records.lineage {records.lineage!r} cannot be written: {problem}.")
    if url := os.environ.get("OPENLINEAGE_URL"):
        _send(event, url)


def _send(event: RunEvent, url: str) -> None:
    """Send an event; a server that does not take it stops no job."""
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    settings: dict[str, Any] = {"url": url, "retry": {"total": 1, "allowed_methods": ["POST"]}}
    if endpoint := os.environ.get("OPENLINEAGE_ENDPOINT"):
        settings["endpoint"] = endpoint
    if key := os.environ.get("OPENLINEAGE_API_KEY"):
        settings["auth"] = {"type": "api_key", "apiKey": key}
    try:
        transport = HttpTransport(HttpConfig.from_dict(settings))
        transport.emit(event)
        transport.close()
    except Exception as error:  # of the transport, of requests, of urllib3: each has its own
        warnings.warn(
            f"an event of lineage was not sent to OPENLINEAGE_URL ({type(error).__name__}); records.lineage has it.",
            stacklevel=2,
        )


def _event(result: JobResult, kind: str, namespace: str) -> RunEvent:
    import attr
    from openlineage.client import event_v2
    from openlineage.client.facet_v2 import RunFacet, error_message_run, nominal_time_run

    @attr.define
    class ReleasesRunFacet(RunFacet):
        """The run facet ``pkdp_releases``: what was published, and what it guarantees."""

        releases: list[dict[str, Any]] = attr.field(factory=list)

        @staticmethod
        def _get_schema() -> str:
            # The $id of schemas/lineage_releases.v1.json, which the package holds; it lies at no web address.
            return "urn:pkdp-pipeline:schemas:lineage_releases.v1"

    job = result.job
    first, last = job.period.span(result.day)
    start, end = (midnight(day, job.period.time_zone).isoformat() for day in (first, last + timedelta(1)))
    facets: dict[str, RunFacet] = {"nominalTime": nominal_time_run.NominalTimeRunFacet(start, end, producer=_PRODUCER)}
    if result.releases:
        released = [release.facts() for release in result.releases]
        published = [{key: facts[key] for key in ("name", "id", "charged", "sentence")} for facts in released]
        facets["pkdp_releases"] = ReleasesRunFacet(releases=published, producer=_PRODUCER)
    if result.error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=result.message or type(result.error).__name__, programmingLanguage="python", producer=_PRODUCER
        )
    return event_v2.RunEvent(
        eventType=event_v2.RunState[kind],
        eventTime=instant(result.ended or result.started),
        producer=_PRODUCER,
        run=event_v2.Run(runId=result.run, facets=facets),
        job=event_v2.Job(namespace=namespace, name=job.name),
        inputs=[event_v2.InputDataset(namespace=namespace, name=job.source.public_name)],
        outputs=[event_v2.OutputDataset(namespace=place, name=name) for place, name in _outputs(result)],
    )


def _outputs(result: JobResult) -> Iterator[tuple[str, str]]:
    """Yield where the releases of a run went: files, and tables by OpenLineage's rules for naming them."""
    output = result.job.output
    yield from (("file", str(path)) for path in result.for_offices)
    for name in (release.declared.name for release in result.releases):
        for suffix in (form for form in output.formats if form in FORMATS):
            yield "file", str(result.summary.with_name(f"{name}.{suffix}"))
        if output.duckdb is not None:
            file = Path(output.duckdb)
            yield f"duckdb://{file}", f"{file.stem}.{output.schema_ or 'main'}.{name}"
        if output.postgres is not None:
            parts = urlsplit(output.postgres)
            database = unquote(parts.path).lstrip("/")
            server = f"postgres://{parts.hostname or 'localhost'}:{parts.port or 5432}"
            yield server, f"{database}.{output.schema_ or 'public'}.{name}"
