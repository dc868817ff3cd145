"""The files of a source: which a pattern finds, and what columns they agree on."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pkdp_pipeline.errors import ConfigError

__all__ = ["agreed_columns", "exact", "files_of", "shown"]


def files_of(patterns: Sequence[str], *, folders: bool = False) -> tuple[str, ...]:
    """Return the files that paths and patterns stand for, each once, by name.

    Parameters
    ----------
    patterns : sequence of str
        Absolute paths. What is the path of a file is no pattern.
    folders : bool
        Whether a path may be a folder.

    Raises
    ------
    ConfigError
        If one of them stands for no file, or a file may not be read.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        path = exact(pattern)
        if Path(path).is_file() or (folders and Path(path).is_dir()):
            found[path] = None
            continue
        matches = sorted(one for one in glob.glob(pattern, recursive=True) if Path(one).is_file())
        if not matches and glob.has_magic(re.sub(r"\[[*?\[]\]", "", pattern)):
            raise ConfigError(f"source {path!r} matches no file; correct the pattern in the job file.")
        if not matches:
            raise ConfigError(f"source {path!r} does not exist or is not a file; correct the path in the job file.")
        found.update(dict.fromkeys(matches))
    for path in found:
        if not os.access(path, os.R_OK):
            raise ConfigError(f"source {path!r} may not be read by this user: check the permissions of the file.")
    return tuple(found)


def exact(pattern: str) -> str:
    """Return a path as it is written without the signs by which a pattern names itself."""
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)


def shown(patterns: Sequence[str]) -> str:
    """Return how a source is named in messages."""
    return ", ".join(map(exact, patterns))


def agreed_columns(schemas: Mapping[str, Mapping[str, str]], named: Sequence[str], *, source: str) -> tuple[str, ...]:
    """Return the columns that all files have under one type, in the order of the first file.

    Parameters
    ----------
    schemas : mapping
        For each file its column names and their types.
    named : sequence of str
        Columns that the job needs: where one file has such a column, all must have it alike.
    source : str
        How the source is named.

    Raises
    ------
    ConfigError
        Naming a column that some files lack, or hold under another type, and one of these files.
    """
    first = next(iter(schemas.values()))
    somewhere = {column for schema in schemas.values() for column in schema}
    for column in named:
        if column not in somewhere:
            continue
        types: dict[str, str] = {}
        for file, schema in schemas.items():
            name = os.path.basename(file)
            if column not in schema:
                raise ConfigError(
                    f"the files of source {source!r} must agree on their columns: {name!r} has no column {column!r}."
                )
            types.setdefault(schema[column], name)
        if len(types) > 1:
            listed = ", ".join(f"{kind} in {name!r}" for kind, name in types.items())
            raise ConfigError(
                f"the files of source {source!r} must agree on their columns: {column!r} is {listed}; store it under "
                "one type."
            )
    return tuple(column for column, kind in first.items() if all(s.get(column) == kind for s in schemas.values()))
