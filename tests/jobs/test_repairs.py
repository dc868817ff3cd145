"""A job whose releases may not stand together is refused with TOML that works when it is pasted instead."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ConfigError, DifferencingError
from pkdp_pipeline.jobs.loading import load_job
from pkdp_pipeline.jobs.requests import check_together, requests_of

EXAMPLES = Path(__file__).parents[2] / "examples"
DAY = date(2020, 1, 1)
HEAD = """
dataset = "visits"
source = "visits.parquet"
period = { column = "day" }
unit = "person"
ledger = "out/ledger.sqlite"
"""
ATTACKER = "[attacker]\np_max = 0.3\n"
TAIL = '[output]\ndirectory = "out"\n'


def check(job) -> None:
    check_together(requests_of(job, DAY), dataset=job.dataset, evidence=job.declared())


def pasted(text: str, message: str) -> str:
    """Return a job file's text with what the message prints in place of its releases, as the message says it."""
    start = message.index("[[release]]\nname")
    words, toml = message[:start], message[start:]
    text = re.sub(r"(?ms)^\[\[release\]\]\n.*?(?=^\[output\])", "", text)
    if "once [attacker] is removed" in words:
        text = re.sub(r"(?ms)^\[attacker\]\n.*?(?=^\[)", "", text)
    return text.replace("[output]", f"{toml}\n[output]")


