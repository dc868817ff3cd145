from __future__ import annotations

import pytest

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.period import dataset_name, folded


@pytest.mark.parametrize("other", ["flights eu", "FLIGHTS  EU", "Ｆlights EU"])
def test_spellings_of_one_name_fold_to_the_same(other):
    assert folded(dataset_name(other)) == folded("Flights EU")


def test_letters_beyond_ascii_fold():
    assert folded("Straße É") == folded("STRASSE E\u0301")
    assert folded("flights") != folded("flight s")


def test_a_name_keeps_its_letter_case():
    assert dataset_name("  Flights  EU") == "Flights EU"


@pytest.mark.parametrize(
    "name", ["", " ", None, 3, "a\0b", "\u3000", "a\nb", "a\tb", "a\n", "a\x1fb", "a\x85b", "a\u2028b"]
)
def test_a_name_says_something(name):
    with pytest.raises(ArgumentError, match="dataset"):
        dataset_name(name)
