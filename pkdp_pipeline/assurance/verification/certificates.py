"""The claims of a certificate: its structure, its numbers, its words, and what attackers reach of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.opening import BREAKS
from pkdp_pipeline.assurance.verification.own_texts import own_text_claim
from pkdp_pipeline.assurance.verification.recomputing import (
    Nested,
    Recomputed,
    other_words,
    read_certificate,
    recompute,
    sentence_pairs,
)
from pkdp_pipeline.assurance.verification.structure import fault
from pkdp_pipeline.certificates.codec import SCHEMA
from pkdp_pipeline.certificates.differences import described, outcome_of
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.plain_text import printable
from pkdp_pipeline.model.version import VERSION

__all__ = ["STRUCTURE", "is_disguised", "made_again", "number_claims", "structure_claim"]

STRUCTURE = {SCHEMA: "certificate.v1.json"}
"""The published schema of each form."""

_NUMBERS = "Every stored number is what the mechanism and the declared attacker give."
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*([a-z.+][0-9a-z.+]*)?")
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
    yield own_text_claim(nested, f"{prefix}.own_texts")
    if found.foreign:
        yield _sentences([one for one in nested if not one.ours], f"{prefix}.sentence_numbers")


def _foreign(nested: list[Nested], found: Recomputed, key: str) -> Claim:
    """Return what can be said of words that another version is named for."""
    named = ", ".join(map(printable, found.foreign))
    others = [one for one in nested if not one.ours]
    for one in others:
        if is_disguised(one.document["library"]["version"]):
            return failed(key, _WORDS, f"{one.path} names a version as none of ours is written: {named}.")
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


def is_disguised(version: str) -> bool:
    """Return whether a version is none, or is this one in another spelling: 0.3.00, 00.3.0, 0.3."""
    return version != VERSION and (_VERSION.fullmatch(version) is None or _spelled(version) == _spelled(VERSION))


def _spelled(version: str) -> str:
    return re.sub(r"(\.0+)+(?![.0-9])", "", re.sub(r"(?<![0-9])0+(?=[0-9])", "", version))


def _sentences(foreign: list[Nested], key: str) -> Claim:
    words = "The pairs of ε and δ that a sentence in other words names are certified."
    pairs, whole = 0, True
    for one in foreign:
        found, every = sentence_pairs(one)
        whole = whole and every
        for epsilon, delta, holds in found:
            pairs += 1
            if not holds:
                return failed(
                    key, words, f"{one.path} names ε = {epsilon:g}, δ = {delta:g}, which is not certified.", pairs=pairs
                )
    read = f"{pairs} {'pair' if pairs == 1 else 'pairs'} read, each certified"
    if not whole:
        return not_checked(key, words, f"{read}; but it also names ε or δ in a way that cannot be read.", pairs=pairs)
    if not pairs:
        return not_checked(key, words, "No sentence names a pair that can be read.", pairs=0)
    return passed(key, words, f"{read}. What else it says was not read.", pairs=pairs)
