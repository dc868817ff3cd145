"""Certificates: frozen, canonical JSON, and every tampering is found."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline import ArgumentError, AttackerModel, Certificate, Count, GeometricNoise, Histogram, certify
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.schemas import VERSION

NOISE = GeometricNoise(0.5)
MADE = {
    "threshold": (Count(k=50), AttackerModel(p_max=0.1, known=3, influence="active"), "presence"),
    "complement": (Count(k_complement=30), AttackerModel(p_min=0.2), "presence"),
    "count": (Count(), AttackerModel(p_min=0.1, p_max=0.6, unknown=40), "presence"),
    "noisy count": (Count(noise=NOISE), AttackerModel(p_min=0.1, p_max=0.6, unknown=12), "presence"),
    "presence": (Histogram(k=20), AttackerModel(p_max=0.1, unknown_max=99), "presence"),
    "value": (Histogram(k=20), AttackerModel(p_max=0.1, known=1), "value"),
    "between": (Histogram(k=40), AttackerModel(p_max_between=0.7), "value"),
    "options": (Histogram(), AttackerModel(p_min=0.2, unknown=40), "value"),
    "noise": (Histogram(k=5, noise=NOISE, release_threshold=40), AttackerModel(), "presence"),
    "both": (Histogram(k=12, noise=NOISE, release_threshold=40), AttackerModel(p_max=0.2), "presence"),
}


@pytest.fixture(scope="module", params=MADE)
def certificate(request):
    mechanism, attacker, protects = MADE[request.param]
    return certify(mechanism, attacker, protects=protects).with_caveats("Holds <for> one day & no other.")


def test_what_it_was_made_of(certificate):
    assert isinstance(certificate, Certificate)
    again = certify(certificate.mechanism, certificate.attacker, protects=certificate.protects)
    assert again.with_caveats(*certificate.caveats) == certificate
    assert again != certificate
    assert hash(again.with_caveats(*certificate.caveats)) == hash(certificate)


def test_it_is_frozen(certificate):
    for name in ("mechanism", "attacker", "protects", "caveats", "_partial", "anything"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
            setattr(certificate, name, None)


@thinned(3)
def test_json_comes_back_byte_for_byte(certificate):
    text = certificate.to_json()
    assert text == certificate.to_json()
    back = Certificate.from_json(text)
    assert back == certificate
    assert back.to_json() == text
    assert Certificate.from_json(back.to_json()).to_json() == text
    assert back.verify() is True
    assert certificate.verify() is True
    points = np.array([0.1, 1.0])
    assert back.delta(points) == pytest.approx(certificate.delta(points), rel=1e-15)
    assert back.sentence() == certificate.sentence()
    json.loads(text, parse_constant=pytest.fail)


def test_whitespace_and_order_do_not_matter(certificate):
    document = json.loads(certificate.to_json())
    shuffled = json.dumps(dict(reversed(document.items())), indent=3)
    assert Certificate.from_json(shuffled).to_json() == certificate.to_json()


def test_pickling_and_copying(certificate):
    for back in (pickle.loads(pickle.dumps(certificate)), copy.deepcopy(certificate), copy.copy(certificate)):
        assert back == certificate
        assert hash(back) == hash(certificate)
        assert back.to_json() == certificate.to_json()
        assert back.verify() is True


def test_the_bounds_are_in_order_and_the_certificate_is_the_upper_one(certificate):
    points = np.array([0.0, 0.1, 0.5, 1.0, 3.0])
    attained, certified = certificate.delta_bounds(points)
    assert np.all((attained >= 0.0) & (attained <= certified) & (certified <= 1.0))
    assert certificate.delta(points) == pytest.approx(certified, rel=1e-12, abs=0.0)
    assert np.all(certificate.delta(points) <= certificate.worst_case.delta(points) * (1 + 1e-12))


@thinned(3)
def test_worst_case(certificate):
    worst = certificate.worst_case
    finite = certificate.mechanism.noise is not None
    assert (worst.parameters is not None) == finite
    if finite:
        epsilon, delta = worst.parameters
        assert worst.delta(epsilon) <= delta * (1 + 1e-12) + 1e-300
        assert worst.epsilon(max(delta * 1.001, 1e-9)) <= epsilon
        assert certificate.epsilon(0.01) <= worst.epsilon(0.01)
    else:
        assert worst.delta(100.0) == 1.0
        assert worst.delta(np.array([0.0, 5.0])).tolist() == [1.0, 1.0]
        assert worst.epsilon(0.999) == math.inf
        assert worst.epsilon(1.0) == 0.0


def test_partial_knowledge_is_told_apart():
    assert certify(Histogram(k=20), AttackerModel(p_max=0.1)).has_partial_knowledge
    assert not certify(Histogram(noise=NOISE), AttackerModel()).has_partial_knowledge
    assert certify(Histogram(noise=NOISE), AttackerModel()).theorems == ("noise",)


def test_caveats_are_part_of_it(certificate):
    more = certificate.with_caveats("A first limit.", "A second one.")
    assert more.caveats == (*certificate.caveats, "A first limit.", "A second one.")
    assert more.sentence().endswith("A first limit. A second one.")
    assert json.loads(more.to_json())["caveats"] == list(more.caveats)
    assert Certificate.from_json(more.to_json()).caveats == more.caveats
    assert Certificate.from_json(certificate.to_json()).with_caveats("Another.").verify() is True
    assert more != certificate
    assert certificate.with_caveats() == certificate


def test_html_escapes_and_says_the_same(certificate):
    page = certificate._repr_html_()
    assert "Holds &lt;for&gt; one day &amp; no other." in page
    assert "<for>" not in page
    assert page.count("<tr>") == 5


def edits(document):
    """Every leaf of a document, changed; every field, removed; a field added to every object."""

    def walk(value, path):
        if isinstance(value, dict):
            yield (*path, "unheard of"), "added", 1
            for key, inner in value.items():
                yield (*path, key), "removed", None
                yield from walk(inner, (*path, key))
        elif isinstance(value, list):
            yield path, "changed", [*value, *(value[:1] or ["x"])]
            if value:
                yield path, "changed", value[:-1]
            for index, inner in enumerate(value[: few(3, 2)]):
                yield from walk(inner, (*path, index))
        elif isinstance(value, bool):
            yield path, "changed", not value
        elif isinstance(value, (int, float)):
            for other in (
                value * 0.999 - 1e-9,
                value + 1,
                True,
                str(value),
                None,
                [value],
                math.nan,
                math.inf,
                -math.inf,
            ):
                yield path, "changed", other
        elif value is None:
            yield path, "changed", 0
            yield path, "changed", "none"
        else:
            yield path, "changed", value + " "
            yield path, "changed", value.replace("e", "3") + "!"
            yield path, "changed", None

    yield from walk(document, ())


def tampered(document, path, kind, value):
    changed = copy.deepcopy(document)
    target = changed
    for step in path[:-1]:
        target = target[step]
    if kind == "removed":
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return json.dumps(changed)


def is_refused(text):
    """Reading or verifying raises an error of ours; anything else propagates."""
    try:
        Certificate.from_json(text).verify()
    except pkdp.PkdpError:
        return True
    return False


def is_weaker(document, path, value):
    """A number that promises less, in a document that says the same otherwise, is true."""
    before = document
    for step in path:
        before = before[step]
    if path[-1] == "attained":
        return 0.0 <= value < before
    return (path[-1] == "delta" and before < value <= 1.0) or (path == ("worst_case", "epsilon") and value > before)


@pytest.mark.parametrize("name", ["threshold", "noise", "between", pytest.param("both", marks=pytest.mark.slow)])
def test_every_tampering_is_found(name):
    mechanism, attacker, protects = MADE[name]
    document = json.loads(certify(mechanism, attacker, protects=protects).with_caveats("One limit.").to_json())
    for path, kind, value in edits(document):
        text = tampered(document, path, kind, value)
        if not is_refused(text):
            if is_weaker(document, path, value):
                continue
            # What is left is no tampering: another attacker, about whom exactly this certificate is written.
            assert path[0] == "attacker", (path, kind, value)
            changed = json.loads(text)
            fresh = certify(mechanism, AttackerModel(**changed["attacker"]), protects=protects)
            assert json.loads(fresh.with_caveats("One limit.").to_json()) == changed, (path, kind, value)


def test_a_caveat_dropped_everywhere_but_in_the_sentence_is_found(certificate):
    document = json.loads(certificate.to_json())
    document["caveats"] = []
    assert is_refused(json.dumps(document))
    document = json.loads(certificate.to_json())
    document["sentence"] = document["sentence"].replace(" Holds <for> one day & no other.", "")
    assert is_refused(json.dumps(document))


def test_a_lowered_delta_or_true_for_one_is_found():
    weak = ReleaseCertificate(mechanism=Count(k=3), attacker=AttackerModel(p_max=0.999999), protects="presence")
    document = json.loads(weak.to_json())
    for row in document["grid"]:
        for name, bolder in (("delta", 1 - 1e-8), ("attained", 1 + 1e-8)):
            before = row[name]
            for other in (before * bolder, True, str(before)):
                row[name] = other
                assert is_refused(json.dumps(document))
            row[name] = before
    certain = json.loads(certify(Histogram(k=1, noise=NOISE, release_threshold=0), AttackerModel()).to_json())
    assert Certificate.from_json(json.dumps(certain)).verify() is True


@pytest.mark.parametrize("version", ["0.0.9", VERSION + ".post1", None, ["0.1.0"]])
def test_another_version_is_named(version):
    document = json.loads(certify(Count(k=30), AttackerModel(p_max=0.1)).to_json())
    document["library"]["version"] = version
    with pytest.raises(ArgumentError, match="another version"):
        Certificate.from_json(json.dumps(document)).verify()


@pytest.mark.parametrize(
    "number", ["1" + "0" * 400, "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "1e-400", "-0.0"]
)
def test_numbers_no_certificate_has_are_found(number):
    document = json.loads(certify(Count(k=30), AttackerModel(p_max=0.1)).to_json())
    document["grid"][5]["delta"] = "HERE"
    assert is_refused(json.dumps(document).replace('"HERE"', number))


@pytest.mark.parametrize(
    "change",
    [
        {"attacker": AttackerModel(p_max=0.05)},
        {"mechanism": Count(k=60)},
        {"caveats": ("Another.",)},
        {"mechanism": Histogram(k=50)},
    ],
)
def test_a_replaced_certificate_has_bounds_and_a_text_of_its_own(change):
    certificate = certify(Count(k=50), AttackerModel(p_max=0.1)).with_caveats("One limit.")
    for before in (certificate, certificate.written(), Certificate.from_json(certificate.to_json())):
        other = dataclasses.replace(before, **change)
        fresh = certify(other.mechanism, other.attacker).with_caveats(*other.caveats)
        assert other == fresh
        assert other.delta(1.0) == fresh.delta(1.0)
        assert other.to_json() == fresh.to_json()
        assert other.verify() is True


def test_bounds_cannot_be_taken_from_another_certificate():
    stronger = certify(Count(k=500), AttackerModel(p_max=0.1))
    weaker = certify(Count(k=5), AttackerModel(p_max=0.1))
    for honest in (weaker, Certificate.from_json(weaker.to_json())):
        for name, value in (("_promise", stronger._promise), ("_stored", stronger.to_json())):
            with pytest.raises(ValueError, match=name):
                dataclasses.replace(honest, **{name: value})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("k=3", AttackerModel(p_max=0.1)), "mechanism must be one of"),
        ((Count, AttackerModel(p_max=0.1)), "mechanism must be one of"),
        ((Count(k=3), {"p_max": 0.1}), "attacker must be an AttackerModel"),
        ((Count(k=3), None), "attacker is needed without noise"),
    ],
)
def test_what_certify_takes(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        certify(*arguments)


@pytest.mark.parametrize("protects", ["values", "", None, 1, ["presence"], {"presence"}])
def test_what_can_be_protected(protects):
    with pytest.raises(ArgumentError, match="protects must be one of 'presence', 'value'"):
        certify(Histogram(k=30), AttackerModel(p_max=0.1), protects=protects)


@pytest.mark.parametrize("caveat", [None, 5, b"bytes", ["a", "list"]])
def test_a_caveat_is_a_sentence(caveat):
    with pytest.raises(ArgumentError, match="caveat"):
        certify(Count(k=30), AttackerModel(p_max=0.1)).with_caveats(caveat)


def foreign(mechanism=None, attacker=None) -> dict:
    """Return a certificate as another version of the library may have written it: in other words."""
    document = json.loads(certify(mechanism or Count(k=30), attacker or AttackerModel(p_max=0.1)).to_json())
    document["library"]["version"] = "0.0.9"
    document["sentence"] = "Other words."
    return document


def test_the_numbers_of_another_version_are_compared_and_its_words_are_not():
    document = foreign(Histogram(k=5, noise=NOISE, release_threshold=40), AttackerModel())
    assert Certificate.from_json(json.dumps(document)).verify(any_version=True) is True
    total = pkdp.compose([(Certificate.from_json(json.dumps(document)), 2)])
    assert total.verify(any_version=True) is True
    with pytest.raises(ArgumentError, match="another version"):
        total.verify()


@pytest.mark.parametrize(
    "path",
    [("grid", 2, "delta"), ("grid", 2, "attained"), ("worst_case", "delta"), ("worst_case", "grid", 3, "delta")],
)
def test_a_bolder_number_of_another_version_is_found(path):
    document = foreign(Histogram(k=5, noise=NOISE, release_threshold=40), AttackerModel())
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] *= 1 + 1e-8 if path[-1] == "attained" else 1 - 1e-8
    with pytest.raises(ArgumentError, match="altered"):
        Certificate.from_json(json.dumps(document)).verify(any_version=True)


@pytest.mark.parametrize("grid", [[], [{}], [{"epsilon": "1"}], [{"epsilon": -1.0}], [{"epsilon": True}], [5]])
def test_a_grid_of_another_version_that_is_no_grid_is_refused(grid):
    for name in ("grid", "worst_case"):
        document = foreign(Histogram(k=5, noise=NOISE, release_threshold=40), AttackerModel())
        document[name] = grid if name == "grid" else document[name] | {"grid": grid}
        with pytest.raises(ArgumentError):
            Certificate.from_json(json.dumps(document)).verify(any_version=True)
    no_noise = foreign()
    no_noise["worst_case"] = {"epsilon": 1.0, "delta": 0.0, "grid": [{"epsilon": 1.0, "delta": 0.0}]}
    with pytest.raises(ArgumentError, match="worst_case"):
        Certificate.from_json(json.dumps(no_noise)).verify(any_version=True)
