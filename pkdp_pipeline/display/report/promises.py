"""Promises: the different guarantees of a report, each read in several ways."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.statement import GuaranteeCurve, Statement, knowledge_curves, what_if
from pkdp_pipeline.display.content import Promise
from pkdp_pipeline.display.report.published import Company, ReadRelease, certificate_in, guarantee_key

__all__ = ["Guarantees", "promise_of"]


def promise_of(name: str, certificate: Certificate, delta: float, *, documented: bool = True) -> Promise:
    """Return one guarantee, read at `delta` and in all other ways; `documented` says whether with its certificate."""
    return Promise(
        name=name,
        statement=Statement.of(certificate, delta),
        curve=GuaranteeCurve.of(certificate, delta),
        knowledge=knowledge_curves(certificate, delta=delta),
        scenarios=what_if(certificate, delta=delta),
        certificate=json.loads(certificate.to_json()) if documented else {},
    )


@dataclass(slots=True)
class _Group:
    """Releases with the same guarantee: the first and the last period of each name, and the latest certificate."""

    text: str
    company: Company
    period: str
    names: dict[str, tuple[str, str]] = field(default_factory=dict)


class Guarantees:
    """The different guarantees of releases; that of the latest period is the first.

    Parameters
    ----------
    releases : iterable of ReadRelease
        By period, then in the job's order. One certificate stands for all that promise the same: the latest.
    """

    def __init__(self, releases: Iterable[ReadRelease]) -> None:
        groups: dict[tuple[str, Company], _Group] = {}
        for one in releases:
            text, period = one.entry.certificate, one.period
            group = groups.setdefault(_key(one), _Group(text=text, company=one.company, period=period))
            if group.period != period:  # of one period the first release, which is the one a reader meets first
                group.text, group.period = text, period
            first, _ = group.names.get(one.name, (period, period))
            group.names[one.name] = first, period
        # Stable: of one period they stay in the job's order.
        self._groups = dict(sorted(groups.items(), key=lambda item: item[1].period, reverse=True))

    def __len__(self) -> int:
        return len(self._groups)

    def place(self, release: ReadRelease) -> int:
        """Return which of the guarantees a release has."""
        return list(self._groups).index(_key(release))

    def promises(self, delta: float) -> tuple[Promise, ...]:
        """Return them, read at `delta`."""
        often = Counter(name for group in self._groups.values() for name in group.names)
        return tuple(
            promise_of(_named(group, often), certificate_in(group.company, group.text), delta)
            for group in self._groups.values()
        )


def _key(release: ReadRelease) -> tuple[str, Company]:
    return guarantee_key(release.entry.certificate), release.company


def _named(group: _Group, often: Counter[str]) -> str:
    """Return the names of the releases; with the periods, where a name stands for several guarantees.

    Where others stand beside them, what the guarantee says is about each by itself, and the name says so.
    """
    names = []
    for name, (first, last) in group.names.items():
        stretch = first if first == last else f"{first} to {last}"
        names.append(f"{name} ({stretch})" if often[name] > 1 else name)
    alone = {"beside": [f"{'each ' if len(names) > 1 else ''}by itself"]}.get(group.company, [])
    return ", ".join((*names, *alone))
