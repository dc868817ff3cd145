"""Output files: each appears whole or not at all, and nothing is left over of a run that was killed."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pkdp_pipeline.errors import ConfigError

__all__ = [
    "day_folders",
    "make_folder",
    "remove_leftovers",
    "remove_leftovers_in",
    "write_atomically",
]

_DAY_FOLDER = re.compile(r"\d{4}-\d{2}-\d{2}")
"""The names of the folders that hold a day's files."""

_LEFTOVER = re.compile(r"\.[A-Za-z0-9].*\.partial")


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Create a folder and those above it, unless they exist.

    Raises
    ------
    ConfigError
        If it cannot be created.
    """
    if folder.is_dir():
        return
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
        _sync_folder(folder.parent)
    except OSError as error:
        raise ConfigError(f"the folder {str(folder)!r} cannot be created: {_why_no_folder(folder, error)}.") from error


def _why_no_folder(folder: Path, error: OSError) -> str:
    """Return why a folder cannot be created, and what to do about it."""
    for place in (folder, *folder.parents):
        if place.is_file():
            return f"{str(place)!r} is a file. Move the file, or name another folder in the job file"
    return f"{error.strerror}. Name another folder in the job file, or check the permissions of the one above it"


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file so that a reader, or a crash, sees the old file or the new one and nothing between.

    A file that holds this content already is left as it is. Its mode does not depend on the curator's umask: by default
    it is public.

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    # Always the same name, so that what a killed run leaves is overwritten by the next one.
    temporary = path.with_name(f".{path.name}.partial")
    try:
        if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
            temporary.unlink(missing_ok=True)
            return
        try:
            temporary.unlink(missing_ok=True)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise ConfigError(f"the file {str(path)!r} cannot be written: {error.strerror}.") from error


def remove_leftovers(directory: Path) -> None:
    """Remove what killed runs have left of files in the day folders of an output directory.

    Raises
    ------
    ConfigError
        If a leftover cannot be removed.
    """
    for folder in day_folders(directory):
        remove_leftovers_in(folder)


def remove_leftovers_in(folder: Path) -> None:
    """Remove what killed runs have left in one folder; see `remove_leftovers`."""
    for path in folder.iterdir():
        if _LEFTOVER.fullmatch(path.name):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise ConfigError(f"the file {str(path)!r} cannot be removed: {error.strerror}.") from error


def day_folders(directory: Path) -> list[Path]:
    """Return the day folders of an output directory, in order; none where there is no directory."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if _DAY_FOLDER.fullmatch(path.name) and path.is_dir())


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a power cut, as `os.fsync` does for the content of files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
