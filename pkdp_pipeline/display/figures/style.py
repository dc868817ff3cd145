"""Style: the colours of all figures, for plain matplotlib and as CSS variables for light and dark pages.

Lines and marks have a contrast of at least 3 with the surface, texts of at least 4.5, in light and in dark; the
series' colours are told apart with the common forms of colour blindness.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_COLOURS = {
    "surface": ("#ffffff", "#14181d"),  # the paper
    "ink": ("#17212b", "#e9eef3"),  # texts that matter, and marks
    "muted": ("#54606c", "#a6b2be"),  # axes and their numbers
    "grid": ("#dce2e8", "#303a44"),
    "accent": ("#0b5fa5", "#6db3f2"),  # what is certified
    "accent-soft": ("#cfe1f2", "#1d3d5a"),  # the area between what is attained and what is certified; bars
    "warn": ("#b0400a", "#ff9f68"),  # budgets, and where nothing is certified
    "warn-soft": ("#fbe7dc", "#40261a"),
    "series-2": ("#8f5200", "#e2ab4f"),
    "series-3": ("#00775b", "#4fcba7"),
    "series-4": ("#8a3fa1", "#d49fe8"),
}
_LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
SURFACE = _LIGHT["surface"]
INK = _LIGHT["ink"]
MUTED = _LIGHT["muted"]
GRID = _LIGHT["grid"]
ACCENT = _LIGHT["accent"]
ACCENT_SOFT = _LIGHT["accent-soft"]
WARN = _LIGHT["warn"]
WARN_SOFT = _LIGHT["warn-soft"]
SERIES = (ACCENT, *(_LIGHT[f"series-{number}"] for number in (2, 3, 4)))
"""One colour for each line among several; after these they are repeated, dashed."""

SMALL = 11.0
"""Size of texts in points; in inline SVG, in px."""

CSS_LIGHT: Mapping[str, str] = MappingProxyType({f"--{name}": light for name, (light, _) in _COLOURS.items()})
"""The variables that inline SVG uses, with the values for a light page and for print."""

CSS_DARK: Mapping[str, str] = MappingProxyType({f"--{name}": dark for name, (_, dark) in _COLOURS.items()})
"""The values for a dark page."""

VARIABLES: Mapping[str, str] = MappingProxyType({light: name for name, light in CSS_LIGHT.items()})
"""The variable that stands for each colour in inline SVG."""
