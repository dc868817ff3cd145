"""The commands pkdp ledger …: what they print, their exit codes, and that they write nothing."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from ruamel.yaml import YAML
from thorough import one_in, thinned
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import release_certificate
from pkdp_pipeline.cli import job_commands as ledger_commands
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.extras.report.ledger.explaining import number, quoted
from pkdp_pipeline.ledger import Ledger, database
from pkdp_pipeline.ledger.chain import json_text
from pkdp_pipeline.ledger.history import amount
from pkdp_pipeline.model.context import Context, Facts
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.releases.release import Release

SCHEMAS = Path(pkdp.__file__).parent / "schemas"
SCHEMA = json.loads((SCHEMAS / "ledger.v1.json").read_text(encoding="utf-8"))
CERTIFICATE = json.loads((SCHEMAS / "certificate.v1.json").read_text(encoding="utf-8"))
FRAME = pd.DataFrame({"u": range(200), "carrier": ["AA"] * 120 + ["UA"] * 80})
ATTACKER = pkdp.AttackerModel(p_max=0.1)
HABITS = pkdp.IndependentGivenHabits()
DAYS = 12
WHOLE = pkdp.Budget(12.0, 1e-6, part="partial_knowledge")
WEEK = pkdp.Budget(3.0, 1e-6, part="partial_knowledge", window_days=7)


def run(*arguments, width: int = 120):
    return CliRunner(env={"COLUMNS": str(width)}).invoke(cli.app, ["ledger", *map(str, arguments)])


def words(text: str) -> str:
    return " ".join(text.split())


def day(number: int) -> str:
    return f"2013-01-{number:02}"


def publish(ledger, period, *, frame=FRAME, attacker=ATTACKER, k=50, **more):
    return frame.pkdp.histogram("carrier", unit="u", attacker=attacker, k=k, ledger=ledger, period=period, **more)


def noisy(ledger, period, epsilon=0.1, **more):
    return FRAME.pkdp.count(
        unit="u", attacker=ATTACKER, noise=pkdp.GeometricNoise(epsilon), ledger=ledger, period=period, **more
    )


def reserved(ledger, period):
    """Leave a reservation behind, as a run that dies does."""
    mechanism = pkdp.Histogram(k=50)
    standing = Facts(unit=("u",), period=period, label="died", mechanism=mechanism, by=("carrier",))
    certificate = pkdp.certify(mechanism, ATTACKER)
    ledger.reserve("f" * 64, standing, lambda alone, head: certificate)


pytestmark = pytest.mark.whole_curves


@pytest.fixture(scope="module")
def ledger_and_facts(tmp_path_factory):
    """A ledger with a bit of everything: days without noise, noise, a revision, a new attacker, a dead run."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    with Ledger.open(path, dataset="Flights 2013", evidence=HABITS, budget=[WHOLE, WEEK]) as ledger:
        for number in range(1, DAYS + 1):
            publish(ledger, day(number))
        noisy(ledger, day(28))
        noisy(ledger, day(28), revise=True)
        publish(ledger, day(3), attacker=pkdp.AttackerModel(p_max=0.2))
        with pytest.raises(pkdp.InputCheckError):
            publish(ledger, day(29), frame=FRAME.assign(u=None))
        reserved(ledger, day(30))
        facts = {"total": ledger.total(), "entries": list(ledger.entries()), "head": ledger.head()}
    return path, facts


@pytest.fixture
def path(ledger_and_facts, tmp_path):
    shutil.copy(ledger_and_facts[0], tmp_path / "ledger.sqlite")
    return tmp_path / "ledger.sqlite"


@pytest.fixture(autouse=True)
def all_the_time_in_the_world(monkeypatch):
    monkeypatch.setattr(ledger_commands, "SECONDS", 1000.0)


@pytest.fixture(scope="module")
def facts(ledger_and_facts):
    return ledger_and_facts[1]


def every_command(path):
    return [
        ("show", path),
        ("show", path, "--json"),
        ("total", path),
        ("total", path, "--json"),
        ("explain", path),
        ("explain", path, "--entry", 1),
        ("verify", path),
        ("export", path),
        ("export", path, "--format", "registry"),
    ]


@thinned(3)
@pytest.mark.parametrize("command", range(9))
def test_every_command_reads_and_nothing_is_written(path, command):
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    done = run(*every_command(path)[command])
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [file.name for file in path.parent.iterdir()] == ["ledger.sqlite"]


@thinned(3)
@pytest.mark.parametrize("width", [40, 200])
@pytest.mark.parametrize("command", [["show"], ["show", "--all"], ["total"], ["explain"], ["explain", "--entry", "1"]])
def test_nothing_is_wider_than_the_terminal(path, command, width):
    done = run(command[0], path, *command[1:], width=width)
    assert done.exit_code == 0
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    # A command is to be pasted, and is broken by the terminal only.
    assert max(len(line) for line in lines if not line.startswith(("    pkdp ", "      --"))) <= width


def test_show_says_what_stands_and_what_it_adds_up_to(path, facts):
    wide, narrow = run("show", path), run("show", path, width=60)
    total = facts["total"].epsilon(1e-6)
    for done in (wide, narrow):
        text = words(done.stdout)
        assert "Flights 2013" in text
        assert f"{DAYS + 3} releases, periods 2013-01-01 to 2013-01-30; 1 reserved, charged and not public" in text
        assert "histogram, k = 50" in text
        assert text.count("reserved") == 2
        assert "ε = 0.1" in text
        assert facts["entries"][-2].release_id[:12] in text
        assert f"{DAYS + 3} releases together, ε = {total:.2f}"[:-1] in text
        assert f"{DAYS - 7} earlier releases; --all lists them too" in text
        assert "budget" in text
        assert "any 7 days" in text
        assert "█" in text
    assert "entry" in wide.stdout
    assert all(len(line) <= 60 for line in narrow.stdout.splitlines())
    assert day(1) in run("show", path, "--all").stdout.partition("Together: ε")[0].partition("Published")[2]
    assert "the last 3" in run("show", path, "--last", 3).stdout


