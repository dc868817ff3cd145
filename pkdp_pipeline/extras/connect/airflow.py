"""Airflow 3: an operator that publishes one period of a job, and its releases as assets; see `docs/schedulers.md`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from airflow.sdk import Asset, BaseOperator

from pkdp_pipeline.extras.connect.schedulers import attempt, day_of, public
from pkdp_pipeline.jobs import JobResult, load_job
from pkdp_pipeline.jobs.session import JobSession, missed_days, run_missed
from pkdp_pipeline.jobs.steps import Stopping

try:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException


def release_assets(job: str | os.PathLike[str]) -> list[Asset]:
    """Return the releases of a job as Airflow's assets: outlets of the task that publishes, schedules of others.

    Parameters
    ----------
    job : path-like
        The job file. It is read when the DAG is, for the names.

    Returns
    -------
    list of airflow.sdk.Asset
        Named ``data set/release``. Their events carry, as `extra`, what `PublishOperator` returns of the release.

    Raises
    ------
    ConfigError
        If the job file cannot be used.
    """
    read = load_job(job)
    names = [f"{read.dataset}/{release.name}" for release in read.release]
    return [Asset(name=name, uri=f"pkdp://{quote(name)}") for name in names]


class PublishOperator(BaseOperator):  # type: ignore[misc]  # Airflow is not installed where types are checked
    """Publish one period of a job, or replay what was published.

    A run that is repeated replays: it reads no data and charges nothing. When the task is told to stop, the charge
    of a release that is not stored yet is given back.

    Parameters
    ----------
    job : str
        The job file; may be a template.
    date : str, default "{{ ds }}"
        A day in the period to publish; may be a template. ``ds`` is the logical date, in UTC: it lies in the period
        that the run is about only with a timetable of data intervals, such as `CronDataIntervalTimetable`. One that
        is not over is refused, and one that is closed is skipped.
    catch_up : bool, default False
        Publish the periods before it that were missed, too, in order, and where its period is not over, these alone.
    retries : int, default 0
        How often Airflow tries again after a `TemporaryError`, such as a locked ledger. Nothing else is tried again.
    **options
        Of every operator. ``outlets=release_assets(job)`` tells other DAGs that the releases are there.

    Notes
    -----
    Returns what is public, as Airflow shows it to everybody who may see the DAG: ``dataset`` and ``periods``, each
    with ``period``, ``summary`` (a file) and ``releases``, each with ``name``, ``id``, ``guarantee``,
    ``epsilon`` at ``delta``, ``rows`` (of the public table) and ``files``.
    """

    template_fields: ClassVar[Sequence[str]] = ("job", "date")
    ui_color: ClassVar[str] = "#e8f0e4"

    def __init__(
        self,
        *,
        job: str | os.PathLike[str],
        date: str = "{{ ds }}",
        catch_up: bool = False,
        retries: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(retries=retries, **options)
        self.job = os.fspath(job)
        self.date = date
        self.catch_up = catch_up

    def execute(self, context: Any) -> dict[str, Any]:
        """Run the job.

        Raises
        ------
        AirflowException
            After a `TemporaryError`; Airflow tries again as often as `retries` says.
        AirflowFailException
            After every other error; Airflow does not try again.
        AirflowSkipException
            If the period is closed.
        """
        published = attempt(self._publish, AirflowException, AirflowFailException)
        if not published["periods"]:
            raise AirflowSkipException("the period is closed, and nothing is published of it")
        latest = published["periods"][-1]
        for asset in self.outlets:
            for release in latest["releases"]:
                if getattr(asset, "name", None) == f"{published['dataset']}/{release['name']}":
                    context["outlet_events"][asset].extra = {"period": latest["period"], **release}
        return published

    def _publish(self) -> dict[str, Any]:
        job, last, stopping = load_job(self.job), day_of(self.date), Stopping()
        last = job.period.caught_up(last) if self.catch_up else last
        if job.period.is_closed(last):
            return {"dataset": job.dataset, "periods": []}
        # Airflow's own handler of SIGTERM lets a task run on until it is killed.
        with stopping.listening(), JobSession(job, day=last, stopping=stopping) as session:
            for remark in session.remarks:
                self.log.warning("%s", remark)
            missed = missed_days(job, last) if self.catch_up else ()
            return {"dataset": job.dataset, "periods": [*map(self._shown, run_missed(session, missed, last))]}

    def _shown(self, result: JobResult) -> dict[str, Any]:
        self.log.info(
            "%s: %s %s",
            result.job.period.text(result.day),
            result.outcome,
            ", ".join(release.declared.name for release in result.releases),
        )
        return {
            "period": result.job.period.text(result.day),
            "summary": str(result.summary),
            "releases": [public(release) for release in result.releases],
        }
