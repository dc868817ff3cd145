"""The logger ``pkdp_pipeline``: every charge, publication, refusal and repetition, and nothing of the data."""

from __future__ import annotations

import logging
import re

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.publish import Publication, publish

ROWS = pd.DataFrame({"person": range(60), "town": ["Ås"] * 43 + ["Secretville"] * 17})
ASKED = {"unit": "person", "k": 30, "attacker": pkdp.AttackerModel(p_max=0.1)}
HISTOGRAM = "'histogram by town' of 2026-01-01 in data set 'd'"


@pytest.fixture
def said(caplog):
    """Return a function that gives what was logged since it was asked last."""
    caplog.set_level(logging.DEBUG, logger="pkdp_pipeline")

    def since() -> list[tuple[str, str]]:
        lines = [(record.levelname, record.getMessage()) for record in caplog.records]
        caplog.clear()
        words = {word for _, text in lines for word in re.split(r"\W+", text)}
        assert not words & {"Secretville", "Ås", "Oslo", "43", "17", "60"}
        return lines

    return since


def test_charge_publication_replay_and_refusal_are_logged(said):
    with pkdp.Ledger.open(":memory:", dataset="d") as ledger:
        terms = {**ASKED, "ledger": ledger, "period": "2026-01-01", "where": "town != 'Oslo'"}
        release = ROWS.pkdp.histogram("town", **terms)
        assert said() == [
            ("INFO", f"charged: {HISTOGRAM}"),
            ("INFO", f"published: {HISTOGRAM}, release {release.id}"),
        ]
        ROWS.pkdp.histogram("town", **terms)
        assert said() == [("INFO", f"replayed: {HISTOGRAM}, release {release.id}")]
        with pytest.raises(pkdp.DifferencingError):
            ROWS.pkdp.histogram("town", **{**terms, "period": "2026-01-02"})
        refused = HISTOGRAM.replace("01-01", "01-02")
        assert said() == [("WARNING", f"refused: {refused} (DifferencingError)")]


def test_a_charge_that_is_given_back_or_taken_over_is_logged(said):
    missing = ROWS.assign(person=ROWS["person"].where(ROWS["town"] == "Ås").astype("Int64"))
    with pkdp.Ledger.open(":memory:", dataset="d") as ledger:
        terms = {**ASKED, "ledger": ledger, "period": "2026-01-01"}
        with pytest.raises(pkdp.InputCheckError):
            missing.pkdp.histogram("town", **terms)
        assert said() == [
            ("INFO", f"charged: {HISTOGRAM}"),
            ("WARNING", f"charge given back: {HISTOGRAM}"),
            ("WARNING", f"not published: {HISTOGRAM} (InputCheckError)"),
        ]
        question = Question(mechanism=pkdp.Histogram(k=30), by="town", unit="person", period="2026-01-01")
        publication = Publication(question=question, attacker=ASKED["attacker"], ledger=ledger)
        publication.reserve()  # by a run that then ends
        release = publish(lambda: ROWS, publication)
        assert said() == [
            ("WARNING", f"charge of a run that ended taken over: {HISTOGRAM}"),
            ("INFO", f"published: {HISTOGRAM}, release {release.id}"),
        ]


def test_what_is_to_be_tried_again_is_logged_so(said, tmp_path):
    path = tmp_path / "ledger.sqlite"
    with pkdp.Ledger.open(path, dataset="d") as ledger:

        def busy() -> pd.DataFrame:
            raise pkdp.TemporaryError("locked: Secretville")

        question = Question(mechanism=pkdp.Histogram(k=30), by="town", unit="person", period="2026-01-01")
        with pytest.raises(pkdp.TemporaryError):
            publish(busy, Publication(question=question, attacker=ASKED["attacker"], ledger=ledger))
    assert said()[-1] == ("WARNING", f"not published, try again: {HISTOGRAM} (TemporaryError)")


def test_without_a_handler_nothing_is_said():
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("pkdp_pipeline").handlers)
