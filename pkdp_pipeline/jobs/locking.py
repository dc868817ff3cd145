"""Locking: one run at a time publishes into a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pkdp_pipeline.errors import ConfigError, TemporaryError

__all__ = ["LOCK_FILE", "job_lock"]

LOCK_FILE = ".pkdp.lock"
"""The file in the output folder that a run locks; it is empty, stays there and may be deleted when nothing runs."""


@contextmanager
def job_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of an output folder, which must exist.

    The operating system takes the lock away from a process that ends, however it ends.

    Raises
    ------
    TemporaryError
        If another run holds it.
    ConfigError
        If the folder cannot be locked.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK_FILE, timeout=0, mode=0o644)
    unusable = ""
    try:
        lock.acquire()
    except Timeout:
        unusable = "busy"
    except (OSError, NotImplementedError):
        unusable = "broken"
    if unusable == "busy":
        raise TemporaryError(
            f"another run is publishing into {str(folder)!r}; this one has read, charged and written nothing: try "
            "again later."
        )
    if unusable:
        raise ConfigError(
            f"the folder {str(folder)!r} cannot be locked: let this process write to it, and keep it on a file system "
            "that knows locks."
        )
    try:
        yield
    finally:
        lock.release()
