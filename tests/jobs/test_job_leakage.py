"""What is known besides, in job files: read strictly, the same for all, kept by every repair; exact totals."""

from __future__ import annotations

import tomllib
from datetime import date

import pandas as pd
import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ConfigError, DifferencingError, NotCertifiableError
from pkdp_pipeline.extras.plan.repair import repair
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.dry_run import check_together, plan_job
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.attacker import AttackerModel, Leakage
from pkdp_pipeline.releases.options import AttackerTable

DAY = date(2020, 1, 1)
HEAD = """
dataset = "visits"
source = "visits.parquet"
period = { column = "day" }
unit = "person"
missing_unit = "drop"
ledger = "out/ledger.sqlite"
"""
TOTAL = '[[attacker.leakage]]\nname = "the number of people"\ntells = "people_present"\n'
BETWEEN = f"[attacker]\np_max_between = 0.6\n{TOTAL}"
PEOPLE = '[[release]]\nname = "people"\nprotects = "value"\n'
TOWNS = '[[release]]\nname = "towns"\nby = "town"\ndomain = ["Ås", "Bø", "Secretville"]\nprotects = "value"\nk = 5\n'
NOISED = '[[release]]\nname = "{0}"\nby = "{0}"\ndomain = ["a", "b"]\nprotects = "{1}"\nnoise = {{ epsilon = 0.25 }}\n'
TAIL = '[output]\ndirectory = "out"\n'


@pytest.fixture
def job(tmp_path):
    """Return a function that writes a job file with these tables."""

    def write(*tables: str, head: str = HEAD):
        path = tmp_path / "job.toml"
        path.write_text("".join((head, *tables, TAIL)), encoding="utf-8")
        return path

    return write


def complaint(path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_job(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        BETWEEN,
        '[attacker]\np_max_between = 0.6\nleakage = { name = "the number of people", tells = "people_present" }\n',
        '[attacker]\np_max_between = 0.6\nleakage = [{ name = "the number of people", tells = "people_present" }]\n',
    ],
)
def test_one_table_or_several_say_the_same(job, text):
    model = load_job(job(text, TOWNS)).attacker_model()
    assert model == AttackerModel(p_max_between=0.6, leakage=Leakage.total("the number of people"))


GROUPS = TOTAL + 'by = "town"\n'
BY_TOWN = '[[release]]\nname = "by_town"\nby = "town"\ndomain = ["Ås", "Bø"]\nprotects = "value"\n'
BOTH = '[[release]]\nname = "both"\nby = ["town", "sex"]\nk = 3\nprotects = "value"\n'
BOTH += 'domain = { town = ["Ås", "Bø"], sex = ["f", "m"] }\n'


@pytest.mark.parametrize("by", ['"town"', '["town"]'])
def test_a_job_publishes_totals_of_groups_beside_their_table(job, tmp_path, by):
    path = job("[attacker]\np_max_between = 0.6\n", GROUPS.replace('"town"', by), BY_TOWN, BOTH)
    rows = [("Ås", "f")] * 5 + [("Ås", "m")] * 2 + [("Bø", "m")] * 4
    frame = pd.DataFrame(rows, columns=["town", "sex"]).assign(person=range(11), day=pd.Timestamp("2020-01-01"))
    frame.to_parquet(tmp_path / "visits.parquet")
    loaded = load_job(path)
    assert [loaded.kind(release) for release in loaded.release] == ["total", "noiseless"]
    assert loaded.alone
    done = run_job(loaded, DAY)
    assert [result.release.table["count"].tolist()[:1] for result in done.releases] == [[7], [5]]
    with Ledger.open(tmp_path / "out/ledger.sqlite", dataset="visits") as ledger:
        attacker = AttackerModel(p_max_between=0.6, leakage=Leakage.totals("town", "the number of people"))
        assert ledger.total().delta(1.0) == certify(pkdp.Histogram(k=3), attacker, protects="value").delta(1.0)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ((GROUPS.replace('"town"', '"age"'), BOTH), "release 'both': leakage has exact totals by 'age'"),
        (
            (GROUPS.replace('"town"', '["town", "sex"]'), BOTH),
            "release 'both': leakage has exact totals by 'town', 'sex'",
        ),
        ((GROUPS.replace('"town"', "5"), BOTH), "leakage[1].by: must be a column name or a list"),
        ((GROUPS.replace("people_present", "anything"), BOTH), "by belongs to exact totals"),
        ((GROUPS, BOTH, BY_TOWN + 'one_cell = "hash"\n'), "release 'by_town': one_cell = 'hash' with totals of groups"),
        ((GROUPS, BOTH, BY_TOWN + 'where = "adult"\n'), "release 'by_town': totals of groups with where"),
    ],
)
def test_what_totals_of_groups_do_not_allow_is_said_when_the_job_is_read(job, tables, words):
    assert words in complaint(job("[attacker]\np_max_between = 0.6\n", *tables))


