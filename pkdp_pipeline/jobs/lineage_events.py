"""The OpenLineage events of one run. Imports openlineage-python; `lineage` imports it when it is needed."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

import attr
from openlineage.client.event_v2 import InputDataset, OutputDataset, Run, RunEvent, RunState
from openlineage.client.event_v2 import Job as LineageJob
from openlineage.client.facet_v2 import RunFacet, error_message_run, nominal_time_run
from openlineage.client.transport.file import FileConfig, FileTransport

from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.records import RunRecord
from pkdp_pipeline.model.version import VERSION

__all__ = ["ReleasesRunFacet", "append_event", "run_event"]

_PRODUCER = f"urn:pkdp-pipeline:{VERSION}"


@attr.define
class ReleasesRunFacet(RunFacet):
    """The run facet ``pkdp_releases``: what was published, and what it guarantees."""

    releases: list[dict[str, Any]] = attr.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        # The $id of schemas/lineage_releases.v1.json, which the package holds; it lies at no web address.
        return "urn:pkdp-pipeline:schemas:lineage_releases.v1"


def append_event(path: Path, event: RunEvent) -> None:
    """Append an event to a file, as one line of JSON.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    failed = False
    try:
        FileTransport(FileConfig(log_file_path=str(path), append=True)).emit(event)
    except RuntimeError:  # the transport turns every error into this
        failed = True
    if failed:
        raise OSError


def run_event(job: Job, namespace: str, record: RunRecord, kind: str) -> RunEvent:
    """Return the event `kind` (START, COMPLETE or FAIL) of a run."""
    moment = record.started if kind == "START" or record.ended is None else record.ended
    return RunEvent(
        eventType=RunState[kind],
        eventTime=_written(moment),
        producer=_PRODUCER,
        run=Run(runId=record.run, facets=_facets(job, record)),
        job=LineageJob(namespace=namespace, name=job.name),
        inputs=[InputDataset(namespace=namespace, name=job.source.public_name)],
        outputs=_outputs(job, record),
    )


def _facets(job: Job, record: RunRecord) -> dict[str, RunFacet]:
    zone = ZoneInfo(job.period.time_zone or "UTC")
    start, end = (datetime.combine(day, time(), zone) for day in (record.day, record.day + timedelta(days=1)))
    facets: dict[str, RunFacet] = {
        "nominalTime": nominal_time_run.NominalTimeRunFacet(
            nominalStartTime=start.isoformat(), nominalEndTime=end.isoformat(), producer=_PRODUCER
        )
    }
    if record.releases:
        published = [
            {"name": release.name, "id": release.id, "charged": release.charged, "sentence": release.sentence}
            for release in record.releases
        ]
        facets["pkdp_releases"] = ReleasesRunFacet(releases=published, producer=_PRODUCER)
    if record.error is not None:
        kind, message = record.error
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=message or kind, programmingLanguage="python", producer=_PRODUCER
        )
    return facets


def _outputs(job: Job, record: RunRecord) -> list[OutputDataset]:
    """Return where the releases of a run went: files, and tables by OpenLineage's rules for naming them."""
    found: list[OutputDataset] = []
    folder = Path(job.output.directory) / record.day.isoformat()
    for release in record.releases:
        files = (str(folder / f"{release.name}.{suffix}") for suffix in job.output.formats)
        found.extend(OutputDataset(namespace="file", name=file) for file in files)
        if job.output.duckdb is not None:
            file, schema = Path(job.output.duckdb), job.output.schema_ or "main"
            found.append(OutputDataset(namespace=f"duckdb://{file}", name=f"{file.stem}.{schema}.{release.name}"))
        if job.output.postgres is not None:
            parts, schema = urlsplit(job.output.postgres), job.output.schema_ or "public"
            namespace = f"postgres://{parts.hostname or 'localhost'}:{parts.port or 5432}"
            database = unquote(parts.path).lstrip("/")
            found.append(OutputDataset(namespace=namespace, name=f"{database}.{schema}.{release.name}"))
    return found


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
