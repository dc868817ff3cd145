"""Registry: a draft of the data set's entry in the public Differential Privacy Deployments Registry.

The form is that of ``schemas/deployments-schema.yaml`` in https://github.com/opendp/deployments-registry-data,
which has no version of its own; `SCHEMA` names the commit. Only what the ledger knows is written. What it cannot
know is left as a comment, and where the schema requires it as ``null``, so that the draft does not pass the
registry's checks before somebody has filled it in.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.sentences import suppression
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger.totals import unit_named
from pkdp_pipeline.ledger.views.history import History, Line, read_history
from pkdp_pipeline.ledger.views.reading import Reading, chosen_units, stated_total
from pkdp_pipeline.ledger.views.words import attacker_words, budget_words, class_call, number_of
from pkdp_pipeline.model.version import VERSION
from pkdp_pipeline.theorems import THEOREMS

__all__ = ["SCHEMA", "number", "quoted", "registry_text"]

SCHEMA = "opendp/deployments-registry-data, schemas/deployments-schema.yaml, commit 3e9c812a924c (2026-07-15)"
"""The form that is written."""

_DELTA = 1e-6
_PAPER = "Desfontaines, Mohammadi, Krahmer and Basin, Differential privacy with partial knowledge"


def registry_text(reading: Reading, columns: Sequence[str], *, each_row: bool, plain: bool = False) -> Iterator[str]:
    """Yield the YAML text, line by line.

    Parameters
    ----------
    reading : Reading
        Inside a snapshot.
    columns : sequence of str
    each_row : bool
        The privacy unit; see `chosen_units`.
    plain : bool
        ASCII only.

    Raises
    ------
    ArgumentError
        If nothing is published, or the unit is not named where there are several.
    NoEvidenceError
        If the releases do not add up.
    """
    history = read_history(reading.ledger)
    units = chosen_units(history.units, columns, each_row=each_row)
    if not history.lines or not any(line.state == "published" for line in history.lines):
        raise ArgumentError(f"data set {history.dataset!r} has published nothing that could be registered.")
    if len(units) > 1:
        raise ArgumentError(
            f"data set {history.dataset!r} has releases for several privacy units, an entry each: choose one with "
            f"--unit or --each-row: {'; '.join(map(unit_named, units))}."
        )
    draft = _Draft(history, units[0], stated_total(reading, units[0]))
    return (f"{line}\n" for line in _lines(draft.fields(), draft.slug(), plain=plain))


Fields = Sequence[tuple[str, object]]


class _Missing(str):
    """Says what somebody has to fill in; `required` where the schema asks for it."""

    required = False


class _Required(_Missing):
    required = True


class _Draft:
    """One unit's releases, as the registry describes a deployment."""

    def __init__(self, history: History, unit: str, total: Certificate) -> None:
        self._history, self._unit, self._total = history, unit, total
        self._lines: list[Line] = [line for line in history.in_order() if line.holding.unit == unit]

    def slug(self) -> str:
        parts = (self._history.dataset, "curator", self._published()[:4])
        return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")

    def fields(self) -> Fields:
        several = len(self._lines) > 1
        return [
            (
                "basic",
                [
                    ("name", self._history.dataset),
                    ("data_curators", _Required("a list of who publishes it")),
                    ("intended_use", _Required("what it is for")),
                    ("data_product_type", "Summary statistics"),
                    ("data_product_region", _Required("the region it describes, or whose laws apply")),
                    ("description", self._description()),
                    ("publication_date", self._published()),
                    ("data_product_sector", _Missing("one of the schema's sectors")),
                ],
            ),
            (
                "dp_variant",
                [
                    ("variant_name", self._variant()),
                    ("data_domain", _Missing("which datasets are eligible for protection")),
                    ("unprotected_quantities", self._unprotected()),
                ],
            ),
            (
                "privacy_loss",
                [
                    ("privacy_unit", self._person()),
                    ("privacy_unit_details", self._adjacent()),
                    ("privacy_parameters", self._parameters()),
                    ("privacy_parameters_details", self._total.sentence(_DELTA)),
                ],
            ),
            (
                "deployment_model",
                [
                    ("model_name", "Central"),
                    (
                        "model_name_details",
                        "The curator sees the data as collected; what is published is computed from them.",
                    ),
                    ("actors", _Missing("who sees the data and the tables, and who trusts whom")),
                    ("release_type", "Many releases" if several else "One release"),
                    ("release_type_details", self._releases()),
                    ("data_source_type", _Missing("Static or Dynamic")),
                    ("access_type", _Missing("Non-interactive, unless analysts ask questions of their own")),
                ],
            ),
            (
                "accounting",
                [
                    (
                        "post_processing",
                        _Missing("what is derived from the published tables; rollup, shares, rounding"),
                    ),
                    ("composition", self._composition()),
                ],
            ),
            (
                "implementation",
                [
                    ("preprocessing_and_hyperparameter_tuning", _Missing("how k, noise and cells were chosen")),
                    ("mechanisms", self._mechanisms()),
                    ("justification", _Missing("why what is declared about the attacker and the releases is true")),
                ],
            ),
            (
                "administrative",
                [
                    ("sources", _Missing("links")),
                    ("notes", self._notes()),
                    ("registry_authors", _Required("a list of who fills in this record")),
                ],
            ),
        ]

    def _published(self) -> str:
        return min(line.created_at for line in self._lines if line.state == "published")[:10]

    def _description(self) -> str:
        labels = Counter(line.standing.label for line in self._lines)
        listed = "; ".join(f"{label} ({number_of(times, 'release')})" for label, times in labels.most_common(20))
        more = "" if len(labels) <= 20 else f"; and {number_of(len(labels) - 20, 'other table')}"
        first, last = self._lines[0].standing.period, self._lines[-1].standing.period
        about = f"the period {first}" if first == last else f"periods from {first} to {last}"
        return f"Numbers of people, about {about}: {listed}{more}."

    def _against_anyone(self) -> tuple[float, float] | None:
        parameters = self._total.worst_case.parameters
        return None if parameters is None or parameters[0] == math.inf or parameters[1] >= 1.0 else parameters

    def _variant(self) -> str:
        parameters = self._against_anyone()
        if parameters is None:
            return "Custom"
        return "Pure DP" if parameters[1] == 0.0 else "Approximate DP"

    def _parameters(self) -> object:
        """Return the guarantee against anybody where there is one; it is what other entries of the registry state."""
        parameters = self._against_anyone()
        if parameters is not None:
            return [("epsilon", parameters[0]), *([("delta", parameters[1])] if parameters[1] else [])]
        epsilon = self._total.epsilon(_DELTA)
        if epsilon < math.inf:
            return [("epsilon", epsilon), ("delta", _DELTA)]
        delta = self._total.delta(1.0)
        return (
            [("epsilon", 1.0), ("delta", delta)] if delta < 1.0 else _Missing("no epsilon, delta below 1 is certified")
        )

    def _person(self) -> str:
        columns = json.loads(self._unit)
        if not columns:
            return "One row of the data, taken for a person"
        return f"Person: one value of {', '.join(columns)}"

    def _adjacent(self) -> str:
        total = self._total
        differ = (
            "in whether she is counted" if total.protects == "presence" else "in which of two published cells she is"
        )
        reach = "in any of the releases"
        if isinstance(total, ComposedCertificate) and not total.whole:
            reach = "in one release, the person's other records being the same"
        kind = "Adjacent datasets are the same but for one person, who differs"
        if self._against_anyone() is None:
            kind = (
                f"This is differential privacy with partial knowledge ({_PAPER}), not the standard definition: the "
                "privacy relation compares, for every attacker the declared model admits, the distributions of all "
                "that is published given one and the other record of one person, by the hockey-stick divergence in "
                "both orders; the randomness is the attacker's uncertainty about the other people. The person differs"
            )
        return f"{kind} {reach}, {differ}."

    def _releases(self) -> str:
        waiting = sum(line.state == "reserved" for line in self._lines)
        text = f"{number_of(len(self._lines), 'release')} in the ledger, recorded before their data were read."
        if waiting:
            text += f" {number_of(waiting, 'release')} of these is charged and not public."
        budgets = "; ".join(budget_words(budget) for budget in self._history.terms.budgets)
        limit = (
            f"A release that would exceed the budget is refused: {budgets}." if budgets else "No budget is declared."
        )
        return f"{text} The privacy loss is never reset; all releases count. {limit}"

    def _unprotected(self) -> object:
        known = [leak.name for leak in self._total.leakage if not leak.is_private]
        if known:
            return f"Thresholds, cells and periods are public. May be known exactly: {'; '.join(known)}."
        return _Missing("thresholds, cells and periods are public; add what is published of the data elsewhere")

    def _composition(self) -> str:
        rules = [THEOREMS[key] for key in self._total.theorems if THEOREMS[key].is_rule]
        alone = "A single release: nothing to compose"
        if len(self._lines) > 1:
            alone = "Beside exact totals, which are given: nothing to compose (docs/composition.md, rule 7)"
        named = "; ".join(f"{rule.title} ({rule.citation})" for rule in rules) or alone
        declared = " ".join(f"{class_call(one)}: {one.declares}" for one in self._history.evidence)
        return f"{named}. {f'Declared by the curator: {declared}' if declared else 'No evidence is declared.'}"

    def _mechanisms(self) -> str:
        kinds = Counter(self._history.parts[line.holding.part] for line in self._lines)
        listed = [
            f"{number_of(times, 'release')}: {suppression(one.mechanism)} Declared attacker: "
            f"{attacker_words(one.attacker)}."
            for one, times in kinds.most_common(10)
        ]
        if len(kinds) > 10:
            listed.append(f"And {number_of(len(kinds) - 10, 'other choice')} of parameters, in the ledger.")
        noised = any(one.mechanism.noise is not None for one in kinds)
        made = f"Implemented with pkdp_pipeline {VERSION}; guarantees are rounded up"
        made += "; the noise is drawn exactly, in integers, with OpenDP." if noised else "."
        return " ".join((*listed, made))

    def _notes(self) -> str:
        return (
            f"Written from a ledger of pkdp_pipeline {VERSION} whose chain has the head {self._history.head}. Every "
            "release carries a certificate that anybody can recompute. The ledger knows only what is published through "
            "it."
        )


