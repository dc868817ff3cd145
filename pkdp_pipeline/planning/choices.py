"""Choices: the ways to reach one target, no noise at this k against noise at that ε, with what each of them costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from types import MappingProxyType
from typing import Any, Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.certificates.sentences import anyone
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError, NotCertifiableError
from pkdp_pipeline.model.arguments import choice
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import MECHANISMS, Count, Histogram, Mechanism
from pkdp_pipeline.planning.noise_width import noise_after, smallest_noise
from pkdp_pipeline.planning.outcomes import expected_outcome
from pkdp_pipeline.planning.public_counts import PublicCounts
from pkdp_pipeline.planning.target import Target, read_attacker, read_target
from pkdp_pipeline.planning.thresholds import smallest_k

__all__ = ["Choice", "Way", "choices"]

Way = Literal["exact", "k", "noise", "noise_against_anyone", "noise_and_k"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to reach a target, with its certificate and with what it costs.

    Attributes
    ----------
    way : str
        ``"exact"``: exact counts, nothing suppressed. ``"k"``: exact counts from k on. ``"noise"``: noise, helped by
        what the attacker does not know. ``"noise_against_anyone"``: noise that needs no assumption.
        ``"noise_and_k"``: noise and a release threshold, for cells whose names are taken from the data; it needs no
        assumption either.
    mechanism : Count or Histogram
    certificate : ReleaseCertificate
        Of one release; where the target is reached whatever the attacker knows, nothing is declared in it either.
    together : Certificate
        Of all of them; the same as `certificate` for one.
    epsilon : float
        The target, which `together` reaches.
    delta : float
        The same target's δ.
    against_anyone : bool
        Whether the target is reached whatever the attacker knows.
    mean_absolute_error : float or None
        How far a published cell is from the counted one, expected by the law of the noise; None where no cell of the
        given counts would be published. An estimate, not a certified number.
    suppressed_cells : float or None
        The expected share of cells that are not published, among those that hold somebody; None: not known, because no
        counts were given.
    suppressed_people : float or None
        The expected share of people who are in such cells.
    basis : str
        Whence these expectations are, in words.
    """

    way: Way
    mechanism: Mechanism
    certificate: ReleaseCertificate
    together: Certificate
    epsilon: float
    delta: float
    against_anyone: bool
    mean_absolute_error: float | None
    suppressed_cells: float | None
    suppressed_people: float | None
    basis: str

    @property
    def words(self) -> str:
        """What is published, what it costs and against whom it holds, in one sentence."""
        only = "" if self.against_anyone else " only"
        return f"{self._shown()}{self._lost()}; against {self.whom}{only}."

    @property
    def whom(self) -> str:
        """Against whom it holds, in a few words."""
        if not self.against_anyone:
            return "the declared attacker"
        return anyone(self.certificate.leakage).removesuffix(", whatever they know")

    def _shown(self) -> str:
        counts = "the count" if isinstance(self.mechanism, Count) else "counts"
        if self.mechanism.noise is None:
            exactly = f"exact {counts.removeprefix('the ')}"
            return exactly if self.mechanism.k is None else f"{exactly} from k = {self.mechanism.k} on"
        error = "" if self.mean_absolute_error is None else f", off by {self.mean_absolute_error:.3g} on average"
        # Rounded down: whoever types what is shown gets a little more noise, not less.
        epsilon = Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(self.mechanism.noise.epsilon))
        noised = f"{counts} with noise of epsilon {epsilon.normalize()}{error}"
        if self.mechanism.release_threshold is None:
            return noised
        return f"{noised}, published from {self.mechanism.release_threshold} on"

    def _lost(self) -> str:
        if self.suppressed_cells is None or self.suppressed_people is None:
            return ", how many cells are suppressed is not known"
        if self.mechanism.k is None and self.mechanism.release_threshold is None:
            return ", nothing suppressed"
        return f", {_share(self.suppressed_cells)} of cells with {_share(self.suppressed_people)} of people suppressed"


