"""The claims of a certificate: its structure, its numbers, its words, and what attackers reach of it."""

from __future__ import annotations

import ast
import functools
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.opening import BREAKS
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import SCHEMA
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.differences import Difference, described, differences, outcome_of
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.display.report.published import OWN_CAVEATS
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.plain_text import printable
from pkdp_pipeline.model.version import VERSION

__all__ = ["STRUCTURE", "Nested", "fault", "made_again", "names_guarantee", "number_claims", "structure_claim"]

STRUCTURE = {SCHEMA: "certificate.v1.json"}
"""The published schema of each form."""

_NUMBERS = "Every stored number is what the mechanism and the declared attacker give."
_OWN = "No text that was written into it by hand promises anything."
_SENTENCE = re.compile(r"[εδ]|[.!?:;]\s+\S")
_GUARANTEE = re.compile(
    r"(ε|\beps(ilon)?) ?[=<≤:]? ?[0-9].*(δ|\bdelta) ?[=<≤:]? ?[0-9]|private at\b|against anyone\b", re.IGNORECASE
)
_SHOWN = 160
_RULE_SHOWN = 80
_TEXTS = ("sentence", "assumptions", "steps", "theorems")
_WORDS = "Sentence, assumptions and theorems are those of what is certified."


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

    @property
    def ours(self) -> bool:
        """Whether this very version wrote it, so that its wording can be compared."""
        return self.document.get("library") == {"name": "pkdp_pipeline", "version": VERSION}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recomputed:
    """What recomputing a certificate and its parts has found: how many numbers, and what differs."""

    points: int
    numbers: tuple[Difference, ...]
    words: tuple[Difference, ...]
    foreign: tuple[str, ...]


def structure_claim(document: dict[str, Any], key: str = "certificate.structure") -> Claim:
    """Return whether a certificate is built as its published schema says."""
    words = "The certificate is built as its published schema says."
    schema = STRUCTURE.get(str(document.get("schema")))
    if schema is None:
        return failed(key, words, "its field 'schema' names no form that this version reads.")
    try:
        found = fault(document, schema)
    except RecursionError:
        found = "it is nested too deep"
    if found:
        return failed(key, words, f"{found}.", schema=schema)
    return passed(key, words, f"It follows {schema}.", schema=schema)


def made_again(document: dict[str, Any], key: str = "certificate.numbers") -> list[Nested] | Claim:
    """Return a well-built certificate and its parts, certified again; or the claim that fails where they cannot be."""
    try:
        return _read(document)
    except PkdpError as error:
        return failed(key, _NUMBERS, f"It cannot be certified again: {printable(error)}")
    except BREAKS as error:
        return failed(key, _NUMBERS, f"It cannot be certified again ({type(error).__name__}): its fields are no sense.")


def number_claims(nested: list[Nested], prefix: str = "certificate") -> Iterator[Claim]:
    """Yield whether the stored numbers are what is recomputed, and whether the words fit them."""
    key = f"{prefix}.numbers"
    try:
        found = _recompute(nested)
    except BREAKS as error:
        yield failed(key, _NUMBERS, f"They cannot be recomputed ({type(error).__name__}).")
        return
    altered = [one for one in found.numbers if not one.is_weaker]
    evidence = {"certificates": len(nested), "numbers": found.points, "different": len(altered)}
    if altered:
        yield failed(key, _NUMBERS, f"{described(found.numbers)}.", **evidence)
    else:
        parts = "" if len(nested) == 1 else f" of {len(nested)} certificates, every part and the total"
        same = outcome_of(found.numbers)
        yield passed(key, _NUMBERS, f"{found.points} numbers{parts} recomputed, {same}.", **evidence)
    yield from _words(nested, found, prefix)


