"""The bounds for one release: those of theorems, and rule 10, by which a person may be in several cells of it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import Directions, directions
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism, cells_per_unit, within_table
from pkdp_pipeline.theorems import THEOREMS, Applicable, Applied, Protects
from pkdp_pipeline.theorems import bounds_of as bounds_of_theorems
from pkdp_pipeline.theorems.hull import ProfileLosses
from pkdp_pipeline.theorems.losses import ProductLosses
from pkdp_pipeline.theorems.theorems import Surviving
from pkdp_pipeline.theorems.thresholding import Thresholding


@lru_cache(maxsize=1024)
def bounds_of(
    mechanism: Mechanism, attacker: AttackerModel, protects: Protects, declared: int | None = None
) -> Applicable:
    """Return every bound that holds for `mechanism` against `attacker`; once for a release and all that is made of it.

    `declared`: how many cells are declared, where that is known.

    Notes
    -----
    *Guarantee*: where nothing is added to the counts and a person may be in c cells, the cells of which are independent
    given her habits, every cell is a thresholded count of its own, independent of the others, and the dominating pair
    of the whole is the product of those of c cells; that of lives in different cells has c more in the other order. In
    a table of fewer cells than these together the product is that of all its cells, in the worst orders.
    *Rounding*: that of `Convolved`. *Source*: `docs/composition.md`, rule 10.
    """
    applicable = bounds_of_theorems(mechanism, attacker, protects, declared)
    mechanism = within_table(mechanism, declared)
    cells = cells_per_unit(mechanism)
    if cells == 1:
        return applicable
    table = declared if protects == "value" and declared is not None and declared < 2 * cells else None
    surviving = Surviving(attacker, mechanism.noise is not None)
    about = (
        (key, theorem.rule)
        for key, theorem in THEOREMS.items()
        if theorem.is_rule and theorem.about == (type(mechanism), protects)
    )
    partial: list[Applied] = []
    obstacles = list(applicable.obstacles)
    for key, rule in about:
        applied = (
            rule(mechanism, attacker, surviving.theorems) if rule is not None and key in surviving.theorems else None
        )
        if isinstance(applied, Applied):
            partial += _of_all(key, cells, table, applied)
        else:
            obstacles.append(applied or surviving.obstacle or "")
    depended = declared if table is not None and partial else applicable.cells
    obstacles = list(filter(None, dict.fromkeys(obstacles)))
    return replace(applicable, partial=tuple(partial), obstacles=tuple(obstacles), cells=depended)


def _of_all(theorem: str, cells: int, table: int | None, applied: Applied) -> list[Applied]:
    """Return the bounds on all cells of a person, from that on one of them; hulls, where there are some, last.

    `table`: how many cells there are, where two lives cannot be in `cells` different ones each.
    """
    attack = applied.attack
    if not isinstance(attack, Thresholding) or (attack.known and not attack.active):
        attack = None
    elif attack.known:
        attack = replace(attack, k=attack.k - attack.known, known=0)
    laws = [directions((applied.bound,), "presence")]
    if laws[0].averages:
        # No crowd is the worst beside any number of known people who count.
        laws.append(Directions(right=ProfileLosses(bounds=(applied.bound,))))
    totals: list[Applied] = []
    for law in laws:
        both = law
        if THEOREMS[theorem].hides_presence_too:
            both = Directions(right=ProductLosses(members=(law.right, law.left or law.right)))
        # Another life in some cell leaves all others but that one to be entered.
        apart = cells if table is None else min(cells, table - 1)
        reached = Convolved(theorem=theorem, parts=((replace(both, attack=attack), apart),))
        ways = [] if table is None else [(law, table)] if table == cells else [(law, table), (both, cells)]
        bounds = [Convolved(theorem=theorem, parts=(way,)) for way in ways] or [reached]
        totals += [Applied(bound=bound, attack=None if attack is None else reached) for bound in bounds]
    return totals
