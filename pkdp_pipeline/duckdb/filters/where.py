"""From a SQL filter to the query string that a request holds."""

from __future__ import annotations

from collections.abc import Mapping

from pkdp_pipeline.duckdb.filters.parsing import parsed
from pkdp_pipeline.duckdb.filters.settling import settled
from pkdp_pipeline.duckdb.filters.tree import Known
from pkdp_pipeline.duckdb.filters.writing import bare_column, written
from pkdp_pipeline.duckdb.tables import LACKING
from pkdp_pipeline.errors import ArgumentError

__all__ = ["to_where"]


def to_where(filter_sql: str, columns: Mapping[str, str], *, lacking: str = LACKING) -> str | None:
    """Return the query string for `Request.where` that selects the rows for which a SQL filter is true.

    The filter has SQL's meaning: what is unknown because of NULL is not selected, not even by NOT. NaN counts
    as NULL, as it does in keys and units. Numbers, dates and times are compared exactly, whatever the type of
    the column; only for FLOAT and DOUBLE columns, the constant is the nearest number of that type. A time
    compared with a TIMESTAMP WITH TIME ZONE needs its offset from UTC: it must not depend on the session.

    Filters that differ in case, white space, parentheses, the order or repetition of the members of AND, OR and
    IN, in which side the constant is on, in how NOT, BETWEEN, IN, ``<>``, ``IS [NOT] TRUE`` and
    ``IS [NOT] DISTINCT FROM`` are spelled, or in how numbers and dates are spelled, give the same text. That
    two texts differ does not mean that the filters do.

    Parameters
    ----------
    filter_sql : str
    columns : mapping of str to str
        The table's column names and their DuckDB types, for example ``{"age": "TINYINT"}``.
    lacking : str, optional
        What an error says about a column that is not among them.

    Returns
    -------
    str or None
        None where the filter is true of every row, whatever the rows are. A lone boolean column gives its name.

    Raises
    ------
    ArgumentError
        If the filter cannot be read, has anything but columns, comparisons with constants, BETWEEN, IN,
        IS [NOT] NULL, TRUE or FALSE, AND, OR, NOT and parentheses, names a column that does not exist,
        compares a column with a constant of another type, or is true of no row, whatever the rows are.
    """
    condition = settled(parsed(filter_sql, columns, lacking=lacking), columns)
    if isinstance(condition, Known):
        if condition.value:
            return None
        raise ArgumentError("filter is true of no row, whatever the rows are; correct it or leave it out.")
    bare = bare_column(condition)
    if bare is not None:
        return bare
    text = written(condition)
    # A text that is a column's name would be read as that column.
    while text in columns:
        text = f"({text})"
    return text
