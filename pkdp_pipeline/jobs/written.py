"""Written: whose output folder it is, and whether the ledger holds what was written there from it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs import day_folders, write_atomically
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.admission import check_time_zone
from pkdp_pipeline.model.spelling import folded

OWNER_FILE = ".pkdp.job"
"""The file in the output folder that names the job file that wrote there last, by its path from there."""

_HEAD = re.compile(r"in the ledger's chain: `([0-9a-f]{64})`")
_NAMED = 3
_SUFFIX = ".certificate.json"

Certificates = Mapping[str, Mapping[str, Any]]
"""The certificates in an output folder, by day folder and name; each has at least an object `context`."""


def check_folder(job: Job) -> Certificates:
    """Refuse an output folder with what is not this job's, which it would overwrite; return the certificates in it.

    Raises
    ------
    ConfigError
        If it holds releases of another job file, of another data set, or about other units.
    """
    directory, certificates = Path(job.output.directory), certificates_of(job)
    own_names = {release.name for release in job.release}
    _check_owner(job, certificates, {where.partition("/")[2] for where in certificates} <= own_names)
    for where, certificate in certificates.items():
        context, name = certificate["context"], where.partition("/")[2]
        other, unit = context.get("dataset"), context.get("unit")
        if isinstance(other, str) and folded(other) != folded(job.dataset):
            raise ConfigError(
                f"output.directory {str(directory)!r} holds releases of the data set {other!r}, this job's is "
                f"{job.dataset!r}, and their files would overwrite each other: choose a folder of its own."
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
    """Name the job file in its output folder, which must exist.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    if job.file:
        write_atomically(Path(job.output.directory) / OWNER_FILE, os.fsencode(f"{_seen_from_folder(job)}\n"))


def check_ledger(job: Job, ledger: Ledger, certificates: Certificates) -> None:
    """Refuse a ledger that does not hold what the output folder shows of the job's data set, or cuts other days.

    `certificates` are those in the folder.

    Raises
    ------
    ArgumentError
        If releases of the data set have another time zone.
    ConfigError
        Naming releases that it misses.
    """
    check_time_zone(ledger.records, job.period.time_zone)
    # They say the data set and where in the chain they stand, unless somebody else has written them.
    contexts = {where: content["context"] for where, content in certificates.items()}
    heads = {
        where: context["head"]
        for where, context in contexts.items()
        if isinstance(context.get("dataset"), str) and isinstance(context.get("head"), str)
    }
    ends = dict(_summaries(job))
    known = ledger.records.certificates_after({*heads.values(), *ends.values()})
    lost = [
        where
        for where, head in heads.items()
        if all(json.loads(text) != certificates[where] for text in known.get(head, ()))
    ]
    lost += [where for where, head in ends.items() if head not in known]
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


def _check_owner(job: Job, certificates: Certificates, own_names: bool) -> None:
    directory = Path(job.output.directory).resolve()
    try:
        owner = os.fsdecode((directory / OWNER_FILE).read_bytes()).strip()
    except OSError:
        return
    this = _seen_from_folder(job)
    if not certificates or not job.file or owner in ("", this):
        return
    other = directory / owner
    if os.path.exists(other):
        own_names = os.path.realpath(other) == os.path.realpath(job.file)
    # Where there is no such file any more, this job file may be that one under another name.
    if not own_names:
        raise ConfigError(
            f"output.directory {str(directory)!r} holds releases of the job file {owner!r}, and this is {this!r} (both "
            "as seen from that folder): they would overwrite each other's summary.md. Choose a folder of its own; "
            f"where the job file was only moved or copied, remove {OWNER_FILE!r} there. Nothing was read or charged."
        )


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
        path = folder / "summary.md"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        title = text.partition("\n")[0].removeprefix("# ").rpartition(",")[0]
        found = _HEAD.findall(text)
        if found and folded(title) == folded(job.dataset):
            yield f"{folder.name}/summary.md", found[-1]
