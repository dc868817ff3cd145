"""Rows as pandas frames whose dtypes depend on the columns' types alone, never on the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["pandas_rows"]


def pandas_rows(table: Any) -> pd.DataFrame:
    """Return an Arrow table as a frame: text, nullable whole numbers and booleans, times in microseconds."""
    import pandas as pd
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        kind = _plain(field.type)
        if kind != field.type:
            table = table.set_column(position, field.name, table.column(position).cast(kind, safe=False))
    whole = {getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")() for name in _WHOLE}
    dtypes: dict[Any, Any] = {
        **whole,
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype(na_value=float("nan")),
    }
    frame: pd.DataFrame = table.to_pandas(types_mapper=dtypes.get, date_as_object=False)
    return frame


_WHOLE = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")


def _plain(kind: Any) -> Any:
    """Return the one Arrow type under which all engines give a column."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    return pa.timestamp("us") if pa.types.is_date(kind) else kind
