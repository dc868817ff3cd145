"""The gallery, a notebook with stored results, is run again and shows the same."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.docs

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: Pictures differ with fonts and versions of matplotlib; that there is one does not.
PICTURES = {"image/png"}


def without_hashes(text: str) -> str:
    """Return a text without hashes: they change with the last digit of a number, which another processor may round."""
    return re.sub(r"\b[0-9a-f]{64}\b", "…", text)


def results(cell: Any) -> list[dict[str, str]]:
    return [
        {
            kind: "…" if kind in PICTURES else without_hashes("".join(text))
            for kind, text in output.get("data", {}).items()
        }
        if output["output_type"] in ("execute_result", "display_data")
        else {output["output_type"]: str(output)}
        for output in cell.get("outputs", [])
    ]


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(DOCS / "gallery.ipynb", as_version=4)


def test_the_gallery_shows_what_it_prints_when_it_is_run(stored):
    fresh = copy.deepcopy(stored)
    client = NotebookClient(fresh, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(DOCS)}})
    client.execute()
    for before, after in zip(stored.cells, fresh.cells, strict=True):
        assert results(before) == results(after), before["source"]


def test_the_gallery_has_pictures_and_no_errors_or_traces_of_where_it_was_made(stored):
    shown = [output for cell in stored.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in shown) >= 4
    assert {output["output_type"] for output in shown} <= {"execute_result", "display_data"}
    text = (DOCS / "gallery.ipynb").read_text(encoding="utf-8")
    assert str(Path.home()) not in text
    assert str(DOCS.parent) not in text
    assert len(text) < 1_000_000
