"""Subject: what a report is about, in plain values that a job hands over; nothing of it comes from data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.display.content import CheckLine

__all__ = ["AskedRelease", "DayTotal", "Subject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRelease:
    """One release that is published about every date.

    Parameters
    ----------
    name : str
    asked : str
        What is counted, and what is done before it is published, in one sentence.
    """

    name: str
    asked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotal:
    """What several releases about one date add up to; or why nothing says so.

    Parameters
    ----------
    total : Certificate or None
    reason : str
        Why there is none; empty where there is one.
    own : bool
        Whether all of it is public, and of this job: else its certificate shows what others charged.
    """

    total: Certificate | None
    reason: str
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a report is about.

    Parameters
    ----------
    title : str
        The data set's name.
    job, digest : str
        See `Provenance`.
    unit : tuple of str
        Columns of the privacy unit.
    releases : tuple of AskedRelease
        In the order in which they are shown.
    held : mapping of int to str
        Which of the ledger's entries are which of these releases: published ones, all revisions.
    suffixes : tuple of str
        Of the files that are written of each release.
    files : frozenset of str
        Which of them there are, relative to the output directory: a job whose file has changed lacks some.
    checks : tuple of CheckLine
        The rules that the data of the date were held to; for an auditor only.
    """

    title: str
    job: str
    digest: str
    unit: tuple[str, ...]
    releases: tuple[AskedRelease, ...]
    held: Mapping[int, str]
    suffixes: tuple[str, ...]
    files: frozenset[str] = frozenset()
    checks: tuple[CheckLine, ...] = ()
