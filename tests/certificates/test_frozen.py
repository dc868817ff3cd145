"""Frozen documents: certificates whose numbers may not change, and one of every other form.

Where a number differs, published certificates would have to be read again: a correction of a guarantee is listed in
CHANGELOG.md under "Guarantee changes", and a new frozen document is added beside the old one.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from thorough import ALL, one_in

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import exit_code
from pkdp_pipeline.extras.assurance.verification import attacking
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.ledger.chain import Terms, json_text
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.schemas import schema, schema_names
from pkdp_pipeline.theorems.theorems import THEOREMS

ROOT = Path(__file__).parents[2]
FROZEN = ROOT / "tests" / "data" / "frozen"
AGREEMENT = 1e-9
"""How closely numbers agree that were computed elsewhere and later, where no bound says otherwise."""


def frozen(name: str) -> list:
    return json.loads((FROZEN / f"{name}.json").read_text(encoding="utf-8"))


CERTIFICATES = frozen("certificate.v1")
DEAR = {32, 33, 35, 49}
"""Certificates that are computed for a second; three like them take less."""


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(document, marks=pytest.mark.slow if index in DEAR else ())
        for index, document in enumerate(CERTIFICATES)
    ],
)
def test_a_certificate_has_the_numbers_it_had(document):
    certificate = Certificate.from_json(json.dumps(document))
    epsilons = np.array([row["epsilon"] for row in document["grid"]])
    sides = zip(("attained", "delta"), certificate.delta_bounds(epsilons), certificate.rounding(epsilons), strict=True)
    for side, fresh, shares in sides:
        stored = np.array([row[side] for row in document["grid"]])
        # Better attacks and closer bounds may have been found since: more may be attained than is stored and never
        # less, and less be certified and never more.
        apart = stored - fresh if side == "attained" else fresh - stored
        assert np.all(apart <= np.maximum(AGREEMENT, shares) * fresh), side
    worst = document["worst_case"]
    if worst is None:
        assert certificate.worst_case.delta(1.0) == 1.0
    else:
        assert certificate.worst_case.parameters == pytest.approx(
            (worst["epsilon"], worst["delta"]), rel=AGREEMENT, abs=0
        )
        deltas = certificate.worst_case.delta([row["epsilon"] for row in worst["grid"]])
        assert deltas == pytest.approx([row["delta"] for row in worst["grid"]], rel=AGREEMENT, abs=0)
    assert json.loads(certificate.to_json()) == document


def test_frozen_certificates_rest_on_every_theorem():
    listed = {theorem["key"] for document in frozen("certificate.v1") for theorem in document["theorems"]}
    assert listed == set(THEOREMS)


RELEASES = {
    "count": "20521b48e65e6898f0bde9d5183ea6cea4aaf82ab120e71980e5537c95ad0fd8",
    "histogram": "b7bb12b525ad55aacec69367985721e2ad345e5115548c0813d6d8aaf1b5d3ed",
    "count.2": "6ef7a8671e2e7e1bb50444e1a23a6636d5690883cd0013ccf2cd3e25b00f3963",
    "histogram.2": "80166f5bf255d4a673bc23c11da9e38419da4c65a2449510bff249c7e856fcd0",
}
"""What was sealed, as `name`.parquet in the words of its time; later words have a number."""


def frozen_release(name: str) -> Path:
    return FROZEN / "release.1" / f"{name}.parquet"


@pytest.mark.parametrize("name", ["count.2", "histogram.2"])
def test_a_release_is_read_and_has_the_id_it_had(name):
    release = pkdp.read_release(frozen_release(name))
    assert release.id == RELEASES[name]
    assert release.verify() is True


@pytest.mark.parametrize("name", one_in(2, ["count", "histogram"]))
def test_a_release_in_older_words_has_its_numbers_and_its_words_are_not_relied_on(name):
    old = pkdp.Release.from_bytes(frozen_release(name).read_bytes())
    assert old.id == RELEASES[name]
    assert old.table.equals(pkdp.read_release(frozen_release(f"{name}.2")).table)
    with pytest.raises(pkdp.ArgumentError, match=r"numbers are right.* worded otherwise .* earlier state .* altered"):
        pkdp.read_release(frozen_release(name))
    (failed,) = pkdp.verify(frozen_release(name), draws=100).failures
    assert failed.key == "certificate.words"
    assert "An earlier state of this version wrote other words, or somebody altered them" in failed.detail


def test_a_lowered_number_beside_older_words_is_what_is_named():
    old = pkdp.Release.from_bytes(frozen_release("histogram").read_bytes())
    document = json.loads(old.certificate.to_json())
    document["grid"][4]["delta"] *= 0.9
    with pytest.raises(pkdp.ArgumentError, match=r"grid\[4\]\.delta .* altered or is not"):
        Certificate.from_json(json.dumps(document)).verify()


def test_a_release_of_another_version_with_a_lowered_number_is_found(tmp_path):
    release = pkdp.read_release(frozen_release("histogram.2"))
    document = json.loads(release.certificate.to_json())
    document["library"]["version"] = "0.9.0"
    document["sentence"] = "In other words."

    def stored():
        sealed = pkdp.Release.seal(release.table, Certificate.from_json(json.dumps(document)))
        return sealed.to_parquet(tmp_path / "other.parquet")

    stored()
    assert pkdp.read_release(tmp_path / "other.parquet").verify() is True
    document["grid"][4]["delta"] *= 0.9
    stored()
    with pytest.raises(pkdp.ArgumentError, match=r"grid\[4\]\.delta"):
        pkdp.read_release(tmp_path / "other.parquet")


KEYS = json.loads((FROZEN / "job.v1" / "keys.json").read_text(encoding="utf-8"))


def test_every_frozen_job_has_its_keys():
    assert {path.stem for path in (FROZEN / "job.v1").glob("*.toml")} == set(KEYS)


@pytest.mark.parametrize("name", KEYS)
def test_a_job_file_asks_what_it_asked(name, monkeypatch):
    """The keys are those by which a ledger replays: a changed one would publish a second time."""
    monkeypatch.setenv("PKDP_LEDGER", "ledger.sqlite")
    if not ALL:  # Great Expectations takes seconds to be imported
        monkeypatch.setattr("pkdp_pipeline.jobs.job.check_expectations", lambda checks: None)
    job = load_job(FROZEN / "job.v1" / f"{name}.toml")
    questions = [publication.question for publication in job.publications(date(2020, 1, 2))]
    assert {question.label: question.key(job.dataset) for question in questions} == KEYS[name]


@pytest.mark.parametrize("document", frozen("ledger.v1"))
def test_the_chain_of_an_exported_ledger_is_recomputed_as_its_schema_says(document):
    """By nothing but the description in the schema."""
    assert "sorted names" in schema("ledger.v1")["description"]
    previous = "0" * 64
    for event in document["events"]:
        compact = {
            name: event[name] and json.dumps(event[name], sort_keys=True, separators=(",", ":"))
            for name in ("standing", "terms")
        }
        plain = ("created_at", "key", "kind", "position", "previous", "release_id", "revision")
        fields = {name: event[name] for name in plain} | compact
        fields["certificate"] = event["certificate"] and json.dumps(event["certificate"], sort_keys=True)
        fields |= {"content": event["content_sha256"], "dataset": document["dataset"]}
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert event["previous"] == previous
        assert hashlib.sha256(text.encode()).hexdigest() == event["hash"]
        previous = event["hash"]
    assert previous == document["head"]


@pytest.mark.parametrize("document", frozen("ledger.v1"))
def test_the_entries_of_an_exported_ledger_are_read(document):
    for event in document["events"]:
        if event["kind"] == "reserved":
            assert json_text(Facts.from_dict(event["standing"]).to_dict()) == json_text(event["standing"])
            assert Terms.from_dict(event["terms"]).to_dict() == event["terms"]
        if event["certificate"] is not None:
            assert Certificate.from_json(json.dumps(event["certificate"])).delta(1.0) < 1.0


@pytest.mark.parametrize("document", frozen("report.v1"))
def test_a_report_s_promises_are_those_of_their_certificates(document):
    promises = [promise for promise in document["promises"] if promise["certificate"] is not None]
    assert promises
    for promise in promises:
        certificate, curve = Certificate.from_json(json.dumps(promise["certificate"])), promise["curve"]
        points = [(e, d) for e, d in zip(curve["epsilons"], curve["certified"], strict=True)][
            :: len(curve["epsilons"]) // 4
        ]
        for epsilon, delta in points:
            assert certificate.delta(epsilon) <= delta * (1 + AGREEMENT)


def test_the_claims_of_a_verification_keep_their_names(monkeypatch):
    monkeypatch.setattr(attacking, "_MAX_TERMS", dict.fromkeys(attacking._MAX_TERMS, 1000))
    (release,) = [document for document in frozen("verification.v1") if document["kind"] == "release"]
    verification = pkdp.verify(FROZEN / "release.1" / release["file"], draws=100)
    assert {claim["key"] for claim in release["claims"]} <= {claim.key for claim in verification.claims}


def test_exit_codes_stay():
    codes = {
        name: exit_code(getattr(pkdp, name)("…"))
        for name in pkdp.__all__
        if name.endswith("Error") and name != "PkdpError"
    }
    assert codes == {
        "ArgumentError": 2,
        "BudgetExceededError": 4,
        "ConfigError": 2,
        "DifferencingError": 4,
        "InputCheckError": 3,
        "LedgerError": 2,
        "NoEvidenceError": 4,
        "NotCertifiableError": 4,
        "TemporaryError": 75,
    }


def test_the_page_names_every_schema():
    page = (ROOT / "docs" / "schemas.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z_]+\.v\d+)` \|", page, re.MULTILINE)) == set(schema_names())
