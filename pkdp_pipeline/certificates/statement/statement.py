"""Statement: what a certificate says, as plain values; every page, notebook and report reads it from here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Self

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.sentences import named_pair
from pkdp_pipeline.model.arguments import probability
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.theorems import THEOREMS, Protects

__all__ = ["Statement"]

_EPSILONS = (0.1, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a certificate says.

    Attributes
    ----------
    sentence : str
        The guarantee in plain English.
    protects : {"presence", "value"}
    delta : float
        The δ that the sentence is about.
    epsilon : float
        The certified ε at it; `math.inf` where there is none.
    named : (float, float)
        (ε, δ) as they are named: `epsilon` and `delta`; or δ = 0, where that is certified at ε as it is shown.
    numbers : tuple of (float, float)
        Certified δ at a few ε, as (ε, δ).
    worst_case : (float, float) or None
        The pair (ε, δ) that the sentence names against anyone at all; None where there is none.
    assumptions : tuple of str
        What is assumed, one plain sentence each.
    limits : tuple of str
        What is protected and what is not, then what else limits the statement.
    theorems : tuple of (str, str)
        Title and citation of what it rests on.
    anyone : str
        Whom `worst_case` holds against, in words: anyone, given what may be known, if what was declared is true.

    Notes
    -----
    *Rounding*: every number is certified, none is below the truth; texts show them rounded up.
    """

    sentence: str
    protects: Protects
    delta: float
    epsilon: float
    named: tuple[float, float]
    numbers: tuple[tuple[float, float], ...]
    worst_case: tuple[float, float] | None
    assumptions: tuple[str, ...]
    limits: tuple[str, ...]
    theorems: tuple[tuple[str, str], ...]
    anyone: str = "anyone at all, whatever they know"

    @classmethod
    def of(cls, certificate: Certificate, delta: float = 1e-6) -> Self:
        """Return what `certificate` says at `delta`.

        Raises
        ------
        ArgumentError
            If `delta` is not in [0, 1].
        """
        target = probability("delta", delta)
        deltas = certificate.delta(np.array(_EPSILONS)).tolist()
        epsilon = certificate.epsilon(target)
        return cls(
            sentence=certificate.sentence(target),
            protects=certificate.protects,
            delta=target,
            epsilon=epsilon,
            named=named_pair(certificate, epsilon, target),
            numbers=tuple(zip(_EPSILONS, deltas, strict=True)),
            worst_case=_against_anyone(certificate, target),
            assumptions=certificate.assumptions,
            limits=_limits(certificate, target),
            theorems=tuple((THEOREMS[key].title, THEOREMS[key].citation) for key in certificate.theorems),
            anyone=certificate.anyone,
        )

    def to_html(self) -> str:
        """Return the statement as a fragment of HTML that takes its colours from the page it stands on."""
        rows = "".join(
            f'<tr><td style="{_CELL}">{rounded_up(epsilon)}</td><td style="{_CELL}">{rounded_up(delta)}</td></tr>'
            for epsilon, delta in self.numbers
        )
        head = f'<th scope="col" style="{_CELL}">ε</th><th scope="col" style="{_CELL}">δ at most</th>'
        return (
            f'<div style="max-width:48em;line-height:1.5"><p>{escape(self.sentence)}</p>'
            f"<p><strong>{escape(self._in_short())}</strong></p>"
            f'<table style="border-collapse:collapse;margin:0.5em 0"><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table><p>{escape(self._anyone())}</p>"
            f"{_folded('Assumes', self.assumptions)}{_folded('Protects, and does not protect', self.limits)}"
            f"{_folded('Rests on', (f'{title} ({citation})' for title, citation in self.theorems))}</div>"
        )

    def _in_short(self) -> str:
        small = rounded_up(self.delta)
        if self.epsilon == float("inf"):
            return f"No ε is certified at δ = {small}."
        return "ε = {} at δ = {}.".format(*map(rounded_up, self.named))

    def _anyone(self) -> str:
        if self.worst_case is None:
            return "Against somebody who knows everybody else, nothing is certified: the release has no noise for that."
        epsilon, delta = map(rounded_up, self.worst_case)
        return f"Against {self.anyone}: ε = {epsilon}, δ = {delta}."


_CELL = "text-align:right;padding:0.15em 1.2em 0.15em 0;border-bottom:1px solid currentColor"


def _folded(title: str, sentences: Iterable[str]) -> str:
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    if not listed:
        return ""
    return f'<details><summary style="cursor:pointer">{escape(title)}</summary><ul>{listed}</ul></details>'


def _against_anyone(certificate: Certificate, delta: float) -> tuple[float, float] | None:
    """Return the pair that the certificate's sentence names against any attacker."""
    if isinstance(certificate, ComposedCertificate):
        if certificate.rule == "single":
            return _against_anyone(certificate.parts[0][0], delta)
        epsilon = certificate.worst_case.epsilon(delta) if certificate.parts else float("inf")
        if epsilon < float("inf"):
            return named_pair(certificate.worst_case, epsilon, delta)
    pair = certificate.worst_case.parameters
    return None if pair is None or pair[0] == float("inf") or rounded_up(pair[1]) == "1" else pair


def _limits(certificate: Certificate, delta: float) -> tuple[str, ...]:
    listed = certificate.limits
    if isinstance(certificate, ComposedCertificate):
        if not certificate.parts:
            return listed
        if certificate.rule == "single":
            listed = (*certificate.parts[0][0].limits, *certificate.caveats)
        elif certificate.reason:
            listed = (f"Nothing rests on what an attacker does not know: {certificate.reason}.", *listed)
    return tuple(dict.fromkeys((certificate.protection(delta), *listed)))
