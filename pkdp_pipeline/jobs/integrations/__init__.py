"""Other programs that publish through the package; each module needs the program it is named after."""

from __future__ import annotations

__all__: list[str] = []
