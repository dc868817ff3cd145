"""The certificate of one release, computed from mechanism × attacker, and `certify`, which makes it.

Target: what a release has to promise at least.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

import numpy as np

from pkdp_pipeline.certificates.advice import advised, refusal
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import READERS, SCHEMA
from pkdp_pipeline.certificates.sentences import (
    OfSome,
    against,
    assumptions,
    declared_cells,
    depending,
    following,
    given,
    leaking,
    promised,
    protection,
    suppression,
)
from pkdp_pipeline.composition import rules
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel, Leakage, read_attacker
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.mechanisms import (
    Count,
    Histogram,
    Mechanism,
    Protects,
    Sum,
    cells_per_unit,
    mechanism_from_dict,
    mechanism_name,
    mechanism_to_dict,
    within_table,
)
from pkdp_pipeline.model.question import determines
from pkdp_pipeline.model.wording import (
    Worded,
    capital,
    choice,
    joined_texts,
    loss,
    probability,
    rounded_up,
    whole_number,
)
from pkdp_pipeline.theorems.bound import Applied, Bound, Guarantee, bracketed
from pkdp_pipeline.theorems.numerics import Array
from pkdp_pipeline.theorems.theorems import bounds_of
from pkdp_pipeline.theorems.worst_case import Leaked

_MAX_EPSILON = 700.0
"""An ε beyond any use; its exponential is still a float."""

_ALL_DECLARED = "Other numbers of this certificate hold against anyone who fits everything declared about the attacker."
"""For a certificate that takes the smallest of bounds against different attackers: its sentence names one of them."""

_MAX_CACHED_POINTS = 64
"""This many numbers are remembered for the next certificate with the same bounds, and not the points of a plot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCertificate(Certificate):
    """The promise of publishing one mechanism, against one attacker; see `Certificate`.

    Attributes
    ----------
    mechanism : Count, Histogram or Sum
    attacker : AttackerModel
    cells : int or None
        How many cells are declared, where the numbers depend on it; None for those of any table.
    context : Context or None
        The publication it belongs to; None for a certificate of a mechanism alone.
    derived_from : Count or Histogram, optional
        Where the table is another display of a published one, and follows from it: the mechanism of that one. The
        numbers are those of both tables together, which tell what that one tells.

    Notes
    -----
    The bounds follow from the other fields whenever one is made, so none can hold another one's.
    """

    mechanism: Mechanism
    attacker: AttackerModel
    cells: int | None = None
    context: Context | None = None
    derived_from: Mechanism | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        choice("protects", self.protects, get_args(Protects))
        if self.cells is not None:
            object.__setattr__(self, "cells", whole_number("cells", self.cells, least=1))
            if isinstance(self.mechanism, Count):
                raise ArgumentError("cells is how many cells a histogram declares; a count has none: leave it out.")
        if self.derived_from is not None and not determines(self.derived_from, self.mechanism):
            raise ArgumentError("derived_from must be a finer display of the mechanism, which determines its table.")
        certified = self.certified_mechanism
        find = bounds_of if cells_per_unit(certified) == 1 else rules.bounds_of
        applicable = find(certified, self.attacker, self.protects, self.cells)
        if not applicable.partial and applicable.worst is None:
            raise self._refused(applicable.obstacles, self._declares)
        if isinstance(applicable.worst, Leaked) and self.context is not None and self.context.where is not None:
            raise NotCertifiableError(
                f"a count of {self.context.where} is not the number of people present: which cell a person is in may "
                "decide whether she is counted. Count everybody, without where; or leave the total out of the leakage, "
                "where it is not known, and use protects='presence'."
            )
        object.__setattr__(self, "_promise", applicable)
        object.__setattr__(self, "cells", applicable.cells)

    @property
    def certified_mechanism(self) -> Mechanism:
        """The mechanism that the numbers are about: where the table is derived, that of the one it follows from."""
        return self.derived_from or self.mechanism

    @property
    def _declares(self) -> bool:
        """Whether the cells are known to be declared, and not found in the data."""
        return self.cells is not None or (self.context is not None and self.context.cells == "declared")

    def _refused(self, obstacles: tuple[str, ...], declared: bool) -> NotCertifiableError:
        return NotCertifiableError(
            refusal(self.certified_mechanism, self.attacker, self.protects, obstacles, declared=declared)
        )

    def derived(self, mechanism: Mechanism) -> ReleaseCertificate:
        """Return the certificate of a coarser display of the same table, `mechanism`, which follows from it."""
        return replace(self, mechanism=mechanism, derived_from=self.certified_mechanism)

    def as_published(self) -> ReleaseCertificate:
        """Return the certificate of the table that this one is derived from; itself where it is not."""
        return replace(self, mechanism=self.certified_mechanism, derived_from=None) if self.derived_from else self

    @property
    def leakage(self) -> tuple[Leakage, ...]:
        """Everything known, or leaked, beside the release: the attacker's."""
        return self.attacker.leakage

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions about the attacker, then about leakages, in words."""
        return (*self.assumed, *leaking(self.leakage))

    @property
    def attackers(self) -> tuple[OfSome, ...]:
        """The attackers that it rests on, each with the number of releases that it is about."""
        whom = (against(theorem, self.attacker) for theorem in self.partial_theorems)
        return tuple(OfSome(text, 1, 1) for text in dict.fromkeys(whom))

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions about the attacker; of what noise gives against anyone only where that is all there is."""
        theorems = self.partial_theorems or self.theorems
        return tuple(dict.fromkeys(text for theorem in theorems for text in assumptions(theorem, self.attacker)))

    @property
    def own_limits(self) -> Iterator[str]:
        """The limits of the statement that are true whatever stands beside it."""
        cells = "" if self._is_one_number else declared_cells(self.mechanism)
        own = (cells, following(self.mechanism, self.attacker), depending(self.attacker))
        yield from filter(None, (*own, self._derivation))
        yield from (*(() if self.context is None else self.context.facts()), *self.caveats)

    @property
    def limits(self) -> tuple[str, ...]:
        """The limits of the statement: the facts of its publication, then the caveats."""
        beside = (*given(self.leakage), *filter(None, [self._derivation]))
        if len(self.attackers) > 1:
            beside = (_ALL_DECLARED, *beside)
        if self.context is None:
            return (*beside, *self.caveats)
        facts = self.context.limits(
            theorems=self.theorems,
            noised=self.mechanism.noise is not None,
            partial=self.has_partial_knowledge,
            leaks=tuple(leak.name for leak in self.leakage),
        )
        return (*beside, *facts, *self.caveats)

    @property
    def _derivation(self) -> str | None:
        if self.derived_from is None:
            return None
        return (
            "This table follows from another display of it that is published, and nothing is charged for it; the "
            f"numbers are those of both. Of that one: {suppression(self.derived_from)}"
        )

    def in_context(self, context: Context) -> ReleaseCertificate:
        """Return the same certificate as that of one publication, whose facts `context` holds."""
        return replace(self, context=context)

    def worst_case_only(self) -> ReleaseCertificate:
        """Return what stands when other releases about the same people take the attacker's uncertainty away.

        Raises
        ------
        NotCertifiableError
            If no noise gives a guarantee against any attacker.
        """
        return replace(self, attacker=self.attacker.against_anyone())

    def extent(self, delta: float = 1e-6) -> tuple[str, ...]:
        """Return the sentences of `protection` at `delta`; the first is a `Protection` where something is hidden."""
        theorem = self._leading(probability("delta", delta)).theorem
        return protection(self.mechanism, self.protects, theorem, self.attacker, one_number=self._is_one_number)

    def sentence(self, delta: float = 1e-6) -> Worded:
        """Return the guarantee at `delta`, its assumptions and its limits, in plain English."""
        target = probability("delta", delta)
        stated = self.stated(target)
        if stated is not self:
            bare = replace(stated, caveats=())
            others = dict.fromkeys(text for text in (_ALL_DECLARED, *self.limits) if text not in bare.limits)
            return joined_texts((bare.sentence(target), *others))
        parts, epsilon = list[str](), self._partial.epsilon(target)
        if self.partial_bounds:
            leading = self._leading(target)
            whom = against(leading.theorem, self.attacker)
            parts.append(capital(promised(Guarantee((leading,)), epsilon, target, whom)))
        noise = self.worst_case.parameters if not parts else self.against_anyone(target)
        if noise is not None:
            if not parts or epsilon >= self.worst_case.epsilon(target):
                parts.insert(0, Worded(lambda say: f"Private at {say.pair(*noise)} against {self.anyone}."))
            else:
                parts.append(Worded(lambda say: f"Against {self.anyone}, the noise alone gives {say.pair(*noise)}."))
        return joined_texts((*parts, *self.extent(target), *self.limits))

    @property
    def _is_one_number(self) -> bool:
        """Whether it is about a sum that is known to have no cells."""
        return isinstance(self.mechanism, Sum) and self.context is not None and self.context.cells is None

    def _least_delta(self) -> float:
        """Return the δ that is left at an ε beyond any use."""
        if self.worst_case_bound is not None:
            least = self.worst_case_bound.parameters[1]
            if not self.partial_bounds or rounded_up(least) != "1":
                return least
        return float(self.delta(_MAX_EPSILON))

    def _leading(self, delta: float) -> Bound:
        """Return the bound that gives the number stated at `delta`."""
        bounds = self._partial.bounds or self._bounds
        if len(bounds) == 1:
            return bounds[0]
        epsilon = self._partial.epsilon(delta)
        point = np.array([1.0 if epsilon == math.inf else epsilon])
        return min(bounds, key=lambda bound: float(bound.certified(point)[0]))

    def _by_noise(self) -> ReleaseCertificate:
        own = self.attacker
        return replace(self, attacker=replace(own.against_anyone(), dependent=own.dependent, secret=own.secret))

    def _bracket(self, epsilons: Array) -> tuple[Array, Array]:
        partial, worst = self.partial_bounds, self.worst_case_bound
        if epsilons.size > _MAX_CACHED_POINTS:
            return bracketed(partial, worst, epsilons)
        attained, certified = _remembered(partial, worst, tuple(epsilons.tolist()))
        return attained.copy(), certified.copy()

    def _document(self) -> dict[str, Any]:
        if self.context is None:
            return Certificate._document(self)
        own = {"context": self.context.to_dict(), "sentence": self.sentence()}
        return {**_document_of(replace(self, context=None)), **own}

    def draft(self) -> ReleaseCertificate:
        """Return the certificate of no publication, whose text says what it is about, without numbers: they take long.

        The texts of a day's drafts are those of the day before.
        """
        bare = replace(self, context=None)
        return bare._with_text(_draft_of(bare))

    def _subject(self) -> dict[str, Any]:
        return {
            "mechanism": mechanism_to_dict(self.mechanism),
            **({} if self.derived_from is None else {"derived_from": mechanism_to_dict(self.derived_from)}),
            "attacker": self.attacker.to_dict(),
            **({} if self.cells is None else {"cells": self.cells}),
            "context": None if self.context is None else self.context.to_dict(),
            "steps": suppression(self.mechanism),
        }


