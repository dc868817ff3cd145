"""The claim about texts that a file's maker wrote: limits and declarations are copied, and may not promise anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.reading_words import names_guarantee, names_numbers
from pkdp_pipeline.assurance.verification.recomputing import Nested
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate

__all__ = ["own_text_claim"]

_WORDS = "No text that was written into it by hand promises anything."

_NAMES = r"'(?:[^'.]|\.(?![\s']))*'(, '(?:[^'.]|\.(?![\s']))*')*"
_LIBRARY = tuple(
    re.compile(pattern)
    for pattern in (
        rf"A person is one value of {_NAMES}\.",
        r"Every row is taken for a person: a person with several rows is protected in one of them only\.",
        r"Releases of this data set for other privacy units \([^.]*\) are not in it: what they tell about the same "
        r"people comes on top\.",
        r"Other releases about these people stand beside it: this is about the release by itself, and what they tell "
        r"together is stated by the ledger's total\.",
        r"Other releases about these people stand beside it, so that only its noise counts here: what its certificate "
        r"says about an attacker who is unsure of other people would hold only if nothing else were published\.",
    )
)
"""Caveats that the library itself adds: to totals of a ledger, and to promises of a report."""

_SENTENCE_ENDS = re.compile(r"[.!?:;]\s+\S")
_LABEL = re.compile(r"^label: ")
_SHOWN = 160


def own_text_claim(nested: Sequence[Nested], key: str) -> Claim:
    """Return whether caveats and declared texts, which the sentence repeats, promise anything by themselves."""
    doubtful: list[str] = []
    for path, text in _texts(nested):
        if names_guarantee(text):
            return failed(
                key,
                _WORDS,
                f"{path} speaks of a guarantee. It is copied from what somebody wrote, and nothing certifies it.",
                path=path,
            )
        if _is_doubtful(path, text):
            doubtful.append(path if len(text) > _SHOWN else f"{path} says: {text}")
    if doubtful:
        more = f" And {len(doubtful) - 1} more." if len(doubtful) > 1 else ""
        return not_checked(
            key,
            _WORDS,
            "The sentence repeats what somebody wrote, which can only limit what is certified; no program can tell "
            f"whether it does. {doubtful[0]}{more}",
            texts=len(doubtful),
        )
    return passed(key, _WORDS, "Its limits are those that the library writes; what was declared is no guarantee.")


def _is_doubtful(path: str, text: str) -> bool:
    if ".caveats[" in path:
        return not any(pattern.fullmatch(text) for pattern in _LIBRARY)
    # Names and predicates are no sentences.
    return names_numbers(text) or _SENTENCE_ENDS.search(_LABEL.sub("", text)) is not None


def _texts(nested: Sequence[Nested]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for one in nested:
        for path, text in _free(one.certificate):
            if text not in seen:
                seen.add(text)
                yield f"{one.path}.{path}", text


def _free(certificate: Certificate) -> Iterator[tuple[str, str]]:
    yield from ((f"caveats[{place}]", text) for place, text in enumerate(certificate.caveats))
    about = certificate.context if isinstance(certificate, ReleaseCertificate) else None
    if about is not None:
        yield from ((f"context.unit[{place}]", text) for place, text in enumerate(about.unit))
        for name in ("where", "period", "dataset", "table"):
            text = getattr(about, name)
            if text is not None:
                yield f"context.{name}", text
