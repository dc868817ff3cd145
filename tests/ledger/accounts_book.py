"""Accounts under test: one data set's, with what a chain would know about them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.chain import Terms, json_text
from pkdp_pipeline.ledger.charging import check_recertified
from pkdp_pipeline.ledger.records import Records, compare, open_database
from pkdp_pipeline.ledger.totals import LedgerTotals
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Context, Facts
from pkdp_pipeline.model.mechanisms import Histogram

ATTACKER = AttackerModel(p_max=0.1, p_min=0.1, unknown=2000)


@cache
def certified(mechanism, attacker, protects):
    return certify(mechanism, attacker, protects=protects)


@cache
def as_text(certificate):
    return certificate.to_json()


@dataclass
class Kept:
    key: str
    standing: Facts


class Book:
    """One data set of a ledger; what `check` leaves out is charged without asking any rule."""

    def __init__(self, terms=None, database=None, dataset="flights"):
        self.database = database or open_database(":memory:")
        self.dataset, self.terms, self.kept = dataset, terms or Terms(), {}
        self.numbers, self.records = itertools.count(1), Records(self.database, dataset)

    @property
    def ledger(self):
        terms = self.terms
        return Ledger(self.database, dataset=self.dataset, budget=terms.budgets, evidence=terms.evidence)

    def add(self, mechanism, period, *, attacker=ATTACKER, check=True, **fields):
        new_standing, key = standing(mechanism, period, **fields), f"key {next(self.numbers)}"

        def offer(admission, head):
            whom = attacker if admission is None or admission.claims else attacker.against_anyone()
            context = Context(unit=new_standing.unit, period=new_standing.period, head=head)
            return certified(mechanism, whom, new_standing.protects).in_context(context)

        if check:
            entry = self.ledger.reserve(key, new_standing, offer, attacker=attacker).charged.sequence
        else:
            with self.records.transaction():
                self.records.register()
                texts = {"standing": new_standing.to_dict(), "terms": self.terms.to_dict()}
                texts = {name: json_text(fields) for name, fields in texts.items()}
                certificate = as_text(offer(None, self.ledger.head()))
                entry = self._record("reserved", key, certificate=certificate, **texts).id
        self.kept[entry] = Kept(key, new_standing)
        return entry

    def _record(self, kind, key, **fields):
        return self.records.record(kind, key, 1, **fields)[0]

    def remove(self, entry):
        """Give a release back, unless it was certified again, and so published."""
        if self.records.row(entry).state == "reserved":
            with self.records.transaction():
                self._record("given_back", self.kept.pop(entry).key)

    def recertify(self, entry, attacker):
        kept, former = self.kept[entry], self.records.row(entry)
        certificate = as_text(certified(kept.standing.mechanism, attacker, kept.standing.protects))
        with self.records.transaction():
            if former.state == "reserved":
                former = self._record("published", kept.key, release_id="id", content=b"bytes")
            self._record("recertified", kept.key, certificate=certificate, release_id="id", content=b"bytes")
            newest, terms = self.records.read(entry), self.terms
            if check := check_recertified(self.records, newest, former, recorded=terms, terms=terms):
                check()

    def total(self, unit=None, evidence=None):
        terms = self.terms if evidence is None else Terms(evidence=evidence)
        return (totals := LedgerTotals.read(self.records, terms)).total(totals.asked_unit(unit))

    def verify(self):
        compare(self.records)

    def state(self):
        return [(*row[:7], row.part) for row in self.records.account().rows]

    def bundles(self):
        account = self.records.account()
        return {unit: account.bundles(unit) for unit in account.units}

    def components(self):
        return self.records.account().components


def standing(mechanism, period, **fields):
    by = ("carrier",) if isinstance(mechanism, Histogram) else None
    return Facts(**{"unit": ("tailnum",), "by": by, "label": "x", **fields}, mechanism=mechanism, period=period)
