"""Where releases go: files in a folder for each day, and tables in databases."""

from __future__ import annotations

from pkdp_pipeline.jobs.outputs.files import day_folders, make_folder, remove_leftovers, write_atomically
from pkdp_pipeline.jobs.outputs.writing import check_outputs, write_outputs

__all__ = [
    "check_outputs",
    "day_folders",
    "make_folder",
    "remove_leftovers",
    "write_atomically",
    "write_outputs",
]
