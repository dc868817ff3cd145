"""The claims of a certificate: its structure, its numbers, its words, and what attackers reach of it."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.opening import BREAKS
from pkdp_pipeline.assurance.verification.recomputing import (
    Nested,
    Recomputed,
    other_words,
    read_certificate,
    recompute,
)
from pkdp_pipeline.assurance.verification.structure import fault
from pkdp_pipeline.certificates.codec import SCHEMA
from pkdp_pipeline.certificates.differences import described, outcome_of
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.display.report.published import OWN_CAVEATS
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.plain_text import printable

__all__ = ["STRUCTURE", "made_again", "names_guarantee", "number_claims", "structure_claim"]

STRUCTURE = {SCHEMA: "certificate.v1.json"}
"""The published schema of each form."""

_NUMBERS = "Every stored number is what the mechanism and the declared attacker give."
_OWN = "No text that was written into it by hand promises anything."
_SENTENCE = re.compile(r"[εδ]|[.!?:;]\s+\S")
_GUARANTEE = re.compile(
    r"(ε|\beps(ilon)?) ?[=<≤:]? ?[0-9].*(δ|\bdelta) ?[=<≤:]? ?[0-9]|private at\b|against anyone\b", re.IGNORECASE
)
_SHOWN = 160
_WORDS = "Sentence, assumptions and theorems are those of what is certified."


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
        return read_certificate(document)
    except PkdpError as error:
        return failed(key, _NUMBERS, f"It cannot be certified again: {printable(error)}")
    except BREAKS as error:
        return failed(key, _NUMBERS, f"It cannot be certified again ({type(error).__name__}): its fields are no sense.")


def number_claims(nested: list[Nested], prefix: str = "certificate") -> Iterator[Claim]:
    """Yield whether the stored numbers are what is recomputed, and whether the words fit them."""
    key = f"{prefix}.numbers"
    try:
        found = recompute(nested)
    except BREAKS as error:
        yield failed(key, _NUMBERS, f"They cannot be recomputed ({type(error).__name__}).")
        return
    altered = [one for one in found.numbers if not one.is_weaker]
    evidence = {"certificates": found.certificates, "numbers": found.points, "different": len(altered)}
    if altered:
        yield failed(key, _NUMBERS, f"{described(found.numbers)}.", **evidence)
    else:
        parts = "" if found.certificates == 1 else f" of {found.certificates} certificates, every part and the total"
        same = outcome_of(found.numbers)
        yield passed(key, _NUMBERS, f"{found.points} numbers{parts} recomputed, {same}.", **evidence)
    yield from _words(nested, found, prefix)


def _words(nested: list[Nested], found: Recomputed, prefix: str) -> Iterator[Claim]:
    key = f"{prefix}.words"
    if found.words:
        yield failed(key, _WORDS, f"{described(found.words)}.", different=[one.path for one in found.words])
    elif found.foreign:
        yield _foreign(nested, found, key)
    else:
        yield passed(key, _WORDS, "All of them are word by word what this version writes.")
    yield _own_texts(nested, f"{prefix}.own_texts")


def _foreign(nested: list[Nested], found: Recomputed, key: str) -> Claim:
    """Return what can be said of words that another version is named for."""
    named = ", ".join(map(printable, found.foreign))
    others = [one for one in nested if not one.ours]
    different = [f"{one.path}.{name}" for one in others for name in other_words(one)]
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
