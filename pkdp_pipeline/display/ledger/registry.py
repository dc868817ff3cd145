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
from collections.abc import Sequence
from pathlib import Path

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.sentences import suppression
from pkdp_pipeline.display.ledger.words import attacker_words, budget_words, class_call, number_of
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger.adding_up import unit_named
from pkdp_pipeline.ledger.views.history import History, Line, read_history
from pkdp_pipeline.ledger.views.reading import Reading, chosen_units, stated_total
from pkdp_pipeline.model.version import VERSION
from pkdp_pipeline.theorems import THEOREMS

__all__ = ["SCHEMA", "number", "quoted", "registry_text"]

SCHEMA = "opendp/deployments-registry-data, schemas/deployments-schema.yaml, commit 3e9c812a924c (2026-07-15)"
"""The form that is written."""

_DELTA = 1e-6
_FORM = Path(__file__).with_name("registry.yaml")
_NOTHING = "no epsilon, delta below 1 is certified"
_PAPER = "Desfontaines, Mohammadi, Krahmer and Basin, Differential privacy with partial knowledge"


def registry_text(reading: Reading, columns: Sequence[str], *, each_row: bool, plain: bool = False) -> str:
    """Return the YAML text.

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
    return _Draft(history, units[0], stated_total(reading, units[0])).text(plain=plain)


class _Draft:
    """One unit's releases, as the registry describes a deployment."""

    def __init__(self, history: History, unit: str, total: Certificate) -> None:
        self._history, self._unit, self._total = history, unit, total
        self._lines: list[Line] = [line for line in history.in_order() if line.holding.unit == unit]

    def text(self, *, plain: bool) -> str:
        """Return the form with all that the ledger knows filled in."""
        published = min(line.created_at for line in self._lines if line.state == "published")[:10]
        parts = (self._history.dataset, "curator", published[:4])
        known = {
            "name": self._history.dataset,
            "description": self._description(),
            "published": published,
            "variant": self._variant(),
            "unit": self._person(),
            "adjacent": self._adjacent(),
            "sentence": self._total.sentence(_DELTA),
            "type": "Many releases" if len(self._lines) > 1 else "One release",
            "releases": self._releases(),
            "composition": self._composition(),
            "mechanisms": self._mechanisms(),
            "notes": self._notes(),
        }
        leaks = [leak.name for leak in self._total.leakage if not leak.is_private]
        public = f"Thresholds, cells and periods are public. May be known exactly: {'; '.join(leaks)}."
        missing = "# unprotected_quantities: thresholds, cells and periods are public; add what is published elsewhere"
        parameters = self._parameters()
        return _FORM.read_text(encoding="utf-8").format(
            slug="_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-"),
            schema=SCHEMA,
            unprotected=f"unprotected_quantities: {quoted(public, plain=plain)}" if leaks else missing,
            parameters=f"privacy_parameters:{parameters}" if parameters else f"# privacy_parameters: {_NOTHING}",
            **{name: quoted(text, plain=plain) for name, text in known.items()},
        )

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

    def _parameters(self) -> str:
        """Return the guarantee against anybody where there is one; it is what other entries of the registry state."""
        pair = self._against_anyone() or (self._total.epsilon(_DELTA), _DELTA)
        if pair[0] == math.inf:
            pair = (1.0, self._total.delta(1.0))
        named = [("epsilon", pair[0]), *([("delta", pair[1])] if pair[1] else [])]
        return "" if pair[1] >= 1.0 else "".join(f"\n      {name}: {number(value)}" for name, value in named)

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
