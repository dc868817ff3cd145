"""Which theorems apply: mechanism × attacker × what is protected → bounds, and why the others do not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import flint

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram, Mechanism, mechanism_name
from pkdp_pipeline.model.wording import Speech, Worded, listed
from pkdp_pipeline.theorems.beside_leakage import Leaked, Surviving, emptied_by
from pkdp_pipeline.theorems.bound import Bound, WorstCase
from pkdp_pipeline.theorems.counting import Counting, Options
from pkdp_pipeline.theorems.rounding import ball_above, ball_below
from pkdp_pipeline.theorems.thresholding import Thresholding, ValueThroughAbsence
from pkdp_pipeline.theorems.worst_case import NoiseCurve

__all__ = ["Applicable", "Applied", "Protects", "bounds_of"]

Protects = Literal["presence", "value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One bound that holds; `attack`, where known, is a bound whose attained side is reached by this release."""

    bound: Bound
    attack: Bound | None


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


@dataclass(slots=True)
class _Findings:
    """What is collected while the theorems are tried one by one."""

    surviving: Surviving
    partial: list[Applied] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)

    def add(self, bound: Bound, attack: Bound | None) -> None:
        # Who leaves the leakage aside attacks as before.
        if self.has(bound.theorem):
            self.partial.append(Applied(bound=self.surviving.beside(bound), attack=attack))

    def has(self, *theorems: str) -> bool:
        """Return whether one of these theorems is left for the attacker."""
        return not self.surviving.theorems.isdisjoint(theorems)

    def applicable(self, curve: NoiseCurve | None, protects: Protects) -> Applicable:
        """Return all that was found, with the noise's curve beside what leaks."""
        if self.surviving.obstacle is not None and not self.partial:
            self.obstacles.append(self.surviving.obstacle)
        worst = None if curve is None else self.surviving.against_anyone(curve)
        if worst is not None and self.surviving.attacker.leakage and worst.parameters[1] >= 1.0:
            self.obstacles.append("beside what leaks nothing of the noise's guarantee is left")
            worst = None
        empty = emptied_by(self.surviving.attacker, protects)
        if empty is not None:
            differ = "whether a person is there" if protects == "presence" else "which cell a person is in"
            self.obstacles.append(
                f"{empty.name} may be known exactly and is shared by no two lives that differ in {differ}: a guarantee "
                "given it would say nothing"
            )
            worst = None
        return Applicable(partial=tuple(self.partial), worst=worst, obstacles=tuple(self.obstacles))


@functools.lru_cache(maxsize=1024)
def bounds_of(mechanism: Mechanism, attacker: AttackerModel, protects: Protects) -> Applicable:
    """Return every bound that holds for `mechanism` against `attacker`; once for a release and all that is made of it.

    Raises
    ------
    ArgumentError
        If the mechanism is unknown or cannot protect what is asked.
    """
    return _RULES[mechanism_name(mechanism)](mechanism, attacker, protects)


def _count(mechanism: Mechanism, attacker: AttackerModel, protects: Protects) -> Applicable:
    assert isinstance(mechanism, Count)
    noise = mechanism.noise
    suppressed = mechanism.k is not None or mechanism.k_complement is not None
    if protects == "value":
        if attacker.total_is_known and noise is None and not suppressed:
            # The count of everybody is the same in two lives that differ in the cell.
            return Applicable(partial=(), worst=Leaked(theorem="leaked"), obstacles=())
        bare = noise is None and not suppressed
        raise ArgumentError(_NO_CELLS if not bare else Worded(lambda say: f"{_NO_CELLS} {_as_total(say)}"))
    found = _Findings(Surviving(attacker, noise is not None))
    if mechanism.k is not None and found.has("thresholding"):
        _threshold(found, mechanism, attacker)
    if mechanism.k_complement is not None and found.has("thresholding_complement"):
        _threshold_complement(found, mechanism, attacker)
    if found.has("counting", "noisy_counting"):
        _box(found, mechanism, attacker, suppressed)
    worst = None
    if noise is not None and mechanism.k_complement is None:
        worst = _noise_curve(noise.epsilon, 1, mechanism.k, mechanism.release_threshold)
    return found.applicable(worst, protects)


_NO_CELLS = (
    "protects='value' means hiding which of two published cells a person is in, and a Count has one number only: a "
    "person is counted or not. Use protects='presence' (it hides exactly that), or a Histogram."
)


def _as_total(say: Speech) -> str:
    return (
        "The exact number of everybody can be published as what is known anyhow, which protects nobody's presence: "
        f"declare {say.leakage_of_total}."
    )


