"""From a frame to what is published: counted, checked, thresholded, noised, sealed with its certificate."""

from __future__ import annotations

__all__: list[str] = []
