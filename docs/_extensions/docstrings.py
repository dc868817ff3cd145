"""Docstrings in NumPy style, read by napoleon; types are words with links in them, not names of classes."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, NumpyDocstring

__all__ = ["setup"]

_CONFIG = Config(napoleon_use_rtype=True, napoleon_use_ivar=True)
_TYPE = re.compile(r":((?:type|vartype) [^:]+|rtype|type): (.+)")


def read(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Turn the sections of a docstring into field lists."""
    # Napoleon takes what stands before a colon in a property's docstring for its type.
    kind = "method" if what in ("property", "attribute") else what
    text = NumpyDocstring("\n".join(lines), _CONFIG, app, kind, name, obj, options)
    lines[:] = [_typed(line) for line in text.lines()]


def _typed(line: str) -> str:
    found = _TYPE.fullmatch(line)
    if found is None:
        return line
    words = re.sub(r"\\(.)|[`*]+", lambda part: part[1] or "", found[2])
    return f":{found[1]}: :pkdp-type:`{words}`"


def setup(app: Sphinx) -> dict[str, Any]:
    """Read docstrings."""
    app.connect("autodoc-process-docstring", read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