def certify(
    mechanism: Mechanism,
    attacker: AttackerModel | None = None,
    *,
    protects: Protects = "presence",
    cells: int | None = None,
) -> ReleaseCertificate:
    """Certify what publishing `mechanism` promises against `attacker`.

    Parameters
    ----------
    mechanism : Count, Histogram or Sum
    attacker : AttackerModel, optional
        May be left out where there is noise: what it gives holds against anybody.
    protects : {"presence", "value"}, default "presence"
        The difference between the target's two lives: being counted (or there) or not, or, for histograms, which of
        two published cells the target is in; for sums, which cells, and what the target adds there.
    cells : int, optional
        How many cells a histogram declares, as a release says of its own. Of few cells less can be told: one is a
        count, and nobody is in more. None: the numbers hold for any table.

    Returns
    -------
    ReleaseCertificate

    Raises
    ------
    NotCertifiableError
        If there is neither a partial-knowledge nor a worst-case guarantee; the message says why and gives the
        nearest choices that have one, with numbers.
    ArgumentError
        If an argument is malformed, the mechanism cannot protect what is asked, or so many cells leave no room for
        `p_min`.
    """
    mechanism_name(mechanism)
    certificate = certify_again(mechanism, attacker_of(mechanism, attacker), protects=protects, cells=cells)
    if cells is not None and isinstance(mechanism, Histogram):
        certificate.attacker.check_cells(int(cells), mechanism.cells_per_unit)
    return certificate


