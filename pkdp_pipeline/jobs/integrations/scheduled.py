"""What schedulers share: which days are run, what of them may be shown, and whether trying again helps."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.jobs import JobRelease, JobResult
from pkdp_pipeline.jobs.summary import markdown_table

__all__ = ["DELTA", "NotPublished", "PublicRelease", "attempt", "day_of", "public_releases"]

DELTA = 1e-6
"""The δ at which ε is shown."""

_ROWS_SHOWN = 50

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPublished:
    """Why a run has failed, in words that quote no data.

    Parameters
    ----------
    message : str
    temporary : bool
        Whether the same run may succeed later. Everything else needs a person: trying again changes nothing.
    """

    message: str
    temporary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRelease:
    """What a scheduler may show of a release to everybody who can see its pages; a replay shows the same.

    Parameters
    ----------
    name, id : str
    guarantee : str
        The certificate's sentence.
    epsilon : float or None
        The certified ε at `DELTA`; None when there is none.
    files : tuple of pathlib.Path
    rows : int
        Rows of the public table.
    table : str
        Its first rows, in Markdown.
    """

    name: str
    id: str
    guarantee: str
    epsilon: float | None
    files: tuple[Path, ...]
    rows: int
    table: str

    @classmethod
    def of(cls, published: JobRelease) -> PublicRelease:
        """Return what may be shown of one release of a job."""
        release = published.release
        epsilon = float(release.certificate.epsilon(DELTA))
        return cls(
            name=published.asked.name,
            id=release.id,
            guarantee=release.certificate.sentence(),
            epsilon=epsilon if math.isfinite(epsilon) else None,
            files=tuple(Path(file) for file in published.files),
            rows=len(release.table),
            table="\n".join(markdown_table(release.table, _ROWS_SHOWN)),
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's own types, without the table, which is in the files."""
        return {
            "name": self.name,
            "id": self.id,
            "guarantee": self.guarantee,
            "epsilon": self.epsilon,
            "delta": DELTA,
            "rows": self.rows,
            "files": [str(file) for file in self.files],
        }


def public_releases(result: JobResult) -> Sequence[PublicRelease]:
    """Return what may be shown of the releases of one day, in the job's order."""
    return [PublicRelease.of(published) for published in result.releases]


def day_of(text: object) -> date:
    """Read the day that a scheduler names.

    Raises
    ------
    ConfigError
        If it is not a date; the message says where such a thing comes from.
    """
    if type(text) is date:
        return text
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        raise ConfigError(
            f"date must be a day such as 2013-01-02, and is {str(text)!r}. A run without a logical date has none: "
            "trigger it with one, or name the day."
        ) from None


def attempt(publish: Callable[[], T]) -> T | NotPublished:
    """Return what `publish` returns, or why it has failed.

    The error itself is not passed on: schedulers show an error with all that it was caused by, and what another
    library has said may quote the data.
    """
    try:
        return publish()
    except TemporaryError as error:
        return NotPublished(message=str(error), temporary=True)
    except PkdpError as error:
        return NotPublished(message=f"{type(error).__name__}: {error}", temporary=False)
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "pkdp_pipeline" in frame.filename]
        place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
        message = f"a defect of pkdp_pipeline: {type(error).__name__}{place}. Please report it."
        return NotPublished(message=message, temporary=False)
