"""Releases with keys of every kind, for the tests of outputs."""

from __future__ import annotations

import datetime
import decimal

import pandas as pd
from hypothesis import strategies as st

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.keys import Domain, canonical_key
from pkdp_pipeline.releases.release import Release

CERTIFICATE = pkdp.certify(pkdp.Histogram(k=5), pkdp.AttackerModel(p_max=0.5))

MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
KINDS = {
    "text": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8),
    "boolean": st.booleans(),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "natural": st.integers(2**63, 2**64 - 1),
    "decimal": st.decimals(-(10**12), 10**12, allow_nan=False, allow_infinity=False, places=3),
    "real": st.floats(allow_nan=False),
    "date": st.dates(),
    "timestamp": MOMENTS.map(pd.Timestamp),
    "instant": MOMENTS.map(lambda moment: pd.Timestamp(moment, tz="Europe/Oslo")),
}
COUNTS = st.none() | st.integers(5, 2**62)


def seal(table: pd.DataFrame, dataset: str = "visits", unit: str = "person") -> Release:
    """Return a release of any table."""
    context = Context(unit=(unit,), period="2020-01-01", dataset=dataset, cells="declared")
    return Release.seal(table, CERTIFICATE.in_context(context))


def release(keys: dict[str, list], counts: list, **about: str) -> Release:
    """Return a release whose key columns have the types that declared cells give them."""
    cells = list(zip(*keys.values(), strict=True)) if len(keys) > 1 else list(*keys.values())
    table = Domain.parse(tuple(keys), cells).keys() if cells else pd.DataFrame({name: [] for name in keys}, dtype="str")
    table["count"] = pd.array(counts, dtype="Int64")
    return seal(table, **about)


@st.composite
def releases(draw, kinds=tuple(KINDS)):
    """Draw a release with one to three key columns, missing keys among them."""
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))
    columns = [KINDS[kind] | st.none() for kind in chosen]
    cells = draw(st.lists(st.tuples(*columns), min_size=1, max_size=6, unique_by=lambda cell: tuple(map(str, cell))))
    for place, kind in enumerate(chosen):  # a column that is missing everywhere has no kind
        if all(cell[place] is None for cell in cells):
            cells[0] = (*cells[0][:place], draw(KINDS[kind]), *cells[0][place + 1 :])
    cells = list(dict.fromkeys(cells))
    names = draw(st.permutations(['"q', "select", "Ås by", "a,b", "x%s"]))[: len(chosen)]
    counts = draw(st.lists(COUNTS, min_size=len(cells), max_size=len(cells)))
    return release({name: [cell[place] for cell in cells] for place, name in enumerate(names)}, counts)


def rows(released: Release) -> list[tuple]:
    """Return a release's rows as plain values, instants in UTC."""
    return [
        tuple(map(plain, row)) for row in zip(*(released.table[name].array for name in released.table), strict=True)
    ]


def plain(value):
    value = canonical_key(value)
    if isinstance(value, pd.Timestamp) and value.tz is not None:
        return value.tz_convert("UTC")
    if isinstance(value, decimal.Decimal):
        return value.normalize()
    return value
