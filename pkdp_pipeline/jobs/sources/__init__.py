"""Sources: the rows of one day of a job's data, each read by a module that is imported when a job needs it.

Their keys in a job file are in `jobs.source_tables`: each table there names its reader.
"""

from __future__ import annotations

from pkdp_pipeline.jobs.sources.source import Kind, Needs, Source

__all__ = ["Kind", "Needs", "Source"]
