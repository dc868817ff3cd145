"""Output files, in the formats that a job file can name: each appears whole or not at all, one run writes at a time.

Another format is a function and a line in `FORMATS`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from types import MappingProxyType

from pkdp_pipeline.errors import ArgumentError, ConfigError, TemporaryError
from pkdp_pipeline.ledger.sealed import PERIOD_COLUMN
from pkdp_pipeline.model.keys import Domain, Key, canonical_key, plain
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.plugins import hook, view
from pkdp_pipeline.releases.release import Release

PERIOD = r"\d{4}(-\d{2}-\d{2}|-W\d{2}|-\d{2}|-Q\d)?"
"""How the periods of a job are written, as a pattern."""

_FOLDER = re.compile(rf"(period=)?{PERIOD}")
"""The names of the folders that hold a period's files."""

_LEFTOVER = re.compile(r"\.[A-Za-z0-9].*\.partial")


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Create a folder and those above it, unless they exist."""
    if folder.is_dir():
        return
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
        _sync_folder(folder.parent)
    except OSError as error:
        raise ConfigError(
            f"the folder {str(folder)!r} cannot be created: {error.strerror}. Name another in the job file, move "
            "the file that has its name, or check the permissions of the folder above."
        ) from error


def is_writable(path: Path, *, folder: bool = False) -> bool:
    """Return whether a file, or a folder, is there to be written or can be created."""
    there = next(place for place in (path, *path.parents) if place.exists())
    is_folder = there.is_dir()
    return is_folder == (folder or there != path) and os.access(there, os.W_OK | (os.X_OK if is_folder else 0))


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file so that a reader, or a crash, sees the old file or the new one and nothing between.

    A file that holds this content already is left as it is. Its mode does not depend on the curator's umask: by default
    it is public. Raises `ConfigError` if the file cannot be written.
    """
    write_together({path: content}, mode)


def write_together(contents: Mapping[Path, bytes], mode: int = 0o644) -> None:
    """Write files of one folder, each as `write_atomically` does; a power cut may leave the first few of them."""
    replaced = [path for path, content in contents.items() if _replaced(path, content, mode)]
    for path in replaced[-1:]:
        try:
            # One call makes all names in the folder last that were given before it.
            _sync_folder(path.parent)
        except OSError as error:
            raise ConfigError(f"the file {str(path)!r} cannot be written: {error.strerror}.") from error


def _replaced(path: Path, content: bytes, mode: int) -> bool:
    """Return whether a file did not hold this content and was replaced; its name does not yet outlast a power cut."""
    # Always the same name, so that what a killed run leaves is overwritten by the next one.
    temporary = path.with_name(f".{path.name}.partial")
    try:
        if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
            temporary.unlink(missing_ok=True)
            return False
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
    except OSError as error:
        raise ConfigError(f"the file {str(path)!r} cannot be written: {error.strerror}.") from error
    return True


def remove_leftovers(directory: Path) -> None:
    """Remove what killed runs have left of files in the folders of an output directory."""
    for folder in day_folders(directory):
        remove_leftovers_in(folder)


def remove_leftovers_in(folder: Path) -> None:
    """Remove what killed runs have left in one folder; see `remove_leftovers`."""
    for path in folder.iterdir():
        if _LEFTOVER.fullmatch(path.name):
            remove_file(path)


def remove_file(path: Path) -> None:
    """Remove a file, if it is there. Raises `ConfigError` if it cannot be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"the file {str(path)!r} cannot be removed: {error.strerror}.") from error


def day_folders(directory: Path) -> list[Path]:
    """Return the folders of periods in an output directory, in order; none where there is no directory."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if _FOLDER.fullmatch(path.name) and path.is_dir())


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a power cut, as `os.fsync` does for the content of files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


LOCK_FILE = ".pkdp.lock"
"""The file in the output folder that a run locks; it is empty, stays there and may be deleted when nothing runs."""


@contextmanager
def job_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of an output folder, which must exist.

    The operating system takes the lock away from a process that ends, however it ends. Raises `TemporaryError` if
    another run holds it, `ConfigError` if the folder cannot be locked.
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


def files_with(
    folder: Path, name: str, release: Release, *, formats: Collection[str], named: bool
) -> dict[Path, bytes]:
    """Return the files of a release, its certificate among them, with what is to be written into each.

    `named`: whether the files have a column ``period``.
    """
    certificate = f"{release.certificate.to_json().rstrip()}\n".encode()
    contents = {suffix: content(release, named) for suffix, content in FORMATS.items() if suffix in formats}
    contents["certificate.json"] = certificate
    return {folder / f"{name}.{suffix}": content for suffix, content in contents.items()}


def csv_bytes(release: Release, period_column: bool = False) -> bytes:
    """Return the public table as CSV (RFC 4180) in UTF-8, with a header and lines that end in CR LF.

    Text is in quotes, numbers and dates are not. An empty field without quotes is a missing key or a suppressed count;
    ``""`` is the empty text. PostgreSQL's ``COPY`` reads it so, and DuckDB with ``allow_quoted_nulls = false``.
    """
    table = release.table
    columns: list[Iterable[Key]] = [
        map(canonical_key, table.iloc[:, position].array) for position in range(table.shape[1])
    ]
    names = list(map(str, table.columns))
    if period_column and release.certificate.context is not None:
        names.insert(0, PERIOD_COLUMN)
        columns.insert(0, repeat(Period.parse(release.certificate.context.period).value, len(table)))
    lines = [",".join(map(_field, names))]
    lines += [",".join(map(_field, row)) for row in zip(*columns, strict=True)]
    # A line with nothing on it would be skipped by most readers.
    return "".join(f"{line or _EMPTY}\r\n" for line in lines).encode()


FORMATS: Mapping[str, Callable[[Release, bool], bytes]] = MappingProxyType(
    {"parquet": lambda release, named: release.to_bytes(period_column=named), "csv": csv_bytes}
)
"""The suffix of a release's file, which is its name in ``formats`` → what it holds, with a column ``period`` or not."""

Format = Callable[[Mapping[str, Release], str | None, Mapping[str, str]], Mapping[str, bytes | str]]
"""Files for offices and other programs, by its name in ``formats``: what each file holds, by the file's name.

Its parameters are a period's releases by their names, the text in the place of hidden counts, and what ``[about]``
says, by its keys. A text in the place of what a file holds says why the format cannot hold a table. Without releases
there is no file, and it raises `ConfigError` if what it needs is not installed.
"""


def check_formats(formats: Collection[str], domains: Mapping[str, Domain | None]) -> None:
    """Refuse declared domains, by their release, that a format cannot hold; raises `ConfigError`."""
    if set(formats) <= set(FORMATS):
        return
    for name, domain in domains.items():
        if domain is not None:
            try:
                view("tables.check_size")(formats, domain.cells)
            except ArgumentError as error:
                raise ConfigError(f"output.formats, release {name!r}: {error}") from None


def for_offices(
    formats: Collection[str], releases: Mapping[str, Release], suppressed: str | None, about: Mapping[str, str]
) -> Iterator[tuple[str, bytes | str]]:
    """Yield name and content of the files that plugins make of a period's releases; see `Format`."""
    for name in formats:
        if name not in FORMATS:
            content: Format = hook("formats", name)
            yield from content(releases, suppressed, about).items()


_EMPTY = '""'


def _field(value: Key) -> str:
    if isinstance(value, str):
        escaped = value.replace('"', '""')
        return f'"{escaped}"'
    return plain(value)
