"""Two-sided geometric noise on whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

from pkdp_pipeline.model.arguments import positive_real


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Two-sided geometric noise: ``P[Z = z] = (1-α)/(1+α) · α^|z|`` with ``α = exp(-epsilon)``.

    Parameters
    ----------
    epsilon : float
        Above 0. The noise alone gives `epsilon`-differential privacy to a number that one person changes by
        at most 1. Certificates are computed at exactly this value; the sampler may add slightly more noise,
        never less.

    Raises
    ------
    ArgumentError
        If `epsilon` is not a finite number above 0.

    Notes
    -----
    Desfontaines et al., Definition 19; `docs/mathematics.md`, section "Two-sided geometric noise".
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_real("noise epsilon", self.epsilon))