def test_show_leaves_out_no_period_without_a_word(path, tmp_path):
    growth = run("show", path, "--all").stdout.partition("Together: ε")[2]
    assert all(day(number) in growth for number in (*range(1, DAYS + 1), 28, 30))
    assert "periods are shown" not in growth
    many = tmp_path / "many.sqlite"
    with Ledger.open(many, dataset="many") as ledger:
        for number in range(1, 26):
            noisy(ledger, day(number))
    growth = words(run("show", many).stdout.partition("Together: ε")[2])
    assert "20 of 25 periods are shown, spread evenly; the last one is among them." in growth
    assert (day(1) in growth, day(25) in growth) == (True, True)


def test_show_as_json_holds_every_number(path, facts):
    document = json.loads(run("show", path, "--json").stdout)
    assert document["head"] == facts["head"]
    assert [release["entry"] for release in document["releases"]] == sorted(
        (entry.sequence for entry in facts["entries"]),
        key=lambda number: next((entry.period, number) for entry in facts["entries"] if entry.sequence == number),
    )
    for release, entry in zip(
        sorted(document["releases"], key=lambda release: release["entry"]), facts["entries"], strict=True
    ):
        alone = release_certificate(entry.certificate)
        assert release["epsilon"] == alone.epsilon(1e-6)
        assert (release["state"], release["revision"], release["release_id"]) == (
            entry.state,
            entry.revision,
            entry.release_id,
        )
    (unit,) = document["units"]
    points = unit["spending"]
    assert unit["unit"] == ["u"]
    assert [point["releases"] for point in points] == [*range(1, DAYS + 1), DAYS + 2, DAYS + 3]
    assert [point["epsilon"] for point in points] == sorted(point["epsilon"] for point in points)
    assert points[-1]["epsilon"] == facts["total"].epsilon(1e-6)
    assert points[-1]["worst_case_epsilon"] is None
    first = pkdp.compose([(pkdp.certify(pkdp.Histogram(k=50), ATTACKER), 2)], HABITS)
    assert points[1]["epsilon"] == first.epsilon(1e-6)


def test_budgets_say_what_is_spent(path, facts):
    (unit,) = json.loads(run("show", path, "--json").stdout)["units"]
    whole, week = unit["budgets"]
    assert whole["spent"] == facts["total"].epsilon(1e-6)
    usual = pkdp.certify(pkdp.Histogram(k=50), ATTACKER)
    other = pkdp.certify(pkdp.Histogram(k=50), pkdp.AttackerModel(p_max=0.2))
    assert week["spent"] == pytest.approx(pkdp.compose([(usual, 6), other], HABITS).epsilon(1e-6), rel=1e-6)
    assert week["complete"]
    text = words(run("total", path).stdout)
    assert "ε = 12 at δ = 1e-6 for the total" in text
    assert "of any 7 days" in text
    assert "left" in text


def test_a_coarser_view_ends_where_the_fine_one_does(path):
    from pkdp_pipeline.ledger.history import read_history, spending
    from pkdp_pipeline.ledger.reading import open_for_reading

    with open_for_reading(str(path)) as ledger:
        history = read_history(ledger)
    unit = history.units[0]
    fine = spending(history, unit, 1e-6, seconds=1000)
    few = spending(history, unit, 1e-6, max_points=5, seconds=1000)
    ticks = iter(range(10_000))
    hurried = spending(history, unit, 1e-6, seconds=4, clock=lambda: next(ticks))
    assert len(fine) == DAYS + 2
    assert (len(few), few[0], few[-1]) == (5, fine[0], fine[-1])
    assert 1 < len(hurried) < len(fine)
    assert hurried[-1] == fine[-1]
    gaps = {fine.index(after) - fine.index(point) for point, after in itertools.pairwise(hurried)}
    assert len(gaps) <= 1, "a view cut short is as evenly spread"


def test_the_last_point_is_the_total_whatever_other_units_there_are(tmp_path):
    from pkdp_pipeline.ledger.history import read_history, spending
    from pkdp_pipeline.ledger.reading import open_for_reading

    attacker = pkdp.AttackerModel(p_min=0.5, p_max=0.5, unknown=2000)
    noise = pkdp.GeometricNoise(0.7)
    frame = FRAME.assign(house=FRAME["u"])
    for name, later in (("same", 1), ("later", 3), ("month", None)):
        path = tmp_path / f"{name}.sqlite"
        with Ledger.open(path) as ledger:
            for number in (1, 2):
                frame.pkdp.count(unit="u", attacker=attacker, noise=noise, ledger=ledger, period=day(number))
                if number == 1:
                    assert ledger.total("u").epsilon(1e-6) < 0.2
            period = "2013-01" if later is None else day(later)
            frame.pkdp.count(unit="house", attacker=attacker, noise=noise, ledger=ledger, period=period)
            total = ledger.total("u")
        document = json.loads(run("show", path, "--unit", "u", "--json").stdout)
        (unit,) = document["units"]
        points = unit["spending"]
        assert [(point["period"], point["releases"]) for point in points] == [(day(1), 1), (day(2), 2)]
        assert points[-1]["epsilon"] == total.epsilon(1e-6)
        assert 0.69 < points[0]["epsilon"] < 0.71, "what stands later or beside it undoes the attacker's doubt"
        with open_for_reading(str(path)) as ledger:
            history = read_history(ledger)
        (only,) = spending(history, '["u"]', 1e-6, periods=(day(1),), seconds=1000)
        assert (only.period, only.releases, only.epsilon) == (day(1), 2, total.epsilon(1e-6))


