"""A release that somebody has altered is found, also where the id was made anew by somebody who knows how."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from published_files import altered, outcome, release, resealed, written
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import release_certificate
from pkdp_pipeline.extras.assurance.verification import verify
from pkdp_pipeline.extras.assurance.verification.claims import Nested
from pkdp_pipeline.extras.assurance.verification.files import release_table_claims
from pkdp_pipeline.ledger.sealed import parquet_content
from pkdp_pipeline.model.keys import domain_dtype


def checked(folder, content):
    verification = verify(written(folder, content), draws=100)
    assert verification.kind == "release"
    assert not verification.passed, str(verification)
    return verification


def first_count(to):
    def change(table: pd.DataFrame) -> pd.DataFrame:
        table.loc[0, "count"] = to
        return table

    return change


def marked(town, count, exact):
    """Return the change of one cell's count and of its mark."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        table.loc[table["town"] == town, ["count", "exact"]] = [count, exact]
        return table

    return change


def one_more_row(table):
    more = pd.DataFrame({"town": ["Zzz"], "count": [99]}).astype(table.dtypes.to_dict())
    return pd.concat([table, more], ignore_index=True)


def rewritten(content, table=None, **metadata):
    """Return a Parquet file with the same metadata, whose id was not made anew."""
    file = pq.ParquetFile(pa.BufferReader(content))
    shown = file.read() if table is None else pa.Table.from_pandas(table(file.read().to_pandas()), preserve_index=False)
    kept = {key: value for key, value in file.metadata.metadata.items() if key != b"ARROW:schema"}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, shown.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(shown)
        writer.add_key_value_metadata({**kept, **{key.encode(): value for key, value in metadata.items()}})
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize(
    "change", [first_count(38), one_more_row, lambda table: table.iloc[:1], lambda t: t.iloc[::-1]]
)
@pytest.mark.usefixtures("unattacked")
def test_a_table_that_was_changed_is_not_that_of_its_id(tmp_path, change):
    verification = checked(tmp_path, rewritten(release(), change))
    assert outcome(verification, "release.id").outcome == "fail"


@pytest.mark.usefixtures("unattacked")
def test_what_else_is_put_into_the_file_is_found(tmp_path):
    verification = checked(tmp_path, rewritten(release(), note=b"Secretville has 17"))
    assert outcome(verification, "release.id").outcome == "pass"
    claim = outcome(verification, "release.content")
    assert claim.outcome == "fail"
    assert "'note'" in claim.detail
    noted = pq.ParquetFile(pa.BufferReader(release())).metadata.metadata[b"pandas"]
    verification = checked(
        tmp_path, rewritten(release(), pandas=noted.replace(b'"attributes": {}', b'"attributes": {"s": 17}'))
    )
    assert outcome(verification, "release.content").outcome == "fail"


@thinned(2)
@pytest.mark.parametrize(
    ("kind", "change", "key"),
    [
        ("found", first_count(19), "table.counts"),
        ("found", first_count(pd.NA), "table.cells"),
        ("declared", first_count(3), "table.counts"),
        ("declared", first_count(-1), "table.counts"),
        ("found", lambda table: table.iloc[::-1].reset_index(drop=True), "table.cells"),
        ("found", lambda table: pd.concat([table, table], ignore_index=True), "table.cells"),
        ("found", lambda table: table.rename(columns={"count": "number"}), "table.columns"),
        ("found", lambda table: table[["count", "town"]], "table.columns"),
        ("found", lambda table: table.assign(town=table["town"].astype("category")), "release.content"),
        ("found", lambda table: table.assign(count=table["count"].astype("float64")), "table.columns"),
        ("found", lambda table: table[["count"]], "table.columns"),
        ("noised", first_count(pd.NA), "table.counts"),
        ("declared, below", marked("Secretville", 19, True), "table.counts"),
        ("declared, below", marked("Ås", 37, pd.NA), "table.counts"),
        ("declared, below", marked("Nowhere", pd.NA, pd.NA), "table.counts"),
        ("declared, below", marked("Nowhere", pd.NA, False), "table.counts"),
        ("found, below", marked("Ås", 4, False), "table.counts"),
        ("found, below", lambda table: table[["town", "count"]], "table.columns"),
        ("found, below", lambda table: table[["town", "exact", "count"]], "table.columns"),
        ("found, below", lambda table: table.assign(exact=table["exact"].astype("Int64")), "table.columns"),
        ("found", lambda table: table.assign(exact=True), "table.columns"),
        ("count", lambda table: pd.concat([table, table], ignore_index=True), "table.cells"),
        ("count", lambda table: table.assign(other=1)[["other", "count"]], "table.columns"),
        ("count", first_count(19), "table.counts"),
    ],
)
@pytest.mark.usefixtures("unattacked")
def test_a_table_that_breaks_a_rule_is_found_although_its_id_was_made_anew(tmp_path, kind, change, key):
    verification = checked(tmp_path, resealed(release(kind), table=change))
    assert outcome(verification, "release.id").outcome == "pass"
    assert outcome(verification, key).outcome == "fail", str(verification)