def _threshold(found: _Findings, mechanism: Count, attacker: AttackerModel) -> None:
    k, p = mechanism.k, attacker.p_max
    assert k is not None
    if p is None:
        found.obstacles.append(
            "the threshold k protects when p_max < 1 is declared: how sure the attacker can be, at most, that another "
            "person is counted"
        )
        return
    if not _threshold_holds(found, "k", k, p, "p_max", attacker):
        return
    floor = attacker.p_min or 0.0
    bound = _thresholding("thresholding", k, p, attacker, least_unknown=(attacker.unknown or 0) if floor > 0.0 else 0)
    # With the other threshold in force an attack needs people who are surely not counted.
    attained = mechanism.noise is None and (mechanism.k_complement is None or floor == 0.0)
    found.add(bound, bound if attained else None)


def _threshold_complement(found: _Findings, mechanism: Count, attacker: AttackerModel) -> None:
    k, p_min = mechanism.k_complement, attacker.p_min
    assert k is not None
    if p_min is None:
        found.obstacles.append(
            "the threshold k_complement protects when p_min > 0 is declared: how sure the attacker is, at least, that "
            "another person is counted"
        )
        return
    share = 1 - flint.arb(p_min)
    p = min(1.0, ball_above(share)) if p_min > 0.0 else 1.0
    if not _threshold_holds(found, "k_complement", k, p, "1 - p_min", attacker):
        return
    ceiling = 1.0 if attacker.p_max is None else attacker.p_max
    least = (attacker.unknown or 0) if ceiling < 1.0 else 0
    bound = _thresholding("thresholding_complement", k, p, attacker, least_unknown=least)
    below = _thresholding("thresholding_complement", k, max(0.0, ball_below(share)), attacker, least_unknown=least)
    attained = mechanism.noise is None and (mechanism.k is None or ceiling == 1.0)
    found.add(bound, below if attained else None)


def _threshold_holds(found: _Findings, name: str, k: int, p: float, source: str, attacker: AttackerModel) -> bool:
    """Note why a threshold gives nothing; True when it gives something."""
    controlled = attacker.known if attacker.influence == "active" else 0
    if k - controlled <= 1:
        found.obstacles.append(
            f"{name} = {k} is not above known + 1 = {controlled + 1}: an attacker who controls {controlled} people "
            "sees the target cross the threshold"
            if controlled
            else f"{name} = {k} publishes the count of a single person; {name} must be at least 2"
        )
        return False
    reachable = attacker.unknown_max is None or attacker.unknown_max + attacker.known >= k - 1
    if p == 1.0 and reachable:
        found.obstacles.append(
            f"{source} = 1 lets the attacker be certain about everybody else, and then the threshold hides nothing"
        )
        return False
    return True


def _thresholding(
    theorem: str, k: int, p: float, attacker: AttackerModel, *, known: int | None = None, least_unknown: int = 0
) -> Thresholding:
    return Thresholding(
        theorem=theorem,
        k=k,
        p=p,
        cap=attacker.unknown_max,
        known=attacker.known if known is None else known,
        active=attacker.influence == "active",
        least_unknown=least_unknown,
    )


def _box(found: _Findings, mechanism: Count, attacker: AttackerModel, suppressed: bool) -> None:
    """Section 3: the count without its threshold; thresholds and noise only take away from it."""
    missing = [name for name in ("p_min", "p_max", "unknown") if getattr(attacker, name) is None]
    p_min, p_max, unknown = attacker.p_min, attacker.p_max, attacker.unknown
    if p_min is None or p_max is None or unknown is None:
        if not suppressed:
            found.obstacles.append(
                "a count published without k is protected by the other people's uncertainty, which needs "
                f"{listed(missing)} declared"
            )
        return
    if p_min == 0.0 or p_max == 1.0 or unknown == 0:
        if not suppressed:
            found.obstacles.append(
                "p_min = 0 lets the attacker be certain that nobody else is counted"
                if p_min == 0.0
                else "p_max = 1 lets the attacker be certain that everybody else is counted"
                if p_max == 1.0
                else "unknown = 0 leaves the attacker nothing to be uncertain about"
            )
        return
    noise = None if mechanism.noise is None or suppressed else mechanism.noise.epsilon
    bound = Counting(
        theorem="counting" if noise is None else "noisy_counting",
        unknown=unknown,
        p_min=p_min,
        p_max=p_max,
        noise=noise,
    )
    found.add(bound, bound if not suppressed and mechanism.release_threshold is None else None)
    if noise is not None:
        # Noise only takes away: the exact count's bound stands where the sum cannot be inverted.
        found.add(Counting(theorem="counting", unknown=unknown, p_min=p_min, p_max=p_max), None)


def _histogram(mechanism: Mechanism, attacker: AttackerModel, protects: Protects) -> Applicable:
    assert isinstance(mechanism, Histogram)
    found = _Findings(Surviving(attacker, mechanism.noise is not None))
    if protects == "value":
        _value(found, mechanism, attacker)
    elif found.has("histogram_presence"):
        _presence(found, mechanism, attacker)
    worst = None
    if mechanism.noise is not None:
        cells = 1 if protects == "presence" else 2
        worst = _noise_curve(mechanism.noise.epsilon, cells, mechanism.k, mechanism.release_threshold)
    return found.applicable(worst, protects)