def test_releases_that_end_together_are_one_point(tmp_path):
    path = tmp_path / "ends.sqlite"
    with Ledger.open(path) as ledger:
        for period in ("2013-01", day(31), day(30)):
            noisy(ledger, period)
        total = ledger.total()
    (unit,) = json.loads(run("show", path, "--json").stdout)["units"]
    assert [(point["period"], point["releases"]) for point in unit["spending"]] == [(day(30), 1), (day(31), 3)]
    assert unit["spending"][-1]["epsilon"] == total.epsilon(1e-6)


def test_total_prints_the_sentence_and_as_json_the_certificate(path, facts):
    done = run("total", path)
    assert words(facts["total"].sentence(1e-6)) in words(done.stdout)
    for text in ("Rule 2", "docs/composition.md", "independent_given_habits", "Against anyone", "none"):
        assert text in words(done.stdout)
    other = words(run("total", path, "--delta", "1e-9").stdout)
    assert words(facts["total"].sentence(1e-9)) in other
    read = pkdp.Certificate.from_json(run("total", path, "--json").stdout)
    assert read.epsilon(1e-6) == facts["total"].epsilon(1e-6)
    assert read.verify()
    jsonschema.Draft202012Validator(CERTIFICATE).validate(json.loads(read.to_json()))


def test_explain_says_how_the_total_comes_about(path, facts):
    text = words(run("explain", path).stdout)
    for part in (
        words(HABITS.declares),
        "Budget: ε = 12 at δ = 1e-6 for the total.",
        "p_max = 0.2",
        "noisy count",
        f"{DAYS + 1} releases stand alone",
        "2 releases stand in 1 group",
        "2013-01-28: 2 × count (noisy count)",
        "Rule 2",
        words(facts["total"].sentence(1e-6)),
        "anything that can be certified",
        "nothing beside a release without noise",
        "1 release revise",
        facts["head"],
    ):
        assert part in text, part


def test_explain_one_release(path, facts):
    entry = next(entry for entry in facts["entries"] if entry.period == day(3))
    by_number = run("explain", path, "--entry", entry.sequence)
    assert by_number.exit_code == 0
    text = words(by_number.stdout)
    sentence = release_certificate(entry.certificate).sentence(1e-6)
    for part in (words(sentence), "certified again", entry.key, entry.release_id, entry.head, entry.hash):
        assert part in text, part
    assert "event 5 of" in text
    assert words(HABITS.declares) in text
    assert run("explain", path, "--key", entry.key[:12]).stdout == by_number.stdout
    assert run("explain", path, "--key", entry.release_id[:12].upper()).stdout == by_number.stdout
    waiting = words(run("explain", path, "--key", "ffff").stdout)
    assert "run the same request again" in waiting
    revised = next(entry for entry in facts["entries"] if entry.revision == 2)
    assert "Revision 2" in words(run("explain", path, "--entry", revised.sequence).stdout)


def test_what_was_given_back_can_be_explained_and_counts_nowhere(path):
    with sqlite3.connect(path) as raw:
        ((number,),) = raw.execute("SELECT id FROM entry WHERE state = 'given_back'").fetchall()
    raw.close()
    text = words(run("explain", path, "--entry", number).stdout)
    assert "State given back" in text
    assert "given back: charged no more" in text
    assert number not in [release["entry"] for release in json.loads(run("show", path, "--json").stdout)["releases"]]


@pytest.mark.parametrize(
    "wrong",
    [
        ["explain", "--entry", "9999"],
        ["explain", "--key", "00000000000000000000"],
        ["explain", "--key", "ab"],
        ["explain", "--entry", "1", "--key", "ffff"],
        ["show", "--dataset", "other"],
        ["show", "--unit", "v"],
        ["show", "--unit", "u", "--each-row"],
        ["show", "--each-row"],
        ["show", "--delta", "1.5"],
        ["show", "--last", "0"],
        ["verify", "--head", "abc"],
        ["verify", "--head", "x" * 64],
        ["export", "--format", "xml"],
        ["export", "--unit", "u"],
        ["export", "--out", "no/such/folder/file"],
        ["fly"],
    ],
)
def test_what_cannot_be_meant_is_exit_code_2(path, wrong):
    done = run(wrong[0], path, *wrong[1:])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr != ""


def test_a_data_set_is_found_under_every_spelling(path):
    assert run("total", path, "--dataset", " flights  2013").stdout == run("total", path).stdout
    assert run("total", path, "--unit", "u").stdout == run("total", path).stdout


def test_verify_counts_the_events_and_knows_a_head(path, facts):
    done = run("verify", path)
    assert done.exit_code == 0, done.output
    events = 2 * (DAYS + 2) + 1 + 2 + 1
    assert f"chain of {events} events intact, head {facts['head']}" in done.stdout
    text = words(done.stdout)
    assert f"{DAYS + 3} releases (1 of them charged and not public), 1 certificate issued again" in text
    assert "4 different certificates recomputed" in text
    assert done.stdout.endswith(f"--head {facts['head']}\n")
    known = run("verify", path, "--head", facts["entries"][5].head.upper())
    assert known.exit_code == 0
    assert "cut off" not in known.stdout
    assert f"holds the given head, event 10 of {events}; a cut after it would not show" in words(known.stdout)
    whole = run("verify", path, "--head", facts["head"])
    assert f"ends with the given head, event {events} of {events}." in words(whole.stdout)
    assert "--head" not in whole.stdout


