"""Report: what a job has published and what that promises, as one page, as Markdown or as JSON."""

from __future__ import annotations

from typing import Literal

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.report.content import Report
from pkdp_pipeline.extras.report.figures import need_matplotlib
from pkdp_pipeline.extras.report.pages.forms import Reader, for_officer, to_html, to_json, to_markdown
from pkdp_pipeline.model.arguments import choice

__all__ = ["FORMATS", "READERS", "Format", "Reader", "render"]

Format = Literal["html", "md", "json"]

FORMATS: tuple[Format, ...] = ("html", "md", "json")
"""The formats of a report; HTML needs the extra ``report``."""


READERS: tuple[Reader, ...] = ("everybody", "officer")
"""The readers a page is for."""


def render(report: Report, format: Format, reader: Reader = "everybody") -> str:
    """Return a report as a text.

    Parameters
    ----------
    report : Report
    format : {"html", "md", "json"}
        One page of HTML without scripts from elsewhere; Markdown; or JSON, as
        ``pkdp_pipeline/schemas/report.v1.json`` describes it.
    reader : {"everybody", "officer"}, default "everybody"
        For the officer two pages without pictures, which carry their content in HTML only; and the same JSON.

    Raises
    ------
    ArgumentError
        If there is no such format, or no such reader.
    ConfigError
        If pictures are asked for and the extra ``report`` is not installed.
    """
    choice("reader", reader, READERS)
    if format == "json":
        return to_json(report)
    if format not in FORMATS:
        raise ArgumentError(f"format must be html, md or json, got {format!r}.")
    if reader == "officer":
        return for_officer(report, format)
    if format == "md":
        return to_markdown(report)
    need_matplotlib()
    return to_html(report)
