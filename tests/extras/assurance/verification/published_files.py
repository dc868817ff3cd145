"""Published files of every kind, made once and copied: what genuine ones are, and how somebody may alter them."""

from __future__ import annotations

import copy
import functools
import json
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.verification import Claim, Verification
from pkdp_pipeline.ledger.sealed import parquet_bytes, parquet_content

__all__ = [
    "CERTIFIED",
    "NOISE",
    "altered",
    "certificate",
    "composed",
    "frame",
    "job",
    "ledger",
    "outcome",
    "page",
    "release",
    "report",
    "resealed",
    "written",
]

NOISE = pkdp.GeometricNoise(0.5)
BOX = pkdp.AttackerModel(p_min=0.1, p_max=0.6, unknown=300)

#: Every kind of theorem that a release's certificate rests on.
CERTIFIED = {
    "thresholding": (pkdp.Count(k=20), pkdp.AttackerModel(p_max=0.1, known=3, influence="active"), "presence"),
    "thresholding_complement": (pkdp.Count(k_complement=30), pkdp.AttackerModel(p_min=0.2), "presence"),
    "counting": (pkdp.Count(), BOX, "presence"),
    "noisy_counting": (pkdp.Count(noise=NOISE), BOX, "presence"),
    "histogram_presence": (pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1, unknown_max=99), "presence"),
    "histogram_value": (pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1, known=2), "value"),
    "histogram_between": (pkdp.Histogram(k=40), pkdp.AttackerModel(p_max_between=0.7), "value"),
    "options": (pkdp.Histogram(), pkdp.AttackerModel(p_min=0.2, unknown=300), "value"),
    "noised_below": (
        pkdp.Count(k=20, noise=NOISE, below="noise"),
        pkdp.AttackerModel(p_max=0.1, known=2, unknown_max=300),
        "presence",
    ),
    "noised_below_presence": (
        pkdp.Histogram(k=20, noise=NOISE, release_threshold=9, below="noise_from_1"),
        pkdp.AttackerModel(p_max=0.1),
        "presence",
    ),
    "noised_below_value": (pkdp.Histogram(k=9, noise=NOISE, below="noise"), pkdp.AttackerModel(p_max=0.1), "value"),
    "noised_below_between": (
        pkdp.Histogram(k=9, noise=NOISE, below="noise"),
        pkdp.AttackerModel(p_max_between=0.6),
        "value",
    ),
    "displayed": (pkdp.Histogram(display=pkdp.Bands([0, 20, 30])), pkdp.AttackerModel(p_max=0.1), "presence"),
    "noise": (pkdp.Histogram(k=5, noise=NOISE, release_threshold=40), pkdp.AttackerModel(), "value"),
}


@functools.cache
def certificate(theorem: str = "histogram_presence") -> pkdp.Certificate:
    """Return a certificate that rests on one theorem."""
    mechanism, attacker, protects = CERTIFIED[theorem]
    return pkdp.certify(mechanism, attacker, protects=protects)


@functools.cache
def composed(kind: str = "one_day") -> pkdp.Certificate:
    """Return what several releases add up to."""
    first, second = certificate(), pkdp.certify(pkdp.Histogram(k=30), pkdp.AttackerModel(p_max=0.1))
    if kind == "one_day":
        return pkdp.compose([(first, 30), (second, 7)], pkdp.OneDayProtected())
    if kind == "habits":
        return pkdp.compose([(first, 30)], pkdp.IndependentGivenHabits())
    noised = [pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(part)), pkdp.AttackerModel()) for part in (0.1, 0.2)]
    if kind == "noise":
        return pkdp.compose([(noised[0], 3), (noised[1], 2)])
    return pkdp.compose([pkdp.compose(noised), (pkdp.compose([noised[1]]), 2)], pkdp.BoundedParticipation(times=2))


def frame() -> pd.DataFrame:
    """Return some people in towns."""
    towns = {"Ås": 37, "Bø": 25, "Secretville": 17}
    rows = [(f"{town} {person}", town) for town, people in towns.items() for person in range(people)]
    return pd.DataFrame(rows, columns=["person", "town"])


@functools.cache
def release(kind: str = "found") -> bytes:
    """Return the file of a release: with cells found or declared, with noise (below k), or a count."""
    people = frame()
    attacker = pkdp.AttackerModel(p_max=0.1, unknown_max=300)
    if kind == "count":
        published = people.pkdp.count(unit="person", k=20, attacker=attacker)
    elif kind == "noised":
        published = people.pkdp.histogram(
            "town", unit="person", domain=["Ås", "Bø", "Secretville"], noise=NOISE, attacker=pkdp.AttackerModel()
        )
    else:
        domain = ["Secretville", "Bø", "Ås", "Nowhere"] if "declared" in kind else None
        options = {"k": 20, "domain": domain, "attacker": attacker, "target": None}
        if "shown" in kind:
            options |= {"k": 18, "display": pkdp.Rounding(40)}
        if "below" in kind:
            options |= {"below": "noise", "noise": NOISE, "release_threshold": None if domain else 5}
        published = people.pkdp.histogram("town", unit="person", **options)
    return published.to_bytes()


