"""Registry: a draft of the data set's entry in the public Differential Privacy Deployments Registry.

The form is that of ``schemas/deployments-schema.yaml`` in https://github.com/opendp/deployments-registry-data,
which has no version of its own; `SCHEMA` names the commit. Only what the ledger knows is written. The rest
is left as a comment, and where the schema requires it as ``null``, so that the draft does not pass the registry's
checks before somebody has filled it in.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

from jinja2 import Environment, PackageLoader, StrictUndefined

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate, releases_in
from pkdp_pipeline.certificates.sentences import suppression
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.account import unit_named
from pkdp_pipeline.ledger.history import History, read_history
from pkdp_pipeline.ledger.reading import chosen_units
from pkdp_pipeline.ledger.words import attacker_words, budget_words, evidence_words, number_of
from pkdp_pipeline.model import VERSION
from pkdp_pipeline.theorems import THEOREMS

SCHEMA = "opendp/deployments-registry-data, schemas/deployments-schema.yaml, commit 3e9c812a924c (2026-07-15)"
"""The form that is written."""

_DELTA = 1e-6
_MAX_LABELS, _MAX_KINDS = 20, 10  # so many are named


def registry_text(ledger: Ledger, columns: Sequence[str], *, each_row: bool, plain: bool = False) -> str:
    """Return the YAML text, inside a snapshot of the ledger; for the privacy unit see `chosen_units`.

    Raises `ArgumentError` if nothing is published, or the unit is not named where there are several; `NoEvidenceError`
    if the releases do not add up. A `plain` text is ASCII only.
    """
    history = read_history(ledger)
    units = chosen_units(history.units, columns, each_row=each_row)
    if not history.lines or not any(line.state == "published" for line in history.lines):
        raise ArgumentError(f"data set {history.dataset!r} has published nothing that could be registered.")
    if len(units) > 1:
        raise ArgumentError(
            f"data set {history.dataset!r} has releases for several privacy units, an entry each: choose one with "
            f"--unit or --each-row: {'; '.join(map(unit_named, units))}."
        )
    return _written(history, units[0], history.totals.total(units[0]), plain=plain)


def _written(history: History, unit: str, total: Certificate, *, plain: bool) -> str:
    """Return the form with all that the ledger knows of one unit's releases filled in."""
    lines = [line for line in history.in_order() if line.row.unit == unit]
    published = min(line.created_at for line in lines if line.state == "published")[:10]
    labels = Counter(line.standing.label for line in lines)
    kinds = Counter(release for line in lines for release in releases_in(history.parts[line.row.part]))
    anyone = total.worst_case.parameters
    if anyone is not None and (anyone[0] == math.inf or anyone[1] >= 1.0):
        anyone = None
    # The guarantee against anybody where there is one; it is what other entries of the registry state.
    epsilon, delta = anyone or (total.epsilon(_DELTA), _DELTA)
    if epsilon == math.inf:
        epsilon, delta = 1.0, total.delta(1.0)
    parameters = {"epsilon": epsilon} | ({"delta": delta} if delta else {})
    environment = Environment(
        loader=PackageLoader("pkdp_pipeline.extras.report.ledger", ""),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {"q": partial(quoted, plain=plain), "number": number}
    return environment.get_template("registry.yaml.jinja").render(
        slug="_".join(
            re.sub(r"\W+", "_", part.lower()) for part in (history.dataset, "curator", published[:4])
        ).replace("_", "-"),
        schema=SCHEMA,
        version=VERSION,
        history=history,
        total=total,
        whole=not isinstance(total, ComposedCertificate) or total.whole,
        lines=lines,
        first=lines[0].standing.period,
        last=lines[-1].standing.period,
        published=published,
        labels=[f"{label} ({number_of(times, 'release')})" for label, times in labels.most_common(_MAX_LABELS)],
        more_labels=max(0, len(labels) - _MAX_LABELS),
        kinds=kinds.most_common(_MAX_KINDS),
        more_kinds=max(0, len(kinds) - _MAX_KINDS),
        noised=any(kind.mechanism.noise is not None for kind in kinds),
        waiting=sum(line.state == "reserved" for line in lines),
        anyone=anyone,
        parameters={} if delta >= 1.0 else parameters,
        delta=_DELTA,
        columns=json.loads(unit),
        leaks=[leak.name for leak in total.leakage if not leak.is_private],
        budgets=[budget_words(budget) for budget in history.terms.budgets],
        rules=[THEOREMS[key] for key in total.theorems if THEOREMS[key].is_rule],
        **{function.__name__: function for function in (attacker_words, evidence_words, number_of, suppression)},
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


def _escaped(match: re.Match[str]) -> str:
    point = ord(match.group())
    return f"\\U{point:08x}" if point > 0xFFFF else f"\\u{point:04x}"
