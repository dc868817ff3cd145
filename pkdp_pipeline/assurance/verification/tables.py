"""The claims of a published table: that the mechanism its certificate names can have published it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pkdp_pipeline.assurance.verification.claims import Claim, failed, passed
from pkdp_pipeline.assurance.verification.opening import BREAKS
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger.sealed import check_table
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.keys import canonical_key, domain_dtype, kind_of_dtype, kind_of_values, published_keys
from pkdp_pipeline.model.mechanisms import Count, Mechanism

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate

__all__ = ["least_shown", "table_claims"]

_COLUMNS = "The columns are those that the mechanism publishes, with types that tell nothing of what is withheld."
_CELLS = "Every cell is named once, in the order in which cells are published, and only suppressed as declared."
_COUNTS = "Every count obeys the thresholds of the mechanism."


def table_claims(table: pd.DataFrame, certificate: ReleaseCertificate) -> Iterator[Claim]:
    """Yield whether columns, cells and counts of a release are what its certificate's mechanism publishes."""
    checks: tuple[tuple[str, str, Callable[[pd.DataFrame, ReleaseCertificate], str]], ...] = (
        ("table.columns", _COLUMNS, _columns),
        ("table.cells", _CELLS, _cells),
        ("table.counts", _COUNTS, _counts),
    )
    for key, words, check in checks:
        try:
            yield passed(key, words, check(table, certificate))
        except _BrokenError as error:
            yield failed(key, words, str(error))
        except ArgumentError as error:
            yield failed(key, words, str(error))
        except BREAKS as error:
            yield failed(key, words, f"The table cannot be read so ({type(error).__name__}): it is not ours.")
            return


def least_shown(mechanism: Mechanism, *, found: bool) -> int | None:
    """Return the smallest count that a mechanism shows; None where any whole number may be.

    Parameters
    ----------
    mechanism : Count or Histogram
    found : bool
        Whether cells are found in the data, so that somebody is in each of them.
    """
    if mechanism.noise is not None:
        return mechanism.release_threshold
    return max(mechanism.k or 0, 1 if found else 0)


class _BrokenError(Exception):
    """A rule that the table breaks."""


def _columns(table: pd.DataFrame, certificate: ReleaseCertificate) -> str:
    import pandas as pd

    names = list(table.columns)
    if any(not isinstance(name, str) for name in names) or len(set(names)) < len(names) or names[-1:] != ["count"]:
        raise _BrokenError("The table must have columns with different names, of which the last is 'count'.")
    if table["count"].dtype != pd.Int64Dtype():
        raise _BrokenError("Column 'count' must hold whole numbers (Int64).")
    if not (isinstance(table.index, pd.RangeIndex) and table.index.equals(pd.RangeIndex(len(table)))):
        raise _BrokenError("The table must have a plain index.")
    about = certificate.context
    if isinstance(certificate.mechanism, Count):
        if names != ["count"] or (about is not None and about.cells is not None):
            raise _BrokenError("A count is published as one number: its table has the column 'count' alone.")
        return "The one column 'count' holds whole numbers."
    if len(names) < 2 or (about is not None and about.cells not in ("declared", "found")):
        raise _BrokenError("A histogram is published with the columns of its cells, which are declared or found.")
    for name in names[:-1]:
        if name.casefold() == "count":
            raise _BrokenError("A column of cells may not be named 'count'.")
        if kind_of_dtype(table[name].dtype) is None:
            raise _BrokenError("A column of cells has a type that cannot name cells.")
        wanted = _public_dtype(table[name], about)
        if table[name].dtype != wanted:
            raise _BrokenError(f"A column of cells has the type {table[name].dtype}, and is published as {wanted}.")
    return f"{', '.join(names)}: each has the type that the published values alone give."


def _public_dtype(column: pd.Series, about: Context | None) -> object:
    if about is None or about.cells == "found":
        return published_keys(column).dtype
    values = [canonical_key(value) for value in column.array]
    return domain_dtype(kind_of_values("the table", values), values)


def _cells(table: pd.DataFrame, certificate: ReleaseCertificate) -> str:
    if isinstance(certificate.mechanism, Count):
        if len(table) != 1:
            raise _BrokenError("A count is published as one number: its table has one row.")
        return "One row."
    by = list(table.columns[:-1])
    keys = table[by]
    if bool(keys.duplicated().any()):
        raise _BrokenError("A cell is named twice.")
    declared = certificate.context is not None and certificate.context.cells == "declared"
    if declared:
        if not len(table):
            raise _BrokenError("A declared domain has at least one cell, and every one of them has a row.")
        return f"{len(table)} declared cells, each once; which cells were declared is not in the file."
    if bool(table["count"].isna().any()):
        raise _BrokenError("Cells are found in the data, so a suppressed one has no row; here one has.")
    ordered = keys.sort_values(by=by, na_position="last", ignore_index=True)
    if not ordered.equals(keys.reset_index(drop=True)):
        raise _BrokenError("Cells that are found in the data are published in their order; these rows are not in it.")
    return f"{len(table)} cells, each once and in order; none of them is suppressed."


def _counts(table: pd.DataFrame, certificate: ReleaseCertificate) -> str:
    mechanism = certificate.mechanism
    check_table(table, certificate)
    found = not isinstance(mechanism, Count) and not (
        certificate.context is not None and certificate.context.cells == "declared"
    )
    least = least_shown(mechanism, found=found)
    shown = table["count"].dropna()
    suppressing = mechanism.k, getattr(mechanism, "k_complement", None), mechanism.release_threshold
    if len(shown) < len(table) and all(one is None for one in suppressing):
        raise _BrokenError("The mechanism suppresses nothing, and a count is missing.")
    if least is None:
        return f"{len(shown)} counts shown; with noise and without a threshold after it, any whole number may be."
    if bool((shown < least).any()):
        raise _BrokenError(f"A count is below {least}, which the mechanism never publishes.")
    return f"{len(shown)} counts shown, none below {least}."