def choices(
    attacker: AttackerModel | None,
    *,
    epsilon: float,
    delta: float,
    protects: str = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
    counts: PublicCounts | None = None,
    kind: str = "histogram",
    declared_cells: bool = True,
) -> tuple[Choice, ...]:
    """Return the ways in which a release, or `days` of them together, can reach a target, and what each costs.

    Each is minimal: one person fewer in k, or less noise, and the target fails.

    Parameters
    ----------
    attacker : AttackerModel or None
        None: nothing is declared; then noise alone is left.
    epsilon : float
        At least 0 and finite.
    delta : float
        Above 0, at most 1.
    protects : {"presence", "value"}, default "presence"
    days : int, default 1
        How many equal releases are to reach the target together.
    evidence : Evidence or list of Evidence, optional
        What is declared so that they add up, see `compose`. Without it, only noise adds up.
    counts : PublicCounts, optional
        By which errors and suppressed shares are estimated; for a count, its one number. None: shares that depend on
        counts are None, never guessed.
    kind : {"histogram", "count"}, default "histogram"
    declared_cells : bool, default True
        Whether all cells are declared. If not, their names are taken from the data, and noise needs a release
        threshold.

    Returns
    -------
    tuple of Choice
        Exact counts first, then by expected error.

    Raises
    ------
    NotCertifiableError, NoEvidenceError
        If there is no way; the error is that of the last one tried.
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    *Guarantee*: every choice's `together` reaches the target, as certified. Errors and shares are expectations under
    the exact law of the noise, for the counts that were given.
    """
    model, target = read_attacker(attacker), read_target(epsilon, delta, protects, days, evidence)
    choice("kind", kind, MECHANISMS)
    if counts is not None and not isinstance(counts, PublicCounts):
        raise ArgumentError(
            "counts must be PublicCounts, which say where they are from: write "
            'pkdp_pipeline.planning.PublicCounts.of({"North": 120}, source="the census of 2011").'
        )
    found: list[Choice] = []
    refused: list[NotCertifiableError | NoEvidenceError] = []
    for way in _WAYS:
        try:
            mechanism = _WAYS[way](model, target, MECHANISMS[kind], declared_cells)
        except (NotCertifiableError, NoEvidenceError) as error:
            refused.append(error)
            continue
        if mechanism is not None and all(mechanism != other.mechanism for other in found):
            found.append(_chosen(way, mechanism, model, target, counts))
    if not found:
        raise refused[-1]
    return tuple(sorted(found, key=_order))


def _order(one: Choice) -> tuple[float, float]:
    error = math.inf if one.mean_absolute_error is None else one.mean_absolute_error
    return error, one.suppressed_people or 0.0


def _chosen(
    way: Way, mechanism: Mechanism, attacker: AttackerModel, target: Target, counts: PublicCounts | None
) -> Choice:
    certificate = certify(mechanism, attacker, protects=target.protects)
    together = target.together(certificate)
    anyone = together.worst_case.delta(target.epsilon) <= target.delta
    if anyone:
        # What is said to hold against anyone must not be smaller for what the declared attacker does not know.
        certificate = certify(mechanism, attacker.against_anyone(), protects=target.protects)
        together = target.together(certificate)
    outcome = expected_outcome(mechanism, counts)
    basis = "Nothing was said about the counts." if counts is None else counts.basis
    return Choice(
        way=way,
        mechanism=mechanism,
        certificate=certificate,
        together=together,
        epsilon=target.epsilon,
        delta=target.delta,
        against_anyone=anyone,
        mean_absolute_error=outcome.mean_absolute_error,
        suppressed_cells=outcome.suppressed_cells,
        suppressed_people=outcome.suppressed_people,
        basis=basis,
    )


Kind = type[Count] | type[Histogram]


def _exact(attacker: AttackerModel, target: Target, kind: Kind, declared: bool) -> Mechanism | None:
    mechanism = kind()
    if target.loss(mechanism, attacker) <= target.delta:
        return mechanism
    return None


def _threshold(attacker: AttackerModel, target: Target, kind: Kind, declared: bool) -> Mechanism | None:
    try:
        if _exact(attacker, target, kind, declared) is not None:
            return None
    except NoEvidenceError:
        pass
    k = smallest_k(attacker, **_asked(target))
    return kind(k=k)


def _noise(attacker: AttackerModel, target: Target, kind: Kind, declared: bool) -> Mechanism | None:
    if not declared and kind is Histogram:
        return None
    noise = smallest_noise(kind(), attacker, **_asked(target))
    if noise is None:
        return None
    # Where what the attacker does not know saves no noise, that against anyone is as little.
    nothing = attacker.against_anyone()
    anyone = smallest_noise(kind(), nothing, **_asked(target)) if attacker != nothing else noise
    return kind(noise=noise if anyone is None or anyone.epsilon < noise.epsilon else anyone)


def _noise_against_anyone(attacker: AttackerModel, target: Target, kind: Kind, declared: bool) -> Mechanism | None:
    return _noise(attacker.against_anyone(), target, kind, declared)


def _noise_and_threshold(attacker: AttackerModel, target: Target, kind: Kind, declared: bool) -> Mechanism | None:
    if kind is not Histogram:
        return None  # a count has no name that could give somebody away
    return noise_after(Histogram(k=1), target, attacker.against_anyone())


def _asked(target: Target) -> dict[str, Any]:
    return {
        "epsilon": target.epsilon,
        "delta": target.delta,
        "protects": target.protects,
        "days": target.days,
        "evidence": target.evidence,
    }


_WAYS: Mapping[Way, Callable[[AttackerModel, Target, Kind, bool], Mechanism | None]] = MappingProxyType(
    {
        "exact": _exact,
        "k": _threshold,
        "noise": _noise,
        "noise_against_anyone": _noise_against_anyone,
        "noise_and_k": _noise_and_threshold,
    }
)


def _share(value: float) -> str:
    """Return a share in percent, as an estimate is written."""
    if 0.0 < value < 1e-4:
        return "under 0.01 %"
    return f"{100.0 * value:.3g} %"