def test_a_mark_that_was_flipped_is_not_that_of_the_id(tmp_path):
    content = release("declared, below")
    for town in ("Ås", "Nowhere"):
        flipped = rewritten(
            content, lambda table, town=town: table.assign(exact=table["exact"] ^ (table["town"] == town))
        )
        assert outcome(checked(tmp_path, flipped), "release.id").outcome == "fail"


def test_a_certificate_of_declared_cells_is_none_of_found_ones():
    table, metadata = parquet_content(release("found, below"))
    of_found_cells = release_certificate(metadata[b"pkdp.certificate"].decode())
    declared = replace(of_found_cells, mechanism=replace(of_found_cells.mechanism, below="noise"))
    for certificate, expected in ((of_found_cells, "pass"), (declared, "fail")):
        nested = Nested(path="certificate", document={}, certificate=certificate)
        outcomes = {claim.key: claim.outcome for claim in release_table_claims(table, [nested])}
        assert outcomes["table.cells"] == expected


def test_no_byte_of_a_release_can_be_flipped(tmp_path):
    content, rng = release("declared, below"), np.random.default_rng(5)
    for place in rng.integers(0, len(content), few(100, 30)).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        try:
            checked(tmp_path, bytes(flipped))
        except pkdp.ArgumentError:
            continue


def test_keys_whose_type_tells_of_a_withheld_cell_are_found(tmp_path):
    people = pd.DataFrame({"person": range(60), "floor": [1] * 30 + [2] * 30})
    content = people.pkdp.histogram("floor", unit="person", k=20, attacker=pkdp.AttackerModel(p_max=0.1)).to_bytes()
    assert verify(written(tmp_path, content)).passed
    # One missing value that is withheld would turn a column of whole numbers into one of others.
    verification = checked(tmp_path, resealed(content, table=lambda table: table.astype({"floor": "float64"})))
    assert outcome(verification, "table.columns").outcome == "fail"
    assert domain_dtype("integer", [1, 2]) == "int64"


@pytest.mark.parametrize("k", [19, 26])
@pytest.mark.usefixtures("unattacked")
def test_a_changed_k_does_not_fit_the_certificate_or_the_table(tmp_path, k):
    changed = resealed(release(), certificate=lambda document: altered(document, "mechanism", "k", to=k))
    verification = checked(tmp_path, changed)
    assert outcome(verification, "certificate.numbers").outcome == "fail"
    assert (outcome(verification, "table.counts").outcome == "fail") == (k > 25)


def test_a_lowered_delta_inside_a_release_is_found_although_its_id_was_made_anew(tmp_path):
    def lowered(document):
        return altered(document, "grid", 9, "delta", to=lambda delta: delta / 10)

    verification = checked(tmp_path, resealed(release(), certificate=lowered))
    assert outcome(verification, "release.id").outcome == "pass"
    assert outcome(verification, "certificate.numbers").outcome == "fail"
    assert outcome(verification, "certificate.enumerated").outcome == "fail"


@pytest.mark.usefixtures("unattacked")
def test_the_certificate_of_several_releases_is_none_of_a_table(tmp_path):
    import json

    from published_files import composed

    verification = checked(tmp_path, resealed(release(), certificate=lambda _: json.loads(composed().to_json())))
    assert outcome(verification, "table.counts").outcome == "fail"


@pytest.mark.usefixtures("unattacked")
def test_a_count_in_a_context_of_cells_is_none_of_ours(tmp_path):
    changed = resealed(release("count"), certificate=lambda document: altered(document, "context", "cells", to="found"))
    assert outcome(checked(tmp_path, changed), "table.columns").outcome == "fail"