def test_the_head_before_the_first_event_is_refused(path, facts):
    refused = run("verify", path, "--head", "0" * 64)
    assert refused.exit_code == 2
    assert "64 zeros says nothing" in refused.stderr
    assert facts["entries"][0].head == "0" * 64, "a first release's certificate names it"


@pytest.fixture(params=one_in(2, [(("verify", 40),), (("explain", 200),)]))
def pasted(path, request):
    """What the command prints that another one shows."""
    command, width = request.param
    text = run(command, path, width=width).stdout
    shown = "pkdp ledger verify" + text.rpartition("pkdp ledger verify")[2]
    return subprocess.run(
        ["bash", "-c", f"{Path(sys.executable).parent}/{shown}"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
def test_the_command_that_is_shown_can_be_pasted(pasted):
    assert "ends with the given head" in words(pasted)


@pytest.mark.slow
def test_changed_terms_are_listed(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path, evidence=HABITS) as ledger:
        publish(ledger, day(1))
        publish(ledger, day(2))
    for command in ("show", "total", "explain", "verify"):
        assert "terms in force" not in run(command, path).stdout.lower()
    with Ledger.open(
        path, evidence=pkdp.OneDayProtected(), budget=pkdp.Budget(2.0, 1e-6, part="partial_knowledge")
    ) as ledger:
        publish(ledger, day(3))
    change = "erms changed with event 5 (20"
    for command in ("explain", "verify"):
        text = words(run(command, path).stdout)
        assert change in text
        assert "evidence one_day_protected; budget ε = 2 at δ = 1e-6 for the total" in text
    for command in ("show", "total"):
        text = words(run(command, path).stdout)
        assert "are not those of the first release: they changed with event 5 (20" in text
    with Ledger.open(path, evidence=HABITS, budget=()) as ledger:
        publish(ledger, day(4))
    assert "terms in force" not in run("show", path).stdout
    assert "erms changed with event 7" in words(run("verify", path).stdout)


def test_verify_says_that_a_tail_was_cut_off(path, facts, tmp_path):
    short = tmp_path / "short.sqlite"
    with Ledger.open(short, dataset="Flights 2013", evidence=HABITS) as ledger:
        publish(ledger, day(1))
    cut = run("verify", short, "--head", facts["head"])
    assert cut.exit_code == 2
    assert "cut off" in cut.stderr
    assert cut.stdout == ""


def altered(path, statement):
    raw = sqlite3.connect(path)
    for trigger in ("event_is_never_changed", "event_is_never_removed"):
        ((sql,),) = raw.execute("SELECT sql FROM sqlite_master WHERE name = ?", (trigger,)).fetchall()
        raw.execute(f"DROP TRIGGER {trigger}")
        raw.execute(statement) if trigger.endswith("changed") else None
        raw.execute(sql)
    raw.commit()
    raw.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET created_at = '1999' WHERE sequence = 4",
        "UPDATE event SET content = x'00' WHERE sequence = 4",
        "UPDATE entry SET kind = 'noised'",
        "UPDATE entry SET revision = 7 WHERE id = 3",
        "UPDATE entry SET first_day = first_day + 1 WHERE id = 5",
        "DELETE FROM dataset",
    ],
)
def test_verify_finds_what_was_altered(path, statement):
    altered(path, statement)
    done = run("verify", path)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "altered" in done.stderr


def forged(path, documents, counts):
    """Publish releases, as somebody who writes the ledger with a tool of his own would, with a valid chain."""
    with Ledger.open(path, dataset="d", evidence=HABITS) as ledger:
        for number, (change, count) in enumerate(zip(documents, counts, strict=True), start=1):
            mechanism = pkdp.Histogram(k=50)
            standing = Facts(unit=("u",), period=day(number), label="x", mechanism=mechanism, by=("carrier",))

            def offer(alone, head, *, standing=standing, change=change):
                facts = Context(unit=("u",), period=standing.period, dataset="d", head=head)
                certificate = pkdp.certify(standing.mechanism, ATTACKER).in_context(facts)
                document = json.loads(certificate.to_json())
                change(document)
                return release_certificate(json.dumps(document, sort_keys=True))

            reservation = ledger.reserve(f"{number:064}", standing, offer)
            table = pd.DataFrame({"carrier": pd.array(["AA"], "string"), "count": pd.array([count], "Int64")})
            release = Release.seal(table, reservation.certificate)
            ledger.publish(reservation, release.to_bytes(), release.id)
        ledger.verify()


def nothing(document):
    pass


def smaller(document):
    document["grid"][-1]["delta"] /= 2


def bolder(document):
    document["sentence"] = document["sentence"].replace("alone", "and all others")


@pytest.mark.parametrize(
    ("documents", "counts"),
    [
        ([smaller], [60]),
        ([bolder], [60]),
        ([nothing, smaller], [60, 60]),
        ([nothing, bolder], [60, 60]),
        ([nothing, nothing], [60, 49]),
    ],
)
def test_verify_recomputes_every_certificate_and_table(tmp_path, documents, counts):
    path = tmp_path / "forged.sqlite"
    forged(path, documents, counts)
    done = run("verify", path)
    assert done.exit_code == 2, done.output
    assert f"event {2 * len(documents)} " in done.stderr
    assert "altered" in done.stderr


