"""Published rules of display: what offices do with small counts, as mechanisms, and what each of them promises."""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import typer

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.errors import REFUSED, ArgumentError
from pkdp_pipeline.extras.plan.planning import smallest_k
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Histogram, mechanism_from_dict, mechanism_to_dict, without_display
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import percent, rounded_up

ATTACKERS = (*(AttackerModel(p_max=p_max) for p_max in (0.05, 0.1, 0.2)), AttackerModel(sampled=0.1))
"""Those against whom rules are compared: at most so sure of anybody, or ignorant of who was drawn into a sample."""

FAIR = "Most rules were never meant to give such a number: they keep single people from standing out."

_TARGET = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A published rule of display.

    Parameters
    ----------
    key : str
        Its name in `pkdp_pipeline.rule` and ``pkdp certify rule``.
    name, publisher, url : str
        Its title, its office, and where it can be read.
    read : datetime.date
        The date it was read. Rules change.
    hides : str
        The counts that it hides or changes, as the source says.
    zero : {"alike", "apart", "not said"}
        Whether a zero looks like a small count; where it is told apart, nothing can be promised.
    mechanism : Histogram, optional
        The mechanism that says the same, or more; None where there is none.
    nearest : Histogram, optional
        The nearest that can be certified, where the rule itself cannot.
    obstacle : str, optional
        The reason why there is none.
    """

    key: str
    name: str
    publisher: str
    url: str
    read: datetime.date
    hides: str
    zero: Literal["alike", "apart", "not said"]
    mechanism: Histogram | None = None
    nearest: Histogram | None = None
    obstacle: str | None = None

    @property
    def certifiable(self) -> Histogram | None:
        """The rule itself where it can be certified, otherwise the nearest that can; None where there is none."""
        return self.mechanism if self.zero == "alike" else self.nearest

    @property
    def smallest_change(self) -> str | None:
        """The change by which something can be promised; None where none is needed."""
        if self.zero == "alike":
            return None
        if self.nearest is None:
            return f"none is known: {self.obstacle}"
        hidden = f"0 to {first_shown(self.nearest) - 1}"
        if self.mechanism is not None:
            return f"hide counts of {hidden} before they are rounded"
        return f"show counts of {hidden} alike"


def rule(key: str) -> Rule:
    """Return a published rule of display: what an office does with small counts, as a mechanism.

    Parameters
    ----------
    key : str
        As ``pkdp certify rule --list`` has it, such as "ehrql", "cms" or "stats-nz".

    Returns
    -------
    Rule

    Raises
    ------
    ArgumentError
        If there is no such rule.

    Notes
    -----
    `Rule.mechanism` says the same as the rule, `Rule.zero` whether a zero is visible apart from small counts, so that
    nothing can be promised, and `Rule.certifiable` what can be: the rule, or the nearest that hides zeros too.
    """
    if key not in rules():
        raise ArgumentError(f"rule must be one of {', '.join(rules())}; got {key!r}.")
    return rules()[key]


@cache
def rules() -> Mapping[str, Rule]:
    """Return all published rules by their keys."""
    content = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
    return MappingProxyType({key: _read(key, fields) for key, fields in content.items()})


def _read(key: str, fields: Mapping[str, Any]) -> Rule:
    mechanisms = {
        name: mechanism_from_dict({"mechanism": "histogram", **fields[name]})
        for name in ("mechanism", "nearest")
        if name in fields
    }
    return Rule(key=key, **{**fields, **mechanisms})


def first_shown(mechanism: Histogram) -> int:
    """Return the first count that is shown apart from 0."""
    return without_display(mechanism).k or 1


def in_short(mechanism: Histogram) -> str:
    """Return what is published, in few words."""
    shown = "" if mechanism.display is None else f"shown {mechanism.display.words}"
    return ", ".join(filter(None, ["" if mechanism.k is None else f"k = {mechanism.k}", shown]))


def _published(chosen: Rule) -> str:
    return "-" if chosen.certifiable is None else in_short(chosen.certifiable)


def deltas(mechanism: Histogram, epsilon: float, attackers: Sequence[AttackerModel] = ATTACKERS) -> tuple[float, ...]:
    """Return the deltas that are certified at an epsilon, against each attacker."""
    return tuple(certify(mechanism, attacker).delta(epsilon) for attacker in attackers)


def print_rules(as_json: bool) -> None:
    """Print the catalogue."""
    if as_json:
        typer.echo(json.dumps([_document(each, (), 1.0) for each in rules().values()], ensure_ascii=False, indent=2))
        return
    screen = Screen()
    rows = [(each.key, f"{each.publisher}: {each.name}", each.zero, _published(each)) for each in rules().values()]
    screen.records(("key", "rule", "zero", "can be certified"), rows, wide=96)
    screen.say(FAIR)


def print_rule(key: str, p_max: float | None, epsilon: float, as_json: bool) -> None:
    """Print a rule, what it promises, and what to change where that is nothing; which ends with exit code 4."""
    chosen = rule(key)
    others = () if p_max is None else (AttackerModel(p_max=p_max),)
    attackers = (*others, *(attacker for attacker in ATTACKERS if attacker not in others))
    if as_json:
        typer.echo(json.dumps(_document(chosen, attackers, epsilon), ensure_ascii=False, indent=2))
    else:
        _say(Screen(), chosen, attackers, epsilon)
    if chosen.zero != "alike":
        raise typer.Exit(REFUSED)


def _say(screen: Screen, chosen: Rule, attackers: Sequence[AttackerModel], epsilon: float) -> None:
    header = ("attacker", f"δ at ε = {exactly(epsilon)}", f"k for δ = {exactly(_TARGET)}")
    screen.title(f"{chosen.publisher}: {chosen.name}")
    screen.say(chosen.hides)
    screen.say(f"Read on {chosen.read.isoformat()}: {chosen.url}")
    change, certifiable = chosen.smallest_change, chosen.certifiable
    if change is not None:
        screen.head("Nothing can be promised")
        if chosen.zero == "apart":
            screen.say("A visible zero: it can be told from a small count, and so can whoever is alone in a cell.")
        screen.say(f"The smallest change: {change}.")
    if certifiable is not None:
        screen.head("Its promise" if change is None else "The promise of that")
        first = first_shown(certifiable)
        screen.say(f"Published: {in_short(certifiable)}. The first count shown apart from 0 is {first}.")
        rows = [
            (_whom(attacker), rounded_up(delta), str(smallest_k(attacker, epsilon=epsilon, delta=_TARGET)))
            for attacker, delta in zip(attackers, deltas(certifiable, epsilon, attackers), strict=True)
        ]
        screen.table(header, rows, right=header[1:])
    screen.say(FAIR)


def _whom(attacker: AttackerModel) -> str:
    if attacker.sampled is not None:
        return f"knows all but who was drawn, {percent(attacker.sampled)} at most"
    return f"at most {percent(attacker.p_max)} sure of anybody"


def _document(chosen: Rule, attackers: Sequence[AttackerModel], epsilon: float) -> dict[str, Any]:
    certifiable = chosen.certifiable
    document: dict[str, Any] = {
        "rule": chosen.key,
        "name": chosen.name,
        "publisher": chosen.publisher,
        "url": chosen.url,
        "read": chosen.read.isoformat(),
        "hides": chosen.hides,
        "zero": chosen.zero,
        "mechanism": None if chosen.mechanism is None else mechanism_to_dict(chosen.mechanism),
        "certifiable": None if certifiable is None else mechanism_to_dict(certifiable),
        "smallest_change": chosen.smallest_change,
    }
    if attackers and certifiable is not None:
        numbers = zip(attackers, deltas(certifiable, epsilon, attackers), strict=True)
        document |= {
            "epsilon": epsilon,
            "deltas": [{**_named(attacker), "delta": delta} for attacker, delta in numbers],
        }
    return document


def _named(attacker: AttackerModel) -> dict[str, float | None]:
    return {"p_max": attacker.p_max} if attacker.sampled is None else {"sampled": attacker.sampled}
