"""Written: whose output folder it is, and whether the ledger holds what was written there from it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs.files import day_folders, write_atomically
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.admission import check_time_zone
from pkdp_pipeline.model.spelling import folded, in_markdown

OWNER_FILE = ".pkdp.job"
"""The file in the output folder that names the job file that wrote there last, by its path from there."""

_HEAD = re.compile(r"in the ledger's chain: `([0-9a-f]{64})`")
_MAX_NAMED = 3
_SUFFIX = ".certificate.json"

Certificates = Mapping[str, Mapping[str, Any]]
"""The certificates in an output folder, by day folder and name; each has at least an object `context`."""


def check_folder(job: Job) -> Certificates:
    """Refuse an output folder with what is not this job's, which it would overwrite; return the certificates in it.

    Raises `ConfigError` if it holds releases of another job file, of another data set, or about other units.
    """
    directory, certificates = Path(job.output.directory).resolve(), certificates_of(job)
    names, own_names = {where.partition("/")[2] for where in certificates}, {release.name for release in job.release}
    owner = this = _seen_from_folder(job)
    with suppress(OSError):
        owner = os.fsdecode((directory / OWNER_FILE).read_bytes()).strip()
    if certificates and this and owner not in ("", this):
        other = directory / owner
        # Where there is no such file any more, this job file may be that one under another name.
        moved = os.path.realpath(other) == os.path.realpath(job.file) if os.path.exists(other) else names <= own_names
        if not moved:
            raise ConfigError(
                f"output.directory {str(directory)!r} holds releases of the job file {owner!r}, and this is {this!r} "
                "(both as seen from that folder): they would overwrite each other's summary.md. Choose a folder of its "
                f"own; where the job file was only moved or copied, remove {OWNER_FILE!r} there."
            )
    for where, certificate in certificates.items():
        context, name = certificate["context"], where.partition("/")[2]
        other_data, unit, period = (context.get(key) for key in ("dataset", "unit", "period"))
        if isinstance(other_data, str) and folded(other_data) != folded(job.dataset):
            raise ConfigError(
                f"output.directory {str(directory)!r} holds releases of the data set {other_data!r}, this job's is "
                f"{job.dataset!r}, and their files would overwrite each other: choose a folder of its own."
            )
        if name in own_names and isinstance(period, str) and job.period.start(period) is None:
            raise ConfigError(
                f"output.directory {str(directory)!r} holds a release {name!r} about {period}, and this job publishes "
                f"by the {job.period.every}: choose a folder of its own, or another name for the release."
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
    """Name the job file in its output folder, which must exist."""
    if job.file:
        write_atomically(Path(job.output.directory) / OWNER_FILE, os.fsencode(f"{_seen_from_folder(job)}\n"))


def check_ledger(job: Job, ledger: Ledger, certificates: Certificates) -> None:
    """Refuse a ledger that does not hold what the output folder shows of the job's data set, or cuts other days.

    `certificates` are those in the folder. Raises `ArgumentError` if releases of the data set have another time zone;
    a `ConfigError` names releases that the ledger misses.
    """
    check_time_zone(ledger.records, job.period.time_zone)
    # They say the data set and where in the chain they stand, unless somebody else has written them.
    contexts = {where: certificate["context"] for where, certificate in certificates.items()}
    heads = {where: about["head"] for where, about in contexts.items() if _are_text(about, "dataset", "head")}
    ends = dict(_summaries(job))
    known = ledger.records.certificates_after({*heads.values(), *ends.values()})
    lost = [
        where
        for where, head in heads.items()
        if not any(_is_of(json.loads(text), certificates[where]) for text in known.get(head, ()))
    ]
    lost += [where for where, head in ends.items() if head not in known]
    if not lost:
        return
    lost.sort()
    more = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
    raise ConfigError(
        f"output.directory holds releases that the ledger does not know ({', '.join(lost[:_MAX_NAMED])}{more}): it was "
        "restored from an old backup, its end was cut off, or it is another ledger, and the next release would be "
        "charged as if these had told nothing. Correct its path, or put the newer one back, with its -wal file; if "
        "it is lost, go on with a new output.directory, and a budget that leaves room for what these have told."
    )


def _is_of(published: Mapping[str, Any], certificate: Mapping[str, Any]) -> bool:
    """Return whether a certificate is that of a published table, or of another display that follows from it."""
    if "derived_from" not in certificate:
        return published == certificate
    source = {**certificate, "mechanism": certificate["derived_from"]}
    del source["derived_from"]
    of_display = ("sentence", "steps")
    return source.keys() == published.keys() and all(
        source[name] == published[name] for name in source if name not in of_display
    )


def _are_text(context: Mapping[str, Any], *keys: str) -> bool:
    return all(isinstance(context.get(key), str) for key in keys)


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
        with suppress(OSError, ValueError):
            text = (folder / "summary.md").read_text(encoding="utf-8")
            title = text.partition("\n")[0].removeprefix("# ").rpartition(",")[0]
            heads = _HEAD.findall(text)
            if heads and folded(title) in map(folded, (job.dataset, in_markdown(job.dataset))):
                yield f"{folder.name}/summary.md", heads[-1]
