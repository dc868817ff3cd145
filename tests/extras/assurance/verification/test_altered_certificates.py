"""A certificate that somebody has altered is found, whatever was altered and whoever did it."""

from __future__ import annotations

import json

import pytest
from published_files import CERTIFIED, altered, certificate, composed, outcome, written
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.extras.assurance.verification import verify

GRID = len(json.loads(certificate().to_json())["grid"])


def stored(theorem="histogram_presence"):
    return json.loads(certificate(theorem).to_json())


def checked(folder, document, draws=100):
    verification = verify(written(folder, document), draws=draws)
    assert not verification.passed, str(verification)
    return verification


@pytest.mark.usefixtures("unattacked")
def test_a_certificate_that_promises_nothing_is_refused_before_its_grid_is_computed(tmp_path, monkeypatch):
    document = altered(stored(), "attacker", "p_max", to=1.0)
    monkeypatch.setattr(ReleaseCertificate, "to_json", None)
    claim = outcome(checked(tmp_path, document), "certificate.numbers")
    assert "It cannot be certified again" in claim.detail


@pytest.mark.parametrize("place", range(GRID))
def test_every_single_lowered_delta_is_found_by_recomputing_and_by_an_attack(tmp_path, place):
    verification = checked(tmp_path, altered(stored(), "grid", place, "delta", to=lambda delta: delta * 0.99))
    claim = outcome(verification, "certificate.numbers")
    assert claim.outcome == "fail"
    assert "lower than what is certified" in claim.detail
    # The attack knows nothing of the formula: it finds the same by enumeration.
    attack = outcome(verification, "certificate.enumerated")
    assert attack.outcome == "fail"
    assert attack.evidence["epsilon"] == stored()["grid"][place]["epsilon"]


@pytest.mark.parametrize(
    "theorem", one_in(2, (theorem for theorem in CERTIFIED if theorem not in ("options", "histogram_value")))
)
def test_lowered_numbers_of_every_theorem_are_found_by_an_attack(tmp_path, theorem):
    document = stored(theorem)
    for point in document["grid"]:
        point["delta"] *= 0.5
        point["attained"] = min(point["attained"], point["delta"])
    if document["worst_case"]:
        for point in document["worst_case"]["grid"]:
            point["delta"] *= 0.5
    verification = checked(tmp_path, document)
    assert outcome(verification, "certificate.numbers").outcome == "fail"
    key = "certificate.anyone" if theorem == "noise" else "certificate.enumerated"
    assert outcome(verification, key).outcome == "fail", str(verification)


def test_a_raised_delta_is_true_and_said_to_be_weaker_than_necessary(tmp_path):
    verification = verify(written(tmp_path, altered(stored(), "grid", 9, "delta", to=lambda delta: delta * 1.01)))
    assert verification.passed, str(verification)
    claim = outcome(verification, "certificate.numbers")
    assert "1 of them weaker than necessary: certificate.grid[9].delta is" in claim.detail
    assert "higher than what is certified" in claim.detail
    assert outcome(verification, "certificate.enumerated").outcome == "pass"


@pytest.mark.usefixtures("unattacked")
def test_a_raised_attained_delta_is_found(tmp_path):
    verification = checked(tmp_path, altered(stored(), "grid", 9, "attained", to=lambda delta: delta * 1.01))
    assert "more than any attack is known to reach" in outcome(verification, "certificate.numbers").detail


@thinned(2)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("attacker", "p_max"), 0.09),
        (("attacker", "unknown_max"), 50),
        (("attacker", "known"), 3),
        (("mechanism", "k"), 21),
        (("protects",), "value"),
    ],
)
@pytest.mark.usefixtures("unattacked")
def test_edited_assumptions_do_not_fit_the_numbers(tmp_path, path, value):
    verification = checked(tmp_path, altered(stored(), *path, to=value))
    assert outcome(verification, "certificate.numbers").outcome == "fail"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("sentence",), lambda text: text.replace("10 %", "5 %")),
        (("assumptions",), lambda listed: listed[:-1]),
        (("assumptions", 0), "Nothing is assumed."),
        (("theorems", 0, "title"), "A better theorem"),
        (("theorems", 0, "citation"), "folklore"),
        (("steps",), "Every cell is published."),
        (("caveats",), ["Nothing can be told."]),
    ],
)
@pytest.mark.usefixtures("unattacked")
def test_other_words_are_found(tmp_path, path, value):
    verification = checked(tmp_path, altered(stored(), *path, to=value))
    assert outcome(verification, "certificate.words").outcome == "fail"
    assert outcome(verification, "certificate.numbers").outcome == "pass"


@pytest.mark.usefixtures("unattacked")
def test_a_caveat_that_was_taken_away_is_found(tmp_path):
    document = json.loads(certificate().with_caveats("Families are in it.").to_json())
    assert verify(written(tmp_path, document)).passed
    verification = checked(tmp_path, altered(document, "caveats", to=[]))
    assert outcome(verification, "certificate.words").outcome == "fail"


@pytest.mark.parametrize("place", range(2))
@pytest.mark.usefixtures("unattacked")
def test_a_point_of_the_grid_that_was_taken_away_is_found(tmp_path, place):
    document = stored()
    del document["grid"][place]
    assert "entries" in outcome(checked(tmp_path, document), "certificate.numbers").detail


