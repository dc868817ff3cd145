"""What a plan offers is executed as it is printed, in Python, in SQL, as a job and as commands."""

from __future__ import annotations

import functools
import json
import re
import shlex

import duckdb
import pandas as pd
import pytest
from thorough import one_in, thinned
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
import pkdp_pipeline.duckdb
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.model.evidence import evidence_from_dicts
from pkdp_pipeline.model.mechanisms import mechanism_from_dict

HABITS = ("--evidence", "independent_given_habits")
PLANS = {
    "table": ("histogram",),
    "table for a larger target": ("histogram", "--epsilon", 2.7, "--delta", "2%"),
    "week": ("histogram", "--days", 7),
    "week of found cells": ("histogram", "--days", 7, "--cells-from-data", "--epsilon", 0.3),
    "year of values": ("histogram", "--days", 365, "--protects", "value"),
    "exact": ("histogram", "--p-max", "20%", "--known", 3, "--influence", "active"),
    "exact for a larger target": ("histogram", "--p-max", "60%", "--delta", "2%", "--no-noise"),
    "exact year": ("histogram", "--p-max", 0.1, "--epsilon", 8, "--days", 365, *HABITS),
    "exact values": ("histogram", "--protects", "value", "--p-max-between", 0.7, "--known", 5, "--total-known"),
    "capped": (
        "histogram",
        "--p-max",
        0.2,
        "--days",
        12,
        "--no-noise",
        *HABITS,
        "--evidence",
        "bounded_participation:2",
    ),
    "several cells": ("histogram", "--cells-per-unit", 3, "--p-max", "20%", "--independent-cells"),
    "several cells from the data": ("histogram", "--cells-per-unit", 2, "--cells-from-data", "--days", 4),
    "values in several cells": ("histogram", "--cells-per-unit", 4, "--protects", "value"),
    "count": ("count",),
    "week of counts": ("count", "--days", 7),
    "exact count": ("count", "--p-min", 0.3, "--p-max", 0.6, "--unknown", 2000),
    "exact year of counts": ("count", "--p-max", 0.1, "--days", 365, "--evidence", "once_per_unit"),
    "count helped by doubt": ("count", "--p-min", 0.2, "--p-max", 0.5, "--unknown", 120),
}
FRAME = pd.DataFrame({"u": range(900), "c": ["a"] * 500 + ["b"] * 400})
FILLED = {"COLUMN": "c", "UNIT": "u", "NAME": "name", "DATASET": "people", "PERIOD": "2026-W01", "TABLE": "people"}


def run(*arguments):
    done = CliRunner(env={"COLUMNS": "80"}).invoke(cli.app, list(map(str, arguments)))
    assert done.exit_code == 0, (arguments, done.output)
    return done.stdout


@functools.cache
def document(name):
    return json.loads(run("plan", *PLANS[name], "--no-curves", "--json"))


def printed(name, place):
    """Return the sections of the output, as they are pasted: by the first words of their heads."""
    text = run("plan", *PLANS[name], "--no-curves", "--choice", place)
    sections = re.split(r"\n\n(?=\S)", text)
    pasted = {}
    for section in sections:
        head, *lines = section.split("\n")
        if head.startswith(("In ", "As ")):
            pasted[head.split(",")[0].split(":")[0]] = "\n".join(
                line[4:] for line in lines if line.startswith("    ") or not line
            )
    return pasted


def filled(text, folder, ledger):
    cells = iter("ab" * 9)
    text = re.sub(r"\bCELL\b", lambda _: next(cells), text)
    for word, value in (FILLED | {"LEDGER": str(folder / ledger), "FILE": str(folder / "file.csv")}).items():
        text = re.sub(rf"\b{word}\b", value, text)
    return text


def check(certificate, name, place):
    """Check that what is certified of one release is the choice, and that all of them reach the target."""
    question, choice = document(name)["question"], document(name)["choices"][place - 1]
    assert certificate.mechanism == mechanism_from_dict(choice["mechanism"])
    assert certificate.protects == question["protects"]
    single = pkdp.certify(certificate.mechanism, certificate.attacker, protects=certificate.protects)
    whole = (
        single
        if question["days"] == 1
        else pkdp.compose([(single, question["days"])], evidence_from_dicts(question["evidence"]))
    )
    assert whole.delta(question["epsilon"]) <= question["delta"]
    assert whole.delta(question["epsilon"]) == choice["delta_at_epsilon"]


@thinned(2)
@pytest.mark.default_target
@pytest.mark.parametrize("name", one_in(6, PLANS))
def test_what_is_printed_reaches_the_target(name, tmp_path):
    for place in range(1, len(document(name)["choices"]) + 1):
        (tmp_path / f"{place}").mkdir()
        execute(name, place, tmp_path / f"{place}")


def execute(name, place, folder):
    """Execute all that is printed of a choice."""
    question, choice = document(name)["question"], document(name)["choices"][place - 1]
    evidence = evidence_from_dicts(question["evidence"])
    pasted = {head: filled(text, folder, f"{head[3:]}.sqlite") for head, text in printed(name, place).items()}
    assert list(pasted) == ["In a job file", "In Python", "In SQL", "As commands"]
    names = {"pkdp": pkdp, "FRAME": FRAME}

    check(eval(pasted["In Python"], names).certificate, name, place)
    if evidence:
        with pkdp.Ledger.open(folder / "Python.sqlite", dataset="people") as ledger:
            assert ledger.terms.evidence == evidence

    install, query = pasted["In SQL"].split("\n\nFROM ")
    with duckdb.connect() as con:
        con.execute("CREATE TABLE people AS FROM FRAME")
        eval(install, names | {"CONNECTION": con})
        con.execute(f"FROM {query}").fetchall()
        ((text,),) = con.execute("SELECT certificate FROM pkdp_releases()").fetchall()
    check(pkdp.Certificate.from_json(text), name, place)

    head = 'dataset = "d"\nsource = "x.csv"\nperiod = { column = "day" }\nunit = "u"\nledger = "l.sqlite"\n'
    (folder / "job.toml").write_text(
        f'{head}{pasted["In a job file"]}\n[output]\ndirectory = "out"\n', encoding="utf-8"
    )
    job = load_job(folder / "job.toml")
    (release,) = job.release
    check(pkdp.certify(release.mechanism, job.attacker_of(release), protects=release.protects), name, place)
    assert tuple(job.declared()) == evidence

    FRAME.to_csv(folder / "file.csv", index=False)
    certify, publish = (
        shlex.split(line)[1:] for line in pasted["As commands"].strip().replace("\\\n", " ").split("\n")
    )
    whole = pkdp.Certificate.from_json(run(*certify, "--json"))
    assert whole.delta(question["epsilon"]) == choice["delta_at_epsilon"] <= question["delta"]
    published = json.loads(run(*publish, "--json"))
    check(pkdp.Certificate.from_json(json.dumps(published["certificate"])), name, place)


def test_what_noise_would_do_is_certified_as_it_is_offered():
    for days in (1, 7):
        done = CliRunner().invoke(cli.app, ["plan", "histogram", "--no-noise", "--days", str(days)])
        assert done.exit_code == 4
        offered = re.findall(r"(--noise .+?) \(a number", done.stderr)
        assert len(offered) == 2
        for options in offered:
            text = run("certify", "histogram", *options.split(), "--days", days, "--json")
            assert pkdp.Certificate.from_json(text).delta(1.0) <= 1e-6
