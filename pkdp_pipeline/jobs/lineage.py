"""OpenLineage events of a job's runs, appended to a file: what was read, what was written, what it guarantees.

Events are written by openlineage-python's file transport itself. Its client, which reads ``OPENLINEAGE_…``
variables and can send events over a network, is not used.
"""

from __future__ import annotations

import importlib.util
import os
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.outputs.files import is_writable
from pkdp_pipeline.model.version import VERSION

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.records import RunRecord

_PRODUCER = f"urn:pkdp-pipeline:{VERSION}"


def check_lineage(job: Job) -> None:
    """Refuse what would keep events from being written, before anything is charged; nothing is written.

    Raises
    ------
    ConfigError
        If openlineage-python is not installed, or the file cannot be written.
    """
    if job.records is None or job.records.lineage is None:
        return
    try:
        found = importlib.util.find_spec("openlineage.client") is not None
    except ImportError:
        found = False
    if not found:
        raise ConfigError(
            "records.lineage needs openlineage-python, which is not installed: pip install 'pkdp-pipeline[lineage]'."
        )
    path = Path(job.records.lineage)
    if not is_writable(path):
        raise _not_writable(path, "choose another file, or check permissions")


def append_event(job: Job, record: RunRecord, kind: str) -> None:
    """Append the event `kind` of a run, START, COMPLETE or FAIL, where the job keeps lineage.

    Raises
    ------
    ConfigError
        As of `check_lineage`.
    """
    if job.records is None or job.records.lineage is None:
        return
    check_lineage(job)
    from openlineage.client.transport.file import FileConfig, FileTransport

    path = Path(job.records.lineage)
    problem = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))  # the curator's alone
        FileTransport(FileConfig(log_file_path=str(path), append=True)).emit(
            _event(job, job.records.namespace, record, kind)
        )
    except OSError as error:
        problem = str(error.strerror)
    except RuntimeError:  # the transport turns every error into this
        problem = "the disk may be full"
    if problem:
        raise _not_writable(path, problem)


def _not_writable(path: Path, problem: str) -> ConfigError:
    return ConfigError(f"records.lineage {str(path)!r} cannot be written: {problem}.")


def _event(job: Job, namespace: str, record: RunRecord, kind: str) -> RunEvent:
    """Return the event `kind` (START, COMPLETE or FAIL) of a run."""
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
        error, message = record.error
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=message or error, programmingLanguage="python", producer=_PRODUCER
        )
    moment = record.started if kind == "START" or record.ended is None else record.ended
    return event_v2.RunEvent(
        eventType=event_v2.RunState[kind],
        eventTime=moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        producer=_PRODUCER,
        run=event_v2.Run(runId=record.run, facets=facets),
        job=event_v2.Job(namespace=namespace, name=job.name),
        inputs=[event_v2.InputDataset(namespace=namespace, name=job.source.public_name)],
        outputs=[event_v2.OutputDataset(namespace=place, name=name) for place, name in _outputs(job, record)],
    )


def _outputs(job: Job, record: RunRecord) -> list[tuple[str, str]]:
    """Return where the releases of a run went: files, and tables by OpenLineage's rules for naming them."""
    found: list[tuple[str, str]] = []
    folder = Path(job.output.directory) / record.day.isoformat()
    for release in record.releases:
        found += [("file", str(folder / f"{release.name}.{suffix}")) for suffix in job.output.formats]
        if job.output.duckdb is not None:
            file, schema = Path(job.output.duckdb), job.output.schema_ or "main"
            found.append((f"duckdb://{file}", f"{file.stem}.{schema}.{release.name}"))
        if job.output.postgres is not None:
            parts, schema = urlsplit(job.output.postgres), job.output.schema_ or "public"
            database = unquote(parts.path).lstrip("/")
            namespace = f"postgres://{parts.hostname or 'localhost'}:{parts.port or 5432}"
            found.append((namespace, f"{database}.{schema}.{release.name}"))
    return found