def certify_again(
    mechanism: Mechanism, attacker: AttackerModel, *, protects: Protects, cells: int | None
) -> ReleaseCertificate:
    """Certify what is promised against another attacker than the declared one; raise as `certify` does.

    Of one who knows less, all cells of a table may ask more than there is.
    """
    certificate = ReleaseCertificate(mechanism=mechanism, attacker=attacker, protects=protects, cells=cells)
    if rounded_up(certificate._least_delta()) == "1":
        why = "what holds for it has delta = 1 at every epsilon, which promises nothing"
        raise certificate._refused((why,), cells is not None)
    return certificate


def attacker_of(mechanism: Mechanism, attacker: object) -> AttackerModel:
    """Return the attacker; where none is declared, and noise asks for none, one of whom nothing is assumed."""
    if attacker is None and mechanism.noise is None:
        raise ArgumentError(
            "attacker is needed without noise: write pkdp.AttackerModel(p_max=…) with a number that you can argue, or "
            "add noise, which needs no attacker."
        )
    return read_attacker(attacker)


# A job that runs every day states the same numbers again and again.
@functools.lru_cache(maxsize=64)
def _remembered(partial: tuple[Applied, ...], worst: Any, epsilons: tuple[float, ...]) -> tuple[Array, Array]:
    return bracketed(partial, worst, np.array(epsilons))


@functools.lru_cache(maxsize=64)
def _document_of(certificate: ReleaseCertificate) -> dict[str, Any]:
    return certificate._document()


