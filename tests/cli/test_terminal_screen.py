"""Paragraphs on a screen are wrapped where a reader would not be misled."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pkdp_pipeline.cli.screen import Screen


@pytest.mark.parametrize("width", range(14, 40))
def test_no_line_ends_inside_a_number(width):
    text = io.StringIO()
    said = "At ε = 0.5 and δ = 1e-6, or 50 % of p_max = 0.1, by rule 7, is entry no. 3 of 365."
    Screen(Console(file=text, width=width, markup=False, highlight=False)).say(said)
    assert " ".join(text.getvalue().split()) == said
    for line in text.getvalue().splitlines():
        assert not line.rstrip().endswith(("=", "ε", "δ", "no.", "rule", "p_max", " 50")), line
        assert "\u00a0" not in line
