"""Explaining how a total comes about, to defend it, what may be published next, and one release.

Registry: a draft of the data set's entry in the public Differential Privacy Deployments Registry.

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
from datetime import date
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate, releases_in
from pkdp_pipeline.certificates.sentences import protection, suppression
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.extras.report import environment
from pkdp_pipeline.extras.report.ledger.showing import opening, rule_lines, statements
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.account import unit_named
from pkdp_pipeline.ledger.admission import allows_overlap, covers_periods
from pkdp_pipeline.ledger.history import (
    MAX_FURTHER_RELEASES,
    History,
    Spent,
    alone_words,
    amount,
    attacker_words,
    budget_words,
    command,
    evidence_words,
    how_many_more,
    mechanism_words,
    noise_words,
    number_of,
    read_history,
    spent,
    state_words,
    term_changes,
    terms_words,
    verify_command,
)
from pkdp_pipeline.ledger.reading import chosen_units
from pkdp_pipeline.ledger.rows import Row, counted, promise_of
from pkdp_pipeline.model.evidence import (
    KINDS,
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)
from pkdp_pipeline.model.mechanisms import mechanism_name
from pkdp_pipeline.model.period import exactly, printable
from pkdp_pipeline.model.wording import JOB_FILE, joined_texts
from pkdp_pipeline.schemas import VERSION
from pkdp_pipeline.theorems.theorems import THEOREMS

_MAX_GROUPS = 10
_OFFERED = (IndependentGivenHabits, OneDayProtected, DisjointUnits, OncePerUnit)


def explain_total(
    screen: Screen, ledger: Ledger, history: History, units: Sequence[str], *, delta: float, seconds: float = 1.5
) -> None:
    """Print how the totals of these units come about.

    `ledger`: inside a snapshot. `units`: see `unit_text`. `seconds`: see `spent`.
    """
    title, summary = opening(history, ledger.location)
    screen.title(title)
    screen.say(summary, indent=0)
    pages = _pages(history)
    if not history.lines:
        screen.say("Nothing is published, so there is nothing to add up.", indent=0)
    else:
        revisions = len({(line.key, line.revision) for line in history.lines if line.revision > 1})
        screen.page(pages.declared(term_changes(ledger), revisions))
    for unit in units:
        if len(history.units) > 1:
            screen.head(f"Privacy unit {unit_named(unit)}")
        screen.page(pages.people(json.loads(unit), sum(line.row.unit == unit for line in history.lines)))
        _parts(screen, history, unit, delta)
        groups = [group for group in history.components() if any(row.unit == unit for row in group)]
        several = [group for group in groups if len(group) > 1]
        screen.page(pages.together(len(groups) - len(several), several, partial(_listed, history)))
        budgets = spent(history.totals, unit, seconds=seconds)
        _total(screen, history, unit, budgets, delta)
    last, more = history.lines[-1] if history.lines else None, None
    if last is not None and (covers_periods(history.evidence) or not last.standing.noiseless):
        more = how_many_more(history.totals, last.row.unit, last.row.part)
    windows = any(budget.window_days is not None for budget in history.terms.budgets)
    next_one = None if last is None else last.standing
    screen.page(pages.after(more, MAX_FURTHER_RELEASES, next_one, windows, verify_command(ledger, history.head)))


def pages(**facts: Any) -> Any:
    """Return what is said of facts, by macros; each returns a text for `Screen.page`."""
    filling = environment("ledger")
    filling.filters |= {"literal": repr, "printable": printable}
    named = (
        number_of,
        evidence_words,
        budget_words,
        terms_words,
        mechanism_words,
        *_OFFERED,
        BoundedDependence,
        BoundedParticipation,
    )
    filling.globals |= facts | {function.__name__: function for function in named} | {"say": JOB_FILE}
    return filling.get_template("explain.txt.jinja").module


def _pages(history: History) -> Any:
    standing = [line.standing for line in history.lines]
    leaks = any(part.leakage for part in history.parts.values())  # beside it nothing adds up by OncePerUnit
    return pages(
        history=history,
        covers=covers_periods(history.evidence),
        overlaps=allows_overlap(history.evidence),
        declares=dict.fromkeys(KINDS) | {declaration.key: declaration for declaration in history.evidence},
        offered=[kind for kind in _OFFERED if not (leaks and kind is OncePerUnit)],
        kinds={facts.kind for facts in standing},
        noiseless=next((facts for facts in standing if facts.noiseless and not facts.total), None),
    )


def _parts(screen: Screen, history: History, unit: str, delta: float) -> None:
    screen.head("From which parts")
    counts = Counter(line.row.part for line in history.lines if line.row.unit == unit)
    columns = ["times", "published", "noise", "attacker", "alone", "against anyone, ε"]
    rows = []
    for part, times in counts.most_common(_MAX_GROUPS):
        whole = history.parts[part]
        release, *others = releases_in(whole)
        rows.append(
            [
                f"{times:,}",
                f"{mechanism_words(release.mechanism, whole.protects)}; {whole.protects}",
                noise_words(release.mechanism),
                " or ".join(attacker_words(each.attacker) for each in (release, *others)),
                alone_words(whole, delta),
                amount(whole.worst_case.epsilon(delta)),
            ]
        )
    screen.records(columns, rows, wide=90, right=("times", "against anyone, ε"))
    rest = len(counts) - _MAX_GROUPS
    if rest > 0:
        times = counts.total() - sum(number for _, number in counts.most_common(_MAX_GROUPS))
        screen.say(f"and {number_of(rest, 'other kind')} of part, in {number_of(times, 'release')}.")
    screen.say(f"ε at δ = {exactly(delta)}, each release by itself.")
    for text in dict.fromkeys(_protects(history, part) for part in counts):
        screen.say(text)


def _protects(history: History, part: str) -> str:
    release = next(releases_in(history.parts[part]))
    kind = mechanism_name(release.mechanism)
    protected = protection(release.mechanism, release.protects, release.theorems[0], release.attacker)
    return joined_texts((f"A {kind} by itself:", *protected))


def _listed(history: History, group: Sequence[Row]) -> str:
    """Return the period of releases that stand together, and which they are."""
    entries = {row.id for row in group}
    labels = Counter(
        f"{line.standing.label} ({mechanism_words(line.standing.mechanism, line.standing.protects)})"
        for line in history.lines
        if line.sequence in entries
    )
    days = [date.fromordinal(day).isoformat() for row in group for day in row.span[:2] if day is not None]
    span = " to ".join(dict.fromkeys((min(days), max(days)))) if days else repr(group[0].label)
    listed = "; ".join(
        label if times == 1 else f"{times} × {label}" for label, times in labels.most_common(_MAX_GROUPS)
    )
    return printable(f"{span}: {listed}")


def _total(screen: Screen, history: History, unit: str, budgets: Sequence[Spent], delta: float) -> None:
    screen.head("Together")
    try:
        total = history.totals.total(unit)
    except NoEvidenceError as error:
        screen.item(f"They do not add up. {error}")
        return
    screen.pairs([*rule_lines(total, history.terms), *statements(total, delta, history.totals.hidden_below(unit))])
    screen.say(total.sentence(delta))
    if budgets:
        screen.head("Budgets")
        screen.budgets(budgets)


_MIN_KEY_LENGTH = 4


def found_entry(ledger: Ledger, *, key: str | None, entry: int | None) -> Entry:
    """Return the release that a key or the number of an entry names; of several revisions the latest.

    Raises `ArgumentError` if there is none, or `key` is the start of several keys.
    """
    if entry is not None:
        for candidate in ledger.entries(given_back=True):
            if candidate.sequence == entry:
                return candidate
        raise ArgumentError(
            f"--entry {entry}: data set {ledger.dataset!r} has no such entry. This lists them: "
            f"{command('show', ledger.location, '--all')}"
        )
    start = (key or "").strip().lower()
    if len(start) < _MIN_KEY_LENGTH:
        raise ArgumentError(
            f"--key must be the start of a key or of a release's id, {_MIN_KEY_LENGTH} characters at least."
        )
    matches = [
        release
        for release in ledger.entries(given_back=True)
        if release.key.lower().startswith(start) or (release.release_id or "").lower().startswith(start)
    ]
    if not matches:
        raise ArgumentError(f"--key: data set {ledger.dataset!r} has no key and no id that starts so.")
    if len({match.key for match in matches}) > 1:
        raise ArgumentError("--key is the start of several: give more of it, or --entry.")
    return matches[-1]


def explain_entry(screen: Screen, ledger: Ledger, entry: Entry, *, delta: float) -> None:
    """Print what one release promises, its terms and its events."""
    standing = entry.standing
    screen.title(f"Entry {entry.sequence}: {entry.label}, {entry.period}")
    screen.head("The release")
    who = f"one value of {', '.join(map(repr, entry.unit))}" if entry.unit else "every row"
    where = "a predicate that was not written down" if standing.opaque else standing.where
    rows = [
        ("State", state_words(entry.state)),
        ("Published", mechanism_words(standing.mechanism, standing.protects)),
        ("Noise", noise_words(standing.mechanism)),
        ("A person", who),
        ("Cells", ", ".join(standing.by) if standing.by else "none: one number"),
        ("Rows", where or "all"),
        ("Revision", str(entry.revision)),
        ("Key", entry.key),
        ("Release id", entry.release_id or "none yet"),
    ]
    screen.pairs(rows)
    only = counted(entry.certificates) == counted([entry.certificate])
    earlier = "" if only else amount(promise_of(entry.certificates).epsilon(delta))
    total, events = _events(ledger, entry)
    sentence = Certificate.from_json(entry.certificate).sentence(delta)
    screen.page(pages(entry=entry).single(sentence, earlier, exactly(delta), total, events))


def _events(ledger: Ledger, entry: Entry) -> tuple[int, list[tuple[Any, ...]]]:
    """Return how many events the chain has, and those of one entry."""
    ((total,),) = ledger.records.execute("SELECT count(*) FROM event WHERE dataset = :dataset")
    rows = ledger.records.execute(
        "SELECT position, kind, created_at, hash FROM event WHERE dataset = :dataset AND key = :key "
        "AND revision = :revision AND sequence >= :id ORDER BY position",
        **entry.row._asdict(),
    )
    # What was given back may have been reserved again under the same revision.
    own: list[tuple[Any, ...]] = []
    for row in rows:
        if own and row[1] == "reserved":
            break
        own.append(row)
    return int(total), own


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
