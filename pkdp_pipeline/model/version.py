"""The version of the library, as written into certificates."""

from __future__ import annotations

VERSION = "0.3.0"