def run(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pkdp_pipeline.cli.main", "run", str(path), "--date", "2013-01-02"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_refused_example_runs_with_what_its_refusal_prints(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    path = tmp_path / "examples" / "refused_two_views.toml"
    refused = run(path)
    assert refused.returncode == 4
    assert not (tmp_path / "examples" / "out").exists()
    path.write_text(pasted(path.read_text(encoding="utf-8"), refused.stderr), encoding="utf-8")
    repaired = load_job(path)
    (release,) = repaired.release
    assert (release.name, release.by, release.k) == ("aircraft_by_carrier_and_origin", ("carrier", "origin"), 50)
    assert repaired.attacker is not None
    done = run(path)
    assert (done.returncode, done.stderr) == (0, "")
    files = {file.name for file in (tmp_path / "examples/out/refused_two_views/2013-01-02").iterdir()}
    assert files == {
        "aircraft_by_carrier_and_origin.parquet",
        "aircraft_by_carrier_and_origin.certificate.json",
        "summary.md",
    }


def test_the_noisy_repair_of_an_example_runs_as_well(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    path = tmp_path / "examples" / "refused_two_views.toml"
    text = path.read_text(encoding="utf-8").replace('by = "origin"', 'by = "origin"\nwhere = "distance > 500"')
    path.write_text(text, encoding="utf-8")
    refused = run(path)
    assert refused.returncode == 4
    assert "once [attacker] is removed as well" in refused.stderr
    path.write_text(pasted(text, refused.stderr), encoding="utf-8")
    done = run(path)
    assert (done.returncode, done.stderr) == (0, "")


def refusal(tmp_path, releases: str, head: str = HEAD, attacker: str = ATTACKER) -> tuple[str, str]:
    text = f"{head}{attacker}{releases}{TAIL}"
    path = tmp_path / "job.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DifferencingError) as caught:
        check(load_job(path))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    return text, str(caught.value)


def printed(message: str) -> list[dict[str, object]]:
    return tomllib.loads(message[message.index("[[release]]\nname") :])["release"]


TWO = (
    '[[release]]\nname = "a_by_town"\nby = "town"\nk = 40\n{one}'
    '[[release]]\nname = "a_by_sex"\nby = "sex"\nk = 50\n{two}'
)


def test_histograms_under_the_same_rules_are_cross_tabulated_with_the_larger_k(tmp_path):
    rules = 'where = "adult"\none_cell = "first"\norder_by = "day"\n'
    _, message = refusal(tmp_path, TWO.format(one=rules, two=rules))
    assert printed(message) == [
        {
            "name": "a_by_town_and_sex",
            "by": ["town", "sex"],
            "where": "adult",
            "one_cell": "first",
            "order_by": ["day"],
            "k": 50,
        }
    ]


def test_domains_are_multiplied(tmp_path):
    _, message = refusal(tmp_path, TWO.format(one='domain = ["Ås", "B\\"ø"]\n', two="domain = [true, false]\n"))
    assert printed(message)[0]["domain"] == {"town": ["Ås", 'B"ø'], "sex": [True, False]}


def test_a_total_beside_its_histogram_is_derived_from_it(tmp_path):
    both = '[[release]]\nname = "a"\nk = 10\n[[release]]\nname = "a_by_sex"\nby = "sex"\nk = 50\n'
    _, message = refusal(tmp_path, both)
    assert printed(message) == [{"name": "a_by_sex", "by": ["sex"], "k": 50}]


@pytest.mark.parametrize(
    ("one", "two", "attacker"),
    [
        ('where = "adult"\n', "", ATTACKER),
        ('one_cell = "hash"\n', "", ATTACKER),
        ('domain = ["Ås"]\n', "", ATTACKER),
        ('domain = ["Ås"]\nundeclared = "absent"\n', "domain = [1]\nundeclared = 'absent'\n", ATTACKER),
        ("attacker = { p_max = 0.2 }\n", "", ATTACKER),
        ("", "", "[attacker]\np_max = 0.3\np_min = 0.01\n"),
    ],
)
def test_where_one_table_would_not_answer_the_same_noise_is_proposed(tmp_path, one, two, attacker):
    _, message = refusal(tmp_path, TWO.format(one=one, two=two), attacker=attacker)
    releases = printed(message)
    assert [release["name"] for release in releases] == ["a_by_town", "a_by_sex"]
    assert all(release["noise"] == {"epsilon": 0.5} for release in releases)
    assert not any("attacker" in release for release in releases)
    assert "once [attacker] is removed as well" in message


def test_what_the_jobs_budget_forbids_is_not_proposed(tmp_path):
    forbids_noise = HEAD + 'budget = { epsilon = 0.5, delta = 1e-9, part = "worst_case" }\n'
    _, message = refusal(tmp_path, TWO.format(one="", two=""), head=forbids_noise)
    assert "[[release]]\nname" not in message
    small = HEAD + 'budget = { epsilon = 0.5, delta = 1e-9, part = "partial_knowledge" }\n'
    _, message = refusal(tmp_path, TWO.format(one='where = "adult"\n', two=""), head=small)
    assert "[[release]]\nname" not in message


columns = st.sampled_from(["town", "sex", "age group"])
optional_k = st.sampled_from([None, 20, 60])
noises = st.sampled_from([None, None, None, 0.4])


@st.composite
def releases(draw) -> dict[str, object]:
    """A release that a job may have, alone."""
    release: dict[str, object] = {}
    if draw(st.booleans()):
        release["by"] = draw(st.lists(columns, min_size=1, max_size=2, unique=True))
        release["k"] = draw(st.sampled_from([1, 20, 60]))
        release["protects"] = draw(st.sampled_from(["presence", "presence", "value"]))
        release["one_cell"] = draw(st.sampled_from([None, "most_frequent", "hash"]))
        if draw(st.booleans()):
            cells = ["Ås", 'a"b\\', "x\ny"]
            several = len(release["by"]) > 1
            release["domain"] = [[cell] * 2 for cell in cells] if several and draw(st.booleans()) else cells
            if several and release["domain"] is cells:
                release["domain"] = dict.fromkeys(release["by"], cells)
            release["undeclared"] = draw(st.sampled_from(["error", "absent"]))
        elif draw(noises):
            release |= {"noise": {"epsilon": 0.4}, "release_threshold": 100}
    else:
        release["k"], release["k_complement"] = draw(optional_k), draw(optional_k)
        if draw(noises):
            release["noise"] = {"epsilon": 0.4}
    release["where"] = draw(st.sampled_from([None, None, "adult", "town == 'Ås'"]))
    return {key: value for key, value in release.items() if value is not None}


def toml(release: dict[str, object], name: str) -> str:
    lines = [f'[[release]]\nname = "{name}"']
    for key, value in release.items():
        if isinstance(value, dict):
            inside = ", ".join(f"{json.dumps(column)} = {json.dumps(one)}" for column, one in value.items())
            lines.append(f"{key} = {{ {inside} }}")
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def test_whatever_is_proposed_can_be_read_stands_together_and_is_certified(tmp_path):
    proposed = 0

    @settings(max_examples=100, deadline=None, derandomize=True)
    @given(asked=st.lists(releases(), min_size=2, max_size=3), attacker=st.sampled_from([ATTACKER, ATTACKER, ""]))
    def every_job(asked, attacker):
        nonlocal proposed
        tables = "".join(toml(release, f"release_{number}") for number, release in enumerate(asked))
        text = f"{HEAD}{attacker}{tables}{TAIL}"
        path = tmp_path / "job.toml"
        path.write_text(text, encoding="utf-8")
        message = ""
        try:
            check(load_job(path))
        except DifferencingError as error:
            message = str(error)
        except ConfigError:  # refused for something else
            return
        if "[[release]]\nname" not in message:
            return
        path.write_text(pasted(text, message), encoding="utf-8")
        repaired = load_job(path)
        check(repaired)
        for release in repaired.release:
            certify(release.mechanism(), repaired.attacker_of(release), protects=release.protects)
        proposed += 1

    every_job()
    assert proposed >= 30
