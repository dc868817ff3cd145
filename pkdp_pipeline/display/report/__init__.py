"""Report: what a job has published and what that promises, as one page, as Markdown or as JSON."""

from __future__ import annotations

from typing import Literal

from pkdp_pipeline.display.content import Report
from pkdp_pipeline.display.figures import need_matplotlib
from pkdp_pipeline.display.report.forms import to_html, to_json, to_markdown
from pkdp_pipeline.errors import ArgumentError

__all__ = ["FORMATS", "Format", "render"]

Format = Literal["html", "md", "json"]

FORMATS: tuple[Format, ...] = ("html", "md", "json")
"""What a report can be rendered to; HTML needs the extra ``report``."""


def render(report: Report, format: Format) -> str:
    """Return a report as a text.

    Parameters
    ----------
    report : Report
    format : {"html", "md", "json"}
        One page of HTML without scripts from elsewhere; Markdown; or JSON, as
        ``pkdp_pipeline/schemas/report.v1.json`` describes it.

    Raises
    ------
    ArgumentError
        If there is no such format.
    ConfigError
        If HTML is asked for and the extra ``report`` is not installed.
    """
    if format == "html":
        need_matplotlib()
        return to_html(report)
    if format == "md":
        return to_markdown(report)
    if format == "json":
        return to_json(report)
    raise ArgumentError(f"format must be html, md or json, got {format!r}.")
