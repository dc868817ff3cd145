"""Publish counts and k-anonymous histograms with a certified partial-knowledge differential-privacy guarantee.

Importing the package registers ``df.pkdp`` on frames of pandas and Polars, at once or as soon as these are imported,
which the command line seldom needs; everything heavier is loaded when it is first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import spec_from_loader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.certificates.composed import compose
    from pkdp_pipeline.certificates.release_certificate import Target, certify
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
    from pkdp_pipeline.extras.assurance.audit import Audit, audit
    from pkdp_pipeline.extras.assurance.verification import Verification, verify
    from pkdp_pipeline.extras.plan.planning import (
        largest_p_max,
        largest_p_max_between,
        smallest_k,
        smallest_noise,
        smallest_release_threshold,
        smallest_unknown,
    )
    from pkdp_pipeline.extras.plan.rules import rule
    from pkdp_pipeline.extras.tables.hierarchy import Hierarchy
    from pkdp_pipeline.extras.theory.counting_queries import CountingQueries
    from pkdp_pipeline.extras.theory.privacy_loss import PrivacyLoss
    from pkdp_pipeline.ledger import Budget, Ledger
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.columns import EACH_ROW, Bins, bins
    from pkdp_pipeline.model.display import Bands, PerturbationTable, RandomRounding, Rounding
    from pkdp_pipeline.model.evidence import (
        BoundedDependence,
        BoundedParticipation,
        BoundedSensitivity,
        DisjointUnits,
        IndependentDraws,
        IndependentGivenHabits,
        OncePerUnit,
        OneDayProtected,
        SamePeople,
        SameTable,
    )
    from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Sum
    from pkdp_pipeline.releases.accessor import count, explain, histogram, sum
    from pkdp_pipeline.releases.printed import Explanation
    from pkdp_pipeline.releases.release import Release, read_release
    from pkdp_pipeline.schemas import VERSION as __version__  # noqa: N811 (one version, under the name Python expects)

__all__ = [
    "EACH_ROW",
    "ArgumentError",
    "AttackerModel",
    "Audit",
    "Bands",
    "Bins",
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
    "Hierarchy",
    "Histogram",
    "IndependentDraws",
    "IndependentGivenHabits",
    "InputCheckError",
    "Leakage",
    "Ledger",
    "LedgerError",
    "NoEvidenceError",
    "NotCertifiableError",
    "OncePerUnit",
    "OneDayProtected",
    "PerturbationTable",
    "PkdpError",
    "PrivacyLoss",
    "RandomRounding",
    "Release",
    "Rounding",
    "SamePeople",
    "SameTable",
    "Sum",
    "Target",
    "TemporaryError",
    "Verification",
    "__version__",
    "audit",
    "bins",
    "certify",
    "compose",
    "count",
    "explain",
    "histogram",
    "largest_p_max",
    "largest_p_max_between",
    "read_release",
    "rule",
    "smallest_k",
    "smallest_noise",
    "smallest_release_threshold",
    "smallest_unknown",
    "sum",
    "verify",
]

_NAMES = {
    "extras.assurance.audit": "Audit audit",
    "extras.assurance.verification": "Verification verify",
    "certificates.certificate": "Certificate",
    "certificates.composed": "compose",
    "certificates.release_certificate": "Target certify",
    "ledger": "Ledger Budget",
    "model.attacker": "AttackerModel Leakage",
    "model.columns": "EACH_ROW Bins bins",
    "model.evidence": (
        "BoundedDependence BoundedParticipation BoundedSensitivity DisjointUnits "
        "IndependentDraws IndependentGivenHabits OncePerUnit OneDayProtected SamePeople SameTable"
    ),
    "model.display": "Bands PerturbationTable RandomRounding Rounding",
    "model.mechanisms": "Count GeometricNoise Histogram Sum",
    "extras.plan.planning": (
        "largest_p_max largest_p_max_between smallest_k smallest_noise smallest_release_threshold smallest_unknown"
    ),
    "extras.plan.rules": "rule",
    "releases.accessor": "count explain histogram sum",
    "releases.printed": "Explanation",
    "releases.release": "Release read_release",
    "extras.tables.hierarchy": "Hierarchy",
    "extras.theory.counting_queries": "CountingQueries",
    "extras.theory.privacy_loss": "PrivacyLoss",
}
"""The public names by module; those of errors are the others."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used."""
    if name == "__version__":
        return import_module("pkdp_pipeline.schemas").VERSION
    if name in __all__:
        module = import_module(f"pkdp_pipeline.{_HOMES.get(name, 'errors')}")
        value = globals()[name] = getattr(module, name)
        return value
    if name == "duckdb":
        return import_module("pkdp_pipeline.duckdb")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


_MOVED = {
    "assurance": "extras.assurance",
    "certificates.statement": "extras.report.statement",
    "display": "extras.report",
    "duckdb.dbt": "extras.connect.dbt",
    "duckdb.settings": "sql.spec",
    "jobs.integrations": "extras.connect",
    "planning": "extras.plan.planning",
    "theory": "extras.theory",
}
"""Documented names of modules that lie elsewhere: job files of dbt, schedules and programs name them."""


class _Moved:
    """A finder, and a loader, of modules under their documented names; each is loaded once, where it lies."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if _home_of(name) is None else spec_from_loader(name, self)  # type: ignore[arg-type]  # it has all that a loader needs

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(str(_home_of(spec.name)))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Its own specification was replaced by the one of its documented name.
        module.__spec__ = module.__spec__ and module.__spec__.loader_state


def _home_of(name: str) -> str | None:
    """Return where a module lies whose documented name is another; None for all others."""
    package, *words = name.split(".")
    for end in (1, 2) if package == "pkdp_pipeline" else ():
        if home := _MOVED.get(".".join(words[:end])):
            return ".".join([package, home, *words[end:]])
    return None


_LIBRARIES = ("pandas", "polars")
"""Those whose frames have ``.pkdp``."""
_ACCESSOR = "pkdp_pipeline.releases.accessor"


class _AfterLoading:
    """A finder that lets the others find a library, gives its frames ``.pkdp`` once it is loaded, and is gone then.

    Neither library knows entry points of accessors, and to load them here would take a hundred times as long.
    """

    def __init__(self, library: str) -> None:
        self.library = library

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.library:
            return None
        others = (getattr(finder, "find_spec", None) for finder in sys.meta_path if finder is not self)
        spec: ModuleSpec | None = next(filter(None, (find(name, path, target) for find in others if find)), None)
        load = getattr(spec and spec.loader, "exec_module", None)
        if spec is not None and load is not None:

            def load_both(module: ModuleType) -> None:
                load(module)
                if module.__name__ == self.library and self in sys.meta_path:  # some loaders serve several modules
                    sys.meta_path.remove(self)
                    import_module(_ACCESSOR).register(self.library)

            spec.loader.exec_module = load_both  # type: ignore[method-assign, union-attr]
        return spec


for _library in _LIBRARIES:
    if sys.modules.get(_library) is not None:
        import_module(_ACCESSOR).register(_library)
    elif _library not in {getattr(finder, "library", None) for finder in sys.meta_path}:  # it may be imported again
        sys.meta_path.insert(0, _AfterLoading(_library))
if not any(type(finder).__name__ == _Moved.__name__ for finder in sys.meta_path):
    sys.meta_path.insert(0, _Moved())
