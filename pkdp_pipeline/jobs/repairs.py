"""What a job could publish instead of releases that may not stand together, as TOML to paste."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import NotCertifiableError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.release_table import ReleaseTable
from pkdp_pipeline.jobs.toml_text import release_tables
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import GeometricNoise, Histogram
from pkdp_pipeline.releases.options.attacker_table import AttackerTable
from pkdp_pipeline.theorems.inversion import least_whole

__all__ = ["Repair", "cross_tabulated", "leaking", "repairs"]

_DELTA = 1e-6
_MOST = 1_000_000
_CARRIES_OVER = ("p_max", "unknown", "unknown_max", "known", "influence")
"""What is assumed about cells and holds for smaller ones: those within a cell are less likely than the cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Releases that may take the place of all those of a job; not yet tried.

    Parameters
    ----------
    toml : str
        Their tables, as they stand in a job file.
    words : str
        What to do with them, for a message.
    attacker : AttackerTable or None
        The job's ``[attacker]`` from then on. What is known besides stays in it in any case.
    """

    toml: str
    words: str
    attacker: AttackerTable | None


def repairs(job: Job) -> Iterator[Repair]:
    """Yield what could be published instead, the better first."""
    number = len(job.release)
    if (table := cross_tabulated(job)) is not None:
        yield Repair(
            toml=release_tables([table]),
            words=f"In place of the {number} [[release]] tables this works; derive the others from it with "
            f"release.rollup{'' if 'domain' in table else ', once you have declared its cells in domain'}:",
            attacker=job.attacker,
        )
    tables = _noised(job)
    if tables is not None:
        attacker = job.attacker if len(tables) - _totals(job) == 1 else leaking(job.attacker)
        goes = ""
        if attacker != job.attacker:
            goes = f", once [attacker] {'is removed as well' if attacker is None else 'has only leakage in it'}"
        yield Repair(
            toml=release_tables(tables),
            words=f"In place of the {number} [[release]] tables this works{goes}; the smaller an epsilon, the more its "
            "noise protects:",
            attacker=attacker,
        )


def leaking(attacker: AttackerTable | None) -> AttackerTable | None:
    """Return an attacker with what is known besides and nothing else; None where nothing is."""
    return AttackerTable(leakage=attacker.leakage) if attacker is not None and attacker.leakage else None


def cross_tabulated(job: Job) -> dict[str, Any] | None:
    """Return one histogram from which all releases follow; None where its guarantee could not be theirs."""
    histograms = [release for release in job.release if release.by is not None]
    if not histograms or any(release.noise is not None for release in job.release) or _totals(job):
        return None
    first = histograms[0]
    rules = [_rules(job, release) for release in histograms]
    # A count of the people in a histogram is the sum of its cells; one of other people is not.
    same_people = all(release.where == first.where for release in job.release)
    # People outside one of the domains would be absent from every cell.
    if not same_people or first.undeclared == "absent" or any(one != rules[0] for one in rules):
        return None
    if any(name not in _CARRIES_OVER for name in _assumed(job.attacker_of(first))):
        return None
    thresholds = [release.k for release in histograms if release.k is not None]
    by = list(dict.fromkeys(column for release in histograms for column in release.by or ()))
    domain = _domain(histograms)
    if len(thresholds) < len(histograms) or domain is False:
        return None
    table = _fields(first) | {"name": _name([release.name for release in histograms]), "by": by, "k": max(thresholds)}
    return table | {"domain": domain} if domain is not None else table


def _rules(job: Job, release: ReleaseTable) -> tuple[object, ...]:
    one_cell = release.one_cell or job.one_cell
    order_by = release.order_by or job.order_by
    return one_cell, order_by, release.undeclared, release.protects, job.attacker_of(release)


def _assumed(attacker: AttackerModel) -> list[str]:
    default = AttackerModel().to_dict()
    return [name for name, value in attacker.to_dict().items() if value != default.get(name)]


def _totals(job: Job) -> int:
    return len([release for release in job.release if release.kind == "total"])


def _domain(histograms: list[ReleaseTable]) -> dict[str, Any] | bool | None:
    """Return the product of the domains, None where no release has one, False where there is no product."""
    if all(release.domain is None for release in histograms):
        return None
    product: dict[str, Any] = {}
    for release in histograms:
        by, domain = release.by or (), release.domain
        if domain is None or (len(by) > 1 and not isinstance(domain, Mapping)):
            return False
        values = domain if isinstance(domain, Mapping) else {by[0]: domain}
        for column, cells in values.items():
            if product.setdefault(column, cells) != cells:
                return False
    return product


def _noised(job: Job) -> list[dict[str, Any]] | None:
    """Return the releases with noise that has a finite worst case; None where a threshold would be out of reach."""
    share = 1 / max(len(job.release) - _totals(job), 1)
    digits = 10 if share >= 0.1 else 100
    epsilon = max(math.floor(share * digits) / digits, 0.01)
    tables: list[dict[str, Any]] = []
    for release in job.release:
        table = _fields(release)
        if (kept := leaking(release.attacker)) is not None:
            table["attacker"] = kept.model_dump(exclude_defaults=True)
        else:
            table.pop("attacker", None)
        if release.kind in ("exact count", "noiseless"):
            for key in ("k", "k_complement", "release_threshold"):
                table.pop(key, None)
            table.setdefault("noise", {"epsilon": epsilon})
            if release.by is not None and release.domain is None:
                threshold = _threshold(release, job.attacker_of(release), table["noise"]["epsilon"])
                if threshold is None:
                    return None
                table |= {"k": release.k, "release_threshold": threshold}
        asked = {key: value for key, value in table.items() if key != "name"}
        if all(asked != {key: value for key, value in other.items() if key != "name"} for other in tables):
            tables.append(table)
    return tables


def _threshold(release: ReleaseTable, attacker: AttackerModel, epsilon: float) -> int | None:
    """Return the least release threshold at which a cell's mere appearance tells next to nothing."""
    k, noise, anyone = release.k or 1, GeometricNoise(epsilon), attacker.against_anyone()

    def reaches(gap: int) -> bool:
        mechanism = Histogram(k=k, noise=noise, release_threshold=k + gap)
        worst = certify(mechanism, anyone, protects=release.protects).worst_case.parameters
        return worst is not None and worst[1] <= _DELTA

    try:
        gap = least_whole(reaches, 1, _MOST)
    except NotCertifiableError:  # what is known besides leaves nothing to promise
        return None
    return None if gap is None else k + gap


def _name(names: list[str]) -> str:
    """Return a name made from all: ``a_by_b`` and ``a_by_c`` give ``a_by_b_and_c``."""
    words = [name.split("_") for name in dict.fromkeys(names)]
    same = 0
    while all(len(name) > same + 1 for name in words) and len({name[same] for name in words}) == 1:
        same += 1
    start = "".join(f"{word}_" for word in words[0][:same])
    return (start + "_and_".join("_".join(name[same:]) for name in words))[:100]


def _fields(release: ReleaseTable) -> dict[str, Any]:
    return release.model_dump(exclude_defaults=True)
