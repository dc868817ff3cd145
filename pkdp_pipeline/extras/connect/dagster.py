"""Dagster: the releases of a job as assets, one partition for each period; see `docs/schedulers.md`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dagster

from pkdp_pipeline.clock import machine_zone
from pkdp_pipeline.errors import ConfigError, InputCheckError
from pkdp_pipeline.extras.connect.schedulers import attempt, day_of, public
from pkdp_pipeline.jobs import Job, JobRelease, JobResult, load_job
from pkdp_pipeline.jobs.outputs import markdown_table
from pkdp_pipeline.jobs.session import JobSession
from pkdp_pipeline.jobs.tables import WEEKDAYS

_CHECK = "input"
_MAX_ROWS_SHOWN = 50
_BEGINS = {
    "day": "0 0 * * *",
    "week": "0 0 * * 1",
    "month": "0 0 1 * *",
    "quarter": "0 0 1 1,4,7,10 *",
    "year": "0 0 1 1 *",
}
"""When periods begin, as cron writes it."""


def release_assets(
    job_file: str | os.PathLike[str],
    *,
    start: str | date,
    end: str | date | None = None,
    name: str | None = None,
    group: str | None = None,
    key_prefix: str | Sequence[str] = (),
    deps: Iterable[Any] = (),
    time_zone: str | None = None,
    end_offset: int = 0,
    max_retries: int = 3,
    seconds_to_wait: float = 300.0,
    backfill_policy: dagster.BackfillPolicy | None = None,
    pool: str | None = None,
    op_tags: Mapping[str, Any] | None = None,
) -> dagster.AssetsDefinition:
    """Return the releases of a job as Dagster assets with one partition for each period, named by its first day.

    All of them are made together, by running the job for the partition's period; one that is closed has no
    partition. A partition that was materialised before is replayed: it reads no data, charges nothing and shows the
    same release. Whether the input is as the job demands is the asset check ``input`` of each.

    Parameters
    ----------
    job_file : path-like
        Relative to the current folder; in a file of definitions write ``Path(__file__).with_name("job.toml")``. It
        is read now, for the names, and again whenever it runs.
    start, end : str or datetime.date
        A day in the first period, and one in the last. Without an end every period has a partition once it is over.
    name : str, optional
        Of the operation; by default that of the job file.
    group : str, optional
    key_prefix : str or sequence of str, optional
        Put before the releases' names to make the asset keys.
    deps : iterable, optional
        Assets that are needed first, such as the table that the job reads.
    time_zone : str, optional
        The zone where a day ends, for a job file that says none; by default the machine's own, by which such a job
        calls a period over.
    end_offset : int, default 0
        Periods beyond the last one that is over, as of `dagster.TimeWindowPartitionsDefinition`: -1 waits for one
        more.
    max_retries, seconds_to_wait : int, float
        How often and when to try again after a `TemporaryError`. Nothing else is tried again.
    backfill_policy : dagster.BackfillPolicy, optional
        By default a backfill is one run, which takes its periods in order. Several at once would wait for one
        another: a job is locked while it runs.
    pool, op_tags : optional
        Passed on to Dagster.

    Returns
    -------
    dagster.AssetsDefinition

    Raises
    ------
    ConfigError
        If the job file cannot be used, or says another time zone, or nothing says one.
    """
    job = load_job(job_file)
    file = Path(job_file).resolve()
    prefix = [key_prefix] if isinstance(key_prefix, str) else list(key_prefix)
    keys = {release.name: dagster.AssetKey([*prefix, release.name]) for release in job.release}
    upstream = list(deps)

    @dagster.multi_asset(
        name=name or re.sub(r"\W", "_", file.stem, flags=re.ASCII),
        specs=[
            dagster.AssetSpec(key=key, deps=upstream, group_name=group, kinds={"pkdp"}, description=_description(job))
            for key in keys.values()
        ],
        check_specs=[
            dagster.AssetCheckSpec(_CHECK, asset=key, description="The input is as the job demands.")
            for key in keys.values()
        ],
        partitions_def=_partitions(job, start, end, _time_zone(job, time_zone), end_offset),
        can_subset=False,
        backfill_policy=backfill_policy or dagster.BackfillPolicy.single_run(),
        pool=pool,
        op_tags=op_tags,
    )
    def releases(context):  # type: ignore[no-untyped-def]  # Dagster does not take annotations that are text
        def again(message):  # type: ignore[no-untyped-def]
            context.log.error(message)
            return dagster.RetryRequested(max_retries=max_retries, seconds_to_wait=seconds_to_wait)

        def never(message):  # type: ignore[no-untyped-def]
            context.log.error(message)
            return dagster.Failure(description=message, allow_retries=False)

        is_as_declared = True

        def publish():  # type: ignore[no-untyped-def]
            nonlocal is_as_declared
            try:
                return _publish(file, tuple(keys), context)
            except InputCheckError:
                is_as_declared = False
                raise

        try:
            published_releases = attempt(publish, again, never)
        except dagster.Failure:
            if not is_as_declared:
                yield from _checked(keys.values(), passed=False)
            raise
        yield from _checked(keys.values(), passed=True)
        for published in published_releases:
            # What comes after a release is stale when its bytes are others, and is not after a replay.
            version = dagster.DataVersion(published.release.id) if len(context.partition_keys) == 1 else None
            yield dagster.MaterializeResult(asset_key=keys[published.declared.name], data_version=version)

    return releases


def _checked(keys: Iterable[dagster.AssetKey], *, passed: bool) -> Iterator[dagster.AssetCheckResult]:
    """Yield the check of the input, which is that of the run; the log says which rule was not kept."""
    for key in keys:
        yield dagster.AssetCheckResult(passed=passed, asset_key=key, check_name=_CHECK)


def _publish(file: Path, names: Sequence[str], context: dagster.AssetExecutionContext) -> Sequence[JobRelease]:
    """Run the periods of a run in order; return the releases of the last."""
    job = load_job(file)
    if tuple(release.name for release in job.release) != tuple(names):
        raise ConfigError(f"the releases of {str(file)!r} have changed: reload the definitions.")
    result: JobResult | None = None
    keys = {key.path[-1]: key for key in context.selected_asset_keys}
    partitions = sorted(context.partition_keys)
    with JobSession(job, day=date.fromisoformat(partitions[0])) as session:
        for remark in session.remarks:
            context.log.warning(remark)
        session.announce([*map(date.fromisoformat, partitions)])
        for partition in partitions:
            result = session.run(date.fromisoformat(partition))
            for published in result.releases:
                name = published.declared.name
                context.add_asset_metadata(
                    _metadata(published, result.releases), asset_key=keys[name], partition_key=partition
                )
            names_of = ", ".join(release.declared.name for release in result.releases)
            context.log.info(f"{job.period.text(result.day)}: {result.outcome} {names_of}.")
    return () if result is None else result.releases


def _metadata(published: JobRelease, releases: Sequence[JobRelease]) -> dict[str, Any]:
    shown, value = public(published), dagster.MetadataValue
    table = markdown_table(published.release, _MAX_ROWS_SHOWN, [other.release for other in releases])
    metadata: dict[str, Any] = {
        "guarantee": value.text(shown["guarantee"]),
        "release": value.text(shown["id"]),
        "table": value.md("\n".join(table)),
        "dagster/row_count": value.int(shown["rows"]),
        "dagster/column_schema": value.table_schema(
            dagster.TableSchema(
                [dagster.TableColumn(str(name), str(kind)) for name, kind in published.release.table.dtypes.items()]
            )
        ),
        "delta": value.float(shown["delta"]),
    }
    if shown["epsilon"] is not None:
        metadata["epsilon"] = value.float(shown["epsilon"])
    for path in map(Path, shown["files"]):
        metadata["".join(path.suffixes).lstrip(".")] = value.path(str(path))
    return metadata


def _description(job: Job) -> str:
    return f"A certified release of the data set {job.dataset!r}, one for each {job.period.every}."


def _partitions(
    job: Job, start: str | date, end: str | date | None, zone: str, end_offset: int
) -> dagster.TimeWindowPartitionsDefinition:
    period, after = job.period, None
    if end is not None:
        after = (period.span(day_of(end))[1] + timedelta(days=1)).isoformat()
    closed: list[str | datetime] = [datetime.combine(day, time(), ZoneInfo(zone)) for day in period.closed_dates()]
    if period.every == "day":
        closed += [f"0 0 * * {(WEEKDAYS.index(text) + 1) % 7}" for text in period.closed if text in WEEKDAYS]
    return dagster.TimeWindowPartitionsDefinition(
        cron_schedule=_BEGINS[period.every],
        start=period.span(day_of(start))[0].isoformat(),
        end=after,
        fmt="%Y-%m-%d",
        timezone=zone,
        end_offset=end_offset,
        exclusions=closed or None,
    )


def _time_zone(job: Job, given: str | None) -> str:
    declared = job.period.time_zone
    if given is not None and declared is not None and given != declared:
        raise ConfigError(
            f"time_zone is {given!r}, and the job file cuts the days in {declared!r}: leave time_zone out."
        )
    zone = declared or given or machine_zone()
    if zone is None:
        raise ConfigError("nothing names this machine's time zone: write time_zone under period in the job file.")
    return zone