def test_a_chain_with_honest_releases_passes(tmp_path):
    forged(tmp_path / "honest.sqlite", [nothing] * 4, [60, 70, 80, 50])
    done = run("verify", tmp_path / "honest.sqlite")
    assert done.exit_code == 0, done.output
    assert "4 releases: every stored table" in words(done.stdout)
    assert "1 different certificate recomputed" in words(done.stdout)


def test_the_export_is_what_its_schema_says(path, facts):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    document = json.loads(run("export", path).stdout)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.validate(document)
    assert {event["kind"] for event in document["events"]} == {"reserved", "published", "given_back", "recertified"}
    assert document["head"] == facts["head"] == document["events"][-1]["hash"]
    certificates = [event["certificate"] for event in document["events"] if event["certificate"]]
    for certificate in certificates[:3]:
        jsonschema.Draft202012Validator(CERTIFICATE).validate(certificate)
    for event in (document["events"][0], document["events"][1], document["events"][-1]):
        for name in event:
            less = {key: value for key, value in event.items() if key != name}
            assert not validator.is_valid({**document, "events": [less]}), name
        assert not validator.is_valid({**document, "events": [{**event, "invented": 1}]})
        other = "given_back" if event["kind"] != "given_back" else "published"
        assert not validator.is_valid({**document, "events": [{**event, "kind": other}]})


def test_the_chain_can_be_checked_from_the_export_alone(path):
    document = json.loads(run("export", path).stdout)
    previous = "0" * 64
    for event in document["events"]:
        fields = {
            "certificate": event["certificate"] and json.dumps(event["certificate"], sort_keys=True),
            "content": event["content_sha256"],
            "created_at": event["created_at"],
            "dataset": document["dataset"],
            "key": event["key"],
            "kind": event["kind"],
            "position": event["position"],
            "previous": event["previous"],
            "release_id": event["release_id"],
            "revision": event["revision"],
            "standing": event["standing"] and json_text(event["standing"]),
            "terms": event["terms"] and json_text(event["terms"]),
        }
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert event["previous"] == previous
        assert hashlib.sha256(text.encode()).hexdigest() == event["hash"]
        previous = event["hash"]
    assert previous == document["head"]


def test_the_export_holds_no_released_number_and_no_place(path):
    text = run("export", path).stdout
    assert str(path.parent) not in text
    assert "AA" not in text


def test_the_export_goes_into_a_file_whole_or_not_at_all(path, tmp_path):
    out = tmp_path / "export.json"
    done = run("export", path, "--out", out)
    assert (done.exit_code, done.stdout) == (0, "")
    assert out.read_text(encoding="utf-8") == run("export", path).stdout
    before = path.read_bytes()
    assert run("export", path, "--out", path).exit_code == 2
    assert path.read_bytes() == before
    out.unlink()
    altered(path, "UPDATE event SET created_at = '1999' WHERE sequence = 20")
    assert run("export", path, "--out", out).exit_code == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger.sqlite"]


