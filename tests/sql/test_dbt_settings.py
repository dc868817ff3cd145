from __future__ import annotations

import datetime

import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.sql.spec import Settings

CONFIG = {"unit": "uid", "ledger": "ledger.sqlite"}


def test_what_is_left_out_has_the_defaults_of_histogram():
    settings = Settings.read(CONFIG)
    assert settings.attacker.value == pkdp.AttackerModel()
    assert (settings.unit, settings.dataset, settings.period) == (("uid",), "default", None)
    assert (settings.missing_unit, settings.one_cell, settings.order_by) == ("error", "error", None)


@pytest.mark.parametrize("period", ["2024-01-02", datetime.date(2024, 1, 2), "20240102"])
def test_a_period_is_text_or_what_yaml_reads_as_a_date(period):
    assert Settings.read({**CONFIG, "period": period}).period == "2024-01-02"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("unit", None, "unit: must be a column name or a list of column names."),
        ("unit", ["uid", "uid"], "unit: names a column twice."),
        ("ledger", None, "ledger: must be text in quotes"),
        ("attaker", {}, "unknown key 'attaker'; did you mean 'attacker'?"),
        ("attacker", {"p_max": 2.0}, "attacker: p_max must be"),
        ("attacker", {"p_max": "1e-1"}, r"attacker.p_max: must be a number, without quotes: write p_max = 0\.1\.$"),
        ("attacker", {"pmax": 0.5}, "attacker: unknown key 'pmax'; did you mean 'p_max'?"),
        ("period", "2024-13-01", "period: "),
        ("dataset", datetime.date(2024, 1, 2), "dataset: must be text in quotes"),
        ("missing_unit", "ignore", "missing_unit: must be 'error' or 'drop'"),
        ("one_cell", "any", "one_cell: must be"),
        ("evidence", {"kind": "hope"}, r"evidence\[1\]: kind: must be"),
        ("evidence", {}, r"evidence\[1\]: has another form"),
        (
            "budget",
            {"epsilon": 1.0, "delta": "1e-6"},
            r"budget\[1\].delta: must be a number.*write delta = 1\.0e-06\.$",
        ),
        ("budget", {"epsilon": 1.0}, r"budget\[1\].delta: is required"),
    ],
)
def test_an_error_names_the_key_and_the_fix(key, value, message):
    with pytest.raises(pkdp.ConfigError, match=message) as caught:
        Settings.read({**CONFIG, key: value})
    assert str(caught.value).startswith("the pkdp plugin's config in profiles.yml cannot be used:\n")
    assert caught.value.__cause__ is None


def test_unit_and_ledger_are_required():
    with pytest.raises(pkdp.ConfigError, match=r"ledger: is required.*\n  unit: is required"):
        Settings.read({})


def test_one_table_stands_for_a_list_and_both_reach_the_ledger(tmp_path):
    table = {"epsilon": 1.0, "delta": 1e-6}
    evidence = {"kind": "one_day_protected"}
    settings = Settings.read({**CONFIG, "budget": table, "evidence": evidence})
    assert settings == Settings.read({**CONFIG, "budget": [table], "evidence": [evidence]})
    with settings.open_ledger(str(tmp_path / "data.duckdb")) as ledger:
        assert ledger.terms.budgets == (pkdp.Budget(1.0, 1e-6),)
        assert ledger.terms.evidence == (pkdp.OneDayProtected(),)


def test_terms_that_are_left_out_remain_those_of_the_ledger(tmp_path):
    with Settings.read(CONFIG).open_ledger(str(tmp_path / "data.duckdb")) as ledger:
        assert ledger.terms.budgets == ledger.terms.evidence == ()


@pytest.mark.parametrize("database", [":memory:", "md:people", "data/people.duckdb", "people.duckdb"])
def test_a_ledger_lies_beside_the_database(database, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    Settings.read(CONFIG).open_ledger(database).close()
    folder = tmp_path / "data" if "/" in database else tmp_path
    assert [path.parent for path in tmp_path.rglob("*.sqlite")] == [folder]
    outside = {**CONFIG, "ledger": str(tmp_path / "elsewhere.sqlite")}
    Settings.read(outside).open_ledger(database).close()
    assert (tmp_path / "elsewhere.sqlite").is_file()
