"""Certificate: a certified guarantee that can be printed, stored, read back and checked again."""

from __future__ import annotations

import functools
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from pkdp_pipeline.certificates import codec
from pkdp_pipeline.certificates.codec import Difference, Steps
from pkdp_pipeline.certificates.sentences import OfSome, anyone, implies, known_exactly, stated_pair
from pkdp_pipeline.composition.part import Total
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import Leakage
from pkdp_pipeline.model.mechanisms import Protects
from pkdp_pipeline.model.wording import Worded, joined_texts, rounded_up
from pkdp_pipeline.plugins import view
from pkdp_pipeline.theorems.bound import Applied, Bound, Guarantee, WorstCase, bracketed, coarsest, epsilon_points
from pkdp_pipeline.theorems.numerics import EVALUATED, Array
from pkdp_pipeline.theorems.theorems import THEOREMS, Applicable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate(ABC):
    """The certified guarantee of one release, or of several together.

    Made by `certify` (a `ReleaseCertificate`), by `compose` (a `ComposedCertificate`), or read back by
    `from_json`.

    Attributes
    ----------
    protects : {"presence", "value"}
    caveats : tuple of str
        Further limits of the statement, in plain sentences; part of the certificate and of its sentence.

    Notes
    -----
    *Guarantee*: for every attacker the model admits and every ε ≥ 0, the hockey-stick divergence between what is
    released in the target's two lives, in either order, is at most ``delta(ε)``. *Rounding*: up, floating
    point included.
    """

    protects: Protects = "presence"
    caveats: tuple[str, ...] = ()
    _stored: str | None = field(default=None, init=False, repr=False, compare=False)
    _promise: Applicable | Total = field(init=False, repr=False, compare=False)

    @property
    def partial_bounds(self) -> tuple[Applied, ...]:
        """The bounds that rest on the attacker model."""
        return self._promise.partial

    @property
    def worst_case_bound(self) -> WorstCase | None:
        """The bound that holds against any attacker, given what leaks beside it."""
        return self._promise.worst

    @property
    @abstractmethod
    def leakage(self) -> tuple[Leakage, ...]:
        """Everything known exactly, or leaked, about the same people beside the releases."""

    @property
    def if_declared(self) -> bool:
        """Whether the worst case rests on declarations."""
        return False

    @property
    def apart(self) -> Literal["", "release", "period"]:
        """The part that is protected, one at a time; empty where all of it is protected together."""
        return ""

    @property
    def anyone(self) -> str:
        """The attackers that the worst case covers, in words; where it rests on declarations, if they are true."""
        return anyone(known_exactly(self.leakage), if_declared=self.if_declared)

    @property
    @abstractmethod
    def attackers(self) -> tuple[OfSome, ...]:
        """The attackers that it rests on, each with the number of releases that it is about."""

    @property
    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions, in words."""

    @property
    @abstractmethod
    def limits(self) -> tuple[str, ...]:
        """The limits of the statement, in plain sentences."""

    @abstractmethod
    def extent(self, delta: float = 1e-6) -> tuple[str, ...]:
        """Return the sentences of `protection` at `delta`; the first is a `Protection` where something is hidden."""

    def protection(self, delta: float = 1e-6) -> str:
        """Return what the statement at `delta` protects and what it does not, in plain English."""
        return joined_texts(self.extent(delta))

    @abstractmethod
    def sentence(self, delta: float = 1e-6) -> Worded:
        """Return the guarantee at `delta`, its assumptions and its limits, in plain English."""

    @abstractmethod
    def _by_noise(self) -> Certificate:
        """Return what noise alone gives: the same against anyone, with all that is not protected."""

    @abstractmethod
    def _subject(self) -> dict[str, Any]:
        """Return the fields that say what is certified; the numbers follow from them."""

    @property
    def has_partial_knowledge(self) -> bool:
        """Whether some bound rests on the attacker model; if not, only the worst-case guarantee stands."""
        return bool(self.partial_bounds)

    @property
    def worst_case(self) -> Guarantee:
        """The guarantee against any attacker: ``delta`` is 1.0 and ``epsilon`` is inf where there is none."""
        worst = self.worst_case_bound
        return Guarantee(()) if worst is None else Guarantee((worst,), worst.parameters)

    def against_anyone(self, delta: float = 1e-6) -> tuple[float, float] | None:
        """Return the pair (ε, δ) that is named at `delta` against any attacker; None where nothing is promised."""
        pair = self.worst_case.parameters
        return None if pair is None or pair[0] == float("inf") or rounded_up(pair[1]) == "1" else pair

    def stated(self, delta: float = 1e-6) -> Certificate:
        """Return what is stated at `delta`: this; where noise alone says as much against anyone, what that gives."""
        noise, partial = self.against_anyone(delta) if self.has_partial_knowledge else None, self._partial
        implied = noise is not None and implies(noise, stated_pair(partial, partial.epsilon(delta), delta))
        return self._by_noise() if implied else self

    @property
    def theorems(self) -> tuple[str, ...]:
        """The keys of the theorems the certificate rests on."""
        return tuple(dict.fromkeys(bound.theorem for bound in self._bounds))

    @property
    def partial_theorems(self) -> tuple[str, ...]:
        """The keys of the theorems that rest on what the attacker does not know."""
        return tuple(dict.fromkeys(bound.theorem for bound in self._partial.bounds))

    @property
    def _partial(self) -> Guarantee:
        return Guarantee(tuple(applied.bound for applied in self.partial_bounds))

    @property
    def _bounds(self) -> tuple[Bound, ...]:
        return (*self._partial.bounds, *filter(None, [self.worst_case_bound]))

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> Array: ...
    def delta(self, epsilon: ArrayLike) -> float | Array:
        """Return the certified δ at `epsilon`, the best of all bounds that hold.

        Parameters
        ----------
        epsilon : float or array of floats
            At least 0 and finite.

        Returns
        -------
        float or array of the same shape
            In [0, 1], never below the true privacy loss.

        Raises
        ------
        ArgumentError
            If an ε is negative, infinite or not a number.
        """
        return Guarantee(self._bounds).delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that is certified at `delta`, rounded up; `math.inf` when there is none.

        Parameters
        ----------
        delta : float in [0, 1]

        Returns
        -------
        float
            ``self.delta(self.epsilon(delta)) <= delta`` holds as evaluated, whenever it is finite.

        Raises
        ------
        ArgumentError
            If `delta` is not a probability.
        """
        return Guarantee(self._bounds).epsilon(delta)

    @overload
    def delta_bounds(self, epsilon: float) -> tuple[float, float]: ...
    @overload
    def delta_bounds(self, epsilon: ArrayLike) -> tuple[Array, Array]: ...
    def delta_bounds(self, epsilon: ArrayLike) -> tuple[float, float] | tuple[Array, Array]:
        """Return (attained, certified) δ: some declared attacker reaches the first, none exceeds the second.

        Parameters
        ----------
        epsilon : float or array of floats
            At least 0 and finite.

        Returns
        -------
        tuple of two floats or arrays
            The attained side is 0 where no attack on the release as a whole has been computed. Where the noise alone is
            certified, anyone at all is an attacker, and the attained side is theirs.
        """
        points, scalar = epsilon_points(epsilon)
        attained, certified = self._bracket(points.ravel())
        if scalar:
            return float(attained[0]), float(certified[0])
        return attained.reshape(points.shape), certified.reshape(points.shape)

    def _bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) δ at each ε."""
        return bracketed(self.partial_bounds, self.worst_case_bound, epsilons)

    def rounding(self, epsilons: Array) -> tuple[Array, Array]:
        """Return how far `delta_bounds` at `epsilons` may be rounded, as shares; see `theorems.bound.Bound`."""
        certified = Guarantee(self._bounds).rounding(epsilons)
        attacks = [applied.attack for applied in self.partial_bounds if applied.attack is not None]
        # Where more would be attained than is certified, the certified side stands in both places.
        return np.maximum(coarsest(attacks if self.partial_bounds else self._bounds, epsilons)[0], certified), certified

    def with_caveats(self, *sentences: str) -> Self:
        """Return the same certificate with further limits stated.

        Parameters
        ----------
        *sentences : str
            Plain sentences; they become part of `caveats` and of the sentence.

        Raises
        ------
        ArgumentError
            If one is not a non-empty text.
        """
        if not all(isinstance(sentence, str) and sentence.strip() for sentence in sentences):
            raise ArgumentError("caveats must be sentences: non-empty texts.")
        return replace(self, caveats=(*self.caveats, *sentences))

    def to_json(self) -> str:
        """Return the certificate as canonical JSON; a certificate read from JSON keeps its stored numbers."""
        return self._stored if self._stored is not None else json.dumps(self._document(), sort_keys=True)

    def written(self) -> Self:
        """Return the same certificate with its JSON text at hand, as one that was read back has it."""
        return self if self._stored is not None else replace(self)._with_text(self.to_json())

    def _with_text(self, text: str) -> Self:
        object.__setattr__(self, "_stored", text)
        return self

    def _document(self) -> dict[str, Any]:
        attained, certified = self._bracket(np.array(_GRID))
        return {
            "schema": codec.SCHEMA,
            "library": codec.LIBRARY,
            **self._subject(),
            "protects": self.protects,
            "theorems": [
                {"key": key, "title": THEOREMS[key].title, "citation": THEOREMS[key].citation} for key in self.theorems
            ],
            "assumptions": list(self.assumptions),
            "caveats": list(self.caveats),
            "grid": _points(epsilon=_GRID, attained=attained.tolist(), delta=certified.tolist()),
            "worst_case": self._worst_case_document(),
            "sentence": self.sentence(),
        }

    def _worst_case_document(self) -> dict[str, Any] | None:
        """Return the guarantee against any attacker, with its δ at each ε; None where there is none."""
        if self.worst_case_bound is None:
            return None
        epsilon, delta = self.worst_case_bound.parameters
        grid = _points(epsilon=_GRID, delta=self.worst_case.delta(np.array(_GRID)).tolist())
        return {"epsilon": epsilon, "delta": delta, "grid": grid}

    @staticmethod
    def from_json(text: str) -> Certificate:
        """Read a certificate back. Its numbers are recomputed when asked for; `verify` compares the stored ones.

        Parameters
        ----------
        text : str
            The text that `to_json` returned.

        Raises
        ------
        ArgumentError
            If the text is not a certificate of a version this library reads.
        NotCertifiableError, NoEvidenceError
            If nothing can be certified for what it names.
        """
        document = codec.parsed(text)
        read: Certificate = codec.READERS["parts" if "parts" in document else "mechanism"](document)
        caveats = tuple(str(caveat) for caveat in document["caveats"])
        return replace(read, caveats=caveats)._with_text(json.dumps(document, sort_keys=True))

    def verify(self, *, any_version: bool = False) -> bool:
        """Recompute the certificate and compare every number and sentence with the stored ones.

        Numbers may differ by what processors round differently, which follows from each bound's own error budget
        (`docs/numerics.md`, section 6). A stored number that promises less is true, only weaker than necessary.

        Parameters
        ----------
        any_version : bool, default False
            Whether only the numbers are compared where another version of the library wrote the certificate.

        Returns
        -------
        bool
            True. A number that promises more, or another word, raises, so that it cannot be overlooked.

        Raises
        ------
        ArgumentError
            If a stored number or sentence is not what the certificate is about gives, or its sentences are those of
            another version.
        """
        stored = json.loads(self.to_json())
        foreign = not codec.is_ours(stored)
        if foreign and not any_version:
            raise ArgumentError(
                "the certificate was written by another version of pkdp_pipeline, whose wording this one cannot check: "
                "verify it with the version that its field 'library' names."
            )
        deviations = self.differences(stored)
        codec.refuse_altered([difference for difference in deviations if not (foreign and codec.is_word(difference))])
        return True

    def differences(
        self, stored: Mapping[str, Any], *, path: str = "certificate", skip: Collection[str] = frozenset()
    ) -> list[Difference]:
        """Return where a document of this version is not what any processor writes for this certificate.

        `stored` is the document, `path` names it in what is returned, and keys in `skip` are not compared.
        """
        again = replace(self)  # which is computed from what it is about

        @functools.cache
        def shares() -> dict[Steps, Array]:
            attained, certified = again.rounding(np.array(_GRID))
            worst = again.worst_case.rounding(np.array(_GRID))
            return {("attained",): attained, ("delta",): certified, ("worst_case", "delta"): worst}

        def rounding(steps: Steps) -> float:
            """Return the share by which a number of the document may differ on another processor."""
            match steps:
                case (*above, "grid", int(place), "attained" | "delta" as name):
                    return float(shares()[*above, name][place])
            return EVALUATED

        return codec.differences(path, stored, again._document(), skip=skip, rounding=rounding)

    def plot(self, *, delta: float = 1e-6, ax: Axes | None = None) -> Axes:
        """Draw the certified δ against ε, with what attackers attain and what the noise alone guarantees.

        Parameters
        ----------
        delta : float, default 1e-6
            The δ that is marked, with the ε certified there.
        ax : matplotlib.axes.Axes, optional
            Where to draw. None: in a new figure, which a notebook shows where it is a cell's last value;
            ``certificate.plot().figure.savefig("guarantee.png")`` saves it.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ConfigError
            If matplotlib is not installed.
        """
        drawn: Axes = view("plot.certificate")(self, delta=delta, axes=ax)
        return drawn

    def __str__(self) -> str:
        return self.sentence()

    def _repr_html_(self) -> str:
        return str(view("statement.html")(self))


def _points(**columns: Sequence[float]) -> list[dict[str, float]]:
    """Return columns of numbers as a list of points."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