@functools.lru_cache(maxsize=64)
def _draft_of(bare: ReleaseCertificate) -> str:
    about = {"library": {}, **bare._subject(), "protects": bare.protects, "caveats": [], "grid": []}
    return json.dumps({"schema": SCHEMA, **about})


def _certificate_from_document(document: Mapping[str, Any]) -> ReleaseCertificate:
    """Certify again what the JSON document of a release certificate is about."""
    finer, context = document.get("derived_from"), document.get("context")
    return ReleaseCertificate(
        mechanism=mechanism_from_dict(document["mechanism"]),
        attacker=AttackerModel.from_dict(document["attacker"]),
        protects=document["protects"],
        cells=document.get("cells"),
        context=None if context is None else Context.from_dict(context),
        derived_from=None if finer is None else mechanism_from_dict(finer),
    )


READERS["mechanism"] = _certificate_from_document


def among_others(certificate: Certificate) -> Certificate:
    """Return what a certificate, or a total, says where its cells are some of those of one larger histogram."""
    if isinstance(certificate, ReleaseCertificate):
        # In these cells nobody is in more than there are.
        certificate = certificate.as_published()
        return replace(certificate, mechanism=within_table(certificate.mechanism, certificate.cells), cells=None)
    total = cast("Any", certificate)
    return cast("Certificate", replace(total, parts=tuple((among_others(part), times) for part, times in total.parts)))


def release_certificate(text: str) -> ReleaseCertificate:
    """Read the certificate of one release back; see `Certificate.from_json`.

    Raises `ArgumentError` if the text is not a certificate, or that of several releases together.
    """
    certificate = Certificate.from_json(text)
    if not isinstance(certificate, ReleaseCertificate):
        raise ArgumentError("the certificate is one of several releases together; one of a single release is needed.")
    return certificate


@dataclass(frozen=True, slots=True)
class Target:
    """The least that a release has to promise; one that promises less is refused before any data are read.

    Parameters
    ----------
    epsilon : float, optional
        The largest ε at `delta` that is published. None: any that is finite.
    delta : float, default 1e-6

    Raises
    ------
    ArgumentError
        If `epsilon` is no finite number of at least 0, or `delta` is not above 0 and below 1.

    Notes
    -----
    The certificate's best promise counts: against the declared attacker or against anybody.
    """

    epsilon: float | None = None
    """The largest ε at this delta; any when left out."""
    delta: float = field(default=1e-6, metadata={"examples": [1e-6]})
    """The delta at which it is measured."""

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", loss("epsilon of a target", self.epsilon, limit=True))
        delta = probability("delta of a target", self.delta, limit=True)
        if not 0.0 < delta < 1.0:
            raise ArgumentError(
                "delta of a target must be above 0 and below 1: a threshold always leaves some, say 1e-9."
            )
        object.__setattr__(self, "delta", delta)

    def hold(self, certificate: ReleaseCertificate) -> None:
        """Refuse a `certificate` that promises less.

        Raises
        ------
        NotCertifiableError
            Naming what is certified, and the nearest choices that reach the target, and epsilon = 1 at delta = 1e-6.
        """
        limit = math.inf if self.epsilon is None else self.epsilon
        noise, _ = certificate.worst_case.parameters or (math.inf, 1.0)
        # What noise gives against anybody takes no search.
        by_noise = noise < math.inf and noise <= limit and certificate.worst_case.delta(noise) <= self.delta
        epsilon, delta = noise if by_noise else certificate.epsilon(self.delta), rounded_up(self.delta)
        if epsilon <= limit and epsilon < math.inf:
            return
        if epsilon < math.inf:
            why = f"epsilon = {rounded_up(epsilon)} at delta = {delta} is above the target, epsilon = {self.epsilon!r}"
        else:
            least = rounded_up(float(certificate.delta(1.0)))
            why = f"no epsilon reaches the target, delta = {delta}; at epsilon = 1 it has delta = {least}"
        about = certificate.mechanism, certificate.attacker, certificate.protects
        raise NotCertifiableError(
            advised(
                f"The release promises too little: {why}.",
                *about,
                declared=certificate._declares,
                aim=(limit, self.delta),
                end=lambda say: say.no_target and f" To publish it all the same, say {say.no_target}.",
            )
        )


Asked = Target | Literal["default"] | None
"""The values allowed: a target, None for none, or ``"default"`` for the ledger's, without one `DEFAULT_TARGET`."""

DEFAULT_TARGET: Target | None = Target()
"""The target where nothing else is said."""


def read_target(target: object) -> Asked:
    """Return what was given, or raise `ArgumentError`."""
    if target is None or isinstance(target, Target):
        return target
    if target == "default":
        return "default"
    raise ArgumentError(
        f"target must be a Target or None, not {type(target).__name__}: write target=pkdp.Target(epsilon=2.0)."
    )
