"""A δ that was lowered is found in every kind of total, however little a part far in its tail is known by."""

from __future__ import annotations

import json

import pytest
from thorough import ALL, one_in

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    IndependentGivenHabits,
    OneDayProtected,
)

COUNT = pkdp.certify(pkdp.Count(k=2000), pkdp.AttackerModel(p_max=0.2))
TABLE = pkdp.certify(pkdp.Histogram(k=50), pkdp.AttackerModel(p_max=0.5))
WEAK = pkdp.certify(pkdp.Count(k=5), pkdp.AttackerModel(p_max=0.5))
THREE = pkdp.compose([(TABLE, 3)], IndependentGivenHabits())


@pytest.mark.parametrize(
    ("parts", "evidence"),
    one_in(
        5,
        [
            ([(COUNT, 20), (TABLE, 20)], BoundedDependence(0.05, 1e-9)),
            ([(COUNT, 20)], [OneDayProtected(), BoundedParticipation(2)]),
            ([THREE, WEAK], DisjointUnits()),
            ([THREE, WEAK], [OneDayProtected(), BoundedParticipation(1)]),
            ([(THREE, 4), WEAK], BoundedDependence(0.01)),
        ],
    ),
)
def test_a_lowered_delta_is_found(parts, evidence):
    total = pkdp.compose(parts, evidence)
    assert total.verify()
    places = [place for place, point in enumerate(json.loads(total.to_json())["grid"]) if point["delta"] >= 1e-30]
    for place in (*places[:: 12 if ALL else 48], places[-1]):
        document = json.loads(total.to_json())
        document["grid"][place]["delta"] *= 0.99
        with pytest.raises(pkdp.ArgumentError, match="not what the mechanism and the attacker give"):
            pkdp.Certificate.from_json(json.dumps(document)).verify()
