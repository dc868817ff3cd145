"""Publish counts and k-anonymous histograms with a certified partial-knowledge differential-privacy guarantee.

Importing the package registers ``df.pkdp``; everything heavier is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pkdp_pipeline import accessor as _accessor

if TYPE_CHECKING:
    from pkdp_pipeline.attacker import AttackerModel
    from pkdp_pipeline.auditing import Audit, audit
    from pkdp_pipeline.certificate import Certificate
    from pkdp_pipeline.composition.compose import compose
    from pkdp_pipeline.composition.evidence import (
        BoundedDependence,
        BoundedParticipation,
        BoundedSensitivity,
        DisjointUnits,
        IndependentGivenHabits,
        OncePerUnit,
        OneDayProtected,
        SamePeople,
    )
    from pkdp_pipeline.counting_queries import CountingQueries
    from pkdp_pipeline.errors import (
        ArgumentError,
        BudgetExceededError,
        ConfigError,
        DifferencingError,
        InputCheckError,
        LedgerError,
        NoEvidenceError,
        NotCertifiableError,
        PkdpError,
        TemporaryError,
    )
    from pkdp_pipeline.explaining import Explanation, explain
    from pkdp_pipeline.leakage import Leakage
    from pkdp_pipeline.ledger import Budget, Ledger
    from pkdp_pipeline.mechanisms import Count, GeometricNoise, Histogram
    from pkdp_pipeline.planning import (
        largest_p_max,
        largest_p_max_between,
        smallest_k,
        smallest_noise,
        smallest_release_threshold,
        smallest_unknown,
    )
    from pkdp_pipeline.privacy_loss import PrivacyLoss
    from pkdp_pipeline.publish import count, histogram
    from pkdp_pipeline.release import Release, read_release
    from pkdp_pipeline.release_certificate import certify
    from pkdp_pipeline.request import EACH_ROW
    from pkdp_pipeline.target import Target
    from pkdp_pipeline.verification import Verification, verify
    from pkdp_pipeline.version import VERSION as __version__  # noqa: N811 (one version, under the name Python expects)

__all__ = [
    "EACH_ROW",
    "ArgumentError",
    "AttackerModel",
    "Audit",
    "BoundedDependence",
    "BoundedParticipation",
    "BoundedSensitivity",
    "Budget",
    "BudgetExceededError",
    "Certificate",
    "ConfigError",
    "Count",
    "CountingQueries",
    "DifferencingError",
    "DisjointUnits",
    "Explanation",
    "GeometricNoise",
    "Histogram",
    "IndependentGivenHabits",
    "InputCheckError",
    "Leakage",
    "Ledger",
    "LedgerError",
    "NoEvidenceError",
    "NotCertifiableError",
    "OncePerUnit",
    "OneDayProtected",
    "PkdpError",
    "PrivacyLoss",
    "Release",
    "SamePeople",
    "Target",
    "TemporaryError",
    "Verification",
    "__version__",
    "audit",
    "certify",
    "compose",
    "count",
    "explain",
    "histogram",
    "largest_p_max",
    "largest_p_max_between",
    "read_release",
    "smallest_k",
    "smallest_noise",
    "smallest_release_threshold",
    "smallest_unknown",
    "verify",
]

_HOMES = {
    "EACH_ROW": "request",
    "AttackerModel": "attacker",
    "Audit": "auditing",
    "audit": "auditing",
    "BoundedDependence": "composition.evidence",
    "BoundedParticipation": "composition.evidence",
    "BoundedSensitivity": "composition.evidence",
    "Budget": "ledger.budget",
    "Certificate": "certificate",
    "Count": "mechanisms",
    "CountingQueries": "counting_queries",
    "DisjointUnits": "composition.evidence",
    "Explanation": "explaining",
    "GeometricNoise": "mechanisms",
    "Histogram": "mechanisms",
    "IndependentGivenHabits": "composition.evidence",
    "Leakage": "leakage",
    "Ledger": "ledger",
    "OncePerUnit": "composition.evidence",
    "OneDayProtected": "composition.evidence",
    "PrivacyLoss": "privacy_loss",
    "Release": "release",
    "SamePeople": "composition.evidence",
    "Target": "target",
    "Verification": "verification",
    "certify": "release_certificate",
    "compose": "composition.compose",
    "count": "publish",
    "explain": "explaining",
    "histogram": "publish",
    "largest_p_max": "planning",
    "largest_p_max_between": "planning",
    "read_release": "release",
    "smallest_k": "planning",
    "smallest_noise": "planning",
    "smallest_release_threshold": "planning",
    "smallest_unknown": "planning",
    "verify": "verification",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used."""
    if name == "__version__":
        return import_module("pkdp_pipeline.version").VERSION
    if name in __all__:
        module = import_module(f"pkdp_pipeline.{_HOMES.get(name, 'errors')}")
        value = globals()[name] = getattr(module, name)
        return value
    if name == "duckdb":
        return import_module("pkdp_pipeline.duckdb")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


del _accessor