def _words(nested: list[Nested], found: _Recomputed, prefix: str) -> Iterator[Claim]:
    key = f"{prefix}.words"
    if found.words:
        yield failed(key, _WORDS, f"{described(found.words)}.", different=[one.path for one in found.words])
    elif found.foreign:
        yield _foreign(nested, found, key)
    else:
        yield passed(key, _WORDS, "All of them are word by word what this version writes.")
    yield _own_texts(nested, f"{prefix}.own_texts")


def _foreign(nested: list[Nested], found: _Recomputed, key: str) -> Claim:
    """Return what can be said of words that another version is named for."""
    named = ", ".join(map(printable, found.foreign))
    others = [one for one in nested if not one.ours]
    different = [f"{one.path}.{name}" for one in others for name in _other_words(one)]
    if not different:
        return passed(key, _WORDS, f"Written by {named}; all of them are word by word what this version writes.")
    return not_checked(
        key,
        _WORDS,
        f"It says that {named} wrote it, whose wording this one cannot compare; its numbers are checked. Do not rely "
        f"on its words: {', '.join(different[:3])} {'is' if len(different) == 1 else 'are'} not what this version "
        "writes. Certify the same again to read what is certified, or verify with that version.",
        different=different,
        sentence=others[-1].certificate.with_caveats().sentence(),
    )


def _own_texts(nested: list[Nested], key: str) -> Claim:
    """Return which texts the certificate only repeats: no program can tell whether one of them promises anything."""
    texts: dict[str, str] = {}
    for one in nested:
        for place, text in enumerate(one.certificate.caveats):
            if text not in OWN_CAVEATS and not _is_about_units(text):
                texts.setdefault(text, f"{one.path}.caveats[{place}]")
        about = one.certificate.context if isinstance(one.certificate, ReleaseCertificate) else None
        names = () if about is None else (*about.unit, about.where, about.period, about.dataset, about.table)
        for name in names:
            if name is not None and _SENTENCE.search(name.removeprefix("label: ")):
                texts.setdefault(name, f"{one.path}.context")
    if not texts:
        return passed(key, _OWN, "It repeats nothing but names, and what the library says of units.")
    promising = [(text, path) for text, path in texts.items() if names_guarantee(text)]
    (text, path), more = (promising or list(texts.items()))[0], f" And {len(texts) - 1} more." if len(texts) > 1 else ""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    if promising:
        return failed(key, _OWN, f"{path} speaks of a guarantee, which nothing here certifies: {shown}{more}")
    return not_checked(key, _OWN, f"It repeats what its maker wrote, as a limit or a name. {path} says: {shown}{more}")


def _is_about_units(text: str) -> bool:
    """Return whether a text is what the library says of privacy units, by names that are no sentences."""
    named = text.removeprefix("A person is one value of ")
    try:
        unit = () if named == text else ast.literal_eval(f"({named.removesuffix('.')},)")
        return not any(map(_SENTENCE.search, unit)) and Context(unit=unit).facts()[0] == text
    except (ValueError, SyntaxError, TypeError):
        return False


def names_guarantee(text: str) -> bool:
    """Return whether a text that somebody wrote names an ε with a δ, or speaks as a guarantee does."""
    return _GUARANTEE.search(unicodedata.normalize("NFKC", text)) is not None


def _read(document: dict[str, Any], path: str = "certificate") -> list[Nested]:
    """Return the certificate of a document and, before it, all its parts, each made again.

    Raises
    ------
    PkdpError
        If nothing can be certified for what one of them names, or it is malformed.
    """
    found: list[Nested] = []
    for place, part in enumerate(document.get("parts", ())):
        found += _read(part["certificate"], f"{path}.parts[{place}].certificate")
    made = Certificate.from_json(json.dumps(document))
    return [*found, Nested(path=path, document=document, certificate=made)]


