"""The total of several certificates, by the rule for the evidence declared: `compose`, `ComposedCertificate`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pkdp_pipeline.certificates import sentences
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import READERS
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, among_others
from pkdp_pipeline.certificates.sentences import OfSome
from pkdp_pipeline.composition.part import Part, Total, rests_on_own_periods
from pkdp_pipeline.composition.rules import assumed_beside, leakage_of, total_beside
from pkdp_pipeline.composition.same_people import table_part
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.model.attacker import Leakage
from pkdp_pipeline.model.evidence import (
    Evidence,
    SamePeople,
    SameTable,
    evidence_from_dicts,
    evidence_to_dicts,
    read_evidence,
)
from pkdp_pipeline.model.mechanisms import Protects
from pkdp_pipeline.model.wording import WITHIN, Worded, joined_texts, probability, spoken, whole_number

_MAX_TIMES = 10**9


def compose(
    certificates: Iterable[Certificate | tuple[Certificate, int]],
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> ComposedCertificate:
    """Return what several certificates promise together; rules, proofs and counterexamples: `docs/composition.md`.

    Parameters
    ----------
    certificates : iterable of Certificate, or of (Certificate, int)
        The parts; a pair says how often a part occurs. Composed certificates may be parts again.
    evidence : Evidence, list of Evidence, or None
        The declaration of how the parts depend on one another, `BoundedParticipation` alone or beside
        `IndependentGivenHabits` or `OneDayProtected`. None: only guarantees against any attacker are added up.

    Returns
    -------
    ComposedCertificate
        It protects what its parts protect; where presence and value parts are mixed, presence.

    Raises
    ------
    NoEvidenceError
        If noiseless parts cannot be added up with what is declared (the message names the choices), the parts are
        about different privacy units, or a statement about one day is to be added to others.
    ArgumentError
        If an argument is malformed.
    """
    if isinstance(certificates, Certificate) or not isinstance(certificates, Iterable):
        raise ArgumentError("certificates must be a list of certificates, or of (certificate, times).")
    often: dict[Certificate, int] = {}
    for part in certificates:
        certificate, times = part if isinstance(part, tuple) and len(part) == 2 else (part, 1)
        if not isinstance(certificate, Certificate):
            raise ArgumentError("certificates must be a list of certificates, or of (certificate, times).")
        often[certificate] = often.get(certificate, 0) + _number_of_times(times)
    declared = read_evidence(evidence)
    return ComposedCertificate(protects=_protected_by(often, declared), parts=tuple(often.items()), evidence=declared)


def promised_by(certificates: Sequence[ReleaseCertificate]) -> Certificate:
    """Return the total of the certificates of one table, which protects what the first does; of a single one, itself.

    Raises `NoEvidenceError` if what leaks beside them says nothing together.
    """
    return compose(certificates, SameTable()) if len(certificates) > 1 else certificates[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedCertificate(Certificate):
    """The joint promise of several releases; see `Certificate`. Made by `compose`.

    Attributes
    ----------
    parts : tuple of (Certificate, int)
        The different certificates and how often each occurs.
    evidence : tuple of Evidence
        The evidence declared so that they add up.
    """

    parts: tuple[tuple[Certificate, int], ...]
    evidence: tuple[Evidence, ...] = ()
    _facts: tuple[Part, ...] = field(init=False, repr=False, compare=False)
    _promise: Total = field(init=False, repr=False, compare=False)
    _leakage: tuple[Leakage, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.protects != _protected_by((part for part, _ in self.parts), self.evidence):
            raise ArgumentError("a total protects what its parts do: 'value' only where every part does.")
        one_day = tuple(item.key for item in self.evidence) == ("one_day_protected",)
        if not one_day and any(isinstance(part, ComposedCertificate) and not part.whole for part, _ in self.parts):
            raise NoEvidenceError(
                "a part protects one day of a person, and cannot be added to statements about everything a person did: "
                "compose its parts themselves, or declare OneDayProtected for all."
            )
        contexts = [release.context for part, _ in self.parts for release in releases_in(part)]
        if len({context.unit for context in contexts if context is not None}) > 1:
            raise NoEvidenceError(
                "the parts protect different privacy units, and what hides one says nothing about another: compose "
                "certificates of one unit."
            )
        parts, one_histogram = self.parts, any(item.makes_one_histogram for item in self.evidence)
        if one_histogram and self.releases > 1 and any(release.cells is not None for release in releases_in(self)):
            parts = tuple((among_others(part), times) for part, times in parts)
        # Of one table each certificate counts with all that it says, though some may protect more than the whole.
        facts = tuple(part_of(part, times, part.protects if self.is_table else self.protects) for part, times in parts)
        object.__setattr__(self, "_facts", facts)
        object.__setattr__(self, "_leakage", leakage_of(facts, self.evidence))
        object.__setattr__(self, "_promise", total_beside(facts, self.evidence))

    @property
    def rule(self) -> str:
        """The key of the rule by which the parts add up."""
        return self._promise.rule

    @property
    def is_table(self) -> bool:
        """Whether the parts are the certificates of one table."""
        return self.evidence == (SameTable(),)

    @property
    def releases(self) -> int:
        """How many releases were added up, those in parts that are totals themselves included."""
        return sum(times for _, times in tables_in(self))

    @property
    def whole(self) -> bool:
        """Whether all that a person did in the releases is protected, not one release's worth of it."""
        return self.rule != "one_day_protected"

    @property
    def limits(self) -> tuple[str, ...]:
        """The limits of the statement: who a person is and which rows count, the parts' caveats, the total's own."""
        own = map(str, self._said(lambda leaf: leaf.own_limits, self.releases))
        return tuple(dict.fromkeys((*sentences.given(self.leakage), *own, *self._caveats(), *self.caveats)))

    @property
    def of_some(self) -> tuple[OfSome, ...]:
        """The assumptions and limits that are true of some of the releases only."""
        listed = (*self._assumed(lambda leaf: leaf.assumed), *self._said(lambda leaf: leaf.own_limits, self.releases))
        return tuple(item for item in listed if item.number < item.releases)

    @property
    def attackers(self) -> tuple[OfSome, ...]:
        """The attackers that it rests on, each with the number of releases that it is about."""
        whom = self._assumed(lambda leaf: [item.text for item in leaf.attackers])
        return tuple(whom) if self.has_partial_knowledge else ()

    def _assumed(self, about: Callable[[ReleaseCertificate], Iterable[str]]) -> list[OfSome]:
        """Return what is said of the releases that assume something of an attacker."""
        # Exact totals, and what only noise protects, assume nothing of their own beside the others.
        assuming = sum(times for table, times in tables_in(self) if any(leaf.has_partial_knowledge for leaf in table))
        return self._said(lambda leaf: about(leaf) if leaf.has_partial_knowledge else (), assuming)

    def _caveats(self) -> Iterator[str]:
        """Yield the limits of parts that are totals themselves."""
        for part, _ in self.parts:
            if isinstance(part, ComposedCertificate):
                if part.rule == "bounded_sensitivity":
                    yield f"Where a bounded sensitivity was declared, {spoken(part._promise.protection, WITHIN)}"
                yield from (*part._caveats(), *part.caveats)

    def _said(self, about: Callable[[ReleaseCertificate], Iterable[str]], among: int) -> list[OfSome]:
        """Return what is said of the releases, and of how many of them; what is true of all of `among`, of all."""
        often: dict[str, int] = {}
        for table, times in tables_in(self):
            for text in dict.fromkeys(text for release in table for text in about(release)):
                often[text] = often.get(text, 0) + times
        every = self.releases
        return [OfSome(text, times if times < among else every, every) for text, times in often.items()]

    @property
    def reason(self) -> str:
        """Why there is no partial-knowledge total; empty where there is one."""
        return "" if self.has_partial_knowledge else self._promise.reason

    @property
    def leakage(self) -> tuple[Leakage, ...]:
        """Everything known, or leaked, beside any of the parts."""
        return self._leakage

    @property
    def if_declared(self) -> bool:
        """Whether the worst case rests on declarations."""
        return bool(_declared(self, numbers=False))

    @property
    def apart(self) -> Literal["", "release", "period"]:
        """The part that is protected, one at a time; empty where all of it is protected together."""
        if self.rule == "single":
            return self.parts[0][0].apart
        if self.whole or self.releases == 1:
            return ""
        # A part that is a total is protected as one: all that was published about the period.
        nested = any(isinstance(part, ComposedCertificate) and not part.is_table for part, _ in self.parts)
        return "period" if nested else "release"

    @property
    def theorems(self) -> tuple[str, ...]:
        """The keys of the rule and of the theorems the parts rest on."""
        own = (bound.theorem for bound in self._bounds)
        return tuple(dict.fromkeys((*own, *(key for part, _ in self.parts for key in part.theorems))))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The declarations about the releases, then the assumptions of each part."""
        listed = list(_declared(self, numbers=self.has_partial_knowledge))
        if len({part for part, _ in self.parts}) > 1 and not self.is_table:
            listed.append(sentences.FIXED_BEFOREHAND)
        listed += assumed_beside(self._facts, self.evidence, self.leakage)
        if not self.has_partial_knowledge:
            nothing = [sentences.NOTHING_ASSUMED] if self.parts else []
            return tuple(dict.fromkeys((*listed, *nothing, *sentences.leaking(self.leakage))))
        if self.releases > 1:
            conditional = (leaf.attacker for leaf in releases_in(self) if leaf.attacker.secret == "conditional")
            listed += map(sentences.same_in_all, conditional)
        assumed = map(str, self._assumed(lambda leaf: leaf.assumed))
        return tuple(dict.fromkeys((*listed, *assumed, *sentences.leaking(self.leakage))))

    def extent(self, delta: float = 1e-6) -> tuple[str, ...]:
        """Return the sentences of `protection` at `delta`; the first is a `Protection` where something is hidden."""
        return self.parts[0][0].extent(delta) if self.rule == "single" else (self._promise.protection,)

    def sentence(self, delta: float = 1e-6, *, below: Iterable[Certificate] = ()) -> Worded:
        """Return the guarantee at `delta`, what was declared and its limits, but for what those say it is `below`."""
        target = probability("delta", delta)
        if not self.parts:
            return joined_texts(("Nothing is published: private at ε = 0, δ = 0 against anyone at all.", *self.caveats))
        if self.rule == "single":
            return joined_texts((self.parts[0][0].sentence(target), *self.caveats))
        stated = self.stated(target)
        if stated is not self:
            others, own = "Other numbers of this certificate rest on all that was declared", self.extent(target)
            # The noise alone may protect more: presence, too, where the others are about the cell.
            less = own != stated.extent(target)
            rest = f"{others}, and with them {spoken(own[0], WITHIN)}" if less else f"{others}."
            return joined_texts((replace(stated, caveats=()).sentence(target), rest, *self.caveats))
        said = {text for certificate in below for text in (*certificate.assumptions, *certificate.limits)}
        one_of = {"": "", "release": "Any one of ", "period": "Any one period of "}[self.apart]
        releases = f"{self.releases} releases{'' if one_of else ' together'}"
        subject, statements = "1 release" if self.releases == 1 else f"{one_of}{releases}", list[str]()
        declared = sentences.in_words(_declared(self, numbers=self.has_partial_knowledge))
        if self.has_partial_knowledge:
            whom = self._against()
            if sentences.the_attacker_is(whom) in said:
                whom = "the attacker described above"
            promise = sentences.promised(self, self._partial.epsilon(target), target, whom)
            statements += [joined_texts((f"{subject}:", promise)), *declared]
        noise, whom = self.against_anyone(target), f"against {self.anyone}."
        pair = None if noise is None else Worded(lambda say: say.pair(*noise))
        if not statements:
            private = ("no protection is certified",) if pair is None else ("private at", pair)
            statements += [joined_texts((f"{subject}:", *private, whom)), *declared]
            if self.reason:
                statements.append(f"No part of it rests on what an attacker does not know: {self.reason}.")
        elif pair is not None:
            statements.append(joined_texts(("The noise alone gives", pair, whom)))
        of_each = {str(item): item.text for item in self.of_some}
        limits = (text for text in self.limits if of_each.get(text, text) not in said)
        return joined_texts((*statements, self._promise.protection, *limits))

    def against_anyone(self, delta: float = 1e-6) -> tuple[float, float] | None:
        """Return the pair (ε, δ) that is named at `delta` against any attacker; None where nothing is promised."""
        if self.rule == "single":
            return self.parts[0][0].against_anyone(delta)
        worst = self.worst_case
        epsilon = worst.epsilon(delta) if self.parts else math.inf
        return Certificate.against_anyone(self) if epsilon == math.inf else sentences.named_pair(worst, epsilon, delta)

    def _by_noise(self) -> ComposedCertificate:
        parts = [(part._by_noise(), times) for part, times in self.parts if part.worst_case_bound is not None]
        return compose(parts, self.evidence).with_caveats(*self.caveats)

    def _against(self) -> str:
        """Return whom the statement is about; a few descriptions at most, with how many releases each is about."""
        described = Counter[str]()
        for part, times in self.parts:
            release = part
            if isinstance(part, ComposedCertificate) and part.rule == "single":
                release = part.parts[0][0]  # a period's only release speaks for itself
            keys = release.partial_theorems
            if not isinstance(release, ReleaseCertificate) or len(keys) > 1:
                return sentences.against_several({}, one_of=self.is_table)
            described.update({sentences.against(key, release.attacker): times for key in keys})
        return sentences.against_several(described, one_of=self.is_table)

    def verify(self, *, any_version: bool = False) -> bool:
        """Recompute every part and the whole, and compare all numbers and sentences; see `Certificate.verify`."""
        for part, _ in self.parts:
            part.verify(any_version=any_version)
        return Certificate.verify(self, any_version=any_version)

    def _subject(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "evidence": evidence_to_dicts(self.evidence),
            "parts": [{"times": times, "certificate": json.loads(part.to_json())} for part, times in self.parts],
        }


def part_of(certificate: Certificate, times: int, aim: Protects) -> Part:
    """Return what composition rules need to know of a certificate in a total that is to protect `aim`."""
    release = certificate if isinstance(certificate, ReleaseCertificate) else None
    total = certificate if isinstance(certificate, ComposedCertificate) else None
    inside = () if total is None else total._facts
    known = [part.totals_known for part in inside] if release is None else [release.attacker.totals_known]
    part = Part(
        times=times,
        aim=aim,
        protects=certificate.protects,
        certified=certificate.partial_bounds,
        against_anyone=certificate.worst_case_bound,
        leakage=certificate.leakage,
        totals_known=frozenset.intersection(*known) if known else frozenset(),
        mechanism=None if release is None else release.mechanism,
        context=None if release is None else release.context,
        inside=inside,
    )
    return part if total is None or not total.is_table else table_part(part)


def _number_of_times(value: object) -> int:
    """Return how often a part occurs, checked."""
    number = whole_number("times", value, least=1)
    if number > _MAX_TIMES:
        raise ArgumentError(f"times must be at most {_MAX_TIMES}: more releases than that are not added up.")
    return number


def tables_in(certificate: Certificate) -> Iterator[tuple[tuple[ReleaseCertificate, ...], int]]:
    """Yield the certificates of each table, several under `SameTable`, and how often it occurs, at any depth."""
    if isinstance(certificate, ComposedCertificate) and certificate.is_table:
        yield tuple(release for part, _ in certificate.parts for release in releases_in(part)), 1
    elif isinstance(certificate, ComposedCertificate):
        for part, times in certificate.parts:
            yield from ((table, times * inside) for table, inside in tables_in(part))
    elif isinstance(certificate, ReleaseCertificate):
        yield (certificate,), 1


def releases_in(certificate: Certificate) -> Iterator[ReleaseCertificate]:
    """Yield the releases' own certificates, of parts of any depth."""
    return (release for table, _ in tables_in(certificate) for release in table)


