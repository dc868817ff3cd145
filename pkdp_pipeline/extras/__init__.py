"""Extras: what helps the core and is no part of it; each folder registers by its ``plugin``, as other packages do.

None imports another, but `report`, which draws what the others make. `theory` registers nothing: its public names are
loaded when they are first used.
"""

from __future__ import annotations

__all__: list[str] = []
