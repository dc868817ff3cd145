"""Columns by their names: some engines read certain names as something else, so those are spelled plainly first.

Polars takes ``*`` and names from ``^`` to ``$`` for patterns, Spark takes a dot for a field of a struct. Each would
count another column without a word.
"""

from __future__ import annotations

import re
from typing import Any

import narwhals.stable.v2 as nw

__all__ = ["column", "opened"]


def column(name: str) -> nw.Expr:
    """Return a column of an `opened` frame by the name it has in the frame that was given."""
    return nw.col(_spelled(name))


def opened(frame: Any) -> tuple[nw.LazyFrame[Any], dict[str, Any]]:
    """Return a frame whose columns have plain names, and its schema under the names it was given with."""
    if type(frame).__module__.split(".")[0] == "pyspark":
        names = list(frame.columns)
        # By position: the names do not have to be read for it.
        lazy = nw.from_native(frame.toDF(*map(_spelled, names)) if _renamed(names) else frame).lazy()
        return lazy, dict(zip(names, map(_in_utc, lazy.collect_schema().values()), strict=True))
    lazy = nw.from_native(frame).lazy()
    schema = dict(lazy.collect_schema())
    renamed = _renamed(schema)
    return (lazy.rename(renamed) if renamed else lazy), schema


def _in_utc(dtype: Any) -> Any:
    """Return the type of a Spark column: instants have no zone of their own there, only a session shows them in one."""
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    return nw.Datetime("us", "UTC") if zoned else dtype


def _renamed(names: Any) -> dict[str, str]:
    return {name: _spelled(name) for name in names if _spelled(name) != name}


def _spelled(name: str) -> str:
    """Return a name that stands for this one alone and that no engine reads as anything but a name."""
    return name if re.fullmatch(r"\w+", name) else f"pkdp_{name.encode('utf-8', 'surrogatepass').hex()}"
