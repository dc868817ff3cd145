"""When theorem S holds: the data are a secret sample of a population whose every record the attacker may know."""

from __future__ import annotations

from functools import partial

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram, Mechanism, Protects, cells_per_unit, noised_below
from pkdp_pipeline.model.wording import ELSEWHERE, Protection
from pkdp_pipeline.theorems import formal, whom
from pkdp_pipeline.theorems.bound import Applied, Bound
from pkdp_pipeline.theorems.noised_rules import exact_from_k
from pkdp_pipeline.theorems.record import Theorem
from pkdp_pipeline.theorems.sampled import Sampled, SampledValue
from pkdp_pipeline.theorems.thresholding import Thresholding
from pkdp_pipeline.theorems.worst_case import NoiseCurve


def _sampled(
    theorem: str, kind: type[Sampled | SampledValue], mechanism: Mechanism, attacker: AttackerModel, _: frozenset[str]
) -> Applied | str | None:
    if attacker.sampled is None:
        return None
    base = _base(theorem, mechanism, attacker, attacker.sampled)
    if isinstance(base, str):
        return base
    bound = kind(theorem=theorem, base=base, sampled=attacker.sampled)
    complement = getattr(mechanism, "k_complement", None) is not None
    behind = isinstance(base, Thresholding) and mechanism.noise is not None
    return Applied(bound=bound, attack=None if complement or behind else bound)


def _base(theorem: str, mechanism: Mechanism, attacker: AttackerModel, sampled: float) -> Bound | str:
    """Return the bound against somebody who sees others drawn with this chance, or why there is none."""
    k, noise, known = mechanism.k, mechanism.noise, attacker.known
    if cells_per_unit(mechanism) > 1:
        return "what a person's several cells tell together is not certified of a sample: count her in one cell"
    if k is None and noise is None:
        return "an exact count shows that somebody was drawn, whoever she is: give k, or noise"
    if k is None and noise is not None:
        return NoiseCurve(theorem="noise", noise=noise.epsilon)
    assert k is not None
    if k - known <= 1:
        return (
            f"k = {k} is not above known + 1 = {known + 1}: whoever knows {known} of those who were drawn sees the "
            "target cross the threshold"
        )
    if noised_below(mechanism):
        return exact_from_k(theorem, mechanism, k=k, p=sampled, known=known, active=True)
    return Thresholding(theorem=theorem, k=k - known, p=sampled)


_DRAWN = (
    "Everybody in the population was drawn independently of everybody else, with no more than the stated chance, and "
    "who was drawn is secret. That is false for samples of a fixed size, quotas, clusters and systematic draws, and "
    "where the number of those drawn is published."
)
_DRAWN_FOR_SURE = "from somebody who knows that she was drawn", "somebody who is known to have been drawn"
_HIDES = {
    "presence": "whether a person is in the population",
    "value": "which of two published cells a person of the population is in",
}

_ROWS: tuple[tuple[type[Count | Histogram], Protects, str, str], ...] = (
    (Count, "presence", "sampled_count", "Theorem S: a count of a secret sample"),
    (Histogram, "presence", "sampled_presence", "Theorem S: a histogram of a secret sample"),
    (Histogram, "value", "sampled_value", "Theorem S, value: a histogram of a secret sample"),
)

SAMPLED = tuple(
    Theorem(
        key=key,
        title=title,
        citation="docs/mathematics.md, section 6, theorem S",
        formal=formal.SAMPLED_VALUE if aim == "value" else formal.SAMPLED,
        against=whom.sampled,
        assumes=(_DRAWN,),
        protection=Protection(
            f"{_HIDES[aim]}, from somebody who does not know who was drawn", _DRAWN_FOR_SURE, ELSEWHERE
        ),
        rests_on=("sampled",),
        noised_below=True,
        hides_presence_too=aim == "value",
        about=(kind, aim),
        rule=partial(_sampled, key, SampledValue if aim == "value" else Sampled),
    )
    for kind, aim, key, title in _ROWS
)
"""Its records."""
