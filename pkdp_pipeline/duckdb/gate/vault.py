"""The vault: the database with the data, opened read-only, which its owner alone can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ConfigError, TemporaryError

if TYPE_CHECKING:
    import duckdb

__all__ = ["open_vault"]

_CONFIG = {
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}


def open_vault(path: str | os.PathLike[str]) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file read-only.

    Raises
    ------
    ConfigError
        If it is no DuckDB file, others than its owner can read or write it, or this process has it open otherwise.
    TemporaryError
        If another process is writing to it.
    """
    import duckdb

    file = _file(path)
    name = f"the database {str(file)!r}"
    try:
        return duckdb.connect(str(file), read_only=True, config=dict(_CONFIG))
    except duckdb.ConnectionException:
        problem: Exception = ConfigError(
            f"{name} is open in this process already, with another configuration: close that connection, or run the "
            "gate in a process of its own, with pkdp gate serve."
        )
    except duckdb.IOException as error:
        # DuckDB has one error for files that are locked and files that cannot be read.
        if "lock" in str(error).lower():
            problem = TemporaryError(f"{name} is being written by another process; try again when that is done.")
        else:
            problem = ConfigError(f"{name} cannot be read as a DuckDB database.")
    except duckdb.Error:
        problem = ConfigError(f"{name} cannot be opened as a DuckDB database of this version.")
    raise problem


def _file(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(f"database_path must be the path of a DuckDB file, not {type(path).__name__}.")
    file = Path(path)
    if not file.is_file():
        raise ConfigError(
            f"the database {str(file)!r} does not exist or is not a file; give the path of a DuckDB file."
        )
    file = file.resolve()  # DuckDB keeps the write-ahead log beside the file that a link names
    for one in (file, file.with_name(f"{file.name}.wal")):
        if one.exists() and one.stat().st_mode & 0o077:
            raise ConfigError(
                f"others than its owner can read or write {str(one)!r}, past the gate: chmod 600 it, and run the gate "
                "as its owner, a user whom no analyst can become."
            )
    return file