def _recompute(nested: list[Nested]) -> _Recomputed:
    """Compare every stored number, and every word of this version, with what the certificates give."""
    numbers: list[Difference] = []
    words: list[Difference] = []
    points, foreign = 0, []
    known: dict[str, dict[str, Any]] = {}
    for one in nested:
        if one.ours:
            points += _size(one.document)
            found = one.certificate.differences(one.document, skip={"certificate"}, path=one.path)
            numbers += [each for each in found if each.direction != "words" or each.path == f"{one.path}.rule"]
            words += [each for each in found if each.direction == "words" and each.path != f"{one.path}.rule"]
        else:
            # Another version may state its numbers at other ε, in other words: each is recomputed where it stands.
            fresh = _numbers(one, known)
            points += _size(fresh)
            stored = {name: one.document.get(name) for name in fresh}
            numbers += differences(one.path, stored, fresh, rounding=one.certificate.rounding_of(fresh))
            foreign.append(_version(one.document))
    return _Recomputed(
        points=points,
        numbers=tuple(numbers),
        words=tuple(words),
        foreign=tuple(dict.fromkeys(foreign)),
    )


def _other_words(one: Nested) -> tuple[str, ...]:
    """Return which of the texts of another version's certificate are not what this version would write."""
    whole = json.loads(one.certificate.with_caveats().to_json())
    return tuple(name for name in _TEXTS if name in one.document and one.document[name] != whole.get(name))


def _numbers(one: Nested, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers again, at the ε that the document names."""
    grid = [point["epsilon"] for point in one.document["grid"]]
    stored_worst = one.document["worst_case"]
    worst_grid = grid if stored_worst is None else [point["epsilon"] for point in stored_worst.get("grid", ())]
    about = [one.document.get(name) for name in ("mechanism", "attacker", "protects", "evidence", "parts")]
    same = json.dumps([about, grid, worst_grid], sort_keys=True)
    if same not in known:
        known[same] = _evaluated(
            one.certificate, grid, worst_grid, curve=stored_worst is None or "grid" in stored_worst
        )
    return known[same]


def _evaluated(certificate: Certificate, grid: list[float], worst_grid: list[float], *, curve: bool) -> dict[str, Any]:
    lower, upper = certificate.delta_bounds(np.array(grid, dtype=np.float64))
    worst: dict[str, Any] | None = None
    if certificate.worst_case_bound is not None:
        epsilon, delta = certificate.worst_case_bound.parameters
        worst = {"epsilon": epsilon, "delta": delta}
        if curve:
            deltas = certificate.worst_case.delta(np.array(worst_grid, dtype=np.float64)).tolist()
            worst["grid"] = [{"epsilon": at, "delta": most} for at, most in zip(worst_grid, deltas, strict=True)]
    fresh: dict[str, Any] = {
        "grid": [
            {"epsilon": at, "attained": low, "delta": high}
            for at, low, high in zip(grid, lower.tolist(), upper.tolist(), strict=True)
        ],
        "worst_case": worst,
    }
    if isinstance(certificate, ComposedCertificate):
        fresh["rule"] = certificate.rule
    return fresh


def _size(fresh: dict[str, Any]) -> int:
    worst = fresh["worst_case"]
    return 2 * len(fresh["grid"]) + (0 if worst is None else 2 + len(worst.get("grid", ())))


def _version(document: dict[str, Any]) -> str:
    library = document.get("library")
    named = library.get("version") if isinstance(library, dict) else None
    return f"version {named}"


def fault(document: Any, schema: str) -> str:
    """Return where and how `document` departs from a published schema; empty where it does not.

    Parameters
    ----------
    document : JSON value
    schema : str
        Name of a file in ``pkdp_pipeline/schemas``.
    """
    error = best_match(_validator(schema).iter_errors(document))
    if error is None:
        return ""
    where = ".".join(printable(str(step))[:_RULE_SHOWN] for step in error.absolute_path)
    wanted = json.dumps(error.validator_value)
    # What stands there is not repeated: it may be anything.
    rule = f"{error.validator}: {wanted}" if len(wanted) <= _RULE_SHOWN else str(error.validator)
    return f"{f'field {where!r}' if where else 'the document'} breaks the rule {rule!r}"


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    text = resources.files("pkdp_pipeline").joinpath("schemas", name).read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))
