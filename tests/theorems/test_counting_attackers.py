"""No random attacker with the declared uncertainty learns more from a count than its certificate says."""

from __future__ import annotations

import numpy as np
from oracle.attacks import search
from oracle.laws import exact_exp, lower_end
from oracle.releases import count_losses
from thorough import CLOSEST, examples

import pkdp_pipeline as pkdp


@examples(quick=20, full=300)
def test_no_attacker_exceeds_the_certificate_of_an_exact_count(examples: int) -> None:
    attackers, worst = search("counting", examples=examples, batch=12)
    assert attackers >= examples * 12 * 45 // 100
    assert worst > CLOSEST[examples >= 300]


def test_every_vertex_of_a_box_is_covered() -> None:
    people, low, high = 12, 0.1, 0.6
    epsilons = np.array([0.0, 0.3, 1.0, 2.5])
    certified = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=low, p_max=high, unknown=people)).delta(epsilons)
    for epsilon, bound in zip(epsilons.tolist(), certified.tolist(), strict=True):
        vertices = [max(count_losses([high] * j + [low] * (people - j), 0, epsilon, np.exp)) for j in range(people + 1)]
        assert bound * (1 + 1e-12) >= max(vertices)
        assert bound <= 1.01 * max(vertices)


def test_the_oracle_agrees_with_hand_counted_coins() -> None:
    # Two fair coins: 1/4, 1/2, 1/4. Present looks likelier by 1/4 at the count 3, and at ε = 0 by 1/4 more at 2.
    import flint

    fair = [flint.arb(0.5)] * 2
    assert [float(lower_end(flint.arb(side))) for side in count_losses(fair, 0, 0.0, exact_exp)] == [0.5, 0.5]
    assert float(lower_end(flint.arb(count_losses(fair, 0, 3.0, exact_exp)[0]))) == 0.25
