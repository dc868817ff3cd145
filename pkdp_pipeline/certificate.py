"""Certificate: the guarantee of one release, computed from mechanism × attacker, that can be checked again."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from pkdp_pipeline.arguments import choice, probability
from pkdp_pipeline.attacker import AttackerModel
from pkdp_pipeline.certificate_json import SCHEMA, compare, parsed
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.guarantee import Guarantee, epsilon_points
from pkdp_pipeline.mechanisms import Mechanism, mechanism_from_dict, mechanism_name, mechanism_to_dict
from pkdp_pipeline.profiles import THEOREMS, Applied, Bound, Protects, applicable
from pkdp_pipeline.profiles.rounding import Array
from pkdp_pipeline.profiles.worst_case import NoiseCurve
from pkdp_pipeline.refusal import refusal
from pkdp_pipeline.sentences import against, assumptions, protection, rounded_up, suppression
from pkdp_pipeline.version import VERSION

__all__ = ["Certificate", "certify"]

_GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certified guarantee of one release. Made by `certify`, or read back by `from_json`.

    Attributes
    ----------
    mechanism : Count or Histogram
    attacker : AttackerModel
    protects : {"presence", "value"}
    caveats : tuple of str
        What else limits the statement, in plain sentences; part of the certificate and of its sentence.

    Notes
    -----
    *Guarantee*: for every attacker the model admits and every ε ≥ 0, the hockey-stick divergence between the
    releases of the target's two lives, in either order, is at most ``delta(ε)``. *Rounding*: up, floating
    point included.
    """

    mechanism: Mechanism
    attacker: AttackerModel
    protects: Protects
    caveats: tuple[str, ...] = ()
    _partial: tuple[Applied, ...] = field(default=(), repr=False, compare=False)
    _worst: NoiseCurve | None = field(default=None, repr=False, compare=False)
    _stored: str | None = field(default=None, repr=False, compare=False)

    @property
    def has_partial_knowledge(self) -> bool:
        """Whether some bound rests on the attacker model; if not, only the worst-case guarantee stands."""
        return bool(self._partial)

    @property
    def worst_case(self) -> Guarantee:
        """The guarantee against any attacker: ``delta`` is 1.0 and ``epsilon`` is inf where there is none."""
        if self._worst is None:
            return Guarantee(())
        return Guarantee((self._worst,), self._worst.parameters)

    @property
    def theorems(self) -> tuple[str, ...]:
        """The keys of the theorems the certificate rests on."""
        return tuple(dict.fromkeys(bound.theorem for bound in self._bounds))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed about the attacker, in words."""
        listed = (text for bound in self._bounds for text in assumptions(bound.theorem, self.attacker))
        return tuple(dict.fromkeys(listed))

    @property
    def _bounds(self) -> tuple[Bound, ...]:
        worst: tuple[Bound, ...] = () if self._worst is None else (self._worst,)
        return (*(applied.bound for applied in self._partial), *worst)

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

        ``self.delta(self.epsilon(delta)) <= delta`` holds as evaluated, whenever the result is finite.
        """
        return Guarantee(self._bounds).epsilon(delta)

    @overload
    def delta_bounds(self, epsilon: float) -> tuple[float, float]: ...
    @overload
    def delta_bounds(self, epsilon: ArrayLike) -> tuple[Array, Array]: ...
    def delta_bounds(self, epsilon: ArrayLike) -> tuple[float, float] | tuple[Array, Array]:
        """Return (attained, certified) δ: some declared attacker reaches the first, none exceeds the second.

        The attained side is 0 where no attack on the release as a whole has been computed.
        """
        points, scalar = epsilon_points(epsilon)
        flat = points.ravel()
        attained, certified = np.zeros(flat.size), np.ones(flat.size)
        for applied in self._partial:
            lower, upper = applied.bound.bracket(flat)
            certified = np.minimum(certified, upper)
            if applied.attack is not None:
                if applied.attack is not applied.bound:
                    lower, _ = applied.attack.bracket(flat)
                attained = np.maximum(attained, lower)
        if self._worst is not None:
            lower, upper = self._worst.bracket(flat)
            certified = np.minimum(certified, upper)
            if not self._partial:
                attained = np.maximum(attained, lower)
        attained = np.minimum(attained, certified)
        if scalar:
            return float(attained[0]), float(certified[0])
        return attained.reshape(points.shape), certified.reshape(points.shape)

    def with_caveats(self, *sentences: str) -> Certificate:
        """Return the same certificate with further limits stated."""
        if not all(isinstance(sentence, str) and sentence.strip() for sentence in sentences):
            raise ArgumentError("caveats must be sentences: non-empty texts.")
        return replace(self, caveats=(*self.caveats, *sentences), _stored=None)

    def sentence(self, delta: float = 1e-6) -> str:
        """Return the guarantee at `delta`, its assumptions and its limits, in plain English."""
        target = probability("delta", delta)
        parts, theorem = [], "noise"
        if self._partial:
            epsilon = Guarantee(tuple(applied.bound for applied in self._partial)).epsilon(target)
            statement, theorem = self._partial_statement(target, epsilon)
            parts.append(statement)
        if self._worst is not None:
            most, least = (rounded_up(value) for value in self._worst.parameters)
            if parts and epsilon < self.worst_case.epsilon(target):
                parts.append(
                    f"Against anyone at all, whatever they know, the noise alone gives ε = {most}, δ = {least}."
                )
            else:
                parts.insert(0, f"Private at ε = {most}, δ = {least} against anyone at all, whatever they know.")
        parts.append(protection(self.mechanism, self.protects, theorem))
        return " ".join((*parts, *self.caveats))

    def _partial_statement(self, delta: float, epsilon: float) -> tuple[str, str]:
        """Return the statement against the declared attacker and the theorem that gives its number."""
        bounds = tuple(applied.bound for applied in self._partial)
        point = 1.0 if epsilon == math.inf else epsilon
        leading = min(bounds, key=lambda bound: float(bound.bracket(np.array([point]))[1][0]))
        whom = against(leading.theorem, self.attacker)
        if epsilon == math.inf:
            least = rounded_up(float(leading.bracket(np.array([point]))[1][0]))
            reach = f"no ε reaches δ = {rounded_up(delta)}"
            if least == "1":
                return f"No protection is certified at ε = 1 against {whom} ({reach}).", leading.theorem
            return f"Private at ε = 1, δ = {least} against {whom} ({reach}).", leading.theorem
        return f"Private at ε = {rounded_up(epsilon)}, δ = {rounded_up(delta)} against {whom}.", leading.theorem

    def to_json(self) -> str:
        """Return the certificate as canonical JSON; a certificate read from JSON keeps its stored numbers."""
        return self._stored if self._stored is not None else json.dumps(self._document(), sort_keys=True)

    def _document(self) -> dict[str, Any]:
        lower, upper = self.delta_bounds(np.array(_GRID))
        worst = None
        if self._worst is not None:
            epsilon, delta = self._worst.parameters
            curve = self.worst_case.delta(np.array(_GRID))
            worst = {
                "epsilon": epsilon,
                "delta": delta,
                "grid": [{"epsilon": e, "delta": d} for e, d in zip(_GRID, curve.tolist(), strict=True)],
            }
        return {
            "schema": SCHEMA,
            "library": {"name": "pkdp_pipeline", "version": VERSION},
            "mechanism": mechanism_to_dict(self.mechanism),
            "attacker": self.attacker.to_dict(),
            "protects": self.protects,
            "theorems": [
                {"key": key, "title": THEOREMS[key].title, "citation": THEOREMS[key].citation} for key in self.theorems
            ],
            "assumptions": list(self.assumptions),
            "steps": suppression(self.mechanism),
            "caveats": list(self.caveats),
            "grid": [
                {"epsilon": e, "attained": low, "delta": high}
                for e, low, high in zip(_GRID, lower.tolist(), upper.tolist(), strict=True)
            ],
            "worst_case": worst,
            "sentence": self.sentence(),
        }

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate back. Its numbers are recomputed when asked for; `verify` compares the stored ones.

        Raises
        ------
        ArgumentError
            If the text is not a certificate of a version this library reads.
        NotCertifiableError
            If nothing can be certified for the mechanism and attacker it names.
        """
        document = parsed(text)
        fresh = certify(
            mechanism_from_dict(document["mechanism"]),
            AttackerModel.from_dict(document["attacker"]),
            protects=document["protects"],
        )
        caveats = tuple(str(caveat) for caveat in document["caveats"])
        return replace(fresh, caveats=caveats, _stored=json.dumps(document, sort_keys=True))

    def verify(self) -> bool:
        """Recompute the certificate and compare every number and sentence with the stored ones.

        Returns
        -------
        bool
            True. A difference raises, so that it cannot be overlooked.

        Raises
        ------
        ArgumentError
            If a stored number or sentence is not what the mechanism and the attacker give.
        """
        fresh = certify(self.mechanism, self.attacker, protects=self.protects).with_caveats(*self.caveats)
        if (self._partial, self._worst) != (fresh._partial, fresh._worst):
            raise ArgumentError("the certificate's bounds are not those of its mechanism and attacker: certify again.")
        compare("certificate", json.loads(self.to_json()), fresh._document())
        return True

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{epsilon:g}</td><td>{rounded_up(delta)}</td></tr>"
            for epsilon, delta in zip((0.1, 0.5, 1.0, 2.0), self.delta(np.array([0.1, 0.5, 1.0, 2.0])), strict=True)
        )
        titles = "; ".join(THEOREMS[key].title for key in self.theorems)
        return (
            f"<div><p>{escape(self.sentence())}</p><table><thead><tr><th>ε</th><th>δ at most</th></tr></thead>"
            f"<tbody>{rows}</tbody></table><p><small>{escape(titles)}</small></p></div>"
        )


def certify(mechanism: Mechanism, attacker: AttackerModel, *, protects: str = "presence") -> Certificate:
    """Certify what publishing `mechanism` promises against `attacker`.

    Parameters
    ----------
    mechanism : Count or Histogram
    attacker : AttackerModel
    protects : {"presence", "value"}, default "presence"
        What the target's two lives differ in: being counted (or there) or not, or, for histograms, which of
        two published cells the target is in.

    Returns
    -------
    Certificate

    Raises
    ------
    NotCertifiableError
        If there is neither a partial-knowledge nor a worst-case guarantee; the message says why and gives the
        nearest choices that have one, with numbers.
    ArgumentError
        If an argument is malformed, or the mechanism cannot protect what is asked.
    """
    mechanism_name(mechanism)
    if not isinstance(attacker, AttackerModel):
        raise ArgumentError(
            f"attacker must be an AttackerModel, not {type(attacker).__name__}: write pkdp.AttackerModel(p_max=0.1)."
        )
    aim = cast("Protects", choice("protects", protects, ("presence", "value")))
    found = applicable(mechanism, attacker, aim)
    if not found.partial and found.worst is None:
        raise NotCertifiableError(refusal(mechanism, attacker, aim, found.obstacles))
    return Certificate(mechanism, attacker, aim, _partial=found.partial, _worst=found.worst)
