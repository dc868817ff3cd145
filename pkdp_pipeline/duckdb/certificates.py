"""What ``pkdp_delta`` and ``pkdp_epsilon`` compute: certificates of mechanisms, row by row; no data are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.model.arguments import choice
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import MECHANISMS, Mechanism, mechanism_from_dict

__all__ = ["PARAMETERS", "certified"]

#: Parameters of the SQL function behind both macros, in order, with their SQL types.
PARAMETERS: tuple[tuple[str, str], ...] = (
    ("quantity", "VARCHAR"),
    ("target", "DOUBLE"),
    ("mechanism", "VARCHAR"),
    ("k", "BIGINT"),
    ("k_complement", "BIGINT"),
    ("noise", "DOUBLE"),
    ("release_threshold", "BIGINT"),
    ("protects", "VARCHAR"),
    ("p_max", "DOUBLE"),
    ("p_min", "DOUBLE"),
    ("p_max_between", "DOUBLE"),
    ("unknown", "BIGINT"),
    ("unknown_max", "BIGINT"),
    ("known", "BIGINT"),
    ("influence", "VARCHAR"),
)

_MECHANISM = ("k", "k_complement", "noise", "release_threshold")
_ATTACKER = ("p_max", "p_min", "p_max_between", "unknown", "unknown_max", "known", "influence")

Row = tuple[Any, ...]


def certified(rows: Sequence[Row]) -> list[float]:
    """Return the certified δ or ε of every row; equal rows are computed once.

    Parameters
    ----------
    rows : sequence of tuples
        Values of `PARAMETERS`; None where a call leaves something out. `quantity` is "delta" or "epsilon", and
        `target` the other one of the two.

    Returns
    -------
    list of float
        What ``certify(…).delta(target)`` or ``.epsilon(target)`` return. Where nothing can be certified, that
        nothing is promised: δ = 1, ε = inf.

    Raises
    ------
    ArgumentError
        If a row's arguments are malformed.
    """
    return [_certified(row) for row in rows]


@lru_cache(maxsize=8192)
def _certified(row: Row) -> float:
    given = {name: value for (name, _), value in zip(PARAMETERS, row, strict=True) if value is not None}
    quantity, name = choice("quantity", given.get("quantity"), ("delta", "epsilon")), given.get("mechanism")
    asked = "epsilon" if quantity == "delta" else "delta"
    if "target" not in given:
        raise ArgumentError(f"{asked} is needed, and may not be NULL: pkdp_{quantity}('histogram', …, {asked} := …).")
    attacker = tuple((field, given[field]) for field in _ATTACKER if field in given)
    fields = tuple((field, given[field]) for field in _MECHANISM if field in given)
    certificate = _certificate(choice("mechanism", name, MECHANISMS), fields, attacker, given.get("protects"))
    target = float(given["target"])
    if certificate is None:
        # Checked as if it were used, so that a malformed target is the same error everywhere.
        if not (math.isfinite(target) and target >= 0 and (asked == "epsilon" or target <= 1)):
            raise ArgumentError(f"{asked} must be {'finite and at least 0' if asked == 'epsilon' else 'in [0, 1]'}.")
        return 1.0 if quantity == "delta" else math.inf
    return float(certificate.delta(target) if quantity == "delta" else certificate.epsilon(target))


@lru_cache(maxsize=1024)
def _certificate(
    name: str, fields: tuple[tuple[str, Any], ...], attacker: tuple[tuple[str, Any], ...], protects: str | None
) -> ReleaseCertificate | None:
    """Return the certificate, or None where none can be given."""
    content: dict[str, Any] = {"mechanism": name, **dict(fields)}
    if "noise" in content:
        content["noise"] = {"epsilon": content["noise"]}
    mechanism: Mechanism = mechanism_from_dict(content)
    model = AttackerModel.from_dict(dict(attacker))
    try:
        return certify(mechanism, model, protects=protects or "presence")
    except NotCertifiableError:
        return None
