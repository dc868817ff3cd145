"""Several levels of a hierarchy: the numbers are those of certificates, and what is refused is refused by a ledger."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.schemas import schema

CODES = [("DE", ""), ("DE1", "DE"), ("DE2", "DE"), *((f"DE1{n}", "DE1") for n in range(9)), ("DE21", "DE2")]


@pytest.fixture
def codes(tmp_path):
    path = tmp_path / "codes.csv"
    pd.DataFrame(CODES, columns=["code", "parent"]).to_csv(path, index=False)
    return path


def run(*words):
    return CliRunner().invoke(cli.app, ["plan", "levels", *map(str, words)])


def test_the_numbers_are_those_of_certificates_and_of_the_noise(codes):
    document = json.loads(run(codes, "--noise", "0.9", "--json").stdout)
    jsonschema.validate(document, schema("plan_levels"))
    assert [(level["cells"], level["codes_below"]) for level in document["levels"]] == [(1, 10), (2, 9), (10, 1)]
    certificate = pkdp.certify(pkdp.Histogram(noise=pkdp.GeometricNoise(0.9)), pkdp.AttackerModel())
    assert document["epsilon"] == certificate.worst_case.epsilon(1e-6)
    assert document["epsilon_each_level"] == pkdp.compose([certificate] * 3, None).worst_case.epsilon(1e-6)
    assert document["epsilon_each_level"] == pytest.approx(2.7, rel=2e-6)  # at a δ of 1e-6 it is a little less
    region = document["levels"][1]
    shared = pkdp.certify(pkdp.Histogram(noise=pkdp.GeometricNoise(0.3)), pkdp.AttackerModel())
    assert pkdp.compose([shared] * 3, None).worst_case.epsilon(0.0) == pytest.approx(0.9)
    draws = np.random.default_rng(7).geometric(1 - np.exp(-0.9), (2, 40_000, 9)) - 1
    assert region["error_derived"] == pytest.approx((draws[0] - draws[1]).sum(axis=1).std(), rel=0.02)
    words = " ".join(run(codes, "--noise", "0.9").stdout.split())
    assert "the promise of that release: with this noise ε = 0.9" in words
    assert "with ε = 0.9 each to 2.7" in words


def test_a_second_level_without_noise_is_refused_and_sums_follow(codes):
    hierarchy = pkdp.Hierarchy.from_csv(codes)
    frame = pd.DataFrame({"code": list(hierarchy) * 40}).assign(person=range(400))
    frame["region"] = frame["code"].str[:3]
    options = {"unit": "person", "k": 30, "attacker": pkdp.AttackerModel(p_max=0.1), "period": "2026"}
    with pkdp.Ledger.open(":memory:", dataset="d") as ledger:
        finest = frame.pkdp.histogram("code", domain=hierarchy, ledger=ledger, **options)
        with pytest.raises(pkdp.DifferencingError):
            frame.pkdp.histogram("region", domain=["DE1", "DE2"], ledger=ledger, **options)
        total = ledger.total()
    sums = finest.along(hierarchy)
    assert sums.set_index("code").loc[["DE", "DE1", "DE2"], "count"].tolist() == [400, 360, 40]
    assert total.epsilon(1e-6) == finest.certificate.epsilon(1e-6)


def test_a_list_without_levels_is_refused(tmp_path):
    flat = tmp_path / "flat.csv"
    flat.write_text("code,parent\nA,\nB,\n", encoding="utf-8")
    for arguments, words in (((flat,), "one level only"), ((tmp_path / "no.csv",), "cannot be read")):
        done = run(*arguments)
        assert (done.exit_code, words in done.stderr) == (2, True), done.stderr
    flat.write_text("code,parent\nA,\nB,A\n", encoding="utf-8")
    assert run(flat, "--noise", "0").exit_code == 2
