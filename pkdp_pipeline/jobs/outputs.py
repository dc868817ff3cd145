"""Output files: each appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.release import Release

__all__ = ["make_folder", "write_atomically", "write_release"]


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, unless they exist.

    Raises
    ------
    ConfigError
        If it cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the folder {str(folder)!r} cannot be created: {error.strerror}.") from error


def write_release(folder: Path, name: str, release: Release) -> tuple[Path, ...]:
    """Write ``NAME.parquet``, which carries its certificate inside, and ``NAME.certificate.json``."""
    table, certificate = folder / f"{name}.parquet", folder / f"{name}.certificate.json"
    write_atomically(table, release.to_bytes())
    write_atomically(certificate, (release.certificate.to_json().rstrip("\n") + "\n").encode())
    return table, certificate


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old file or the new one and nothing between.

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)  # mkstemp makes files only the owner can read; releases are public
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ConfigError(f"the output file {str(path)!r} cannot be written: {error.strerror}.") from error
