"""The long search for an attacker who exceeds a certificate: more than a million, vectorised, on request.

``pytest -m slow -s tests/releases/test_campaign.py`` prints what it did. ``PKDP_CAMPAIGN_SEED`` starts it elsewhere.
"""

from __future__ import annotations

import os
import time

import pytest
from oracle.attacks import exact_truths, sweep
from oracle.families import FAMILIES, Case

DECLARATIONS, BATCH, LEAST = 1_000, 400, 150_000


def test_the_campaign_is_as_large_as_it_says() -> None:
    assert len(FAMILIES) * LEAST >= 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_attacker_of_the_campaign_exceeds_a_certificate(family: str) -> None:
    above: list[str] = []

    def note(case: Case, column: int, epsilon: float, bound: float) -> None:
        above.append(
            f"{case.mechanism}, noise {case.noise}, {case.attacker}, {case.protects}, ε = {epsilon}: "
            f"{case.chances[..., column].tolist()} reaches {float(exact_truths(case, column, epsilon))}, "
            f"certified {bound}"
        )

    start = time.perf_counter()
    seed = int(os.environ.get("PKDP_CAMPAIGN_SEED", "20130102"))
    attackers, worst, rechecked = sweep(family, declarations=DECLARATIONS, batch=BATCH, seed=seed, note=note)
    seconds = time.perf_counter() - start
    print(f"\n{family}: {attackers} attackers, {rechecked} rechecked exactly, worst {worst:.12f}, {seconds:.0f} s")
    assert attackers >= LEAST
    assert not above, "\n".join(above[:5])
