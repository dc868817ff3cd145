"""The claims of a certificate: its structure, its numbers, its words, and what attackers reach of it."""

from __future__ import annotations

import ast
import functools
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from pkdp_pipeline.assurance.verification.claims import BrokenError, Claim, UncheckedError, checked
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.differences import Difference, described, outcome_of
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.display.report.published import OWN_CAVEATS
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.plain_text import printable
from pkdp_pipeline.model.version import VERSION

_SCHEMA = "certificate.v1.json"

_SENTENCE = re.compile(r"[εδ]|[.!?:;]\s+\S")
_GUARANTEE = re.compile(
    r"(ε|\beps(ilon)?) ?[=<≤:]? ?[0-9].*(δ|\bdelta) ?[=<≤:]? ?[0-9]|private at\b|against anyone\b", re.IGNORECASE
)
_SHOWN = 160
_RULE_SHOWN = 80


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
    found: dict[bool, list[Difference]] = {True: [], False: []}
    points = 0
    for one in nested:
        worst = one.document["worst_case"]
        points += 2 * len(one.document["grid"]) + (0 if worst is None else 2 + len(worst.get("grid", ())))
        ours = one.document.get("library") == {"name": "pkdp_pipeline", "version": VERSION}
        for each in one.certificate.differences(one.document, skip={"certificate", "library"}, path=one.path):
            is_word = each.direction == "words" and each.path != f"{one.path}.rule"
            (found[ours] if is_word else numbers).append(each)
    words |= found
    altered = [one for one in numbers if not one.is_weaker]
    evidence = {"certificates": len(nested), "numbers": points, "different": len(altered)}
    if altered:
        raise BrokenError(f"{described(numbers)}.", **evidence)
    parts = "" if len(nested) == 1 else f" of {len(nested)} certificates, every part and the total"
    return f"{points} numbers{parts} recomputed, {outcome_of(numbers)}.", evidence


def _words(nested: list[Nested], found: dict[bool, list[Difference]]) -> str:
    if found[True]:
        raise BrokenError(f"{described(found[True])}.", different=[one.path for one in found[True]])
    if found[False]:
        different = [one.path for one in found[False]]
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
        return "It repeats nothing but names, and what the library says of units."
    promising = [(text, path) for text, path in texts.items() if names_guarantee(text)]
    (text, path), more = (promising or list(texts.items()))[0], f" And {len(texts) - 1} more." if len(texts) > 1 else ""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
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


def no_bolder(found: Sequence[Difference]) -> str:
    """Return how a stored document differs from a recomputed one; `BrokenError` where it is not true and weaker."""
    if not all(one.is_weaker for one in found):
        raise BrokenError(f"{described(found)}.", different=[one.path for one in found][:20])
    return outcome_of(found)


def follows(document: Any, schema: str) -> tuple[str, dict[str, Any]]:
    """Return that a document follows a published schema.

    Raises
    ------
    BrokenError
        Where and how it departs from it.
    """
    error = best_match(_validator(schema).iter_errors(document))
    if error is None:
        return f"It follows {schema}.", {"schema": schema}
    where = ".".join(printable(str(step))[:_RULE_SHOWN] for step in error.absolute_path)
    wanted = json.dumps(error.validator_value)
    # What stands there is not repeated: it may be anything.
    rule = f"{error.validator}: {wanted}" if len(wanted) <= _RULE_SHOWN else str(error.validator)
    place = f"field {where!r}" if where else "the document"
    raise BrokenError(f"{place} breaks the rule {rule!r}.", schema=schema)


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    text = resources.files("pkdp_pipeline").joinpath("schemas", name).read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))
