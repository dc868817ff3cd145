"""Results that follow from a published table: totals, shares, rounded, weighted and estimated counts, intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.plugins import view

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.ledger.sealed import Sealed


class Derivations:
    """The part of a release that derives from what is public: no data are read, and nothing is charged."""

    __slots__ = ()

    certificate: ReleaseCertificate
    id: str
    sealed: Sealed

    def rollup(self, by: str | Sequence[str]) -> pd.DataFrame:
        """Return totals over groups of cells, derived from what is public: no data are read, nothing is charged.

        Parameters
        ----------
        by : str or sequence of str
            The by-columns to keep; ``[]`` for the grand total. A missing value is a key of its own.

        Returns
        -------
        pandas.DataFrame
            A row for each group that has rows in the table, in the order of its first row, with

            - the columns of `by`;
            - ``count`` (Int64): the number of people, ``<NA>`` where suppressed cells leave it open. With
              noise an estimate: the sum of the published values, ``<NA>`` where one is suppressed;
            - ``error`` (Float64, only with noise): the standard deviation of the noise in ``count``;
            - ``least`` and ``most`` (Int64): the fewest and the most people that the table allows, with
              certainty; ``most`` is ``<NA>`` where it is not bounded.

        Raises
        ------
        ArgumentError
            If `by` names anything but by-columns.

        Notes
        -----
        A total counts people because every person is in one cell only. A suppressed cell has 0 to k - 1
        people. Without a declared domain an unknown number of cells may have no row, so a total is bounded
        only where every by-column is kept (or all others are boolean): declare the cells with ``domain=`` where totals
        are wanted. Noise has no bounds: a noised cell that is
        shown has at least k people, and nothing else is certain of it.

        Suppressed counts stay so: the intervals say what any reader could work out.
        """
        from pkdp_pipeline.releases.derived import rollup

        return self._derived(rollup, by)

    def shares(self, by: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return each cell's share of its group, derived from what is public, as `rollup` is.

        Parameters
        ----------
        by : str or sequence of str, optional
            The by-columns that name a group. None: the group is the whole table.

        Returns
        -------
        pandas.DataFrame
            A row for each of the table's, with its by-columns and, as Float64,

            - ``share``: of all people in the group's cells, suppressed ones included; ``<NA>`` where these leave
              it open. With noise an estimate: the ratio of published values, ``<NA>`` where one of the group
              is suppressed or their sum is not above 0;
            - ``least`` and ``most``: between which the share is with certainty, if anybody is in the group;
              rounded outward. Without noise, a published cell's ``most`` is its share of the people in published
              cells.

        Raises
        ------
        ArgumentError
            If the release is a count, or `by` names anything but by-columns.
        """
        from pkdp_pipeline.releases.derived import shares

        return self._derived(shares, by)

    def rounded(self, base: int, by: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return counts as multiples of `base`, for showing; the certificate is no better for it.

        Parameters
        ----------
        base : int
            At least 1.
        by : str or sequence of str, optional
            Round the totals of ``rollup(by)``, which are better than totals of rounded counts. None: the
            table's own cells.

        Returns
        -------
        pandas.DataFrame
            As of `rollup`; ``count`` is rounded to the nearest multiple (halves to the even one), ``least`` down
            and ``most`` up, so that they still hold. ``error`` is of the noise alone.

        Raises
        ------
        ArgumentError
            If `base` is not a whole number above 0, or `by` names anything but by-columns.
        """
        from pkdp_pipeline.releases.derived import rounded

        return self._derived(rounded, base, by)

    def estimate(self) -> pd.DataFrame:
        """Return what a secret sample says of its population, derived from what is public, as `rollup` is.

        Returns
        -------
        pandas.DataFrame
            A row for each of the table's, with its by-columns and, as Float64, ``estimate`` (the count divided by the
            attacker's `sampled`), ``error`` (its standard error, of the draw and of the noise), ``low`` and
            ``high``, an interval of 95 %; ``<NA>`` where the count is suppressed.

        Raises
        ------
        ArgumentError
            If the certificate's attacker has no `sampled`.

        Notes
        -----
        Everybody is taken to be drawn with exactly the chance `sampled`, which for the certificate is an upper bound.
        Where chances differ by stratum, use `weighted`. The interval is a normal one, and too narrow for small counts.
        """
        from pkdp_pipeline.releases.estimates import estimates

        sampled = self.certificate.attacker.sampled
        if not sampled:
            raise ArgumentError(
                "estimate is of a secret sample: certify the release with sampled in the attacker; other counts are of "
                "everybody already."
            )
        return self._derived(estimates, sampled)

    def weighted(self, weights: Mapping[str, Mapping[Any, float]], by: str | Sequence[str]) -> pd.DataFrame:
        """Return totals in which each cell counts with a publicly fixed weight, derived as `rollup` is.

        Parameters
        ----------
        weights : mapping of str to mapping
            One by-column, and the weight of each of its values: ``{"stratum": {"A": 12.5, "B": 3.0}}``. Fixed
            beforehand, as the inverse of each stratum's chance to be drawn is.
        by : str or sequence of str
            The by-columns to keep; ``[]`` for the grand total.

        Returns
        -------
        pandas.DataFrame
            The columns of `by`, ``weighted`` (Float64; ``<NA>`` where suppressed cells leave it open), ``error`` (only
            with noise or of a secret sample: the standard error, of the noise and of the draw), and ``least`` and
            ``most``, between which the weighted number of people in the table is.

        Raises
        ------
        ArgumentError
            If a published value has no weight, a weight is not above 0, or `by` names anything but by-columns.

        Notes
        -----
        Where the certificate's attacker has `sampled`, each value's people are taken to be drawn independently with the
        inverse of its weight as their chance, or with `sampled` where that is smaller.
        """
        from pkdp_pipeline.releases.estimates import weighted

        return self._derived(weighted, weights, by, self.certificate.attacker.sampled)

    def mean(self, counts: Derivations) -> pd.DataFrame:
        """Return what a person adds to a cell on average, from sums and counts of the same people; as `rollup` is.

        Parameters
        ----------
        counts : Release
            The number of people, by the same columns; published with the same unit, rows, rules, period and ledger.

        Returns
        -------
        pandas.DataFrame
            A row for each of this table's, with its by-columns and, as Float64, ``mean``, and ``low`` and ``high``, in
            which the mean of at least one person is with probability 95 %: both noises are within the bounds that
            follow from their laws, and what a person adds is within `bounds`. ``<NA>`` where a number is suppressed, or
            nobody may be there.

        Raises
        ------
        ArgumentError
            If this is no release of sums, or `counts` counts other people, or has a rule of display.

        Notes
        -----
        The 95 % leave out that `release_threshold` hides some numbers. The mean is of clamped contributions. Tables
        that a job counted from different readings of the data are refused; that all others are of the same rows is on
        you.
        """
        from pkdp_pipeline.releases.estimates import check_same, means

        if not isinstance(counts, Derivations):
            raise ArgumentError(f"counts must be a release, not {type(counts).__name__}.")
        check_same(self.certificate, counts.certificate)
        mechanisms: Any = (self.certificate.mechanism, counts.certificate.mechanism)
        derived = means(self.sealed.frame, mechanisms[0], counts.sealed.frame, mechanisms[1])
        derived.attrs = {"release_id": self.id}
        return derived

    def within(self, totals: Derivations | pd.DataFrame) -> pd.DataFrame:
        """Return the cells beside exact totals of their groups, which bound what is suppressed; nothing is charged.

        Parameters
        ----------
        totals : Release or pandas.DataFrame
            Some of the by-columns and ``count``: the exact totals of the groups (`Leakage.totals`), as released, or
            as others have published them; ``count`` alone, or a count, is the total of everybody.

        Returns
        -------
        pandas.DataFrame
            A row for each of the table's, with its by-columns, ``count``, the fewest and the most people in the cell
            that the table and the totals allow (``least``, ``most``), and ``total``, that of its group; as Int64.

        Raises
        ------
        ArgumentError
            If the totals are about other columns or people, or have noise; if the table has noise, cells found in the
            data, or people in several cells.

        Notes
        -----
        A single suppressed cell of a group follows from its total, exactly. The certificate counts that in: it is
        about a person's cell, not about counts. Tables that a job counted from different readings of the data, between
        which these may have been corrected, are refused; that all others are of the same rows is on you.
        """
        from pkdp_pipeline.releases.estimates import check_same_people, within_totals

        if isinstance(totals, Derivations):
            other = totals.certificate
            if other.mechanism.noise is not None or other.mechanism.display is not None:
                raise ArgumentError(
                    "totals have noise or a rule of display, and only exact ones bound suppressed counts."
                )
            counted = isinstance(other.mechanism, Count)
            check_same_people(self.certificate.context, other.context, counted=counted)
            totals = totals.sealed.frame
        return self._derived(within_totals, totals)

    def along(self, hierarchy: Any, column: str | None = None, *, by: str | Sequence[str] = ()) -> pd.DataFrame:
        """Return sums of the table along a hierarchy of codes, derived from what is public, as `rollup` is.

        Parameters
        ----------
        hierarchy : Hierarchy
            It lists every code of the table.
        column : str, optional
            The by-column that has the codes; needed where there are several.
        by : str or sequence of str, optional
            Other by-columns to keep; over the rest is added up.

        Returns
        -------
        pandas.DataFrame
            A row for each code that is in the table or above one of its codes, each before those below it, with
            ``level`` (0 at the top), the code, the columns of `by`, and ``count``, ``error``, ``least`` and ``most`` as
            of `rollup`.

        Raises
        ------
        ArgumentError
            If the table has a code that is not listed, or one together with a code above it; or as of `rollup`.
        """
        table: pd.DataFrame = view("tables.along")(self, hierarchy, column, by)
        table.attrs = {"release_id": self.id}
        return table

    def crosstab(
        self,
        rows: str | Sequence[str],
        columns: str | Sequence[str],
        *,
        margins: bool | str = False,
        suppressed: str | None = None,
        totals: Derivations | pd.DataFrame | Sequence[Derivations | pd.DataFrame] = (),
        weights: Mapping[str, Mapping[Any, float]] | None = None,
    ) -> pd.DataFrame:
        """Return the table as offices print it, some by-columns down and some across; nothing is charged.

        Parameters
        ----------
        rows, columns : str or sequence of str
            By-columns. Over those that neither names is added up, as by `rollup`.
        margins : bool or str, default False
            Whether a last row and a last column have totals, or the text that names them instead of "Total".
        suppressed : str, optional
            The text in the place of counts that are not published, zeros included. By default ``<k``, or
            "suppressed" where not only small counts are, or cells are weighted.
        totals : Release, pandas.DataFrame or sequence of them, optional
            Exact totals of groups, as in `within`: they are the margins, and hidden counts are what follows
            from all of them together, as intervals.
        weights : mapping of str to mapping, optional
            Public weights of one by-column's values, as in `weighted`: cells and margins are weighted totals.

        Returns
        -------
        pandas.DataFrame
            A cell is a whole number, or a text: the marker, an interval as "4 to 12", "7 follows exactly", a band, or
            "≈ 12" for a count that has noise where others are exact. Margins are whole numbers where they follow, and
            say "cells may be missing" or "no total" where noise leaves no total. Rows and columns are those
            that the declared domain lists, in its order; those of cells found in the data are sorted, and a cell of
            them without a row has the marker. ``attrs`` has the release's id and the marker.

        Raises
        ------
        ArgumentError
            If `rows` and `columns` name anything but by-columns, or one twice; if `suppressed` could be taken for a
            count, or names another number than k; or as in `within`.
        """
        table: pd.DataFrame = view("tables.crosstab")(
            self, rows, columns, margins=margins, suppressed=suppressed, totals=totals, weights=weights
        )
        return table

    def _derived(self, derive: Callable[..., pd.DataFrame], *arguments: Any) -> pd.DataFrame:
        from pkdp_pipeline.releases.derived import check_counts

        check_counts(self.certificate.mechanism)
        context = self.certificate.context
        # Whether the table lists every cell there is.
        declared = context is not None and context.cells == "declared"
        derived = derive(self.sealed.frame, self.certificate.mechanism, *arguments, declared=declared)
        derived.attrs = {"release_id": self.id}
        return derived
