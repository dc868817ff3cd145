"""Ledger: what one data set has published, and the one transaction that charges and publishes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType

from pkdp_pipeline.errors import ArgumentError, LedgerError, TemporaryError
from pkdp_pipeline.ledger.differencing import check_differencing, overlapping
from pkdp_pipeline.ledger.entry import Entry
from pkdp_pipeline.ledger.sqlite_store import SqliteStore
from pkdp_pipeline.ledger.standing import Standing

__all__ = ["Ledger"]


class Ledger:
    """The append-only record of what one data set has published.

    Open it with `Ledger.open`, as a context manager. One file may hold several data sets; a ledger object
    sees one of them. Charging and publishing are one transaction: after a crash an entry stands with its
    released bytes, which a repeated request replays, or nothing does.

    Notes
    -----
    The ledger knows only what is published through it. Two ledgers about the same people do not see each
    other: keep one for each data set.
    """

    def __init__(self, store: SqliteStore, *, dataset: str) -> None:
        self._store = store
        self._dataset = dataset

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, dataset: str = "default") -> Ledger:
        """Open a ledger, creating the file when there is none.

        Parameters
        ----------
        path : path-like
            A SQLite file on a local disk, or ``:memory:``.
        dataset : str, default "default"
            The data set this ledger object is about; its people are the same people in every release.

        Returns
        -------
        Ledger

        Raises
        ------
        ArgumentError
            If `dataset` is empty.
        LedgerError
            If the file is not a ledger, has an unknown schema or cannot be written.
        TemporaryError
            If another process holds the file locked.
        """
        if not isinstance(dataset, str) or not dataset.strip():
            raise ArgumentError("dataset must be a non-empty name.")
        location = os.fspath(path)
        if "://" in location:
            raise LedgerError(
                f"this version keeps ledgers in SQLite files only, not at {location.split('://', 1)[0]}://; "
                "give the path of a file."
            )
        return cls(SqliteStore(location), dataset=dataset)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a closed ledger cannot be used."""
        self._store.close()

    @property
    def dataset(self) -> str:
        """The data set this ledger object is about."""
        return self._dataset

    def find(self, key: str) -> Entry | None:
        """Return the published entry of this key, or None."""
        return self._store.find(key)

    def entries(self) -> Iterator[Entry]:
        """Yield this data set's entries in the order in which they were published."""
        return self._store.entries(self._dataset)

    def check(self, standing: Standing) -> None:
        """Refuse a release that cannot stand beside what is published already.

        It needs no data. Call it only when `find` has no entry of the same key: the rule is about different
        releases.

        Raises
        ------
        DifferencingError
            See `check_differencing`.
        """
        check_differencing(standing, self._store.standings(self._dataset).values(), dataset=self._dataset)

    def beside(self, standing: Standing) -> list[Entry]:
        """Return the entries about the same people in periods that overlap that of `standing`.

        A release with the same standing is among them once it is published. Where another one is, only
        worst-case guarantees stand.
        """
        standings = self._store.standings(self._dataset)
        near = overlapping(standing, standings.values())
        return [self._store.read(sequence) for sequence, other in standings.items() if other in near]

    def publish(
        self,
        key: str,
        standing: Standing,
        certificate_json: str,
        content: bytes,
        release_id: str,
        *,
        alone: bool = False,
    ) -> tuple[Entry, bool]:
        """Charge and publish in one transaction, or return what another process has published meanwhile.

        Parameters
        ----------
        key : str
            What was asked.
        standing : Standing
        certificate_json : str
        content : bytes
            The released bytes, stored as they are.
        release_id : str
        alone : bool, default False
            Whether the certificate claims more than the worst case, which is true only while nothing else
            stands about these people in an overlapping period.

        Returns
        -------
        entry : Entry
            The entry that stands; show its `content` to the world, not the argument.
        replayed : bool
            True when the key was published before, and `content` was not stored.

        Raises
        ------
        DifferencingError
            If something was published meanwhile beside which this release cannot stand.
        LedgerError, TemporaryError
            If the ledger cannot be used or is locked; nothing was charged.
        """
        with self._store.transaction():
            found = self._store.find(key)
            if found is not None:
                return found, True
            self.check(standing)
            if alone and self.beside(standing):
                raise TemporaryError(
                    "another release about these people was published meanwhile; nothing was charged: run again, and "
                    "the certificate will claim only what holds beside it."
                )
            self._store.insert(
                key=key,
                dataset=self._dataset,
                standing=standing,
                certificate=certificate_json,
                content=content,
                release_id=release_id,
            )
            entry = self._store.find(key)
        if entry is None:
            raise LedgerError("the ledger did not keep the entry it was given; check the disk.")
        return entry, False
