"""Mistakes seeded into the operators that are shipped: the audit fails on each, and passes without it."""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Callable, Iterable

import pandas as pd
import pytest
from seeded_noise import seeded_noise, start_anew
from thorough import thinned

import pkdp_pipeline.composition.schedule as habits
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.composition.loss_laws import Directions
from pkdp_pipeline.engines.pandas_engine import PandasEngine
from pkdp_pipeline.engines.relation_engine import RelationEngine
from pkdp_pipeline.extras.assurance.audit import audit_cases
from pkdp_pipeline.extras.assurance.audit.cases import battery
from pkdp_pipeline.extras.assurance.audit.findings import Audit
from pkdp_pipeline.extras.assurance.audit.operators import STANDARD
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise
from pkdp_pipeline.releases import public_table as applied
from pkdp_pipeline.releases import publish as publishing
from pkdp_pipeline.releases.release import Release

CASES = {case.name: case for case in battery()}

public, noised, tabled, counting = applied._public, seeded_noise, applied.public_table, applied.count_units


@pytest.fixture
def _noise_with_a_seed(monkeypatch):
    start_anew()
    monkeypatch.setattr(applied, "add_noise", seeded_noise)


def audited(*names: str, samples: int = 120, trials: int = 1, engine: str = "pandas") -> Audit:
    """Audit cases of the battery, by the first of their attackers."""
    cases = [dataclasses.replace(CASES[name], trials=CASES[name].trials[:trials]) for name in names]
    return audit_cases(cases, engines=(engine,), samples=samples)


def one_less(mechanism, counts, *, others=None):
    less = {"k": mechanism.k and mechanism.k - 1}
    if isinstance(mechanism, Count) and mechanism.k_complement:
        less["k_complement"] = mechanism.k_complement - 1
    return public(dataclasses.replace(mechanism, **less), counts, others=others)


def k_off_by_one(patch: pytest.MonkeyPatch) -> None:
    def table(frame, request):
        mechanism = dataclasses.replace(request.mechanism, k=request.mechanism.k - 1)
        return tabled(frame, dataclasses.replace(request, mechanism=mechanism))

    patch.setattr(publishing, "public_table", table)


def k_of_a_count_off_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(applied, "_public", one_less)


def half_the_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(applied, "add_noise", lambda counts, noise, *_: noised(counts, GeometricNoise(2 * noise.epsilon)))


def epsilon_for_the_scale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pkdp_pipeline.releases.public_table.noise_scale", lambda noise, *_: noise.epsilon)


def no_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(applied, "add_noise", lambda counts, noise, *_: list(counts))


def one_noise_for_all_cells(patch: pytest.MonkeyPatch) -> None:
    def same(counts, noise, *_):
        (drawn,) = noised([0], noise)
        return [count + drawn for count in counts]

    patch.setattr(applied, "add_noise", same)


def noise_for_a_change_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(applied, "add_noise", lambda counts, noise, *_: noised(counts, noise))


def what_people_add_as_it_is(patch: pytest.MonkeyPatch) -> None:
    real = PandasEngine.cells

    def unclamped(self, frame, question):
        wide = dataclasses.replace(question.mechanism, bounds=(-(10**6), 10**6))
        return real(self, frame, dataclasses.replace(question, mechanism=wide))

    patch.setattr(PandasEngine, "cells", unclamped)


def rows_for_units(patch: pytest.MonkeyPatch) -> None:
    for engine in (PandasEngine, RelationEngine):
        for name in ("cells", "tally"):
            real = getattr(engine, name)

            def of_rows(self, frame, question, real=real):
                if isinstance(frame, pd.DataFrame):
                    return real(self, frame.assign(person=range(len(frame))), question)
                return real(self, frame, dataclasses.replace(question, unit=("amount",)))

            patch.setattr(engine, name, of_rows)


def rows_that_name_nobody(patch: pytest.MonkeyPatch) -> None:
    real = PandasEngine.cells

    def counted(self, frame, question):
        names = pd.Series([f"row {place}" for place in range(len(frame))], index=frame.index)
        return real(self, frame.assign(person=frame["person"].fillna(names)), question)

    patch.setattr(PandasEngine, "cells", counted)


def changed_table(
    patch: pytest.MonkeyPatch, change: Callable[[pd.DataFrame, pd.DataFrame, Iterable[int]], pd.DataFrame]
) -> None:
    """Publish what `change` makes of the table, the keys found and the counts before suppression."""

    def table(frame, request):
        counted = counting(frame, request)
        return change(tabled(frame, request), counted.keys, counted.counts)

    patch.setattr(publishing, "public_table", table)


def order_by_an_unreleased_total(patch: pytest.MonkeyPatch) -> None:
    def ordered(table, keys, counts):
        return table.iloc[::-1].reset_index(drop=True) if sum(counts) % 2 else table

    changed_table(patch, ordered)


def first_row_by_an_unreleased_total(patch: pytest.MonkeyPatch) -> None:
    def ordered(table, keys, counts):
        start = sum(counts) % max(1, len(table))
        return pd.concat([table.iloc[start:], table.iloc[:start]], ignore_index=True)

    changed_table(patch, ordered)


