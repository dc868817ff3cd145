"""Report: what a job has published and what that promises, as one page, as Markdown or as JSON."""

__all__: list[str] = []
