"""An engine is one module and one line of the registry: a toy, for lists of dicts, publishes like the others."""

from __future__ import annotations

import sys
from types import MappingProxyType, ModuleType

import numpy as np
import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline import engines
from pkdp_pipeline.engines import CellCounts, Tally, Units

PEOPLE = pd.DataFrame({"person": range(60), "town": ["Oslo"] * 50 + ["Bergen"] * 10})


class Rows(list):
    """A frame of another kind: a list of dicts."""


class RowsEngine:
    def cells(self, frame, question):
        pairs = {(tuple(row[c] for c in question.unit), tuple(row[c] for c in question.by)) for row in frame}
        cells = sorted({cell for _, cell in pairs})
        return CellCounts(
            keys=pd.DataFrame({name: pd.array([c[i] for c in cells], "str") for i, name in enumerate(question.by)}),
            counts=np.array([sum(cell == own for _, own in pairs) for cell in cells]),
            missing_unit=False,
            several_cells=len(pairs) > len({unit for unit, _ in pairs}),
        )

    def tally(self, frame, question):
        people = len({tuple(row[c] for c in question.unit) for row in frame})
        return Tally(satisfying=people, population=people, missing_unit=False)

    def units(self, frame, unit):
        return Units()


@pytest.fixture
def toy(monkeypatch):
    module = ModuleType("toy_engine")
    module.RowsEngine = RowsEngine
    monkeypatch.setitem(sys.modules, "toy_engine", module)
    line = {(Rows.__module__.split(".")[0], Rows.__name__): "toy_engine:RowsEngine"}
    monkeypatch.setattr(engines, "ENGINES", MappingProxyType({**engines.ENGINES, **line}))


@pytest.mark.usefixtures("toy")
def test_a_toy_engine_publishes_the_same_bytes():
    terms = {"unit": "person", "k": 20, "attacker": pkdp.AttackerModel(p_max=0.3), "target": None}
    rows = Rows(PEOPLE.to_dict("records"))
    assert pkdp.histogram(rows, "town", **terms).to_bytes() == pkdp.histogram(PEOPLE, "town", **terms).to_bytes()
    assert pkdp.count(rows, **terms).value == 60
    with pytest.raises(pkdp.InputCheckError, match="several"):
        pkdp.histogram(Rows([*rows, {"person": 3, "town": "Bergen"}]), "town", **terms)


def test_without_the_line_the_error_names_the_frames_there_are():
    with pytest.raises(pkdp.ArgumentError, match=r"pandas\.DataFrame"):
        pkdp.count(Rows(), unit="person", k=20, attacker=pkdp.AttackerModel(p_max=0.3))
