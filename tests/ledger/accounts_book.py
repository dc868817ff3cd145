"""Accounts under test: one data set's, with what a chain would know about them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.ledger import Standing, accounts
from pkdp_pipeline.ledger.account import compare_account, read_account
from pkdp_pipeline.ledger.database import open_database
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Context
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
    sequence: int
    standing: Standing
    certificates: tuple[str, ...]


class Book:
    """Accounts of one data set with what a chain would know about them."""

    def __init__(self, terms=None, database=None, dataset="flights"):
        self.database = database or open_database(":memory:")
        self.dataset, self.terms, self.kept = dataset, terms or Terms(), {}
        self.numbers = itertools.count(1 if database is None else 1001)

    def add(self, mechanism, period, *, attacker=ATTACKER, check=True, **fields):
        asked = standing(mechanism, period, **fields)
        with self.database.transaction(self.dataset):
            told = attacker.total_is_known
            claims = not check or accounts.admit(self.database, self.dataset, asked, self.terms, told=told).claims
            certificate = certified(mechanism, attacker if claims else attacker.against_anyone(), asked.protects)
            entry = next(self.numbers)
            published = certificate.in_context(Context(unit=asked.unit, period=asked.period, head="0" * 64))
            accounts.charge(self.database, self.dataset, asked, published, self.terms, entry)
        self.kept[entry] = Kept(entry, asked, (as_text(certificate),))
        return entry

    def remove(self, entry):
        with self.database.transaction(self.dataset):
            accounts.withdraw(self.database, self.dataset, entry)
        del self.kept[entry]

    def recertify(self, entry, attacker):
        mechanism = self.kept[entry].standing.mechanism
        certificate = certified(mechanism, attacker, self.kept[entry].standing.protects)
        with self.database.transaction(self.dataset):
            accounts.recertified(self.database, self.dataset, entry, certificate, self.terms, self.terms)
        self.kept[entry].certificates += (as_text(certificate),)

    def total(self, unit=None, evidence=None):
        terms = self.terms if evidence is None else Terms(evidence=evidence)
        return accounts.total(self.database, self.dataset, unit, terms)

    def verify(self):
        compare_account(self.database, self.dataset, list(self.kept.values()))

    def state(self):
        rows = self.database.execute("SELECT * FROM holding WHERE dataset = :dataset", dataset=self.dataset)
        return sorted(rows, key=repr)

    def bundles(self):
        account = read_account(self.database, self.dataset)
        return {unit: account.bundles(unit) for unit in account.units}

    def components(self):
        return read_account(self.database, self.dataset).components


def standing(mechanism, period, **fields):
    by = ("carrier",) if isinstance(mechanism, Histogram) else None
    return Standing(**{"unit": ("tailnum",), "by": by, "label": "x", **fields}, mechanism=mechanism, period=period)
