from __future__ import annotations

import textwrap
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import Markup
from visit_jobs import BASIC, visits

from pkdp_pipeline.extras.report import pages as forms
from pkdp_pipeline.jobs import load_job


@pytest.fixture
def job_file(tmp_path):
    """Return a function that writes a job file beside a small source."""

    def write(text: str = BASIC, frame: pd.DataFrame | None = None, name: str = "job") -> Path:
        (visits() if frame is None else frame).to_parquet(tmp_path / "visits.parquet")
        path = tmp_path / f"{name}.toml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def job(job_file):
    """Return a function that reads such a job."""

    def read(*arguments, **names):
        return load_job(job_file(*arguments, **names))

    return read


@pytest.fixture
def undrawn(monkeypatch):
    """Leave what is drawn out of pictures, which takes most of a page's time, but not what is said of them."""

    def drawn(*values, title, description, **more):
        return Markup("<svg><title>{}</title><desc>{}</desc></svg>").format(title, description)

    monkeypatch.setattr(forms, "_drawn", drawn)
