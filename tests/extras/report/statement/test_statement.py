"""What a certificate says, as values and as a fragment of HTML: the same as the certificate itself."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.theorems.theorems import THEOREMS

ATTACKER = pkdp.AttackerModel(p_max=0.1)
NOISE = pkdp.GeometricNoise(0.5)
NOISED = pkdp.certify(pkdp.Histogram(k=10, noise=NOISE, release_threshold=50), ATTACKER)
PLAIN = pkdp.certify(pkdp.Histogram(k=50), ATTACKER)
CERTIFICATES = {
    "histogram": PLAIN,
    "noised": NOISED,
    "no epsilon": pkdp.certify(pkdp.Histogram(k=50), pkdp.AttackerModel(p_max_between=0.9), protects="value"),
    "noise only": pkdp.certify(pkdp.Count(noise=NOISE), pkdp.AttackerModel()),
    "total": pkdp.compose([(PLAIN, 30)], pkdp.IndependentGivenHabits()),
    "noised total": pkdp.compose([(NOISED, 30)], pkdp.IndependentGivenHabits()),
    "worst-case total": pkdp.compose([(NOISED, 3)]),
    "pure total": pkdp.compose([(pkdp.certify(pkdp.Count(noise=NOISE), pkdp.AttackerModel()), 4)]),
    "single": pkdp.compose([NOISED]),
    "nothing": pkdp.compose([]),
}


@pytest.fixture(params=CERTIFICATES, name="certificate")
def _certificate(request):
    return CERTIFICATES[request.param]


@thinned(4)
@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_it_is_what_the_certificate_says(certificate, delta):
    said = Statement.of(certificate, delta)
    assert said.sentence == certificate.sentence(delta)
    assert (said.protects, said.delta) == (certificate.protects, delta)
    assert said.epsilon == certificate.epsilon(delta)
    assert [epsilon for epsilon, _ in said.numbers] == [0.1, 0.5, 1.0, 2.0]
    assert [bound for _, bound in said.numbers] == certificate.delta(np.array([0.1, 0.5, 1.0, 2.0])).tolist()
    assert said.assumptions == certificate.assumptions
    assert said.theorems == tuple((THEOREMS[key].title, THEOREMS[key].citation) for key in certificate.theorems)
    assert [checked for _, checked in said.foundations[:-1]] == [THEOREMS[key].checked for key in certificate.theorems]


def test_limits_are_in_the_sentence_and_nothing_of_it_is_lost(certificate):
    more = certificate.with_caveats("A first limit.")
    said = Statement.of(more)
    assert "A first limit." in said.limits
    for limit in said.limits:
        assert limit in said.sentence
    # What follows the protection in the sentence is all among the limits.
    if certificate.has_partial_knowledge or certificate.protects == "value":
        tail = said.sentence[said.sentence.index("rotects ") - 1 :]
        assert tail == " ".join(limit for limit in said.limits if not limit.startswith("Nothing rests"))


def test_the_worst_case_is_a_pair_that_the_sentence_names_and_that_holds(certificate):
    said = Statement.of(certificate)
    if said.worst_case is None:
        assert certificate.worst_case.epsilon(1e-6) == math.inf
        return
    epsilon, delta = said.worst_case
    assert certificate.worst_case.delta(epsilon) <= delta
    assert f"ε = {rounded_up(epsilon)}, δ = {rounded_up(delta)}" in said.sentence


def test_a_delta_that_is_certified_to_be_zero_is_named_as_zero():
    said = Statement.of(CERTIFICATES["pure total"])
    assert said.named == said.worst_case == (2.0, 0.0)
    assert "ε = 2 at δ = 0." in said.to_html()
    assert "ε = 2, δ = 0 against" in said.sentence
    plain = Statement.of(PLAIN)
    assert plain.named == (PLAIN.epsilon(1e-6), 1e-6)


TAGS = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "ul", "li"}


class Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.words, self.tags = [], []

    def handle_data(self, data):
        if data.strip():
            self.words.append(data)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def read(fragment):
    reader = Text()
    reader.feed(fragment)
    return reader


def test_the_fragment_shows_all_of_it_and_takes_the_colours_of_its_page(certificate):
    said = Statement.of(certificate)
    page = read(said.to_html())
    words = " ".join(page.words)
    assert page.words[0] == said.sentence
    below = [text for cited, checked in said.foundations for text in (cited, *checked)]
    for text in (
        *said.assumptions,
        *said.limits,
        *(title for title, _ in said.theorems),
        *(source for _, checked in said.foundations for source in checked),
        *below,
    ):
        assert text in words
    for epsilon, delta in said.numbers:
        assert {rounded_up(epsilon), rounded_up(delta)} <= set(page.words)
    assert {tag for tag, _ in page.tags} <= TAGS
    styles = " ".join(attributes.get("style", "") for _, attributes in page.tags)
    assert "#" not in styles
    assert not re.search(r"(?<![-\w])(color|background)\s*:", styles)
    assert certificate._repr_html_() == said.to_html()


HOSTILE = "<script>alert('x')</script>"


def release(rows=3, **arguments):
    cells = [f"c{index}" for index in range(rows - 1)] + [HOSTILE]
    frame = pd.DataFrame({"u": range(12 * rows), "c": [cell for cell in cells for _ in range(12)]})
    frame = frame[frame["c"] != "c0"]
    return frame.pkdp.histogram("c", unit="u", k=10, domain=cells, attacker=ATTACKER, **arguments)


def test_a_release_shows_its_public_table_escaped_with_suppressed_cells_marked():
    released = release()
    page = released._repr_html_()
    assert "<script" not in page
    reader = read(page)
    start = reader.words.index(released.error.suppression)
    assert reader.words[:start] == ["c", "count", "c0", "suppressed", "c1", "12", HOSTILE, "12"]
    assert Statement.of(released.certificate).to_html() in page
    assert released.id in page
    assert "replayed" not in page


def test_a_hostile_column_and_caveat_are_escaped():
    frame = pd.DataFrame({"u": range(12), "<b>&": ["x"] * 12})
    released = frame.pkdp.histogram("<b>&", unit="u", k=10, attacker=ATTACKER)
    assert "<b>" not in released._repr_html_()
    assert "<i>" not in Statement.of(released.certificate.with_caveats("Not <i>this</i>.")).to_html()


@pytest.mark.parametrize(("rows", "left"), [(60, None), (66, None), (67, "… 7 more rows")])
def test_of_a_long_table_the_first_rows_are_shown(rows, left):
    page = read(release(rows)._repr_html_()).words
    assert page.count("12") == (60 if left else rows) - 1
    assert page.count("suppressed") == 1
    assert [text for text in page if text.startswith("…")] == ([] if left is None else [left])


def test_a_missing_key_and_a_suppressed_count_are_shown():
    frame = pd.DataFrame({"u": range(12), "c": [None] * 12})
    released = frame.pkdp.histogram("c", unit="u", k=10, domain=["x", None], attacker=ATTACKER)
    assert read(released._repr_html_()).words[:6] == ["c", "count", "x", "suppressed", "(missing)", "12"]
    count = pd.DataFrame({"u": range(3)}).pkdp.count(unit="u", k=10, attacker=ATTACKER)
    assert read(count._repr_html_()).words[:2] == ["count", "suppressed"]
