"""Mistakes that look harmless, seeded into the operators that are shipped: the audit fails on each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from seeded_noise import seeded_noise, start_anew

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.engines.pandas_engine import PandasEngine
from pkdp_pipeline.errors import InputCheckError
from pkdp_pipeline.extras.assurance.audit import audit_cases
from pkdp_pipeline.extras.assurance.audit.cases import battery
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise
from pkdp_pipeline.releases import public_table as applied
from pkdp_pipeline.releases import publish as publishing
from pkdp_pipeline.releases import release as releasing
from pkdp_pipeline.releases.release import Release

CASES = {case.name: case for case in battery()}

public, noised, tabled, counting = applied._public, seeded_noise, applied.public_table, applied.count_units


@pytest.fixture
def _noise_with_a_seed(monkeypatch):
    start_anew()
    monkeypatch.setattr(applied, "add_noise", seeded_noise)


Patch = pytest.MonkeyPatch


def changed_table(patch: Patch, change: Callable) -> None:
    """Publish what `change` makes of the table and of what was counted."""

    def table(frame, request):
        counted = counting(frame, request)
        return change(tabled(frame, request), counted)

    patch.setattr(publishing, "public_table", table)


def noise_of(patch: Patch, change: Callable) -> None:
    patch.setattr(applied, "add_noise", change)


def twice_the_epsilon(patch: Patch) -> None:
    noise_of(patch, lambda counts, noise, *_: noised(counts, GeometricNoise(2 * noise.epsilon)))


def a_dtype_for_strangers(patch: Patch) -> None:
    def marked(table, counted):
        return table.astype({"cell": "category"}) if counted.undeclared_cells else table

    changed_table(patch, marked)


def rows_in_the_order_of_hidden_counts(patch: Patch) -> None:
    def ordered(table, counted):
        order = np.argsort(-np.array(counted.counts), kind="stable")
        return table.iloc[order].reset_index(drop=True)

    changed_table(patch, ordered)


def a_row_for_the_rest(patch: Patch) -> None:
    def rest(table, counted):
        hidden = sum(counted.counts) - int(table["count"].sum())
        row = pd.DataFrame({"cell": ["the rest"], "count": pd.array([hidden], dtype="Int64")})
        return pd.concat([table, row], ignore_index=True)

    changed_table(patch, rest)


def a_total_that_is_odd(patch: Patch) -> None:
    def refused(table, counted):
        if sum(counted.counts) % 2:
            raise InputCheckError("The input is not as declared.")
        return table

    changed_table(patch, refused)


def another_dtype_where_some_are_hidden(patch: Patch) -> None:
    def marked(table, counted):
        return table if len(counted.counts) == len(table) else table.astype({"count": "Int32"})

    changed_table(patch, marked)


def complement_in_the_file(patch: Patch) -> None:
    real, kept = releasing.parquet_bytes, []

    def noting(table, counted):
        kept[:] = [counted.others]
        return table

    def written(table, certificate):
        content = real(table, certificate)
        table_read = pq.read_table(pa.BufferReader(content))
        sink = pa.BufferOutputStream()
        pq.write_table(
            table_read.replace_schema_metadata({**table_read.schema.metadata, b"others": str(*kept).encode()}), sink
        )
        return bytes(sink.getvalue().to_pybytes())

    changed_table(patch, noting)
    patch.setattr(releasing, "parquet_bytes", written)


def a_caveat_when_somebody_is_hidden(patch: Patch) -> None:
    real, hidden = Release.seal.__func__, []

    def noting(table, counted):
        hidden[:] = [len(counted.counts) > len(table)]
        return table

    def sealed(cls, table, certificate):
        if any(hidden):
            certificate = certificate.with_caveats("Small cells were withheld.")
        return real(cls, table, certificate)

    changed_table(patch, noting)
    patch.setattr(Release, "seal", classmethod(sealed))


def attributes_of_the_table(patch: Patch) -> None:
    real, totals = Release.table, []

    def noting(table, counted):
        totals[:] = [sum(counted.counts)]
        return table

    def table(self):
        shown = real.fget(self)
        shown.attrs["rows"] = totals[0]
        return shown

    changed_table(patch, noting)
    patch.setattr(Release, "table", property(table))


def empty_cells_get_no_noise(patch: Patch) -> None:
    def noised_nonempty(counts, noise, *_):
        return [noisy if count else 0 for count, noisy in zip(counts, noised(counts, noise), strict=True)]

    noise_of(patch, noised_nonempty)


def noise_that_only_adds(patch: Patch) -> None:
    def added(counts, noise, *_):
        return [max(count, noisy) for count, noisy in zip(counts, noised(counts, noise), strict=True)]

    noise_of(patch, added)


def noise_that_is_cut_off(patch: Patch) -> None:
    def cut(counts, noise, *_):
        return [
            min(max(noisy, count - 2), count + 2) for count, noisy in zip(counts, noised(counts, noise), strict=True)
        ]

    noise_of(patch, cut)


def noise_that_keeps_the_total(patch: Patch) -> None:
    def kept(counts, noise, *_):
        noisy = noised(counts, noise)
        return [*noisy[:-1], noisy[-1] + sum(counts) - sum(noisy)]

    noise_of(patch, kept)


def noise_once_and_for_all(patch: Patch) -> None:
    drawn: dict[int, int] = {}

    def same(counts, noise, *_):
        for place in range(len(counts)):
            drawn.setdefault(place, noised([0], noise)[0])
        return [count + drawn[place] for place, count in enumerate(counts)]

    noise_of(patch, same)


def everybody_in_all_their_cells(patch: Patch) -> None:
    real = PandasEngine.cells

    def all_of_them(self, frame, question):
        frame = frame.assign(person=frame["person"].astype("str") + frame["cell"])
        return real(self, frame, dataclasses.replace(question, one_cell="error", order_by=()))

    patch.setattr(PandasEngine, "cells", all_of_them)


def the_cell_of_the_most_people(patch: Patch) -> None:
    real = PandasEngine.cells

    def crowded(self, frame, question):
        rows = frame.groupby("cell")["person"].transform("nunique")
        return real(self, frame.assign(turn=-rows), dataclasses.replace(question, one_cell="first", order_by=("turn",)))

    patch.setattr(PandasEngine, "cells", crowded)


def nameless_rows_are_a_person(patch: Patch) -> None:
    real = PandasEngine.tally

    def tally(self, frame, question):
        return real(self, frame.assign(person=frame["person"].fillna("nobody")), question)

    patch.setattr(PandasEngine, "tally", tally)


def presence_certified_for_value(patch: Patch) -> None:
    patch.setattr(
        publishing.Publication, "certified_alone", lambda self: certify(self.question.mechanism, self.attacker)
    )


def rows_for_people(patch: Patch) -> None:
    real = PandasEngine.tally
    patch.setattr(
        PandasEngine,
        "tally",
        lambda self, frame, question: real(self, frame.assign(person=range(len(frame))), question),
    )


def k_complement_off_by_one(patch: Patch) -> None:
    def shown(mechanism, counts, *, others=None):
        if isinstance(mechanism, Count) and others is not None:
            others += 1
        return public(mechanism, counts, others=others)

    patch.setattr(applied, "_public", shown)


def one_who_is_below_k_slips_through(patch: Patch) -> None:
    patch.setattr(
        applied,
        "_public",
        lambda mechanism, counts, *, others=None: public(
            dataclasses.replace(mechanism, k=mechanism.k - 1), counts, others=others
        ),
    )


def a_revision_with_the_noise_of_before(patch: Patch) -> None:
    drawn: list[list[int]] = []
    real = publishing.publish

    def kept(counts, noise, *_):
        if not drawn:
            drawn.append([noisy - count for count, noisy in zip(counts, noised(counts, noise), strict=True)])
        return [count + noisy for count, noisy in zip(counts, drawn[0], strict=True)]

    def published(source, publication):
        if not publication.revise:
            drawn.clear()
        return real(source, publication)

    noise_of(patch, kept)
    patch.setattr(publishing, "publish", published)


def counted_otherwise(patch: Patch, change: Callable[[pd.DataFrame, int], pd.DataFrame]) -> None:
    """Count each of the rows that `change` leaves of pairs of person and cell, given how many a person may have."""
    real = PandasEngine.cells

    def counted(self, frame, question):
        pairs = change(frame.drop_duplicates(["person", "cell"]), question.cells_per_unit)
        return real(self, pairs.assign(person=range(len(pairs))), question)

    patch.setattr(PandasEngine, "cells", counted)


def nobody_is_capped(patch: Patch) -> None:
    counted_otherwise(patch, lambda pairs, most: pairs)


def nobody_is_refused(patch: Patch) -> None:
    counted_otherwise(patch, lambda pairs, most: pairs)


def one_cell_too_many(patch: Patch) -> None:
    def drawn(pairs, most):
        order = pd.util.hash_pandas_object(pairs[["person", "cell"]], index=False).argsort()
        return pairs.iloc[order].groupby("person").head(most + 1)

    counted_otherwise(patch, drawn)


def the_cells_with_most_people(patch: Patch) -> None:
    def most_people(pairs, most):
        people = -pairs.groupby("cell")["person"].transform("size")
        ranked = pairs.assign(people=people).sort_values(["people", "cell"], kind="stable")
        return ranked.groupby("person").head(most)

    counted_otherwise(patch, most_people)


def one_noise_for_all_cells(patch: Patch) -> None:
    def same(counts, noise, *_):
        (drawn,) = noised([0], noise)
        return [count + drawn for count in counts]

    noise_of(patch, same)


#: The fault, and the case that finds it with the samples that `pkdp audit` draws.
FAULTS: list[tuple[Callable[[Patch], None], str]] = [
    (complement_in_the_file, "count, k_complement"),
    (nameless_rows_are_a_person, "count, k"),
    (one_who_is_below_k_slips_through, "count, k"),
    (k_complement_off_by_one, "count, k_complement"),
    (a_row_for_the_rest, "whole table, cells found"),
    (a_total_that_is_odd, "whole table, cells found"),
    (another_dtype_where_some_are_hidden, "whole table, cells found"),
    (a_caveat_when_somebody_is_hidden, "whole table, cells found"),
    (attributes_of_the_table, "whole table, cells found"),
    (a_dtype_for_strangers, "whole table, cells declared"),
    (noise_that_keeps_the_total, "whole table, noise"),
    (rows_in_the_order_of_hidden_counts, "histogram, cells declared"),
    (everybody_in_all_their_cells, "histogram, one_cell first"),
    (the_cell_of_the_most_people, "histogram, one_cell most_frequent"),
    (empty_cells_get_no_noise, "histogram, noise"),
    (noise_that_only_adds, "histogram, noise"),
    (noise_once_and_for_all, "histogram, more noise"),
    (noise_that_is_cut_off, "histogram, more noise"),
    (presence_certified_for_value, "histogram, noise, value"),
    (a_revision_with_the_noise_of_before, "a request and its revision"),
    (one_cell_too_many, "several cells, noise"),
    (the_cells_with_most_people, "several cells, noise, others in more"),
    (one_noise_for_all_cells, "several cells, noise, others in more"),
    (nobody_is_capped, "several cells, k, noise, release_threshold"),
    (nobody_is_capped, "several cells, noise"),
    (nobody_is_refused, "several cells, too many"),
    (twice_the_epsilon, "count, noise"),
    (rows_for_people, "count, k_complement"),
]


def named(value: object) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.slow
@pytest.mark.usefixtures("_noise_with_a_seed")
@pytest.mark.parametrize(("fault", "case"), FAULTS, ids=named)
def test_a_subtle_fault_is_found(fault, case, monkeypatch):
    fault(monkeypatch)
    audit = audit_cases([CASES[case]], engines=("pandas",))
    assert not audit.passed, str(audit)
