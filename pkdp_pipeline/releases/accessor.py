"""df.pkdp: the two questions on a pandas frame, and what each would publish.

It keeps no state; pandas makes a new one at every access.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from pkdp_pipeline.releases.keywords import CountOptions, ExplainOptions, HistogramOptions, shows

if TYPE_CHECKING:
    from pkdp_pipeline.releases.explain import Explanation
    from pkdp_pipeline.releases.release import Release


@pd.api.extensions.register_dataframe_accessor("pkdp")
class PkdpAccessor:
    """``df.pkdp.count``, ``histogram`` and ``explain``; see the functions of these names in `pkdp_pipeline`."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @shows(CountOptions)
    def count(self, where: Any = None, **options: Unpack[CountOptions]) -> Release:
        """Publish how many people satisfy a predicate; see `pkdp_pipeline.count`.

        Parameters
        ----------
        where : boolean Series, str or callable, optional
            The predicate: a query string, a boolean column's name, a boolean Series, or a callable that returns one.

        Returns
        -------
        Release
        """
        from pkdp_pipeline.releases.publish import count

        return count(self._frame, where, **options)

    @shows(HistogramOptions)
    def histogram(self, by: str | Sequence[str], **options: Unpack[HistogramOptions]) -> Release:
        """Publish how many people are in each cell; see `pkdp_pipeline.histogram`.

        Parameters
        ----------
        by : str or sequence of str
            Columns that name a cell.

        Returns
        -------
        Release
        """
        from pkdp_pipeline.releases.publish import histogram

        return histogram(self._frame, by, **options)

    @shows(ExplainOptions)
    def explain(
        self, by: str | Sequence[str] | None = None, where: Any = None, **options: Unpack[ExplainOptions]
    ) -> Explanation:
        """Return what a release would be; the frame is not looked at. See `pkdp_pipeline.explain`.

        Parameters
        ----------
        by : str or sequence of str, optional
            Columns that name a cell, as for `histogram`. None: a count is explained.
        where : boolean Series, str or callable, optional
            The predicate.

        Returns
        -------
        Explanation
        """
        from pkdp_pipeline.releases.explain import explain

        return explain(by, where, **options)
