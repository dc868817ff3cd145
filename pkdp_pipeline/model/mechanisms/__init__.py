"""What is published: one file per mechanism, and the registry that names them in JSON, SQL and job files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Literal

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import known_fields
from pkdp_pipeline.model.mechanisms.count import Count
from pkdp_pipeline.model.mechanisms.geometric_noise import GeometricNoise
from pkdp_pipeline.model.mechanisms.histogram import Histogram

__all__ = [
    "MECHANISMS",
    "NOISELESS",
    "Count",
    "GeometricNoise",
    "Histogram",
    "Kind",
    "Mechanism",
    "kind_of",
    "mechanism_from_dict",
    "mechanism_name",
    "mechanism_to_dict",
]

Mechanism = Count | Histogram
Kind = Literal["total", "exact count", "noiseless", "pure noise", "noised"]
NOISELESS: tuple[Kind, ...] = ("total", "exact count", "noiseless")
"""Kinds without noise that gives a finite worst case."""

MECHANISMS: Mapping[str, type[Count] | type[Histogram]] = MappingProxyType({"count": Count, "histogram": Histogram})


def mechanism_name(mechanism: Mechanism) -> str:
    """Return the registered name of `mechanism`."""
    for name, kind in MECHANISMS.items():
        if type(mechanism) is kind:
            return name
    known = ", ".join(kind.__name__ for kind in MECHANISMS.values())
    raise ArgumentError(f"mechanism must be one of {known}, not {type(mechanism).__name__}.")


def mechanism_to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """Return the mechanism as a JSON-ready dictionary with its registered name under ``"mechanism"``."""
    return {"mechanism": mechanism_name(mechanism), **asdict(mechanism)}


def mechanism_from_dict(content: Mapping[str, Any]) -> Mechanism:
    """Rebuild a mechanism from `mechanism_to_dict`; unknown names and fields are an `ArgumentError`."""
    arguments = dict(content)
    name = arguments.pop("mechanism", None)
    if not isinstance(name, str) or name not in MECHANISMS:
        raise ArgumentError(f"mechanism must be one of {', '.join(sorted(MECHANISMS))}, got {name!r}.")
    kind = MECHANISMS[name]
    known_fields(kind, arguments, f"a {name}")
    noise = arguments.get("noise")
    if isinstance(noise, Mapping):
        if set(noise) != {"epsilon"}:
            raise ArgumentError("noise must have the one field 'epsilon'.")
        arguments["noise"] = GeometricNoise(noise["epsilon"])
    return kind(**arguments)


def kind_of(mechanism: Mechanism, protects: str = "presence") -> Kind:
    """Return how what `mechanism` publishes stands beside other releases about the same people.

    "noised" has a finite worst case; "pure noise" is noised with δ = 0, because the noise acts on the exact count
    (a threshold after it looks at the noisy count only, which costs nothing). The other kinds are noiseless; an
    "exact count" has no threshold either. A "total" is the exact count of everybody who is there, published as what
    is known of them: it protects the value alone.
    """
    complement = mechanism.k_complement if isinstance(mechanism, Count) else None
    if mechanism.noise is None:
        if not isinstance(mechanism, Count) or mechanism.k is not None or complement is not None:
            return "noiseless"
        return "total" if protects == "value" else "exact count"
    if complement is not None or (mechanism.k is not None and mechanism.release_threshold is None):
        return "noiseless"
    return "pure noise" if mechanism.k is None else "noised"