def a_row_for_observed_keys(patch: pytest.MonkeyPatch) -> None:
    def marked(table, keys, counts):
        hidden = keys.loc[~keys["cell"].isin(table["cell"])].copy()
        hidden["count"] = pd.array([None] * len(hidden), dtype="Int64")
        return pd.concat([table, hidden]).sort_values("cell", ignore_index=True)

    changed_table(patch, marked)


def a_dtype_for_observed_keys(patch: pytest.MonkeyPatch) -> None:
    def marked(table, keys, counts):
        return table if len(keys) == len(table) else table.astype({"cell": "string"})

    changed_table(patch, marked)


def an_index_of_observed_keys(patch: pytest.MonkeyPatch) -> None:
    real, places = Release.table, []

    def noted(table, keys, counts):
        names = sorted(keys["cell"])
        places[:] = [names.index(key) for key in table["cell"]]
        return table

    changed_table(patch, noted)
    patch.setattr(Release, "table", property(lambda self: real.fget(self).set_axis(list(places))))


def a_warning_when_something_is_hidden(patch: pytest.MonkeyPatch) -> None:
    def warned(table, keys, counts):
        if len(keys) > len(table):
            warnings.warn("cells were suppressed", stacklevel=1)
        return table

    changed_table(patch, warned)


def a_log_of_what_is_hidden(patch: pytest.MonkeyPatch) -> None:
    def logged(table, keys, counts):
        logging.getLogger("pkdp_pipeline.anywhere").debug("%d cells", len(keys))
        return table

    changed_table(patch, logged)


def an_error_for_somebody_alone(patch: pytest.MonkeyPatch) -> None:
    def refused(table, keys, counts):
        if 1 in counts:
            raise ValueError("a cell has too few people")
        return table

    changed_table(patch, refused)


def zero_where_nobody_is(patch: pytest.MonkeyPatch) -> None:
    def shown(mechanism, counts, *, others=None):
        values = public(mechanism, counts, others=others)["count"]
        zeros = [0 if count == 0 else value for count, value in zip(counts, values, strict=True)]
        return {"count": pd.array(zeros, dtype="Int64")}

    patch.setattr(applied, "_public", shown)


def small_counts_as_they_are(patch: pytest.MonkeyPatch) -> None:
    def shown(mechanism, counts, *, others=None):
        table = public(mechanism, counts, others=others)
        return table | {"count": pd.array(counts, dtype="Int64")}

    patch.setattr(applied, "_public", shown)


def marks_of_smaller_counts(patch: pytest.MonkeyPatch) -> None:
    def shown(mechanism, counts, *, others=None):
        table = public(mechanism, counts, others=others)
        return table | {"exact": pd.array([count >= mechanism.k - 1 for count in counts], dtype="boolean")}

    patch.setattr(applied, "_public", shown)


def no_release_threshold(patch: pytest.MonkeyPatch) -> None:
    def shown(mechanism, counts, *, others=None):
        return public(dataclasses.replace(mechanism, release_threshold=None), counts, others=others)

    patch.setattr(applied, "_public", shown)


def k_after_the_noise(patch: pytest.MonkeyPatch) -> None:
    def shown(mechanism, counts, *, others=None):
        least = mechanism.release_threshold or 0
        noisy = noised([count if count >= mechanism.k else count + 1 for count in counts], mechanism.noise)
        shown = [value if value >= mechanism.k - least else None for value in noisy]
        return {"count": pd.array(shown, dtype="Int64")}

    patch.setattr(applied, "_public", shown)


def delta_halved(patch: pytest.MonkeyPatch) -> None:
    real = Certificate.delta
    patch.setattr(Certificate, "delta", lambda self, epsilon: real(self, epsilon) / 2)


def days_in_one_direction(patch: pytest.MonkeyPatch) -> None:
    real = habits.directions

    def either_direction(bounds, protects):
        both = real(bounds, protects)
        return Directions(right=both.left or both.right)

    patch.setattr(habits, "directions", either_direction)


def noise_anew_at_a_replay(patch: pytest.MonkeyPatch) -> None:
    real = publishing.publish

    def anew(source, publication):
        release = real(source, publication)
        if release.replayed:
            return Release.seal(tabled(source(), publication.question), release.certificate)
        return release

    patch.setattr(publishing, "publish", anew)


def a_revision_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pkdp_pipeline.ledger.ledger.Ledger.total", lambda self: next(iter(self.entries())) and single(self))


def single(ledger) -> Certificate:
    return Certificate.from_json(next(iter(ledger.entries())).certificate)