def written(folder: Path, content: bytes | str | dict[str, Any], name: str = "file") -> Path:
    """Write a file and return where."""
    path = folder / name
    if isinstance(content, dict) and content.get("schema") == "pkdp-report/1":  # as we write it
        content = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def altered(document: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    """Return a copy of a document with another value at one place; a function makes it of the old one."""
    changed = copy.deepcopy(document)
    inner: Any = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to(inner[path[-1]]) if isinstance(to, Callable) else to
    return changed


def resealed(
    content: bytes,
    *,
    table: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
    certificate: Callable[[dict[str, Any]], dict[str, Any]] = lambda document: document,
) -> bytes:
    """Return an altered release whose id was made anew, by somebody who knows how we do it."""
    shown, metadata = parquet_content(content)
    document = certificate(json.loads(metadata[b"pkdp.certificate"]))
    return parquet_bytes(table(shown), json.dumps(document, sort_keys=True))


def outcome(verification: Verification, key: str) -> Claim:
    """Return the claim with this key."""
    (claim,) = (claim for claim in verification.claims if claim.key == key)
    return claim


JOB = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    ledger = "visits.sqlite"
    target = "none"
    EVIDENCE

    RELEASES

    [output]
    directory = "out"
"""

QUIET = """
    [attacker]
    p_max = 0.1

    [[release]]
    name = "people_by_town"
    by = "town"
    k = 20
"""

BELOW = """
    [attacker]
    p_max = 0.1

    [[release]]
    name = "people_by_town"
    by = "town"
    k = 20
    below = "noise"
    noise = { epsilon = 1.0 }
    domain = ["Ås", "Bø", "Secretville", "Nowhere"]
"""

NOISY = """
    [[release]]
    name = "people"
    noise = { epsilon = 0.5 }

    [[release]]
    name = "people_by_town"
    by = "town"
    domain = { town = ["Ås", "Bø", "Secretville"] }
    k = 20
    noise = { epsilon = 0.5 }
    release_threshold = 24
"""

PURE = """
    [[release]]
    name = "people"
    noise = { epsilon = 0.5 }
"""

FOUND = """
    [[release]]
    name = "people_by_town"
    by = "town"
    noise = { epsilon = 0.5 }
    release_threshold = 27
"""


BANDS = """
    [attacker]
    p_max = 0.1

    [[release]]
    name = "people_by_town"
    by = "town"
    domain = ["Ås", "Bø", "Secretville"]
    display = { bands = [0, 20, 30] }
"""


@functools.cache
def job(kind: str = "quiet") -> Path:
    """Run a job about three days in a scratch folder, and return its file; the ledger is beside it."""
    import datetime

    from pkdp_pipeline.jobs import load_job, run_job

    folder = Path(tempfile.mkdtemp(prefix="verify"))
    days = [datetime.date(2020, 1, day) for day in (1, 2, 3)]
    pd.concat([frame().assign(day=day) for day in days]).to_parquet(folder / "visits.parquet")
    evidence = """evidence = { kind = "one_day_protected" }
    budget = { epsilon = 9.0, delta = 1e-6, part = "partial_knowledge" }"""
    text = JOB.replace("EVIDENCE", evidence if kind in ("quiet", "below", "bands") else "")
    text = text.replace(
        "RELEASES", {"quiet": QUIET, "noisy": NOISY, "pure": PURE, "found": FOUND, "below": BELOW, "bands": BANDS}[kind]
    )
    (folder / "job.toml").write_text(textwrap.dedent(text), encoding="utf-8")
    for day in days:
        run_job(load_job(folder / "job.toml"), day)
    return folder / "job.toml"


@functools.cache
def page(kind: str = "quiet", day: int | None = None, audience: str = "public", form: str = "json") -> str:
    """Return the report of a job, about one day or about all of them, as it is published."""
    import datetime

    from pkdp_pipeline.extras.report.job_report import report_of
    from pkdp_pipeline.extras.report.pages import render
    from pkdp_pipeline.jobs import load_job

    date = None if day is None else datetime.date(2020, 1, day)
    return render(report_of(load_job(job(kind)), date, audience=audience), form)


def report(kind: str = "quiet", day: int | None = None, audience: str = "public") -> dict[str, Any]:
    """Return the content of a report."""
    return json.loads(page(kind, day, audience))


def ledger(kind: str = "quiet") -> Path:
    """Return the ledger of a job."""
    return job(kind).parent / "visits.sqlite"
