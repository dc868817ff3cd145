"""By whom a certificate is tried: attackers who keep to its declaration, the strongest that are known first."""

from __future__ import annotations

from collections.abc import Sequence

from pkdp_pipeline.assurance.attacks.crowd import Crowd
from pkdp_pipeline.assurance.attacks.matching import matching
from pkdp_pipeline.assurance.attacks.vertices import vertices
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate

__all__ = ["EPSILONS", "crowds"]

EPSILONS = (0.1, 0.5, 1.0, 2.0)
"""At these ε the strongest attackers are looked for, unless told otherwise."""


def crowds(certificate: ReleaseCertificate, *, epsilons: Sequence[float] = EPSILONS) -> tuple[Crowd, ...]:
    """Return the attackers by whom `certificate` is tried.

    Parameters
    ----------
    certificate : ReleaseCertificate
        What it says against the declared attacker is tried; where it rests on noise alone, what it says against
        anybody. For the worst case of a certificate that has both, see `pkdp_pipeline.assurance.attacks.knowing_all`.
    epsilons : sequence of float
        Where the strongest attackers are looked for. Each may be tried at every ε.

    Returns
    -------
    tuple of Crowd
        All of them keep to the declaration (`assurance.attacks.is_admitted`): those at whom each theorem is
        attained, or worst as far as is known, then all vertices of small instances.
    """
    found: dict[Crowd, None] = {}
    for epsilon in epsilons:
        found |= dict.fromkeys(matching(certificate, epsilon))
    return tuple(found | dict.fromkeys(vertices(certificate)))