@pytest.mark.usefixtures("unattacked")
def test_what_cannot_be_certified_fails_with_the_reason(tmp_path):
    verification = checked(tmp_path, altered(stored(), "attacker", "p_max", to=1.0))
    claim = outcome(verification, "certificate.numbers")
    assert claim.outcome == "fail"
    assert "nobody is ever absent" in claim.detail


class TestTotals:
    def document(self, kind="one_day"):
        return json.loads(composed(kind).to_json())

    @pytest.mark.parametrize("place", [0, 5, GRID - 1])
    @pytest.mark.usefixtures("unattacked")
    def test_a_lowered_total_is_found(self, tmp_path, place):
        verification = checked(tmp_path, altered(self.document(), "grid", place, "delta", to=lambda delta: delta / 2))
        assert "certificate.grid" in outcome(verification, "certificate.numbers").detail

    def test_a_lowered_part_is_found(self, tmp_path):
        document = altered(self.document(), "parts", 1, "certificate", "grid", 4, "delta", to=lambda delta: delta / 2)
        verification = checked(tmp_path, document)
        assert "certificate.parts[1].certificate.grid[4].delta" in outcome(verification, "certificate.numbers").detail
        assert outcome(verification, "certificate.enumerated").outcome == "fail"

    @pytest.mark.parametrize("kind", ["noise", "nested"])
    @pytest.mark.usefixtures("unattacked")
    def test_a_part_that_was_dropped_is_found(self, tmp_path, kind):
        document = self.document(kind)
        del document["parts"][0]
        verification = checked(tmp_path, document)
        # What holds for more releases holds for fewer; the words are about more.
        assert "weaker than necessary" in outcome(verification, "certificate.numbers").detail
        assert outcome(verification, "certificate.words").outcome == "fail"

    @pytest.mark.usefixtures("unattacked")
    def test_a_part_that_was_dropped_is_found_in_words_where_the_largest_stays(self, tmp_path):
        # One day is protected: the total is that of the worst day, so the numbers may stay what they are.
        document = self.document()
        document["parts"] = document["parts"][:1]
        checked(tmp_path, document)

    @pytest.mark.usefixtures("unattacked")
    def test_fewer_times_are_found(self, tmp_path):
        document = altered(self.document("noise"), "parts", 0, "times", to=1)
        assert outcome(checked(tmp_path, document), "certificate.words").outcome == "fail"
        document = altered(self.document("noise"), "parts", 0, "times", to=9)
        assert outcome(checked(tmp_path, document), "certificate.numbers").outcome == "fail"

    @pytest.mark.usefixtures("unattacked")
    def test_evidence_that_was_added_or_dropped_is_found(self, tmp_path):
        document = altered(self.document("noise"), "evidence", to=[{"kind": "disjoint_units"}])
        assert outcome(checked(tmp_path, document), "certificate.numbers").outcome == "fail"
        document = altered(self.document(), "evidence", to=[])
        assert "do not add up" in outcome(checked(tmp_path, document), "certificate.numbers").detail

    @pytest.mark.usefixtures("unattacked")
    def test_another_rule_is_found(self, tmp_path):
        document = altered(self.document(), "rule", to="disjoint_units")
        assert outcome(checked(tmp_path, document), "certificate.numbers").outcome == "fail"

    @pytest.mark.usefixtures("unattacked")
    def test_a_lowered_worst_case_is_found(self, tmp_path):
        document = altered(self.document("noise"), "worst_case", "epsilon", to=lambda epsilon: epsilon / 2)
        assert "certificate.worst_case.epsilon" in outcome(checked(tmp_path, document), "certificate.numbers").detail


@pytest.mark.usefixtures("unattacked")
def test_a_consistent_certificate_for_other_assumptions_passes_alone_and_the_report_says_so(tmp_path):
    weaker = pkdp.certify(pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.09))
    verification = verify(written(tmp_path, weaker.to_json()))
    assert verification.passed
    claim = outcome(verification, "assumptions.declared")
    assert claim.outcome == "not_checked"
    assert "consistent for other assumptions" in claim.detail


@pytest.mark.parametrize("kind", ["one_day", "noise"])
def test_a_total_whose_numbers_are_all_halved_is_found_by_an_attack_on_it(tmp_path, kind):
    document = json.loads(composed(kind).to_json())
    for grid in (document["grid"], (document["worst_case"] or {"grid": []})["grid"]):
        for point in grid:
            point["delta"] /= 2
    verification = checked(tmp_path, document, draws=20_000)
    assert outcome(verification, "certificate.together").outcome == "fail"
    assert "certificate says" in outcome(verification, "certificate.together").detail


def test_a_halved_value_guarantee_is_found_by_simulation(tmp_path):
    mechanism, attacker = pkdp.Histogram(k=50), pkdp.AttackerModel(p_max_between=0.6)
    document = json.loads(pkdp.certify(mechanism, attacker, protects="value").to_json())
    point = next(place for place, point in enumerate(document["grid"]) if point["epsilon"] == 0.1)
    verification = checked(
        tmp_path, altered(document, "grid", point, "delta", to=lambda delta: delta / 2), draws=20_000
    )
    claim = outcome(verification, "certificate.simulated")
    assert claim.outcome == "fail"
    assert claim.evidence["error"] == 1.0 - 0.999999
    # A confidence next to 1 is still shared between the simulations, and leaves them something to say.
    verification = verify(written(tmp_path, document), confidence=1.0 - 2.0**-53)
    assert outcome(verification, "certificate.simulated").evidence["percent"] > 0
