"""Report: what a job has published and what that promises, as one page, as Markdown or as JSON."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from pkdp_pipeline.errors import ArgumentError, ConfigError

if TYPE_CHECKING:
    from pkdp_pipeline.display.content import Report

__all__ = ["FORMATS", "Format", "check_extra", "render"]

Format = Literal["html", "md", "json"]

FORMATS: tuple[Format, ...] = ("html", "md", "json")
"""What a report can be rendered to; HTML needs the extra ``report``."""


def check_extra() -> None:
    """Refuse HTML where what draws it is not installed.

    Raises
    ------
    ConfigError
    """
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"a report in HTML needs {' and '.join(missing)}: pip install 'pkdp-pipeline[report]'. Markdown and JSON "
            "(pkdp report --format md, --format json) need neither."
        )


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
        check_extra()
        from pkdp_pipeline.display.report.html import to_html

        return to_html(report)
    if format == "md":
        from pkdp_pipeline.display.report.markdown import to_markdown

        return to_markdown(report)
    if format == "json":
        from pkdp_pipeline.display.report.json_form import to_json

        return to_json(report)
    raise ArgumentError(f"format must be html, md or json, got {format!r}.")
