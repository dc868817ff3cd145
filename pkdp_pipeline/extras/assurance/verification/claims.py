"""The claims of a file, and the outcome of checking them; a certificate's claims about its form, numbers and words."""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any, Literal

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import REWORDED, Difference, described, is_ours, is_word, outcome_of
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.certificates.sentences import OWN_CAVEATS
from pkdp_pipeline.errors import PkdpError, TemporaryError
from pkdp_pipeline.ledger.history import number_of
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.period import printable
from pkdp_pipeline.model.wording import names_guarantee
from pkdp_pipeline.schemas import VERSION

Outcome = Literal["pass", "fail", "not_checked"]

Kind = Literal["release", "certificate", "report"]

SCHEMA = "pkdp-verification/1"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/verification.v1.json` describes it."""

WORDS: Mapping[str, str] = {
    "release.id": "The id is that of this table and this certificate.",
    "release.content": "The file holds the table, the certificate and the id, and nothing else.",
    "table.columns": "The columns are those that the mechanism publishes; their types tell nothing that is withheld.",
    "table.cells": "Every cell is named once, in the order of publication, and only suppressed as declared.",
    "table.counts": "Every count obeys the thresholds of the mechanism.",
    "certificate.structure": "The certificate is built as its published schema says.",
    "certificate.numbers": "Every stored number is what the mechanism and the declared attacker give.",
    "certificate.words": "Sentence, assumptions and theorems are those of what is certified.",
    "certificate.own_texts": "No text that was written into it by hand promises anything.",
    "certificate.enumerated": "No declared attacker who was tried by exact enumeration learns more than the file says.",
    "certificate.simulated": "No declared attacker who was tried by simulation learns more than the file says.",
    "certificate.anyone": "No attacker who was tried and knows everybody else learns more than the noise allows.",
    "certificate.together": "No attacker who was tried on several releases together learns more than the total says.",
    "report.structure": "The report is built as its published schema says.",
    "report.page": "The file is, byte by byte, what its content renders to.",
    "report.content": "The values that the report derives are those that its certificates give.",
    "releases.tables": "Every table and series keeps the rules of the mechanism that its certificate names.",
    "report.total": "The ledger's total, its points over time and its budgets are what the certificates add up to.",
    "report.texts": "No text that is copied from the job or the ledger speaks of a guarantee.",
    "report.origin": "Names, questions, files, checks, remarks and reasons are those of its job and its ledger.",
    "ledger.chain": "The ledger's chain and everything derived from it are intact.",
    "ledger.head": "The chain holds the head that the certificate names.",
    "ledger.holds": "The ledger holds exactly what the file shows.",
    "ledger.standing": "Nothing that the ledger holds undoes what is certified.",
    "ledger.series": "The ledger holds a release for every period of every series, with these counts.",
    "ledger.total": "The report's total is what the ledger's releases add up to.",
    "ledger.points": "The points over time are what the ledger's releases add up to after each period.",
    "counts.published": "The counts are those that were published.",
    "assumptions.declared": "The declared attacker and releases are those that the curator declared before looking.",
}
"""The claims, by key; a report's promises claim what a certificate does, as ``promises.0.numbers``."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a file claims.

    Attributes
    ----------
    key : str
        A stable name, such as ``certificate.numbers``.
    outcome : {"pass", "fail", "not_checked"}
    detail : str
        The check done; the reason it fails; or the reason it was not checked.
    evidence : mapping
        The numbers behind `detail`, as JSON values.
    """

    key: str
    outcome: Outcome
    detail: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What a file says of itself may be quoted here, and must not steer a terminal.
        object.__setattr__(self, "detail", printable(self.detail))

    @property
    def words(self) -> str:
        """The claim, as one plain sentence."""
        return WORDS[re.sub(r"^promises\.\d+\.", "certificate.", self.key)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of checking a file; made by `verify`.

    Attributes
    ----------
    kind : {"release", "certificate", "report"}
        The kind of file, by its content.
    file : str
        Its name, without the folder.
    claims : tuple of Claim
    """

    kind: Kind
    file: str
    claims: tuple[Claim, ...]

    @property
    def passed(self) -> bool:
        """Whether no claim failed; some may not have been checked."""
        return not self.failures

    @property
    def failures(self) -> tuple[Claim, ...]:
        """The claims that failed."""
        return tuple(claim for claim in self.claims if claim.outcome == "fail")

    @property
    def unchecked(self) -> tuple[Claim, ...]:
        """The claims that were not checked."""
        return tuple(claim for claim in self.claims if claim.outcome == "not_checked")

    @property
    def verdict(self) -> str:
        """Return what was found in all, as one sentence."""
        of = number_of(len(self.claims), "claim")
        left = f"; {len(self.unchecked)} not checked" if self.unchecked else ""
        if self.failures:
            first = self.failures[0].key
            return f"This {self.kind} does not hold: {len(self.failures)} of {of} failed{left}. The first is {first}."
        passed = len(self.claims) - len(self.unchecked)
        return f"Nothing failed: {passed} of {of} of this {self.kind} were checked and hold{left}."

    def to_json(self) -> str:
        """Return it as JSON; `pkdp_pipeline/schemas/verification.v1.json` describes it."""
        document = {
            "schema": SCHEMA,
            "library": {"name": "pkdp_pipeline", "version": VERSION},
            "kind": self.kind,
            "file": self.file,
            "passed": self.passed,
            "verdict": self.verdict,
            "claims": [{"key": claim.key, "words": claim.words, **asdict(claim)} for claim in self.claims],
        }
        return json.dumps(document, ensure_ascii=False, indent=1)

    def __str__(self) -> str:
        shown = {"pass": "pass", "fail": "FAIL", "not_checked": "not checked"}
        lines = [f"{shown[claim.outcome]:<11}  {claim.key}: {claim.detail}" for claim in self.claims]
        return "\n".join((f"{self.file} ({self.kind})", *lines, self.verdict))


class BrokenError(Exception):
    """A claim does not hold: why, and the numbers behind that."""

    outcome: Outcome = "fail"

    def __init__(self, detail: str, **evidence: Any) -> None:
        super().__init__(detail)
        self.evidence = evidence


class UncheckedError(BrokenError):
    """A claim could not be checked: why."""

    outcome: Outcome = "not_checked"


BREAKS: tuple[type[Exception], ...] = (
    PkdpError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors that code expecting a sound document may raise where it meets another one. Each is a failure of the file."""

Check = Callable[[], "str | tuple[str, Mapping[str, Any]]"]
"""A check of a claim: it returns what was done, perhaps with numbers, or raises what it found."""


def claim_of(key: str, check: Check) -> Claim:
    """Return the outcome of a check; errors that break it are raised."""
    try:
        result = check()
    except BrokenError as error:
        return Claim(key, error.outcome, str(error), error.evidence)
    return Claim(key, "pass", *((result,) if isinstance(result, str) else result))


def checked(checks: Mapping[str, Check]) -> Iterator[Claim]:
    """Yield the outcome of each check, by key; the rest is left out where the file breaks one."""
    for key, check in checks.items():
        try:
            yield claim_of(key, check)
        except TemporaryError:
            raise  # of the ledger: nothing is known yet
        except PkdpError as error:
            yield Claim(key, "fail", str(error))
        except BREAKS as error:
            yield Claim(key, "fail", f"It is not one of ours: it cannot be read so ({type(error).__name__}).")
            return


_SCHEMA = "certificate.v1.json"

_SENTENCE = re.compile(r"[εδ]|[.!?:;]\s+\S")
_MAX_SHOWN = 160
_MAX_RULE_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nested:
    """A certificate of a file: the one that it is, or one of its parts.

    Parameters
    ----------
    path : str
        ``certificate``, ``certificate.parts[2].certificate`` …
    document : mapping
        As it is stored.
    certificate : Certificate
        Made again from what it is about.
    """

    path: str
    document: dict[str, Any]
    certificate: Certificate


def certificate_claims(document: dict[str, Any], prefix: str) -> tuple[list[Claim], list[Nested]]:
    """Return the claims of one certificate about its form, numbers and words; and it with its parts, made again.

    Nothing is made again, and no more claimed, where the document is not built as its schema says.
    """
    nested: list[Nested] = []
    words: dict[bool, list[Difference]] = {}

    def numbers() -> tuple[str, dict[str, Any]]:
        try:
            nested.extend(_read(document))
        except PkdpError as error:
            raise BrokenError(f"It cannot be certified again: {error}") from None
        return _numbers(nested, words)

    claims = list(checked({f"{prefix}.structure": lambda: follows(document, _SCHEMA)}))
    if claims[0].outcome == "pass":
        claims += checked({f"{prefix}.numbers": numbers})
    if words:
        more = {f"{prefix}.words": lambda: _words(nested, words), f"{prefix}.own_texts": lambda: _own_texts(nested)}
        claims += checked(more)
    return claims, nested


def _numbers(nested: list[Nested], words: dict[bool, list[Difference]]) -> tuple[str, dict[str, Any]]:
    """Compare every stored number with what the certificates give; which words differ, by whether they are ours."""
    numbers: list[Difference] = []
    reworded: dict[bool, list[Difference]] = {True: [], False: []}
    points = 0
    for entry in nested:
        worst = entry.document["worst_case"]
        points += 2 * len(entry.document["grid"]) + (0 if worst is None else 2 + len(worst.get("grid", ())))
        for difference in entry.certificate.differences(
            entry.document, skip={"certificate", "library"}, path=entry.path
        ):
            (reworded[is_ours(entry.document)] if is_word(difference) else numbers).append(difference)
    words |= reworded
    altered = [number for number in numbers if not number.is_weaker]
    evidence = {"certificates": len(nested), "numbers": points, "different": len(altered)}
    if altered:
        raise BrokenError(f"{described(numbers)}.", **evidence)
    parts = "" if len(nested) == 1 else f" of {len(nested)} certificates, every part and the total"
    return f"{points} numbers{parts} recomputed, {outcome_of(numbers)}.", evidence


def _words(nested: list[Nested], reworded: dict[bool, list[Difference]]) -> str:
    if reworded[True]:
        raise BrokenError(
            f"{described(reworded[True])}. {REWORDED}", different=[difference.path for difference in reworded[True]]
        )
    if reworded[False]:
        different = [difference.path for difference in reworded[False]]
        raise UncheckedError(
            "It says that another version wrote it, whose wording this one cannot compare; its numbers are checked. Do "
            f"not rely on its words: {', '.join(different[:3])} {'is' if len(different) == 1 else 'are'} not what this "
            "version writes. Certify the same again to read what is certified, or verify with that version.",
            different=different,
            sentence=nested[-1].certificate.with_caveats().sentence(),
        )
    return "All of them are word by word what this version writes."


def _own_texts(nested: list[Nested]) -> str:
    """Return which texts the certificate only repeats: no program can tell whether one of them promises anything."""
    texts: dict[str, str] = {}
    for entry in nested:
        for place, text in enumerate(entry.certificate.caveats):
            if text not in OWN_CAVEATS and not _is_about_units(text):
                texts.setdefault(text, f"{entry.path}.caveats[{place}]")
        about = entry.certificate.context if isinstance(entry.certificate, ReleaseCertificate) else None
        names = () if about is None else (*about.unit, about.where, about.period, about.dataset, about.table)
        for name in names:
            if name is not None and _SENTENCE.search(name.removeprefix("label: ")):
                texts.setdefault(name, f"{entry.path}.context")
    if not texts:
        return "It repeats nothing but names, and what the library says of units."
    promising = [(text, path) for text, path in texts.items() if names_guarantee(text)]
    (text, path), more = (promising or list(texts.items()))[0], f" And {len(texts) - 1} more." if len(texts) > 1 else ""
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
    if promising:
        raise BrokenError(f"{path} speaks of a guarantee, which nothing here certifies: {shown}{more}")
    raise UncheckedError(f"It repeats what its maker wrote, as a limit or a name. {path} says: {shown}{more}")


def _is_about_units(text: str) -> bool:
    """Return whether a text is what the library says of privacy units, by names that are no sentences."""
    named = text.removeprefix("A person is one value of ")
    try:
        unit = () if named == text else ast.literal_eval(f"({named.removesuffix('.')},)")
        return not any(map(_SENTENCE.search, unit)) and Context(unit=unit).facts()[0] == text
    except (ValueError, SyntaxError, TypeError):
        return False


def _read(document: dict[str, Any], path: str = "certificate") -> list[Nested]:
    """Return the certificate of a document and, before it, all its parts, each made again.

    Raises `PkdpError` if nothing can be certified for what one of them names, or it is malformed.
    """
    parts: list[Nested] = []
    for place, part in enumerate(document.get("parts", ())):
        parts += _read(part["certificate"], f"{path}.parts[{place}].certificate")
    certificate = Certificate.from_json(json.dumps(document))
    if isinstance(certificate, ReleaseCertificate):
        # What promises nothing is refused before its whole grid, which may take minutes, is computed.
        certify(
            certificate.certified_mechanism,
            certificate.attacker,
            protects=certificate.protects,
            cells=certificate.cells,
        )
    return [*parts, Nested(path=path, document=document, certificate=certificate)]


def no_bolder(differences: Sequence[Difference]) -> str:
    """Return how a stored document differs from a recomputed one; `BrokenError` where it is not true and weaker."""
    if not all(difference.is_weaker for difference in differences):
        raise BrokenError(f"{described(differences)}.", different=[difference.path for difference in differences][:20])
    return outcome_of(differences)


def follows(document: Any, schema: str) -> tuple[str, dict[str, Any]]:
    """Return that a document follows a published schema."""
    error = best_match(_validator(schema).iter_errors(document))
    if error is None:
        return f"It follows {schema}.", {"schema": schema}
    where = ".".join(printable(str(step))[:_MAX_RULE_SHOWN] for step in error.absolute_path)
    wanted = json.dumps(error.validator_value)
    # What stands there is not repeated: it may be anything.
    rule = f"{error.validator}: {wanted}" if len(wanted) <= _MAX_RULE_SHOWN else str(error.validator)
    place = f"field {where!r}" if where else "the document"
    raise BrokenError(f"{place} breaks the rule {rule!r}.", schema=schema)


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    text = resources.files("pkdp_pipeline").joinpath("schemas", name).read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))