def _protected_by(parts: Iterable[Certificate], evidence: tuple[Evidence, ...]) -> Protects:
    """Return what a total of these certificates protects: of one table what the first does; mixed ones presence.

    A value guarantee of noise, or of theorem B, is at least as strong as the presence guarantee.
    """
    listed = [part.protects for part in parts]
    if evidence == (SameTable(),) and listed:
        return listed[0]
    return "value" if set(listed) == {"value"} else "presence"


def _composed_from_document(document: Mapping[str, Any]) -> ComposedCertificate:
    """Compose again what the JSON document of a composed certificate is about."""
    parts = []
    for part in document["parts"]:
        if not isinstance(part, Mapping) or "certificate" not in part:
            raise ArgumentError("the certificate's parts are malformed: each has a certificate and times, at least 1.")
        parts.append((Certificate.from_json(json.dumps(part["certificate"])), _number_of_times(part.get("times"))))
    evidence = evidence_from_dicts(list(document["evidence"]))
    return ComposedCertificate(protects=document["protects"], parts=tuple(parts), evidence=evidence)


READERS["parts"] = _composed_from_document


def _declared(certificate: ComposedCertificate, *, numbers: bool) -> dict[str, None]:
    """Return what was declared about parts of any depth; without `numbers` only what a worst case rests on."""
    declarations: dict[str, None] = {}
    for item in certificate.evidence if certificate.rule != "single" else ():
        declarations.setdefault(item.declares if numbers else item.declares_for_noise)
        if item.key == "bounded_participation" and rests_on_own_periods(certificate._facts):
            declarations.setdefault(sentences.OWN_PERIODS)
    for part, _ in certificate.parts:
        if isinstance(part, ComposedCertificate):
            inside = _declared(part, numbers=numbers and part.has_partial_knowledge)
            declarations |= {text: None for text in inside if text not in (SamePeople().declares, SameTable().declares)}
    return {text: None for text in declarations if text}
