"""Which theorems apply: mechanism × attacker × what is protected → bounds, and why the others do not."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Mechanism, mechanism_name
from pkdp_pipeline.model.wording import Speech, Worded
from pkdp_pipeline.theorems.beside_leakage import Leaked, Surviving, emptied_by
from pkdp_pipeline.theorems.bound import Applied, WorstCase
from pkdp_pipeline.theorems.record import Protects
from pkdp_pipeline.theorems.theorems import THEOREMS
from pkdp_pipeline.theorems.worst_case import NoiseCurve


@dataclass(frozen=True, slots=True, kw_only=True)
class Applicable:
    """All bounds that hold for one release.

    Parameters
    ----------
    partial : tuple of Applied
        Bounds that rest on what the attacker does not know; the pointwise smallest of them holds.
    worst : WorstCase or None
        The guarantee against any attacker, given what leaks.
    obstacles : tuple of str
        Why theorems that could have applied do not, in words.
    """

    partial: tuple[Applied, ...]
    worst: WorstCase | None
    obstacles: tuple[str, ...]


@functools.lru_cache(maxsize=1024)
def bounds_of(mechanism: Mechanism, attacker: AttackerModel, protects: Protects) -> Applicable:
    """Return every bound that holds for `mechanism` against `attacker`; once for a release and all that is made of it.

    Raises
    ------
    ArgumentError
        If the mechanism is unknown or cannot protect what is asked.
    """
    mechanism_name(mechanism)
    if protects == "value" and isinstance(mechanism, Count):
        return _total(mechanism, attacker)
    surviving = Surviving(attacker, mechanism.noise is not None)
    left = surviving.theorems
    partial: list[Applied] = []
    obstacles: list[str] = []
    about = (type(mechanism), protects)
    rules = (theorem.rule for key, theorem in THEOREMS.items() if key in left and theorem.about == about)
    for found in (rule(mechanism, attacker, left) for rule in rules if rule is not None):
        if isinstance(found, Applied):
            # Whoever leaves the leakage aside attacks as before.
            partial.append(replace(found, bound=surviving.beside(found.bound)))
        elif found is not None:
            obstacles.append(found)
    if surviving.obstacle is not None and not partial:
        obstacles.append(surviving.obstacle)
    worst = _worst(mechanism, surviving, protects)
    if worst is not None and attacker.leakage and worst.parameters[1] >= 1.0:
        obstacles.append("beside what leaks nothing of the noise's guarantee is left")
        worst = None
    empty = emptied_by(attacker, protects)
    if empty is not None:
        differ = "whether a person is there" if protects == "presence" else "which cell a person is in"
        obstacles.append(
            f"{empty.name} may be known exactly and is shared by no two lives that differ in {differ}: a guarantee "
            "given it would say nothing"
        )
        worst = None
    if not partial and worst is None and not obstacles:
        obstacles.append(f"no theorem is about protects={protects!r} of a {type(mechanism).__name__} like this")
    return Applicable(partial=tuple(partial), worst=worst, obstacles=tuple(obstacles))


def _worst(mechanism: Mechanism, surviving: Surviving, protects: Protects) -> WorstCase | None:
    """Return what holds against anyone; a hard threshold before the noise needs one after it, else δ0 = 1."""
    noise, k, threshold = mechanism.noise, mechanism.k, mechanism.release_threshold
    if noise is None or getattr(mechanism, "k_complement", None) is not None or (k is not None and threshold is None):
        return None
    appears_at = None if k is None or threshold is None else threshold - k
    cells = 1 if protects == "presence" else 2
    return surviving.against_anyone(
        NoiseCurve(theorem="noise", noise=noise.epsilon, cells=cells, appears_at=appears_at)
    )


def _total(mechanism: Count, attacker: AttackerModel) -> Applicable:
    """Return what an exact count of everybody promises: it is the same in two lives that differ in the cell."""
    bare = mechanism.noise is None and mechanism.k is None and mechanism.k_complement is None
    if bare and attacker.total_is_known:
        return Applicable(partial=(), worst=Leaked(theorem="leaked"), obstacles=())
    raise ArgumentError(_NO_CELLS if not bare else Worded(lambda say: f"{_NO_CELLS} {_as_total(say)}"))


_NO_CELLS = (
    "protects='value' means hiding which of two published cells a person is in, and a Count has one number only: a "
    "person is counted or not. Use protects='presence' (it hides exactly that), or a Histogram."
)


def _as_total(say: Speech) -> str:
    return (
        "The exact number of everybody can be published as what is known anyhow, which protects nobody's presence: "
        f"declare {say.leakage_of_total}."
    )
