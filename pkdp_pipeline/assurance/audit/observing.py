"""Everything that a publication shows, in one canonical form: the table, its form, and whatever was said."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.releases.release import Release

__all__ = ["HIDDEN", "Seen", "observed", "of_release", "of_rows"]

HIDDEN = None
"""The count of a row that is there, and whose number is not."""

_HEAD = re.compile(r'"head":\s*"[0-9a-f]*"')
_OURS = (b"pkdp.certificate", b"pkdp.release")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one publication shows.

    Attributes
    ----------
    rows : tuple
        The rows in their order: the keys of each, then its count, `HIDDEN` where it is suppressed.
    form : tuple
        Columns, dtypes, index, attributes, the file's own description, the certificate.
    said : tuple of str
        The error, if there is one, with its type; warnings, log records and whatever was printed.
    digest : str
        Of the file's bytes, where equal public content has equal bytes.
    """

    rows: tuple[tuple[Any, ...], ...] = ()
    form: tuple[Any, ...] = ()
    said: tuple[str, ...] = ()
    digest: str = ""


@dataclass(slots=True)
class _Said:
    """What is said while something runs."""

    texts: list[str] = field(default_factory=list)


class _Recorder(logging.Handler):
    def __init__(self, said: _Said) -> None:
        super().__init__(logging.NOTSET)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.texts.append(f"log {record.name} {record.levelname}: {record.getMessage()}")


@contextlib.contextmanager
def _listening() -> Iterator[_Said]:
    said, out, err = _Said(), io.StringIO(), io.StringIO()
    recorder, ours = _Recorder(said), logging.getLogger("pkdp_pipeline")
    level, root = ours.level, logging.getLogger()
    root.addHandler(recorder)
    ours.setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            warnings.simplefilter("always")
            yield said
    finally:
        root.removeHandler(recorder)
        ours.setLevel(level)
        said.texts += [f"warning {warning.category.__name__}: {warning.message}" for warning in caught]
        said.texts += [f"printed: {text}" for text in (out.getvalue(), err.getvalue()) if text]


def observed(publish: Callable[[], Seen]) -> Seen:
    """Return what `publish` shows, with everything that is said meanwhile; an error is shown like anything else."""
    shown, failed = Seen(), ""
    with _listening() as said:
        try:
            shown = publish()
        except Exception as error:
            # The operator is a black box: whatever it raises, of ours or not, is seen by whoever asked.
            failed = f"error {type(error).__name__}: {error}"
    texts = (*shown.said, *said.texts, *filter(None, (failed,)))
    return replace(shown, said=texts)


def of_release(release: Release, *, sealed: bool = True) -> Seen:
    """Return what a release shows.

    Parameters
    ----------
    release : Release
    sealed : bool, default True
        Whether equal public content has equal bytes. With a ledger it has not: the certificate names the head of a
        chain that is different every time.
    """
    table, content = release.table, release.to_bytes()
    form = (
        *_form(table),
        *_file(content),
        _HEAD.sub("", release.certificate.to_json()),
        release.replayed,
        repr(release),
    )
    return Seen(rows=_rows(table), form=form, digest=hashlib.sha256(content).hexdigest() if sealed else "")


def of_rows(columns: tuple[str, ...], rows: list[tuple[Any, ...]], form: tuple[Any, ...]) -> Seen:
    """Return what the rows of a query show."""
    return Seen(rows=tuple(tuple(row) for row in rows), form=(columns, *form))


def _rows(table: pd.DataFrame) -> tuple[tuple[Any, ...], ...]:
    import pandas as pd

    columns = [table.iloc[:, position].tolist() for position in range(table.shape[1])]
    return tuple(tuple(None if pd.isna(value) else value for value in row) for row in zip(*columns, strict=True))


def _form(table: pd.DataFrame) -> tuple[Any, ...]:
    index = table.index
    plain = type(index).__name__ == "RangeIndex" and list(index) == list(range(len(index)))
    return (
        tuple(table.columns),
        tuple(map(str, table.dtypes)),
        "plain" if plain else tuple(map(str, index)),
        tuple(map(str, index.names)),
        repr(sorted(table.attrs.items())),
    )


def _file(content: bytes) -> tuple[Any, ...]:
    """Return what the file says beside the table and the certificate."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.read_metadata(pa.BufferReader(content))
    beside = {key: value for key, value in (found.metadata or {}).items() if key not in _OURS}
    schema = str(found.schema).partition("\n")[2]  # its first line is an address in memory
    return (found.num_row_groups, schema, tuple(sorted(beside.items())))
