"""`Certificate.plot` and `Ledger.plot`: the same drawings, in a figure of their own, without global state."""

from __future__ import annotations

import sys

import matplotlib as mpl
import pandas as pd
import pytest
from figure_samples import axes, drawn, texts

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError, ConfigError, NoEvidenceError
from pkdp_pipeline.extras.report.figures import inline_svg
from pkdp_pipeline.extras.report.figures.style import SURFACE

ATTACKER = pkdp.AttackerModel(p_max=0.5)


@pytest.fixture
def certificate():
    return pkdp.certify(pkdp.Histogram(k=50), ATTACKER)


@pytest.fixture
def ledger(tmp_path):
    with pkdp.Ledger.open(
        tmp_path / "ledger.sqlite", budget=pkdp.Budget(9.0, 1e-6, part="partial_knowledge"),
        evidence=pkdp.IndependentGivenHabits(),
    ) as opened:  # fmt: skip
        yield opened


def publish(ledger, *periods, unit="u"):
    frame = pd.DataFrame({"u": range(70), "v": range(70), "c": ["x"] * 70})
    for period in periods:
        pkdp.histogram(frame, "c", unit=unit, k=50, attacker=ATTACKER, ledger=ledger, period=period)


def test_a_certificate_is_plotted(certificate):
    panel = certificate.plot()
    assert drawn(panel, "mark").get_data() == ([certificate.epsilon(1e-6)], [1e-6])
    assert "ε = 1.16 at δ = 1e-6" in texts(panel)
    assert drawn(certificate.plot(delta=1e-9), "mark").get_data() == ([certificate.epsilon(1e-9)], [1e-9])


@pytest.mark.slow
def test_a_composed_certificate_is_plotted(certificate):
    total = pkdp.compose([certificate] * 2, pkdp.IndependentGivenHabits())
    assert drawn(total.plot(), "mark").get_data() == ([total.epsilon(1e-6)], [1e-6])


def test_given_axes_are_used(certificate, ledger):
    panel = axes()
    assert certificate.plot(ax=panel) is panel
    publish(ledger, "2013-01-02")
    other = axes()
    assert ledger.plot(ax=other) is other
    assert drawn(other, "total")


def test_a_delta_that_is_none_is_refused(certificate, ledger):
    with pytest.raises(ArgumentError, match="delta"):
        certificate.plot(delta=2.0)
    publish(ledger, "2013-01-02")
    with pytest.raises(ArgumentError, match="delta"):
        ledger.plot(delta=-1.0)


def test_a_ledger_is_plotted(ledger):
    publish(ledger, "2013-01-02", "2013-01-03")
    panel = ledger.plot()
    line = drawn(panel, "total")
    assert line.get_ydata()[-1] == ledger.total().epsilon(1e-6)
    assert len(line.get_ydata()) == 2
    assert list(drawn(panel, "budget").get_ydata()) == [9.0, 9.0]
    assert drawn(ledger.plot(delta=1e-4), "total").get_ydata()[-1] == ledger.total().epsilon(1e-4)


def test_the_unit_is_that_of_the_total(ledger):
    with pytest.raises(ArgumentError, match="no releases yet"):
        ledger.plot()
    publish(ledger, "2013-01-02")
    with pytest.raises(ArgumentError, match="unit must be one of"):
        ledger.plot(unit="w")
    publish(ledger, "2013-01-03", "2013-01-04", unit="v")
    with pytest.raises(NoEvidenceError, match="several privacy units"):
        ledger.plot()
    assert len(drawn(ledger.plot(unit="u"), "total").get_ydata()) == 1
    assert drawn(ledger.plot(unit="v"), "total").get_ydata()[-1] == ledger.total("v").epsilon(1e-6)


def test_a_notebook_shows_the_picture_without_pyplot(certificate):
    from IPython.core.formatters import DisplayFormatter

    shown, details = DisplayFormatter().format(certificate.plot())
    assert shown["image/png"].startswith(b"\x89PNG")
    assert details["image/png"]["width"] == 768


@pytest.mark.slow
def test_a_plot_is_saved(certificate, tmp_path):
    figure = certificate.plot().figure
    for kind in ("png", "svg", "pdf"):
        figure.savefig(tmp_path / f"guarantee.{kind}")
        assert (tmp_path / f"guarantee.{kind}").stat().st_size > 3000
    assert mpl.colors.to_hex(figure.get_facecolor()) == SURFACE


def test_without_matplotlib_the_extra_is_named(certificate, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[report\]'"):
        certificate.plot()
    with pytest.raises(ConfigError, match=r"'\.\[report\]'"):
        inline_svg(lambda _: None, name="a", title="t", description="d", width=400, height=300)
