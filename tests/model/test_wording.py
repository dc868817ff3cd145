from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline import AttackerModel
from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import NoEvidenceError, NotCertifiableError, PkdpError
from pkdp_pipeline.model import evidence
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.model.wording import JOB_FILE, PYTHON, Worded, rounded_down, with_arguments, worded_for
from pkdp_pipeline.releases.options import Declared


def test_a_worded_message_is_a_text_in_python_and_can_be_had_in_another_speech():
    message = Worded(lambda say: f"write {say.noise(0.5)}, {say.setting('k', 5)}")
    assert message == "write noise=pkdp.GeometricNoise(0.5), k=5"
    assert message.spoken(JOB_FILE) == "write noise = { epsilon = 0.5 }, k = 5"
    error = PkdpError(message)
    assert str(error) == worded_for(error, PYTHON) == message
    assert worded_for(error, JOB_FILE) == message.spoken(JOB_FILE)
    assert worded_for(PkdpError("plain"), JOB_FILE) == "plain"
    assert worded_for(PkdpError(), JOB_FILE) == ""


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_can_be_copied_and_sent_to_another_process(copied):
    with pytest.raises(NotCertifiableError) as caught:
        certify(Histogram(k=5), AttackerModel())
    assert str(copied(caught.value)) == str(caught.value)
    assert type(copied(caught.value)) is NotCertifiableError


def kinds() -> dict[str, type[Evidence]]:
    return {
        key: kind
        for key, kind in evidence.KINDS.items()
        if key not in ("same_people", "same_table", "bounded_sensitivity")
    }


@pytest.mark.parametrize("key", sorted(kinds()))
def test_every_kind_of_evidence_is_named_as_job_files_and_python_know_it(key):
    import pydantic

    kind = kinds()[key]
    numbers = {"epsilon": 0.1, "delta": 1e-9, "times": 3}
    written = PYTHON.evidence(kind)
    for name, number in numbers.items():
        written = written.replace(name, repr(number))
    import pkdp_pipeline as pkdp

    evidence = eval(written, {"pkdp": pkdp})
    assert isinstance(evidence, kind)
    import tomllib

    toml = JOB_FILE.evidence(kind)
    for name, number in numbers.items():
        toml = toml.replace(f"{name} = …", f"{name} = {number!r}")
    table = tomllib.loads(f"evidence = {toml}")["evidence"]
    assert pydantic.TypeAdapter(Declared).validate_python(table).value == evidence


def test_releases_that_do_not_add_up_are_told_in_both():
    part = certify(Histogram(k=50), AttackerModel(p_max=0.5))
    with pytest.raises(NoEvidenceError) as caught:
        compose([part, part])
    assert "pkdp.BoundedDependence(epsilon, delta)" in str(caught.value)
    message = worded_for(caught.value, JOB_FILE)
    assert '{ kind = "bounded_dependence", epsilon = …, delta = … }' in message
    assert "pkdp." not in message


@given(value=st.floats(1e-300, 1.0) | st.floats(-1.0, -1e-300) | st.fractions(1e-12, 1))
def test_what_is_attained_is_rounded_down(value):
    exact = Fraction(str(value))
    assert exact - abs(exact) / 50 <= Fraction(rounded_down(value)) <= exact
    assert rounded_down(0.12399) == "0.123"
    assert rounded_down(0.0) == "0"


def test_a_column_in_a_table_of_a_message_is_no_argument():
    names = {"date": "--date", "unit": "--unit", "types": "--type"}
    of_run = with_arguments('types = { date = "date" } in source', {"date": "--date"}, lambda name, _: name)
    assert of_run == 'types = { date = "date" } in source'
    message = 'write types = { unit = "text" } in source, or { date = "date" }, or unit="person"'
    assert with_arguments(message, names, lambda name, value: f"{name} {value}") == (
        'write --type { unit = "text" }, or { date = "date" }, or --unit "person"'
    )