#: What the registry's schema knows (schemas/deployments-schema.yaml), and what it requires of a first version.
REGISTRY = {
    "basic": "name data_curators intended_use data_product_type data_product_region description publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details data_source_type "
    "data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
TO_FILL_IN = {"data_curators", "intended_use", "data_product_region", "registry_authors"}


@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_the_registry_entry_is_a_draft_in_the_registrys_form(path, facts, version):
    text = run("export", path, "--format", "registry").stdout
    reader = YAML(typ="safe")
    reader.version = version
    document = reader.load(text)
    assert text.startswith("url_slug: flights-2013-curator-20")
    assert "opendp/deployments-registry-data, schemas/deployments-schema.yaml, commit" in text
    assert set(document) == {"url_slug", "status", "tier", "deployment"}
    assert (document["status"], document["tier"]) == ("Draft", 2)
    for group, fields in document["deployment"].items():
        assert set(fields) <= set(REGISTRY[group].split()), group
        for name, value in fields.items():
            assert (value is None) == (name in TO_FILL_IN), name
            assert value is None or name == "privacy_parameters" or isinstance(value, str), name
    assert set(REGISTRY["basic"].split()) <= set(document["deployment"]["basic"])
    loss = document["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": facts["total"].epsilon(1e-6), "delta": 1e-6}
    assert loss["privacy_parameters_details"] == facts["total"].sentence(1e-6)
    assert document["deployment"]["dp_variant"] == {"variant_name": "Custom"}
    assert "not the standard definition" in loss["privacy_unit_details"]
    assert facts["head"] in document["deployment"]["administrative"]["notes"]
    assert "independent_given_habits" in document["deployment"]["accounting"]["composition"]


def test_noised_releases_are_registered_as_ordinary_differential_privacy(tmp_path):
    path = tmp_path / "noisy.sqlite"
    with Ledger.open(path) as ledger:
        noisy(ledger, day(1), 0.25)
        noisy(ledger, day(2), 0.25)
    document = YAML(typ="safe").load(run("export", path, "--format", "registry").stdout)["deployment"]
    assert document["dp_variant"]["variant_name"] == "Pure DP"
    assert document["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5}
    assert "standard definition" not in document["privacy_loss"]["privacy_unit_details"]
    assert document["deployment_model"]["release_type"] == "Many releases"


def test_odd_names_do_not_break_the_yaml(tmp_path):
    path = tmp_path / "odd.sqlite"
    name = 'a "b": \\n {c} # d \U0001f41f \u2028x\x85y é'
    with Ledger.open(path, dataset=re.sub("[\u2028\x85]", " ", name), evidence=HABITS) as ledger:
        publish(ledger, day(1))
        kept = ledger.dataset
    for plain in (False, True):
        assert YAML(typ="safe").load(quoted(name, plain=plain)) == name
        assert not plain or quoted(name, plain=plain).isascii()
    document = YAML(typ="safe").load(run("export", path, "--format", "registry").stdout)
    assert document["deployment"]["basic"]["name"] == kept
    for command in every_command(path):
        assert run(*command).exit_code == 0


@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_numbers_are_numbers_in_every_yaml(version):
    reader = YAML(typ="safe")
    reader.version = version
    for value in (1e-6, 1.5e-300, 0.1, 3.0, 1e22, 17.43114894411861):
        read = reader.load(f"{number(value)}\n")
        assert isinstance(read, float)
        assert read == value
        assert "e" not in number(value) or "." in number(value), "YAML 1.1 takes 1e-06 for a text"


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two data sets, one of them with two privacy units."""
    path = tmp_path_factory.mktemp("two") / "ledger.sqlite"
    with Ledger.open(path, dataset="a") as ledger:
        noisy(ledger, day(1))
        FRAME.pkdp.count(
            unit=pkdp.EACH_ROW, attacker=ATTACKER, noise=pkdp.GeometricNoise(0.5), ledger=ledger, period=day(2)
        )
    with Ledger.open(path, dataset="b") as ledger:
        noisy(ledger, day(1))
    return path


@pytest.mark.parametrize("command", ["show", "total", "explain", "verify", "export"])
def test_of_several_data_sets_one_is_named(two, command):
    refused = run(command, two)
    assert refused.exit_code == 2
    assert "'a', 'b'" in refused.stderr
    assert "--dataset" in refused.stderr
    assert run(command, two, "--dataset", "B").exit_code == 0


def test_units_have_totals_of_their_own(two):
    for command in ("show", "total", "explain"):
        text = words(run(command, two, "--dataset", "a").stdout)
        assert "each row" in text.lower(), command
        assert "'u'" in text, command
        total_text = words(run(command, two, "--dataset", "a", "--unit", "u").stdout)
        assert "ε = 0.5" not in total_text.partition("adds up to")[2], command
    refused = run("total", two, "--dataset", "a", "--json")
    assert refused.exit_code == 2
    assert "--each-row" in refused.stderr
    read = pkdp.Certificate.from_json(run("total", two, "--dataset", "a", "--json", "--each-row").stdout)
    assert read.worst_case.parameters == (0.5, 0.0)
    assert run("export", two, "--dataset", "a", "--format", "registry").exit_code == 2
    assert run("export", two, "--dataset", "a", "--format", "registry", "--unit", "u").exit_code == 0


def test_releases_that_do_not_add_up_are_exit_code_4_and_can_be_looked_at(tmp_path):
    path = tmp_path / "odd.sqlite"
    with Ledger.open(path, evidence=pkdp.BoundedDependence(0.1)) as ledger:
        publish(ledger, day(1))
        FRAME.pkdp.count(unit="u", attacker=ATTACKER, k=50, ledger=ledger, period=day(1))
    bounded = words(run("explain", path).stdout)
    assert "covers releases about the same period too" in bounded
    assert "depends on all earlier ones" in bounded
    with Ledger.open(path, evidence=HABITS) as ledger:
        publish(ledger, day(2))
    refused = run("total", path)
    assert refused.exit_code == 4
    assert "do not add up" in refused.stderr
    assert run("export", path, "--format", "registry").exit_code == 4
    shown = run("show", path)
    assert shown.exit_code == 0
    assert "the releases do not add up with what is declared" in words(shown.stdout)
    assert "3 releases together, which do not add up" in words(shown.stdout)
    explained = run("explain", path)
    assert explained.exit_code == 0
    assert "They do not add up" in explained.stdout
    spending = json.loads(run("show", path, "--json").stdout)["units"][0]["spending"]
    assert [point["epsilon"] for point in spending] == [None, None]


@thinned(2)
@pytest.mark.parametrize("width", [60, 120])
def test_where_no_epsilon_reaches_the_delta_that_is_said(path, facts, width):
    least = rounded_up(facts["total"].delta(1.0))
    for command in ("show", "total", "explain"):
        text = words(run(command, path, "--delta", 0, width=width).stdout)
        assert f"no ε reaches δ = 0; δ = {least} at ε = 1" in text, command
        assert "do not add up" not in text
        assert "ε = none" not in text
    alone = rounded_up(pkdp.certify(pkdp.Histogram(k=50), ATTACKER).delta(1.0))
    assert f"δ = {alone} at ε = 1" in words(run("explain", path, "--delta", 0, width=width).stdout)


def test_a_budget_that_no_epsilon_meets_is_not_called_none(tmp_path):
    path = tmp_path / "bold.sqlite"
    with Ledger.open(path, evidence=HABITS) as ledger:
        publish(ledger, day(1), attacker=pkdp.AttackerModel(p_max=0.9))
    with Ledger.open(path, evidence=HABITS, budget=pkdp.Budget(4.0, 1e-6, part="partial_knowledge")) as ledger:
        FRAME.pkdp.count(unit="carrier", noise=pkdp.GeometricNoise(0.5), ledger=ledger, period=day(2))
    text = words(run("show", path).stdout)
    assert "OVER BUDGET" in text
    assert "none, OVER" not in text


def test_explain_says_how_many_more_fit_and_the_ledger_agrees(tmp_path):
    path = tmp_path / "budget.sqlite"
    with Ledger.open(path, budget=pkdp.Budget(1.0, 0.0)) as ledger:
        for number in (1, 2, 3):
            noisy(ledger, day(number))
    assert "room for 7 more releases" in words(run("explain", path).stdout)
    with Ledger.open(path) as ledger:
        for number in range(4, 11):
            noisy(ledger, day(number))
        with pytest.raises(pkdp.BudgetExceededError):
            noisy(ledger, day(11))
    full = words(run("explain", path).stdout)
    assert "no room for another release" in full
    assert "left 0" in full
    assert "OVER" not in full


@pytest.mark.slow
def test_what_noised_cells_cost_stands_beside_the_total(tmp_path):
    path = tmp_path / "noised.sqlite"
    more = {"noise": pkdp.GeometricNoise(0.5), "below": "noise", "domain": ["AA", "UA"], "k": 40}
    with Ledger.open(path, evidence=HABITS) as ledger:
        for number in (1, 2, 3):
            publish(ledger, day(number), **more)
        unit = ledger.totals().asked_unit(None)
        noised, hidden = ledger.total(), ledger.totals().hidden_below(unit)
        alike = pkdp.compose([(pkdp.certify(pkdp.Histogram(k=40), ATTACKER, cells=2), 3)], HABITS)
        assert hidden.epsilon(1e-6) == alike.epsilon(1e-6) < noised.epsilon(1e-6)
        assert ledger.total().epsilon(1e-6) == noised.epsilon(1e-6)
    for command in ("explain", "total"):
        text = words(run(command, path).stdout)
        assert f"Partial knowledge ε = {amount(noised.epsilon(1e-6))} at δ = 1e-6" in text
        assert f"Small cells hidden ε = {amount(hidden.epsilon(1e-6))} at δ = 1e-6" in text
    # Where nothing is noised below a k, there is nothing to compare.
    with Ledger.open(tmp_path / "plain.sqlite") as ledger:
        noisy(ledger, day(1))
        assert ledger.totals().hidden_below(ledger.totals().asked_unit(None)) is None
    assert "Small cells hidden" not in run("total", tmp_path / "plain.sqlite").stdout


def test_explain_names_the_evidence_that_is_missing(tmp_path):
    path = tmp_path / "single.sqlite"
    with Ledger.open(path) as ledger:
        publish(ledger, day(1))
    text = words(run("explain", path).stdout)
    assert "No evidence" in text
    assert "About another period: nothing yet" in text
    for kind in ("independent_given_habits", "one_day_protected", "disjoint_units", "once_per_unit"):
        assert f'{{ kind = "{kind}" }}' in text
    assert '{ kind = "bounded_dependence", epsilon = …, delta = … }' in text
    assert "pkdp." not in text
    with Ledger.open(path) as ledger, pytest.raises(pkdp.DifferencingError):
        publish(ledger, day(2))
    with Ledger.open(path) as ledger, pytest.raises(pkdp.DifferencingError):
        noisy(ledger, day(1))


def test_explain_names_no_evidence_that_cannot_serve_beside_a_total(tmp_path):
    path = tmp_path / "census.sqlite"
    attacker = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total())
    with Ledger.open(path) as ledger:
        publish(ledger, day(1), attacker=attacker, protects="value")
    text = words(run("explain", path).stdout)
    assert '{ kind = "one_day_protected" }' in text
    assert "once_per_unit" not in text
    with (
        Ledger.open(path, evidence=pkdp.OncePerUnit()) as ledger,
        pytest.raises((pkdp.NoEvidenceError, pkdp.DifferencingError)),
    ):
        publish(ledger, day(2), attacker=attacker, protects="value")


def test_periods_without_dates_stand_in_the_order_of_their_charge(tmp_path):
    path = tmp_path / "waves.sqlite"
    with Ledger.open(path, evidence=HABITS) as ledger:
        for wave in ("wave two", "wave one", "wave three"):
            publish(ledger, wave)
    (unit,) = json.loads(run("show", path, "--json").stdout)["units"]
    assert [point["period"] for point in unit["spending"]] == ["wave two", "wave one", "wave three"]
    assert "wave two to wave three" in words(run("show", path).stdout)


@pytest.mark.parametrize("command", ["show", "total", "explain", "verify", "export"])
def test_no_ledger_is_made_where_there_is_none(tmp_path, command):
    for missing in (tmp_path / "none.sqlite", tmp_path / "no" / "folder.sqlite", ":memory:", "", "ftp://x/y"):
        done = run(command, missing)
        assert done.exit_code == 2, missing
        assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no ledger " * 100, encoding="utf-8")
    sqlite3.connect(tmp_path / "other").execute("CREATE TABLE x (y)").connection.close()
    for wrong in ("empty", "text", "other", "."):
        before = (tmp_path / wrong).read_bytes() if wrong != "." else b""
        assert run(command, tmp_path / wrong).exit_code == 2, wrong
        assert wrong == "." or (tmp_path / wrong).read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["empty", "other", "text"]


def test_a_ledger_with_nothing_in_it(tmp_path):
    path = tmp_path / "new.sqlite"
    Ledger.open(path).close()
    assert "Nothing is published" in run("show", path).stdout
    assert "Nothing is published" in run("total", path).stdout
    assert run("explain", path).exit_code == 0
    assert "chain of 0 events intact" in run("verify", path).stdout
    assert run("verify", path, "--head", "a" * 64).exit_code == 2
    document = json.loads(run("export", path).stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["events"] == []
    assert json.loads(run("show", path, "--json").stdout)["releases"] == []
    assert run("export", path, "--format", "registry").exit_code == 2


def test_a_copy_without_write_ahead_log_is_read_as_it_is(path, tmp_path):
    copy = tmp_path / "copy.sqlite"
    raw = sqlite3.connect(path)
    raw.execute("VACUUM INTO ?", (str(copy),))
    raw.close()
    before = copy.read_bytes()
    for command in (("show", copy), ("verify", copy), ("export", copy)):
        assert run(*command).exit_code == 0, command
    assert copy.read_bytes() == before


def test_a_locked_ledger_is_exit_code_75(path, monkeypatch):
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    for command in ("show", "total", "verify"):
        assert run(command, path).exit_code == 75, command
    holder.close()
    assert run("total", path).exit_code == 0


def test_a_defect_is_exit_code_1_and_shows_nothing(path, monkeypatch):
    def broken(*arguments):
        raise ValueError("N14228")

    monkeypatch.setattr("pkdp_pipeline.ledger.history.read_history", broken)
    done = run("show", path)
    assert done.exit_code == 1
    assert "N14228" not in done.output


def test_a_password_is_never_printed(monkeypatch):
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")
    for command in ("show", "total", "explain", "verify", "export"):
        done = run(command, "postgresql://pkdp:sesame%20open@127.0.0.1:9/ledger?connect_timeout=2")
        assert done.exit_code in (2, 75)
        assert "sesame" not in done.output
        assert done.stdout == ""


@pytest.fixture(scope="module")
def process(ledger_and_facts, tmp_path_factory):
    """What a process that knows only ASCII printed, and had loaded: asked for help, a total, a table and an entry."""
    census = str(tmp_path_factory.mktemp("census") / "census.sqlite")
    with Ledger.open(census, dataset="census") as ledger:
        publish(ledger, "2021", k=60)
    commands = [["ledger", "--help"], ["ledger", "show", census], ["ledger", "total", census]]
    commands += [
        ["ledger", "show", str(ledger_and_facts[0])],
        ["ledger", "export", str(ledger_and_facts[0]), "--format", "registry"],
    ]
    program = (
        "import sys\nfrom pkdp_pipeline.cli import main as cli\n"
        f"for command in {commands!r}:\n"
        "    sys.argv = ['pkdp', *command]\n"
        "    try:\n        cli.main()\n"
        "    except SystemExit as ended:\n        assert not ended.code, command\n"
        "    print('\\0', *sys.modules, end='\\0', flush=True)\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "70"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    *pieces, last = done.stdout.decode("ascii").split("\0")
    assert last == ""
    return {
        " ".join(command[1:2]) + ("" if census in command else "!"): (shown, set(loaded.split()))
        for command, shown, loaded in zip(commands, pieces[::2], pieces[1::2], strict=True)
    }


@pytest.mark.slow
def test_help_loads_nothing_of_the_ledger(process):
    _, loaded = process["--help!"]
    assert [name for name in loaded if name.startswith("pkdp_pipeline.ledger.")] == []
    assert not {"scipy", "flint", "sqlalchemy"} & loaded


def test_a_ledger_is_shown_and_added_up_without_pandas(process):
    for command in ("show", "total"):
        shown, loaded = process[command]
        assert "census" in shown
        assert not {"pandas", "pyarrow", "scipy"} & loaded


def test_a_terminal_that_knows_only_ascii_gets_it(process):
    shown, _ = process["show!"]
    assert "?" not in shown
    assert "epsilon =" in shown


def test_a_registry_entry_in_ascii_holds_every_letter(process):
    deployment = YAML(typ="safe").load(process["export!"][0])["deployment"]
    assert "ε =" in deployment["privacy_loss"]["privacy_parameters_details"]


@pytest.fixture
def read_in_part(path):
    """An export whose reader takes ten letters."""
    command = f"{sys.executable} -m pkdp_pipeline.cli.main ledger export {path} | head -c 10"
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False)


def test_a_reader_that_stops_early_is_no_error(read_in_part):
    assert (read_in_part.returncode, read_in_part.stderr) == (0, b"")


def test_what_is_given_is_said_wherever_the_ledger_is_read(tmp_path):
    path = tmp_path / "census.sqlite"
    knows = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total())
    terms = {"unit": "u", "period": "2021", "protects": "value", "attacker": knows}
    with Ledger.open(path, dataset="census") as ledger:
        FRAME.pkdp.histogram("carrier", k=60, ledger=ledger, **terms)
        FRAME.pkdp.count(ledger=ledger, **terms)
    shown, added, explained = (words(run(command, path).stdout) for command in ("show", "total", "explain"))
    assert "mechanism: exact total; ε at δ = 1e-6: 0;" in words(run("show", path, width=80).stdout)
    assert "All of this is given the number of people present" in shown
    assert "Given the number of people present" in added
    assert "exact totals are given (docs/composition.md, rule 7)" in added
    assert "a single release beside it counts with all its certificate promises" in explained
    assert "beside the exact total of the same people" in explained
    assert "it does not tell which cell a person is in" in explained
    assert "2 releases: every stored table is as its certificate says" in words(run("verify", path).stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(run("export", path).stdout))
    document = YAML(typ="safe").load(run("export", path, "--format", "registry").stdout)["deployment"]
    assert "the number of people present" in document["dp_variant"]["unprotected_quantities"]
    assert "rule 7" in document["accounting"]["composition"]
