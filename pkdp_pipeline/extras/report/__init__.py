"""Everything that people look at: figures, reports, and text on a terminal, which templates become."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["environment"]


def environment(folder: str) -> Environment:
    """Return what fills the templates in a folder of this package; those of HTML escape what they are given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__name__, folder),
        autoescape=lambda name: name is None or name.endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
