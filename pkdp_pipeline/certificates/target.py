"""Target: what a release has to promise at least."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pkdp_pipeline.certificates.advice import advised
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.model.arguments import loss, probability
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate


@dataclass(frozen=True, slots=True)
class Target:
    """The least that a release has to promise; one that promises less is refused before any data are read.

    Parameters
    ----------
    epsilon : float, optional
        The largest ε at `delta` that is published. None: any that is finite.
    delta : float, default 1e-6

    Raises
    ------
    ArgumentError
        If `epsilon` is no finite number of at least 0, or `delta` is not above 0 and below 1.

    Notes
    -----
    The certificate's best promise counts: against the declared attacker or against anybody.
    """

    epsilon: float | None = None
    """The largest ε at this delta; any when left out."""
    delta: float = field(default=1e-6, metadata={"examples": [1e-6]})
    """The delta at which it is measured."""

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", loss("epsilon of a target", self.epsilon, limit=True))
        delta = probability("delta of a target", self.delta)
        if not 0.0 < delta < 1.0:
            raise ArgumentError(
                "delta of a target must be above 0 and below 1: a threshold always leaves some, say 1e-9."
            )
        object.__setattr__(self, "delta", delta)

    def hold(self, certificate: ReleaseCertificate) -> None:
        """Refuse a `certificate` that promises less.

        Raises
        ------
        NotCertifiableError
            Naming what is certified, and the nearest choices that reach the target, and epsilon = 1 at delta = 1e-6.
        """
        limit = math.inf if self.epsilon is None else self.epsilon
        noise, _ = certificate.worst_case.parameters or (math.inf, 1.0)
        # What noise gives against anybody takes no search.
        by_noise = noise < math.inf and noise <= limit and certificate.worst_case.delta(noise) <= self.delta
        epsilon, delta = noise if by_noise else certificate.epsilon(self.delta), rounded_up(self.delta)
        if epsilon <= limit and epsilon < math.inf:
            return
        if epsilon < math.inf:
            why = f"epsilon = {rounded_up(epsilon)} at delta = {delta} is above the target, epsilon = {self.epsilon!r}"
        else:
            least = rounded_up(float(certificate.delta(1.0)))
            why = f"no epsilon reaches the target, delta = {delta}; at epsilon = 1 it has delta = {least}"
        about = certificate.mechanism, certificate.attacker, certificate.protects
        raise NotCertifiableError(
            advised(
                f"The release promises too little: {why}.",
                *about,
                aim=(limit, self.delta),
                end=lambda say: say.no_target and f" To publish it all the same, say {say.no_target}.",
            )
        )


Asked = Target | Literal["default"] | None
"""The values allowed: a target, None for none, or ``"default"`` for the ledger's, without one `DEFAULT`."""

DEFAULT: Target | None = Target()
"""The target where nothing else is said."""


def read_target(target: object) -> Asked:
    """Return what was given, or raise `ArgumentError`."""
    if target is None or isinstance(target, Target):
        return target
    if target == "default":
        return "default"
    raise ArgumentError(
        f"target must be a Target or None, not {type(target).__name__}: write target=pkdp.Target(epsilon=2.0)."
    )
