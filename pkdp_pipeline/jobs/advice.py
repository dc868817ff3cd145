"""What a refusal advises, as it is written in a job file, and which release it is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pkdp_pipeline.errors import NoEvidenceError, NotCertifiableError, PkdpError
from pkdp_pipeline.model.wording import JOB_FILE, worded_for

__all__ = ["in_job_words"]

_NAMELESS = (NoEvidenceError, NotCertifiableError)
"""Errors that do not say themselves which release they are about."""


@contextmanager
def in_job_words(release: str) -> Iterator[None]:
    """Let an error from inside name the release, and say what to write in the job file."""
    told = None
    try:
        yield
    except PkdpError as error:
        message = worded_for(error, JOB_FILE)
        if isinstance(error, _NAMELESS):
            message = f"release {release!r}: {message}"
        if message == str(error):
            raise
        told = type(error)(message)
    if told is not None:
        raise told
