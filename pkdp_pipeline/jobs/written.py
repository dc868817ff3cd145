"""Written: whose output folder it is, and whether the ledger holds what was written there from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs import day_folders, write_atomically, written_context
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.admission import check_time_zone
from pkdp_pipeline.ledger.heads import certificates_after, held
from pkdp_pipeline.model.spelling import folded

__all__ = ["OWNER_FILE", "check_ledger", "check_owner", "own"]

OWNER_FILE = ".pkdp.job"
"""The file in the output folder that names the job file that wrote there last."""

_HEAD = re.compile(r"in the ledger's chain: `([0-9a-f]{64})`")
_NAMED = 3
_SUFFIX = ".certificate.json"


def check_owner(job: Job) -> None:
    """Refuse an output folder with releases of another job file: both would write a `summary.md` for each date.

    Raises
    ------
    ConfigError
    """
    directory = Path(job.output.directory)
    try:
        owner = (directory / OWNER_FILE).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return
    if not job.name or not owner or owner == job.name:
        return
    paths = (path for folder in day_folders(directory) for path in folder.glob(f"*{_SUFFIX}"))
    others = {path.name.removesuffix(_SUFFIX) for path in paths} - {release.name for release in job.release}
    if others:
        raise ConfigError(
            f"output.directory {str(directory)!r} holds {min(others)!r} of the job {owner!r}, this is {job.name!r}: "
            "they would overwrite each other's summary.md. Choose a folder of its own; where the job file was only "
            f"renamed, remove {str(directory / OWNER_FILE)!r}. Nothing was read or charged."
        )


def own(job: Job) -> None:
    """Name the job file in its output folder, which must exist.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    if job.name:
        write_atomically(Path(job.output.directory) / OWNER_FILE, f"{job.name}\n".encode())


def check_ledger(job: Job, ledger: Ledger) -> None:
    """Refuse a ledger that does not hold what the output folder shows of the job's data set, or cuts other days.

    Raises
    ------
    ArgumentError
        If releases of the data set have another time zone.
    ConfigError
        Naming releases that it misses.
    """
    check_time_zone(ledger._database, ledger.dataset, job.period.time_zone)
    certificates = dict(_certificates(job))
    heads = {where: str(content["context"]["head"]) for where, content in certificates.items()}
    known = certificates_after(ledger, heads.values())
    lost = [
        where
        for where, content in certificates.items()
        if all(json.loads(text) != content for text in known.get(heads[where], ()))
    ]
    ends = dict(_summaries(job))
    there = held(ledger, ends.values())
    lost += [where for where, head in ends.items() if head not in there]
    if not lost:
        return
    lost.sort()
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    raise ConfigError(
        f"output.directory holds releases that the ledger does not know ({', '.join(lost[:_NAMED])}{more}): it was "
        "restored from an old backup, its end was cut off, or it is another ledger, and what comes next would be "
        "published without adding up what these have told. If it was moved, correct its path; if a newer one is left, "
        "put it back, with its -wal file. If it is lost, these releases can be charged no more: go on with a new "
        "output.directory, and with a budget that leaves room for what they have told. Nothing was read or charged."
    )


def _certificates(job: Job) -> Iterator[tuple[str, Mapping[str, dict[str, object]]]]:
    """Yield the certificates of the data set in the output folder that say where in the chain they stand."""
    for folder in day_folders(Path(job.output.directory)):
        for path in folder.glob(f"*{_SUFFIX}"):
            context = written_context(path)
            dataset, head = context.get("dataset"), context.get("head")
            if isinstance(dataset, str) and folded(dataset) == folded(job.dataset) and isinstance(head, str):
                yield f"{folder.name}/{path.name.removesuffix(_SUFFIX)}", json.loads(path.read_bytes())


def _summaries(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the heads that the summaries of the data set name."""
    for folder in day_folders(Path(job.output.directory)):
        path = folder / "summary.md"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        title = text.partition("\n")[0].removeprefix("# ").rpartition(",")[0]
        found = _HEAD.findall(text)
        if found and folded(title) == folded(job.dataset):
            yield f"{folder.name}/summary.md", found[-1]