def test_every_field_is_read(job):
    text = (
        '[attacker]\np_min = 0.1\np_max = 0.5\nunknown = 900\ndependent = "household"\nsecret = "conditional"\n'
        '[[attacker.leakage]]\nname = "a noisy total"\nepsilon = 0.1\ndelta = 1e-9\n'
        '[[attacker.leakage]]\nname = "a list"\nshared_by = ["value", "presence"]\ndependence_epsilon = 0.2\n'
        "dependence_delta = 1e-8\n"
    )
    model = load_job(job(text, '[[release]]\nname = "a"\n')).attacker_model()
    assert (model.dependent, model.secret) == ("household", "conditional")
    assert model.leakage == (
        Leakage("a noisy total", epsilon=0.1, delta=1e-9),
        Leakage("a list", shared_by=("presence", "value"), dependence_epsilon=0.2, dependence_delta=1e-8),
    )


@given(
    tells=st.sampled_from(["people_present", "anything"]),
    shared=st.lists(st.sampled_from(["presence", "value"]), max_size=3),
    epsilon=st.none() | st.floats(0, 5),
    depends=st.floats(0, 1),
)
@settings(max_examples=40)
def test_what_an_attacker_says_is_what_a_job_file_reads(tells, shared, epsilon, depends):
    leakage = Leakage("x", tells=tells, shared_by=tuple(shared), epsilon=epsilon, dependence_epsilon=depends)
    model = AttackerModel(known=3, leakage=leakage, dependent="club")
    fields = {name: value for name, value in model.to_dict().items() if value is not None}
    written = tomllib.loads(tomlkit.dumps({"attacker": fields}))["attacker"]
    assert AttackerTable.model_validate(written).value == model


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[attacker.leekage]]\nname = "n"\n', "did you mean 'leakage'?"),
        ('[[attacker.leakage]]\nnaem = "n"\n', "did you mean 'name'?"),
        (
            '[[attacker.leakage]]\ntells = "anything"\n',
            "leakage[1].name: is required: write name = ",
        ),
        ('[[attacker.leakage]]\nname = "n"\ntells = "peopel_present"\n', "did you mean 'people_present'?"),
        ('[[attacker.leakage]]\nname = "n"\nshared_by = ["valeu"]\n', "did you mean 'value'?"),
        ('[[attacker.leakage]]\nname = "n"\nshared_by = 5\n', 'write shared_by = ["value"]'),
        ('[[attacker.leakage]]\nname = "n"\nepsilon = "1"\n', "must be a number"),
        ('[[attacker.leakage]]\nname = "n"\ndelta = 0.5\n', "delta belongs to epsilon"),
        ('[[attacker.leakage]]\nname = ""\n', "must not be empty"),
        ("[attacker]\nleakage = 5\n", "write [[attacker.leakage]]"),
        (f"{TOTAL}{TOTAL}", "two leakages have the same name"),
        ('[[attacker.leakage]]\nname = "n"\n[[attacker.leakage]]\nname = "m"\n', "declare them as one leakage"),
        ('[attacker]\np_max = 0.1\nsecret = "conditional"\n', "say who these are in dependent"),
        ('[attacker]\np_max = 0.1\ndependent = "h"\nsecret = "condicional"\n', "did you mean 'conditional'?"),
        ("[attacker]\np_max = 0.1\ndependent = true\n", "attacker.dependent: must be"),
    ],
)
def test_what_nobody_reads_is_refused(job, text, words):
    assert words in complaint(job(text, TOWNS))


def test_what_is_known_is_known_whoever_attacks(job):
    text = f"[attacker]\np_max = 0.1\n{TOTAL}"
    own = '[[release]]\nname = "b"\nby = "b"\nk = 5\nattacker = { p_max = 0.2 }\n'
    assert "have different leakage" in complaint(job(text, TOWNS, own))


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (PEOPLE.replace("protects", 'where = "adult"\nprotects'), "is about the cells of a histogram"),
        (PEOPLE + "k = 5\n", "is about the cells of a histogram"),
        (PEOPLE + "noise = { epsilon = 0.5 }\n", "is about the cells of a histogram"),
        (PEOPLE, "declare it beside the attacker, [[attacker.leakage]]"),
    ],
)
def test_a_count_protects_the_value_only_as_a_total_that_is_told(job, release, words):
    assert words in complaint(job(release))


@pytest.mark.parametrize("more", ["epsilon = 0.5\n", 'shared_by = ["presence"]\n'])
def test_what_is_no_exact_total_is_told_from_one(job, more):
    assert "without epsilon or shared_by" in complaint(job(f"{TOTAL}{more}", PEOPLE))
    assert "without epsilon or shared_by" not in complaint(job(PEOPLE))


