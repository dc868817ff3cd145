from __future__ import annotations

import pytest

from pkdp_pipeline.errors import ArgumentError, DifferencingError
from pkdp_pipeline.ledger import Standing, check_differencing


def standing(label="by carrier", *, period="2013-01-02", noiseless=True, unit=("tailnum",)):
    return Standing(unit=unit, period=period, label=label, noiseless=noiseless)


def test_a_first_release_stands():
    check_differencing(standing(), [], dataset="flights")


@pytest.mark.parametrize(("new", "old"), [(True, True), (True, False), (False, True)])
def test_one_noiseless_release_of_two_is_refused_with_the_three_ways_out(new, old):
    with pytest.raises(DifferencingError) as caught:
        check_differencing(
            standing("new view", noiseless=new), [standing("old view", noiseless=old)], dataset="flights"
        )
    message = str(caught.value)
    for words in ("new view", "old view", "flights", "cross-tabulated", "noise", "bounded dependence"):
        assert words in message


def test_noised_releases_stand_together():
    check_differencing(standing(noiseless=False), [standing("b", noiseless=False)] * 3, dataset="flights")


def test_another_day_stands():
    check_differencing(standing(), [standing(period="2013-01-03")], dataset="flights")


def test_the_week_around_the_day_is_refused():
    with pytest.raises(DifferencingError):
        check_differencing(standing(period="2013-W01"), [standing(period="2013-01-02")], dataset="flights")


def test_another_unit_of_the_same_data_set_is_the_same_people():
    with pytest.raises(DifferencingError):
        check_differencing(standing(unit=("owner",)), [standing(unit=("tailnum",))], dataset="flights")


def test_one_bad_neighbour_among_many_is_found():
    others = [standing("good", noiseless=False)] * 5 + [standing("bad")]
    with pytest.raises(DifferencingError, match="bad"):
        check_differencing(standing(noiseless=False), others, dataset="flights")


@pytest.mark.parametrize(
    "change", [{"unit": ["tailnum"]}, {"unit": (1,)}, {"period": ""}, {"label": None}, {"noiseless": 1}]
)
def test_a_malformed_standing_is_an_argument_error(change):
    fields = {"unit": ("tailnum",), "period": "2013", "label": "x", "noiseless": True} | change
    with pytest.raises(ArgumentError):
        Standing(**fields)
