"""The catalogue of published rules: each is read as it stands, certified where it can be, and on its page."""

from __future__ import annotations

import dataclasses
import datetime
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.extras.plan.rules import ATTACKERS, Rule, deltas, first_shown, in_short, rules
from pkdp_pipeline.model.wording import rounded_up

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rules.md"
RUNNER = CliRunner()


def row(rule: Rule) -> str:
    certifiable, change = rule.certifiable, rule.smallest_change or "as it is"
    numbers = ["–"] * len(ATTACKERS) if certifiable is None else [rounded_up(x, 2) for x in deltas(certifiable, 1.0)]
    cells = (
        f"[{rule.publisher}, {rule.name}]({rule.url}) (`{rule.key}`)",
        rule.hides,
        change if certifiable is None else f"{change.removeprefix('show counts of ')}: {in_short(certifiable)}",
        *numbers,
    )
    return f"| {' | '.join(cells)} |"


def certified(*words: object) -> tuple[int, str]:
    done = RUNNER.invoke(cli.app, ["certify", "rule", *map(str, words)], env={"COLUMNS": "110"})
    return done.exit_code, done.output


def test_each_rule_says_where_it_was_read():
    assert len(rules()) >= 12
    for key, rule in rules().items():
        assert rule is pkdp.rule(key)
        assert rule.url.startswith("http")
        assert isinstance(rule.read, datetime.date)
        assert rule.hides.endswith(".")
        assert rule.zero in ("alike", "apart", "not said")
        assert (rule.nearest is None) == (rule.zero == "alike" or rule.obstacle is not None)
        assert (rule.smallest_change is None) == (rule.zero == "alike")
        assert dataclasses.fields(rule)
        with pytest.raises(dataclasses.FrozenInstanceError):
            rule.key = "another"
    with pytest.raises(pkdp.ArgumentError, match="rule must be one of ehrql"):
        pkdp.rule("no_such_rule")


@pytest.mark.parametrize("key", rules())
def test_what_a_zero_looks_like_decides(key):
    rule, attacker = rules()[key], pkdp.AttackerModel(p_max=0.1)
    if rule.zero == "alike":
        assert rule.certifiable is rule.mechanism
    elif rule.mechanism is not None:
        with pytest.raises(pkdp.NotCertifiableError, match="tell a zero from small counts"):
            pkdp.certify(rule.mechanism, attacker)
    if rule.certifiable is not None:
        # Theorem R: what is certified is suppression below the first count that is shown apart from 0.
        suppressed = pkdp.certify(pkdp.Count(k=first_shown(rule.certifiable)), attacker)
        assert pkdp.certify(rule.certifiable, attacker).delta(1.0) == suppressed.delta(1.0)


def test_the_rules_of_the_sources():
    shown = {key: rule.certifiable.display for key, rule in rules().items() if rule.certifiable}
    assert [shown["ehrql"].shown(count) for count in (8, 12, 13)] == [10, 10, 15]
    assert {key: first_shown(rules()[key].certifiable) for key in shown} == {
        "ehrql": 8,
        "opensafely-midpoint6": 6,
        "nhs-hes": 8,
        "ofqual": 5,
        "hesa": 3,
        "uk-llc": 10,
        "destatis-5": 3,
        "cms": 11,
        "cdc-wonder": 10,
        "all-of-us": 21,
        "census-drb": 15,
        "statcan": 5,
        "stats-nz": 3,
        "aihw": 5,
        "omop": 5,
    }


def test_the_page_has_the_certified_numbers():
    page = PAGE.read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("| [")] == [row(rule) for rule in rules().values()]
    assert all(f"read on {rule.read}" in page for rule in rules().values())


def test_a_rule_is_certified_on_the_command_line():
    code, output = certified("ehrql", "--p-max", "30%", "--epsilon", 1.5)
    assert code == 0
    delta = pkdp.certify(pkdp.Histogram(k=8, display=pkdp.Rounding(5)), pkdp.AttackerModel(p_max=0.3)).delta(1.5)
    assert rounded_up(delta) in output
    assert "δ at ε = 1.5" in output
    code, output = certified("--list")
    assert code == 0
    assert all(key in output for key in rules())


def test_a_visible_zero_is_refused_with_the_change_that_mends_it():
    code, output = certified("cms")
    assert code == 4
    assert "show counts of 0 to 10 alike" in " ".join(output.split())
    assert "A visible zero" in " ".join(output.split())
    code, output = certified("zensus-2022")
    assert code == 4
    assert "none is known" in output


def test_a_rule_as_json():
    code, output = certified("nhs-hes", "--json")
    document = json.loads(output)
    assert code == 4
    assert document["zero"] == "apart"
    assert document["mechanism"] is None
    assert [number.get("p_max") for number in document["deltas"]] == [0.05, 0.1, 0.2, None]
    assert document["deltas"][-1]["sampled"] == 0.1
    assert [number["delta"] for number in document["deltas"]] == list(deltas(pkdp.Histogram(k=8), 1.0))
    code, output = certified("--list", "--json")
    assert code == 0
    assert [each["rule"] for each in json.loads(output)] == list(rules())


def test_one_rule_or_all():
    assert certified()[0] == 2
    assert certified("ehrql", "--list")[0] == 2
    assert certified("no-such-rule")[0] == 2


if __name__ == "__main__":
    print(*map(row, rules().values()), sep="\n")
