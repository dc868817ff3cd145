"""Another frame under a published question is answered with what was published, and with a warning."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings

import pandas as pd
import polars as pl
import pytest

import pkdp_pipeline as pkdp

ASK = {"unit": "u", "k": 10, "attacker": pkdp.AttackerModel(p_max=0.5), "period": "2020-01-01"}


def frame():
    return pd.DataFrame({"u": range(60), "c": ["a", "b"] * 30})


@pytest.fixture
def ledger():
    with pkdp.Ledger.open(":memory:") as opened:
        yield opened


def quietly(ask):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ask()


def test_another_frame_warns_and_the_same_does_not(ledger):
    day = frame()
    first = quietly(lambda: day.pkdp.histogram("c", ledger=ledger, **ASK))
    assert quietly(lambda: day.pkdp.histogram("c", ledger=ledger, **ASK)).replayed
    # An answer to a restricted frame would be another one.
    part = day[day["u"] < 30]
    for ask in (part.pkdp.histogram, lambda *names, **options: pkdp.histogram(part, *names, **options)):
        with pytest.warns(UserWarning, match=r"what was published, .* Put restrictions in where=") as warned:
            again = ask("c", ledger=ledger, **ASK)
        assert [warning.filename for warning in warned] == [__file__]
        assert again.replayed
        assert again.to_bytes() == first.to_bytes()
    assert quietly(lambda: day.pkdp.histogram("c", ledger=ledger, **ASK)).replayed


def test_another_frame_under_another_attacker_warns(ledger):
    day, milder = frame(), ASK | {"attacker": pkdp.AttackerModel(p_max=0.4)}
    quietly(lambda: day.pkdp.histogram("c", ledger=ledger, **ASK))
    assert quietly(lambda: day.pkdp.histogram("c", ledger=ledger, **milder)).replayed
    with pytest.warns(UserWarning, match="was asked of another frame before"):
        day[day["u"] < 30].pkdp.histogram("c", ledger=ledger, **(ASK | {"attacker": pkdp.AttackerModel(p_max=0.3)}))


def test_a_frame_that_is_gone_is_another_one(ledger):
    day = pl.from_pandas(frame())
    quietly(lambda: pkdp.count(day, ledger=ledger, **ASK))
    day = day.filter(pl.col("u") < 40)
    with pytest.warns(UserWarning, match="was asked of another frame before"):
        assert pkdp.count(day, ledger=ledger, **ASK).value == 60


def test_a_revision_is_of_its_own_frame(ledger):
    day, corrected = frame(), frame()[:50]
    noised = ASK | {"k": None, "noise": pkdp.GeometricNoise(0.5)}
    quietly(lambda: pkdp.count(day, ledger=ledger, **noised))
    quietly(lambda: pkdp.count(corrected, ledger=ledger, revise=True, **noised))
    assert quietly(lambda: pkdp.count(corrected, ledger=ledger, **noised)).replayed


def test_without_a_ledger_nothing_is_replayed():
    terms = {name: value for name, value in ASK.items() if name != "period"}
    for _ in range(2):
        quietly(lambda: pkdp.count(frame(), **terms))


@pytest.mark.slow
def test_what_another_process_published_is_replayed_in_silence(tmp_path):
    program = """
        import pandas as pd
        import pkdp_pipeline as pkdp
        day = pd.DataFrame({"u": range(60)})
        with pkdp.Ledger.open("ledger.sqlite") as ledger:
            asked = dict(unit="u", k=30, attacker=pkdp.AttackerModel(p_max=0.1), period="2020-01-01", ledger=ledger)
            print(day.pkdp.count(**asked).replayed)
    """
    said = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert said == ["False\n", "True\n"]
