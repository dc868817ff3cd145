"""Style: the colours of all figures, for plain matplotlib and as CSS variables for light and dark pages.

Lines and marks have a contrast of at least 3 with the surface, texts of at least 4.5, in light and in dark; the
series' colours are told apart with the common forms of colour blindness.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = [
    "ACCENT",
    "ACCENT_SOFT",
    "CSS_DARK",
    "CSS_LIGHT",
    "GRID",
    "INK",
    "MUTED",
    "SERIES",
    "SMALL",
    "SURFACE",
    "TEXT",
    "VARIABLES",
    "WARN",
    "WARN_SOFT",
]

SURFACE = "#ffffff"
"""The paper."""
INK = "#17212b"
"""Texts that matter, and marks."""
MUTED = "#54606c"
"""Axes and their numbers."""
GRID = "#dce2e8"
ACCENT = "#0b5fa5"
"""What is certified."""
ACCENT_SOFT = "#cfe1f2"
"""The area between what is attained and what is certified; bars."""
WARN = "#b0400a"
"""Budgets, and where nothing is certified."""
WARN_SOFT = "#fbe7dc"
SERIES = (ACCENT, "#8f5200", "#00775b", "#8a3fa1")
"""One colour for each line among several; after these they are repeated, dashed."""

TEXT = 12.0
"""Size of texts in points; in inline SVG, in px."""
SMALL = 11.0

CSS_LIGHT: Mapping[str, str] = MappingProxyType(
    {
        "--surface": SURFACE,
        "--ink": INK,
        "--muted": MUTED,
        "--grid": GRID,
        "--accent": ACCENT,
        "--accent-soft": ACCENT_SOFT,
        "--warn": WARN,
        "--warn-soft": WARN_SOFT,
        "--series-2": SERIES[1],
        "--series-3": SERIES[2],
        "--series-4": SERIES[3],
    }
)
"""The variables that inline SVG uses, with the values for a light page and for print."""

CSS_DARK: Mapping[str, str] = MappingProxyType(
    {
        "--surface": "#14181d",
        "--ink": "#e9eef3",
        "--muted": "#a6b2be",
        "--grid": "#303a44",
        "--accent": "#6db3f2",
        "--accent-soft": "#1d3d5a",
        "--warn": "#ff9f68",
        "--warn-soft": "#40261a",
        "--series-2": "#e2ab4f",
        "--series-3": "#4fcba7",
        "--series-4": "#d49fe8",
    }
)
"""The values for a dark page."""

VARIABLES: Mapping[str, str] = MappingProxyType({colour: name for name, colour in CSS_LIGHT.items()})
"""The variable that stands for each colour in inline SVG."""
