"""Tables at several levels of a hierarchy: what is derived from the finest, and what a table of each costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import positive_real
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import GeometricNoise, Histogram
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.plugins import view
from pkdp_pipeline.releases.derived import expected_error


def levels_document(codes: Path, epsilon: float, delta: float) -> dict[str, Any]:
    """Return the levels of a code list, with noise of `epsilon` in all on the finest alone, or shared by all of them.

    Raises `ArgumentError` if the file is no hierarchy, or has one level only; `ConfigError` if it cannot be read.
    """
    hierarchy = view("tables.hierarchy").from_csv(codes)
    if hierarchy.levels == 1:
        raise ArgumentError("the code list has one level only: give each code its parent.")
    whole = Histogram(noise=GeometricNoise(positive_real("--noise", epsilon)))
    shared = Histogram(noise=GeometricNoise(epsilon / hierarchy.levels))
    each, of_level = (expected_error(mechanism).standard_deviation for mechanism in (whole, shared))
    below = Counter(node for leaf in hierarchy.leaves for node in (leaf, *hierarchy.ancestors(leaf)))
    promises = [certify(whole, AttackerModel())] * hierarchy.levels
    levels = []
    for level in range(hierarchy.levels):
        largest = max(below[code] for code in hierarchy.at(level))
        levels.append(
            {
                "level": level,
                "cells": len(hierarchy.at(level)),
                "codes_below": largest,
                "error_derived": each * math.sqrt(largest),
                "error_published": of_level,
            }
        )
    return {
        "levels": levels,
        "epsilon": promises[0].worst_case.epsilon(delta),
        "epsilon_each_level": compose(promises, None).worst_case.epsilon(delta),
        "delta": delta,
    }


def print_levels(screen: Screen, document: Mapping[str, Any]) -> None:
    """Print the levels, and what may be published of them."""
    number, epsilon = len(document["levels"]), rounded_up(document["epsilon"])
    screen.head("Levels")
    screen.table(
        ("level", "cells", "codes below", "error, derived", "error, published"),
        [
            (
                *(str(level[name]) for name in ("level", "cells", "codes_below")),
                *(rounded_up(level[name]) for name in ("error_derived", "error_published")),
            )
            for level in document["levels"]
        ],
    )
    screen.say(
        "codes below: of a cell, without children, at most; error: the standard deviation of the noise of a number."
    )
    for title, words in (
        (
            "Derived",
            "One table of the finest level, with noise or k; release.along sums it. Sums follow from what is public, "
            f"so that all levels together have the promise of that release: with this noise ε = {epsilon}. Where a k "
            "hides cells, the sums above them are intervals.",
        ),
        (
            "Published at each level",
            f"A person is in a cell of each of {number} tables, so that their ε add up: with ε = {epsilon} each to "
            f"{rounded_up(document['epsilon_each_level'])}. The last column has ε / {number} for each, which is "
            f"{epsilon} in all: better for a level where it is below the column before.",
        ),
        (
            "Without noise",
            "A second level about the same people is refused: what one table tells of others takes away what hides a "
            "person in the next. Exact totals of a coarser level can stand beside the finest where everybody knows "
            "them anyway: margins of a job's table. Hidden is then in which cell of her group a person is, not the "
            "group.",
        ),
    ):
        screen.head(title)
        screen.say(words)
