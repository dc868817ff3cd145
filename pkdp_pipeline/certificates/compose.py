"""compose: what several certificates add up to, by the rule for the evidence declared."""

from __future__ import annotations

from collections.abc import Iterable

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate, number_of_times, protected_by
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.evidence import Evidence, read_evidence

__all__ = ["compose"]


def compose(
    certificates: Iterable[Certificate | tuple[Certificate, int]],
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> ComposedCertificate:
    """Return what several certificates promise together.

    Parameters
    ----------
    certificates : iterable of Certificate, or of (Certificate, int)
        The parts; a pair says how often a part occurs. Composed certificates may be parts again.
    evidence : Evidence, list of Evidence, or None
        What is declared about how the parts depend on one another: `DisjointUnits`, `IndependentGivenHabits`,
        `OneDayProtected`, `BoundedDependence`, `BoundedParticipation` (alone, or beside one of the two before
        it), `OncePerUnit`, `SamePeople` or `BoundedSensitivity`. None: only guarantees against any attacker are
        added up.

    Returns
    -------
    ComposedCertificate
        It protects what its parts protect; where presence and value parts are mixed, presence.

    Raises
    ------
    NoEvidenceError
        If noiseless parts cannot be added up with what is declared (the message names the choices), if the parts
        are about different privacy units, or if a statement about one day is to be added to others.
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    Noiseless releases do not compose in general. Every rule, its proof and the examples that break its
    assumptions are in `docs/composition.md`.
    """
    if isinstance(certificates, Certificate) or not isinstance(certificates, Iterable):
        raise ArgumentError("certificates must be a list of certificates, or of (certificate, times).")
    often: dict[Certificate, int] = {}
    for given in certificates:
        # A pair is a certificate and how often it occurs.
        one, times = given if isinstance(given, tuple) and len(given) == 2 else (given, 1)
        if not isinstance(one, Certificate):
            raise ArgumentError("certificates must be a list of certificates, or of (certificate, times).")
        often[one] = often.get(one, 0) + number_of_times(times)
    declared = read_evidence(evidence)
    return ComposedCertificate(protects=protected_by(often), parts=tuple(often.items()), evidence=declared)
