"""The privacy unit: columns that name a person, or every row."""

from __future__ import annotations

import enum
from typing import Final


class EachRow(enum.Enum):
    """The type of `EACH_ROW`, the privacy unit of a frame in which every row is a person."""

    EACH_ROW = "each row"

    def __repr__(self) -> str:
        return "pkdp.EACH_ROW"


EACH_ROW: Final = EachRow.EACH_ROW
