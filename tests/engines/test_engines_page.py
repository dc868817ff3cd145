"""The parts of docs/engines.md that need Spark or Ibis: shown as text there, run here."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

import pytest

import pkdp_pipeline as pkdp

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "examples" / "spark_histogram.py").read_text(encoding="utf-8")


def blocks(section: str) -> list[str]:
    """Return the text blocks of a section."""
    (text,) = re.findall(rf"^## {section}.*?\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_spark_section_shows_what_the_tested_example_does():
    (shown,) = blocks("Spark")
    assert indent(shown, "    ") in EXAMPLE


@pytest.mark.ibis
def test_the_ibis_section_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    (shown,) = blocks("Ibis")
    namespace = {"pkdp": pkdp}
    exec(compile(shown, "docs/engines.md", "exec"), namespace)
    assert namespace["release"].table["count"].tolist() == [82, 103, 117, 82, 149]
    namespace["connection"].disconnect()


def test_the_table_lists_every_frame_that_is_accepted():
    from pkdp_pipeline.engines import ENGINES

    table = PAGE.split("|---|---|---|")[1].split("\n\n")[0]
    for package, name in ENGINES:
        if package == "pkdp_pipeline":
            continue  # what jobs make of their sources
        assert re.search(rf"`{package.strip('_')}\.(\w+\.)?{name}`", table), (package, name)