def _lines(fields: Fields, slug: str, *, plain: bool) -> Iterator[str]:
    # The registry's own scripts look for the slug on the first line, unquoted.
    yield f"url_slug: {slug}"
    yield f"# Draft for the Differential Privacy Deployments Registry: {SCHEMA}."
    yield "# Fill in what is null or commented out, then run its scripts/update_slug.py and scripts/check.py."
    yield "status: Draft"
    yield "tier: 2  # 3 once the fields left as comments are filled in"
    yield "deployment:"
    yield from _block(fields, 2, plain=plain)


def _block(fields: Fields, indent: int, *, plain: bool) -> Iterator[str]:
    space = " " * indent
    for name, value in fields:
        if isinstance(value, _Missing):
            yield f"{space}{name}: null  # required: {value}" if value.required else f"{space}# {name}: {value}"
        elif isinstance(value, str):
            yield f"{space}{name}: {quoted(value, plain=plain)}"
        elif isinstance(value, float):
            yield f"{space}{name}: {number(value)}"
        else:
            assert isinstance(value, Sequence)
            yield f"{space}{name}:"
            yield from _block(value, indent + 2, plain=plain)


# What YAML takes for a line break or does not allow unescaped; JSON's own escapes are YAML's too.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_BEYOND_ASCII = re.compile("[^\x00-\x7e]")


def quoted(text: str, *, plain: bool = False) -> str:
    """Return a text in double quotes; with `plain` in ASCII."""
    return (_BEYOND_ASCII if plain else _UNSAFE).sub(_escaped, json.dumps(text, ensure_ascii=False))


def number(value: float) -> str:
    """Return a number; readers of YAML 1.1 take ``1e-06`` for a text, and ``1.0e-06`` for a number."""
    text = repr(float(value))
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}e{exponent}" if mark else text


def _escaped(found: re.Match[str]) -> str:
    point = ord(found.group())
    return f"\\U{point:08x}" if point > 0xFFFF else f"\\u{point:04x}"