#: The fault, the case that finds it, how many samples are asked for, the engine.
FAULTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str, int, str]] = [
    (k_off_by_one, "histogram, controlled people", 30, "pandas"),
    (k_of_a_count_off_by_one, "count, k", 80, "polars"),
    (half_the_noise, "histogram, more noise", 30, "pandas"),
    (rows_that_name_nobody, "histogram, controlled people", 30, "pandas"),
    (one_noise_for_all_cells, "histogram, noise", 30, "pandas"),
    (rows_for_units, "histogram, one_cell first", 30, "pandas"),
    (epsilon_for_the_scale, "histogram, more noise", 24, "pandas"),
    (order_by_an_unreleased_total, "whole table, cells found", 60, "polars"),
    (a_row_for_observed_keys, "histogram, cells found", 30, "pandas"),
    (zero_where_nobody_is, "histogram, cells declared", 30, "polars"),
    (no_release_threshold, "histogram, k, noise, release_threshold", 30, "pandas"),
    (k_after_the_noise, "histogram, k, noise, release_threshold", 30, "pandas"),
    (delta_halved, "two days in a ledger", 24, "pandas"),
    (days_in_one_direction, "two days in a ledger", 30, "pandas"),
    (noise_anew_at_a_replay, "the same request again", 40, "pandas"),
    (a_revision_for_nothing, "a request and its revision", 40, "pandas"),
    (k_off_by_one, "several cells, k", 40, "polars"),
    (marks_of_smaller_counts, "histogram, noised below k", 40, "pandas"),
    (small_counts_as_they_are, "histogram, noised below k", 40, "pandas"),
    (noise_for_a_change_by_one, "sum", 20, "pandas"),
    (what_people_add_as_it_is, "sum", 20, "pandas"),
    (noise_for_a_change_by_one, "sum, a bound below 0", 20, "polars"),
    (what_people_add_as_it_is, "sum, cells found", 60, "pandas"),
]
#: Faults of thresholds, noise, units and cells that are found in less than half a second.
QUICK = {no_release_threshold, one_noise_for_all_cells, rows_for_units, a_row_for_observed_keys, zero_where_nobody_is}
MORE: list[tuple[Callable[[pytest.MonkeyPatch], None], str, int, str]] = [
    (k_of_a_count_off_by_one, "count, k_complement", 120, "pandas"),
    (no_noise, "count, noise", 120, "pandas"),
    (no_release_threshold, "count, k, noise, release_threshold", 120, "pandas"),
    (rows_for_units, "count, k", 120, "pandas"),
    (k_off_by_one, "histogram, controlled people", 60, "sql"),
    (half_the_noise, "histogram, more noise", 60, "pyarrow"),
    (rows_for_units, "histogram, one_cell first", 60, "duckdb"),
    (order_by_an_unreleased_total, "whole table, cells declared", 120, "pandas"),
    (first_row_by_an_unreleased_total, "whole table, cells found", 120, "pandas"),
    (a_row_for_observed_keys, "whole table, cells found", 120, "pandas"),
    (a_dtype_for_observed_keys, "whole table, cells found", 120, "pandas"),
    (an_index_of_observed_keys, "whole table, cells found", 120, "pandas"),
    (a_warning_when_something_is_hidden, "whole table, cells found", 120, "pandas"),
    (a_log_of_what_is_hidden, "whole table, cells found", 120, "pandas"),
    (k_off_by_one, "histogram, noised below k", 60, "duckdb"),
    (k_of_a_count_off_by_one, "count, noised below k", 120, "pandas"),
    (half_the_noise, "histogram, noised below k", 60, "pandas"),
    (an_error_for_somebody_alone, "whole table, cells found", 120, "pandas"),
]


def named(value: object) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.usefixtures("_noise_with_a_seed")
@pytest.mark.parametrize(
    ("fault", "case", "samples", "engine"),
    [pytest.param(*given, marks=() if given[0] in QUICK else pytest.mark.slow) for given in FAULTS],
    ids=named,
)
def test_a_seeded_fault_is_found(fault, case, samples, engine, monkeypatch):
    fault(monkeypatch)
    audit = audited(case, samples=samples, engine=engine)
    assert not audit.passed, str(audit)


@pytest.mark.slow
@pytest.mark.usefixtures("_noise_with_a_seed")
@pytest.mark.parametrize(("fault", "case", "samples", "engine"), MORE, ids=named)
def test_more_seeded_faults_are_found(fault, case, samples, engine, monkeypatch):
    fault(monkeypatch)
    audit = audited(case, samples=samples, engine=engine)
    assert not audit.passed, str(audit)


@thinned(2)
@pytest.mark.parametrize("name", list(CASES)[::8])
def test_the_shipped_operators_pass(name):
    case = dataclasses.replace(CASES[name], trials=CASES[name].trials[-1:])
    audit = audit_cases([case], engines=("polars",), samples=8)
    assert audit.passed, str(audit)
    assert not audit.not_audited


@pytest.mark.slow
@pytest.mark.parametrize("engine", STANDARD)
def test_the_shipped_operators_pass_on_every_engine(engine):
    audit = audit_cases(battery(), engines=(engine,), paced=True)
    assert audit.passed, str(audit)
    assert {finding.case for finding in audit.findings} | {skipped.case for skipped in audit.not_audited} == set(CASES)
    if engine == "pandas":
        blind = {finding.case for finding in audit.findings} - {
            finding.case for finding in audit.findings if finding.could_see is not None
        }
        assert blind == set()  # every case could have failed
