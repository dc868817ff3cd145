"""Schedulers that publish through the package: which days are run, what is shown, and whether trying again helps."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.jobs import JobRelease
from pkdp_pipeline.jobs.dry_run import DELTA
from pkdp_pipeline.schemas import VERSION

T = TypeVar("T")


def provider_info() -> dict[str, Any]:
    """Return what Airflow lists of the package among its providers; the entry point ``apache_airflow_provider``."""
    module = "pkdp_pipeline.jobs.integrations.airflow"  # its documented name
    return {
        "package-name": "pkdp-pipeline",
        "name": "pkdp_pipeline",
        "description": "Publishes counts and histograms with a certified privacy guarantee.",
        "versions": [VERSION],
        "integrations": [{"integration-name": "pkdp", "external-doc-url": "", "tags": ["software"]}],
        "operators": [{"integration-name": "pkdp", "python-modules": [module]}],
    }


def public(published: JobRelease) -> dict[str, Any]:
    """Return what a scheduler may show of a release to everybody who can see its pages; a replay shows the same.

    Its name and id, the guarantee in words, the certified ε at δ (None where there is none), how many rows the public
    table has, and its files.
    """
    facts = published.facts()
    return {
        "name": facts["name"],
        "id": facts["id"],
        "guarantee": facts["sentence"],
        "epsilon": facts["epsilon"],
        "delta": DELTA,
        "rows": len(published.release.table),
        "files": [str(file) for file in published.files],
    }


def day_of(text: object) -> date:
    """Read the day that a scheduler names.

    Raises `ConfigError` if it is not a date; the message says where such a thing comes from.
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


def attempt(
    publish: Callable[[], T], again: Callable[[str], BaseException], never: Callable[[str], BaseException]
) -> T:
    """Return what `publish` returns, or raise what the scheduler tries again, or never, made of words without data.

    The error itself is not passed on: schedulers show an error with all that it was caused by, and what another
    library has said may quote the data.
    """
    problem: BaseException
    try:
        return publish()
    except TemporaryError as error:
        problem = again(str(error))
    except PkdpError as error:
        problem = never(f"{type(error).__name__}: {error}")
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "pkdp_pipeline" in frame.filename]
        place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
        problem = never(f"a defect of pkdp_pipeline: {type(error).__name__}{place}. Please report it.")
    raise problem