def _presence(found: _Findings, mechanism: Histogram, attacker: AttackerModel) -> None:
    k, p = mechanism.k, attacker.p_max
    if k is None:
        found.obstacles.append(
            "a histogram without k publishes how many people are present, and that gives away whether one more person "
            "is there; protects='value' asks whether it hides which cell a person is in"
        )
        return
    if p is None:
        found.obstacles.append(
            "k hides presence when p_max < 1 is declared: how sure the attacker can be, at most, of a cell when told "
            "that a person is either in it or absent"
        )
        return
    if p == 1.0:
        found.obstacles.append(
            "p_max = 1 says that nobody is ever absent, and then presence is no secret; protects='value' with "
            "p_max_between asks whether the table hides which cell a person is in"
        )
        return
    if _threshold_holds(found, "k", k, p, "p_max", attacker):
        bound = _thresholding("histogram_presence", k, p, attacker)
        found.add(bound, bound if mechanism.noise is None and not attacker.p_min else None)


def _value(found: _Findings, mechanism: Histogram, attacker: AttackerModel) -> None:
    k, noiseless = mechanism.k, mechanism.noise is None
    p, between = attacker.p_max, attacker.p_max_between
    through_absence = found.has("histogram_value")
    if k is not None and found.has("histogram_value", "histogram_between"):
        if between is None and (p is None or not through_absence):
            otherwise = ", or p_max < 1 where absence is a real possibility" if through_absence else ""
            found.obstacles.append(
                "k hides the cell when p_max_between < 1 is declared (how sure the attacker can be, at most, which of "
                f"two cells a person is in){otherwise}"
            )
        elif not through_absence:
            pass
        elif p is not None and p < 1.0 and _threshold_holds(found, "k", k, p, "p_max", attacker):
            bound = ValueThroughAbsence(
                theorem="histogram_value",
                k=k,
                p=p,
                cap=attacker.unknown_max,
                known=attacker.known,
                active=attacker.influence == "active",
            )
            free = between is None and not attacker.p_min
            found.add(bound, bound if noiseless and free else None)
        elif p == 1.0 and between is None:
            found.obstacles.append("p_max = 1 says that nobody is ever absent; declare p_max_between instead")
        if between is not None and _between_holds(found, k, between, attacker):
            sure = _thresholding("histogram_between", max(1, k - attacker.known), between, attacker, known=0)
            free = (p is None or p == 1.0) and not attacker.p_min
            exact = attacker.known == 0 or attacker.influence == "active"
            found.add(sure, sure if noiseless and free and exact else None)
    if found.has("options"):
        _options(found, mechanism, attacker)


def _between_holds(found: _Findings, k: int, between: float, attacker: AttackerModel) -> bool:
    """Theorem C counts every known person against the threshold, whether controlled or merely known."""
    if k - attacker.known <= 1:
        found.obstacles.append(
            f"k = {k} is not above known + 1 = {attacker.known + 1}: known people move the thresholds of both cells"
        )
        return False
    if between == 1.0:
        found.obstacles.append("p_max_between = 1 lets the attacker be certain which cell everybody else is in")
        return False
    return True


def _options(found: _Findings, mechanism: Histogram, attacker: AttackerModel) -> None:
    p_min, unknown = attacker.p_min, attacker.unknown
    if p_min is None or unknown is None:
        if mechanism.k is None:
            found.obstacles.append(
                "exact counts of several options hide which one a person chose when p_min > 0 (each unknown person "
                "chooses each option with at least this probability) and unknown are declared"
            )
        return
    if p_min > 0.5:
        raise ArgumentError(
            f"p_min = {p_min!r} cannot hold for a histogram: every one of at least two options would be chosen with "
            "more than probability 1/2. For histograms p_min bounds each option's probability from below."
        )
    if p_min == 0.0 or unknown == 0:
        if mechanism.k is None:
            found.obstacles.append("p_min = 0 or unknown = 0 lets the attacker know what everybody else chose")
        return
    bound = Options(theorem="options", unknown=unknown, p_min=p_min)
    free = attacker.p_max is None and attacker.p_max_between is None
    found.add(bound, bound if mechanism.k is None and mechanism.noise is None and free else None)


def _noise_curve(noise: float, cells: int, k: int | None, release_threshold: int | None) -> NoiseCurve | None:
    """Return the worst-case curve; a hard threshold before the noise needs one after it, else δ0 = 1."""
    if k is None:
        return NoiseCurve(theorem="noise", noise=noise, cells=cells)
    if release_threshold is None:
        return None
    return NoiseCurve(theorem="noise", noise=noise, cells=cells, appears_at=release_threshold - k)


_RULES: Mapping[str, Callable[[Mechanism, AttackerModel, Protects], Applicable]] = MappingProxyType(
    {"count": _count, "histogram": _histogram}
)
