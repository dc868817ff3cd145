"""Where releases go: files in a folder for each day, and tables in databases."""

from __future__ import annotations

from pkdp_pipeline.jobs.outputs.files import make_folder, remove_leftovers, write_atomically
from pkdp_pipeline.jobs.outputs.writing import check_outputs, holds_releases, stored_certificate, write_outputs

__all__ = [
    "check_outputs",
    "holds_releases",
    "make_folder",
    "remove_leftovers",
    "stored_certificate",
    "write_atomically",
    "write_outputs",
]
