from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pandas as pd
import pytest
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli

pytestmark = pytest.mark.whole_curves


def run(*arguments, width=80):
    return CliRunner(env={"COLUMNS": str(width)}).invoke(cli.app, ["verify", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("published")
    people = pd.DataFrame({"person": range(60), "town": ["Ås"] * 30 + ["Bø"] * 30})
    with pkdp.Ledger.open(place / "ledger.sqlite", dataset="towns") as ledger:
        people.pkdp.histogram(
            "town", unit="person", k=20, attacker=pkdp.AttackerModel(p_max=0.1), period="2020", ledger=ledger
        ).to_parquet(place / "towns.parquet")
    document = json.loads(pkdp.certify(pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1)).to_json())
    document["grid"][9]["delta"] /= 10
    (place / "lowered.json").write_text(json.dumps(document))
    (place / "other.json").write_text("{}")
    return place


@pytest.mark.parametrize("width", [80, 120])
def test_a_sound_file_is_shown_claim_by_claim(folder, width):
    done = run(folder / "towns.parquet", width=width)
    assert done.exit_code == 0, done.output
    assert "towns.parquet: a release" in done.stdout
    assert "✓ pass" in done.stdout
    assert "– not checked" in done.stdout
    assert "Nothing failed" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= width


def test_with_the_ledger_nothing_is_left_open(folder):
    done = run(folder / "towns.parquet", "--ledger", folder / "ledger.sqlite")
    assert done.exit_code == 0, done.output
    assert "not checked" not in done.stdout
    assert "ledger.standing" in done.stdout


def test_a_file_that_does_not_hold_exits_with_three_and_says_what_first(folder):
    done = run(folder / "lowered.json")
    assert done.exit_code == 3
    lines = done.stdout.splitlines()
    assert next(line for line in lines if "✗ FAIL" in line) == lines[2]
    assert "This certificate does not hold" in done.stdout


@pytest.mark.parametrize("name", ["other.json", "none.json", "."])
def test_what_is_none_of_ours_exits_with_two(folder, name):
    done = run(folder / name)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("pkdp: ")
    assert "Traceback" not in done.output


def test_json_follows_its_schema(folder):
    validator = jsonschema.Draft202012Validator(
        json.loads(files("pkdp_pipeline").joinpath("schemas", "verification.v1.json").read_text(encoding="utf-8"))
    )
    for name, code in (("towns.parquet", 0), ("lowered.json", 3)):
        done = run(folder / name, "--json", "--draws", "500", "--confidence", "0.99")
        assert done.exit_code == code
        document = json.loads(done.stdout)
        validator.validate(document)
        assert document["passed"] == (code == 0)


def test_options_out_of_range(folder):
    assert run(folder / "towns.parquet", "--confidence", "1").exit_code == 2
    assert run(folder / "towns.parquet", "--draws", "1").exit_code == 2
