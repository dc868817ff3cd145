"""A small job about people in towns, for the tests of reports."""

from __future__ import annotations

import datetime

import pandas as pd

__all__ = ["BASIC", "DAY", "NOISY", "TOWNS", "dates", "visits"]

DAY = datetime.date(2020, 1, 1)

BASIC = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    missing_unit = "drop"
    ledger = "ledger/visits.sqlite"
    evidence = { kind = "one_day_protected" }
    budget = { epsilon = 9.0, delta = 1e-6, part = "partial_knowledge" }

    [attacker]
    p_max = 0.1

    [[release]]
    name = "people_by_town"
    by = "town"
    k = 20

    [output]
    directory = "out"
"""

#: In every town so many people a day; who is below k is never to be heard of.
TOWNS = {"Ås": 37, "Bø": 25, "Secretville": 17}


def visits(days: int = 3, towns: dict[str, int] = TOWNS) -> pd.DataFrame:
    """Return the people of every town, on each of some days."""
    rows = [
        (DAY + datetime.timedelta(days=day), f"{town} {person}", town)
        for day in range(days)
        for town, people in towns.items()
        for person in range(people + day)
    ]
    return pd.DataFrame(rows, columns=["day", "person", "town"])


def dates(number: int) -> list[datetime.date]:
    """Return the first days."""
    return [DAY + datetime.timedelta(days=day) for day in range(number)]


#: Two noised releases a day, without evidence.
NOISY = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    ledger = "ledger/visits.sqlite"

    [[release]]
    name = "people"
    noise = { epsilon = 0.5 }

    [[release]]
    name = "people_by_town"
    by = "town"
    domain = { town = ["Ås", "Bø", "Secretville"] }
    k = 20
    noise = { epsilon = 0.5 }
    release_threshold = 24

    [output]
    directory = "out"
"""
