"""df.pkdp: the two questions on a pandas frame, and what each would publish.

It keeps no state; pandas makes a new one at every access.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.target import Asked
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.mechanisms import GeometricNoise
    from pkdp_pipeline.releases.explaining import Explanation
    from pkdp_pipeline.releases.release import Release

__all__ = ["PkdpAccessor"]


@pd.api.extensions.register_dataframe_accessor("pkdp")
class PkdpAccessor:
    """``df.pkdp.count``, ``histogram`` and ``explain``; see the functions of these names in `pkdp_pipeline`."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def count(
        self,
        where: Any = None,
        *,
        unit: Any,
        attacker: AttackerModel | None = None,
        k: int | None = None,
        k_complement: int | None = None,
        noise: GeometricNoise | None = None,
        release_threshold: int | None = None,
        protects: str = "presence",
        missing_unit: str = "error",
        units: str = "checked",
        ledger: Ledger | None = None,
        period: Any = None,
        label: str | None = None,
        revise: bool = False,
        target: Asked = "default",
    ) -> Release:
        """Publish how many people satisfy a predicate; see `pkdp_pipeline.count`."""
        from pkdp_pipeline.releases.publish import count

        return count(
            self._frame,
            where,
            unit=unit,
            attacker=attacker,
            k=k,
            k_complement=k_complement,
            noise=noise,
            release_threshold=release_threshold,
            protects=protects,
            missing_unit=missing_unit,
            units=units,
            ledger=ledger,
            period=period,
            label=label,
            revise=revise,
            target=target,
        )

    def histogram(
        self,
        by: str | Sequence[str],
        *,
        unit: Any,
        attacker: AttackerModel | None = None,
        k: int | None = None,
        domain: Any = None,
        noise: GeometricNoise | None = None,
        release_threshold: int | None = None,
        protects: str = "presence",
        where: Any = None,
        missing_unit: str = "error",
        units: str = "checked",
        one_cell: str = "error",
        order_by: str | Sequence[str] | None = None,
        undeclared: str = "error",
        ledger: Ledger | None = None,
        period: Any = None,
        label: str | None = None,
        revise: bool = False,
        target: Asked = "default",
    ) -> Release:
        """Publish how many people are in each cell; see `pkdp_pipeline.histogram`."""
        from pkdp_pipeline.releases.publish import histogram

        return histogram(
            self._frame,
            by,
            unit=unit,
            attacker=attacker,
            k=k,
            domain=domain,
            noise=noise,
            release_threshold=release_threshold,
            protects=protects,
            where=where,
            missing_unit=missing_unit,
            units=units,
            one_cell=one_cell,
            order_by=order_by,
            undeclared=undeclared,
            ledger=ledger,
            period=period,
            label=label,
            revise=revise,
            target=target,
        )

    def explain(
        self,
        by: str | Sequence[str] | None = None,
        where: Any = None,
        *,
        unit: Any,
        attacker: AttackerModel | None = None,
        k: int | None = None,
        k_complement: int | None = None,
        noise: GeometricNoise | None = None,
        release_threshold: int | None = None,
        domain: Any = None,
        protects: str = "presence",
        missing_unit: str = "error",
        units: str = "checked",
        one_cell: str = "error",
        order_by: str | Sequence[str] | None = None,
        undeclared: str = "error",
        ledger: Ledger | None = None,
        period: Any = None,
        label: str | None = None,
        revise: bool = False,
        target: Asked = "default",
    ) -> Explanation:
        """Return what a release would be; the frame is not looked at. See `pkdp_pipeline.explain`."""
        from pkdp_pipeline.releases.explaining import explain

        return explain(
            by,
            where,
            unit=unit,
            attacker=attacker,
            k=k,
            k_complement=k_complement,
            noise=noise,
            release_threshold=release_threshold,
            domain=domain,
            protects=protects,
            missing_unit=missing_unit,
            units=units,
            one_cell=one_cell,
            order_by=order_by,
            undeclared=undeclared,
            ledger=ledger,
            period=period,
            label=label,
            revise=revise,
            target=target,
        )