def test_an_attacker_with_leakage_is_not_useless(job):
    noised = (NOISED.format("a", "value"), NOISED.format("b", "value"))
    loaded = load_job(job(TOTAL, *noised))
    planned = plan_job(loaded, [DAY]).days[0]
    assert planned.refused is None
    for planned_release in planned.releases:
        assert planned_release.certificate.attacker == AttackerModel(leakage=Leakage.total("the number of people"))
        assert "against anyone at all, given the number of people." in planned_release.certificate.sentence()
    assert "says besides leakage says nothing in this job" in complaint(job(BETWEEN, *noised))
    assert "Remove [attacker]" in complaint(job("[attacker]\np_max = 0.1\n", *noised))


def test_noise_that_protects_presence_beside_a_total_is_refused(job):
    loaded = load_job(job(TOTAL, NOISED.format("a", "presence"), NOISED.format("b", "value")))
    refused = plan_job(loaded, [DAY]).days[0].refused
    assert isinstance(refused, NotCertifiableError)
    assert "always tells whether a person is there" in str(refused)


def test_a_total_beside_several_noised_tables(job):
    tables = (PEOPLE, NOISED.format("a", "value"), NOISED.format("b", "value"))
    plan = plan_job(load_job(job(TOTAL, *tables)), [DAY])
    assert plan.refused is None
    assert plan.period is not None
    epsilon, delta = plan.period.worst_case.parameters
    assert (epsilon, delta) == (1.0, 0.0)  # two tables in two cells each, and nothing for the total
    assert "says besides leakage says nothing" in complaint(job(BETWEEN, *tables))


def test_a_total_by_itself_rests_on_nothing(job):
    assert "an exact total promises nothing" in complaint(job(BETWEEN, PEOPLE))
    assert plan_job(load_job(job(TOTAL, PEOPLE)), [DAY]).refused is None


def test_a_job_publishes_a_total_beside_a_table_of_values(job, tmp_path):
    rows = [
        (DAY, f"{town} {n}", town) for town, people in (("Ås", 7), ("Bø", 5), ("Secretville", 4)) for n in range(people)
    ]
    pd.DataFrame(rows, columns=["day", "person", "town"]).to_parquet(tmp_path / "visits.parquet")
    path = job(BETWEEN, PEOPLE, TOWNS)
    total, table = run_job(load_job(path), DAY).releases
    assert total.release.table["count"].tolist() == [16]
    assert table.release.table["count"].tolist()[:2] == [7, 5]
    attacker = AttackerModel(p_max_between=0.6, leakage=Leakage.total("the number of people"))
    assert table.release.certificate.attacker == attacker
    assert table.release.certificate.delta(1.0) == certify(
        table.release.certificate.mechanism, AttackerModel(p_max_between=0.6), protects="value"
    ).delta(1.0)
    again = run_job(load_job(path), DAY)
    assert all(release.release.replayed for release in again.releases)


def test_a_total_leaves_a_noised_table_what_it_promises_also_together(job, tmp_path):
    """What a day adds up to is said as the ledger says it."""
    rows = [(DAY, f"{town} {n}", town) for town, people in (("a", 60), ("b", 40)) for n in range(people)]
    pd.DataFrame(rows, columns=["day", "person", "town"]).to_parquet(tmp_path / "visits.parquet")
    noised = NOISED.format("town", "value").replace("[[release]]", "[[release]]\nk = 5\nrelease_threshold = 12")
    noised = noised.replace("0.25", "1.0")
    result = run_job(load_job(job(BETWEEN, PEOPLE, noised)), DAY)
    certificate = result.releases[1].release.certificate
    assert certificate.has_partial_knowledge
    with Ledger.open(tmp_path / "out" / "ledger.sqlite", dataset="visits") as ledger:
        for total in (result.together.total, ledger.total()):
            for epsilon in (0.3, 1.0):
                assert total.delta(epsilon) == certificate.delta(epsilon)
    assert "Nothing rests on" not in result.together.sentence("2020-01-01")


def test_a_total_and_two_exact_tables_are_refused(job):
    loaded = load_job(job(BETWEEN, PEOPLE, TOWNS, TOWNS.replace("towns", "other").replace("k = 5", "k = 6")))
    with pytest.raises(DifferencingError):
        check_together(loaded)


def test_noise_instead_of_two_tables_keeps_what_is_known(job, monkeypatch):
    monkeypatch.setattr("pkdp_pipeline.extras.plan.repair._noise_and_threshold", lambda *_: None)  # noise alone will do
    other = TOWNS.replace('"towns"', '"sexes"').replace('by = "town"', 'by = "sex"').replace("Ås", "x")
    path = job(BETWEEN, TOWNS, other)
    before, change = load_job(path), repair(path, [DAY]).change
    assert "no attacker.p_max_between" in change.words
    assert "[[attacker.leakage]]" in change.text
    assert all(release.certificate.leakage for release in change.plan.days[0].releases)
    for release in change.job.release:
        model = change.job.attacker_of(release)
        assert model.leakage == before.attacker_model().leakage
        for name in ("p_max", "p_max_between", "p_min", "unknown"):
            assert getattr(model, name) in (None, getattr(before.attacker_model(), name))
