"""Publish counts and k-anonymous histograms with a certified partial-knowledge differential-privacy guarantee.

Importing the package registers ``df.pkdp``, at once or as soon as pandas is imported, which the command line seldom
needs; everything heavier is loaded when it is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.model import VIEWS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from pkdp_pipeline.assurance.audit import Audit, audit
    from pkdp_pipeline.assurance.verification import Verification, verify
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.certificates.composed import compose
    from pkdp_pipeline.certificates.release_certificate import certify
    from pkdp_pipeline.certificates.target import Target
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
    from pkdp_pipeline.ledger import Budget, Ledger
    from pkdp_pipeline.model import VERSION as __version__  # noqa: N811 (one version, under the name Python expects)
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.evidence import (
        BoundedDependence,
        BoundedParticipation,
        BoundedSensitivity,
        DisjointUnits,
        IndependentGivenHabits,
        OncePerUnit,
        OneDayProtected,
        SamePeople,
        SameTable,
    )
    from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram
    from pkdp_pipeline.model.question import EACH_ROW
    from pkdp_pipeline.planning import (
        largest_p_max,
        largest_p_max_between,
        smallest_k,
        smallest_noise,
        smallest_release_threshold,
        smallest_unknown,
    )
    from pkdp_pipeline.releases.accessor import count, explain, histogram
    from pkdp_pipeline.releases.explain import Explanation
    from pkdp_pipeline.releases.release import Release, read_release
    from pkdp_pipeline.theory.counting_queries import CountingQueries
    from pkdp_pipeline.theory.privacy_loss import PrivacyLoss

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
    "SameTable",
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

_NAMES = {
    "assurance.audit": "Audit audit",
    "assurance.verification": "Verification verify",
    "certificates.certificate": "Certificate",
    "certificates.composed": "compose",
    "certificates.release_certificate": "certify",
    "certificates.target": "Target",
    "ledger": "Ledger",
    "model.attacker": "AttackerModel",
    "model.leakage": "Leakage",
    "model.budget": "Budget",
    "model.evidence": (
        "BoundedDependence BoundedParticipation BoundedSensitivity DisjointUnits "
        "IndependentGivenHabits OncePerUnit OneDayProtected SamePeople SameTable"
    ),
    "model.mechanisms": "Count GeometricNoise Histogram",
    "model.question": "EACH_ROW",
    "planning": (
        "largest_p_max largest_p_max_between smallest_k smallest_noise smallest_release_threshold smallest_unknown"
    ),
    "releases.accessor": "count explain histogram",
    "releases.explain": "Explanation",
    "releases.release": "Release read_release",
    "theory.counting_queries": "CountingQueries",
    "theory.privacy_loss": "PrivacyLoss",
}
"""The public names by module; those of errors are the others."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used."""
    if name == "__version__":
        return import_module("pkdp_pipeline.model").VERSION
    if name in __all__:
        module = import_module(f"pkdp_pipeline.{_HOMES.get(name, 'errors')}")
        value = globals()[name] = getattr(module, name)
        return value
    if name == "duckdb":
        return import_module("pkdp_pipeline.duckdb")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def _view(name: str) -> Callable[..., Any]:
    """Return a function of `display`, which is loaded when it is called."""

    def view(*values: Any, **options: Any) -> Any:
        module, _, function = name.rpartition(".")
        return getattr(import_module(f"pkdp_pipeline.display.{module}"), function)(*values, **options)

    return view


_VIEWS = (
    "explanation.heading explanation.html_of explanation.statement_html explanation.text_of "
    "figures.plots.plot_certificate figures.plots.plot_ledger figures.plots.plot_release"
)
VIEWS.update({name: _view(name) for name in _VIEWS.split()})

_ACCESSOR = "pkdp_pipeline.releases.accessor"


class _AfterPandas:
    """A finder of modules that lets pandas be found by the others, and loads the accessor after it."""

    searching = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "pandas" or self.searching:
            return None
        self.searching = True
        try:
            spec = find_spec(name)  # by all finders, of which this one now says nothing
        finally:
            self.searching = False
        load = getattr(spec and spec.loader, "exec_module", None)
        if spec is not None and load is not None:

            def load_both(module: ModuleType) -> None:
                load(module)
                import_module(_ACCESSOR)

            spec.loader.exec_module = load_both  # type: ignore[method-assign, union-attr]
        return spec


if "pandas" in sys.modules:
    import_module(_ACCESSOR)
elif not any(type(finder).__name__ == _AfterPandas.__name__ for finder in sys.meta_path):
    sys.meta_path.insert(0, _AfterPandas())

del VIEWS
