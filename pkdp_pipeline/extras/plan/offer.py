"""Offer: releases that reach a target, as they are written in a job file, in Python, in SQL and as commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace

from pkdp_pipeline.certificates.target import Target
from pkdp_pipeline.cli.options import attacker_flags, evidence_flags, mechanism_flags
from pkdp_pipeline.jobs.toml_text import toml_text
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, evidence_to_dicts
from pkdp_pipeline.model.mechanisms import Counts, Histogram, mechanism_name, noised_below
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.model.wording import ANALYST, JOB_FILE, PYTHON, Speech

_MAX_LINE_LENGTH = 76


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One mechanism, published once or several times. Words in capitals in its texts are to be filled in.

    Parameters
    ----------
    mechanism : Count or Histogram
        The cells of a histogram with a `k` are found in the data; those of others are declared.
    protects : {"presence", "value"}
    epsilon, delta : float
        The numbers that all releases together reach.
    """

    mechanism: Counts
    attacker: AttackerModel
    protects: str
    days: int
    evidence: tuple[Evidence, ...]
    epsilon: float
    delta: float

    @property
    def above(self) -> list[str]:
        """The lines that belong above the first ``[table]`` of a job file."""
        evidence = evidence_to_dicts(self.evidence)
        top = [f"evidence = {toml_text(evidence if len(evidence) > 1 else evidence[0])}  # argued"] if evidence else []
        return [*top, *([] if self._target is None else [f"target = {{ delta = {self.delta!r} }}"])]

    def job(self) -> str:
        """Return TOML to be pasted into a job file; what comes first belongs above its first ``[table]``."""
        attacker = self.attacker
        declared = {name: value for name, value in attacker.to_dict().items() if value is not None}
        declared.pop("leakage", None)
        if not attacker.known:
            del declared["known"], declared["influence"]
        blocks = ["\n".join(self.above)] if self.above else []
        if declared:
            blocks.append(_table("[attacker]  # argued, and never estimated from these data", declared))
        known = "[[attacker.leakage]]  # known besides, whatever is published here"
        blocks += [_table(known, leakage.to_dict()) for leakage in attacker.leakage]
        release = ["[[release]]", 'name = "NAME"', *self._by('by = "COLUMN"'), *self._settings(JOB_FILE)]
        return "\n\n".join([*blocks, "\n".join(release)])

    def python(self) -> str:
        """Return the call that publishes one of them."""
        given = ["FRAME", *self._by('"COLUMN"'), 'unit="UNIT"', *self._settings(PYTHON), *self._terms()]
        return _call(f"pkdp.{mechanism_name(self.mechanism)}", given)

    def install(self) -> str:
        """Return the call after which `sql` publishes one of them."""
        return _call("pkdp.duckdb.install", ["CONNECTION", 'unit="UNIT"', *self._terms()])

    def sql(self) -> str:
        """Return the query that publishes one of them."""
        given = ["'TABLE'", *self._by("'COLUMN'"), *self._settings(ANALYST, "'")]
        return _call(f"FROM pkdp_{mechanism_name(self.mechanism)}", given)

    def command(self) -> str:
        """Return the command that publishes one of them."""
        cells = ["--cell", "CELL", "--cell", "CELL"] if self._declares else []
        words = ["FILE", *self._by("--by", "COLUMN"), *cells, "--unit", "UNIT", *self._flags()]
        if self.days > 1:
            words += ["--ledger", "LEDGER", "--dataset", "DATASET", "--period", "PERIOD"]
            words += evidence_flags(self.evidence)
        words += [] if self._target is None else ["--delta", exactly(self.delta)]
        return shlex.join(["pkdp", mechanism_name(self.mechanism), *words])

    def certify(self) -> str:
        """Return the command that certifies all of them."""
        words = [*self.options(), *([] if self.days == 1 else ["--days", str(self.days)])]
        words += [*evidence_flags(self.evidence), "--epsilon", exactly(self.epsilon), "--delta", exactly(self.delta)]
        return shlex.join(["pkdp", "certify", mechanism_name(self.mechanism), *words])

    def options(self) -> list[str]:
        """Return the options that name the mechanism and the attacker where no data say which cells there are."""
        return self._flags() + (["--cells-from-data"] if self._shown != self.mechanism else [])

    def _by(self, *words: str) -> tuple[str, ...]:
        return words if isinstance(self.mechanism, Histogram) else ()

    @property
    def _declares(self) -> bool:
        return isinstance(self.mechanism, Histogram) and (self.mechanism.k is None or self.mechanism.below == "noise")

    @property
    def _shown(self) -> Counts:
        """The mechanism without a k, or a count of 0 that is left out, that follow from the rest."""
        if noised_below(self.mechanism):
            return replace(self.mechanism, below="noise")
        bare = replace(self.mechanism, k=None)
        return bare if isinstance(bare, Histogram) and bare.of_found_cells() == self.mechanism else self.mechanism

    @property
    def _target(self) -> Target | None:
        """The target of a release, where it may promise less than is otherwise required."""
        return Target(delta=self.delta) if Target().delta < self.delta < 1.0 else None

    def _flags(self) -> list[str]:
        protects = [] if self.protects == "presence" else ["--protects", self.protects]
        return [*mechanism_flags(self._shown), *protects, *attacker_flags(self.attacker)]

    def _settings(self, say: Speech, quote: str = '"') -> list[str]:
        """Return what is set of a release, as a speech writes it."""
        shown, cell = self._shown, f"{quote}CELL{quote}"
        words = [say.setting("domain", f"[{cell}, {cell}]")] if self._declares else []
        words += [] if shown.noise is None else [say.noise(shown.noise.epsilon)]
        for name in ("k", "k_complement", "release_threshold", "cells_per_unit"):
            value = getattr(shown, name, None)
            words += [] if value is None or (name, value) == ("cells_per_unit", 1) else [say.setting(name, value)]
        words += [say.setting("below", f"{quote}noise{quote}")] if noised_below(shown) else []
        hidden = [] if self.protects == "presence" else [say.setting("protects", f"{quote}{self.protects}{quote}")]
        return words + hidden

    def _terms(self) -> list[str]:
        """Return what is declared beside a release, in Python."""
        words = [] if self.attacker == AttackerModel() else [f"attacker={_python(self.attacker)}"]
        words += [] if self._target is None else [f"target={_python(self._target)}"]
        if self.days > 1:
            evidence = f", evidence={_python(self.evidence)}" if self.evidence else ""
            words += [f'ledger=pkdp.Ledger.open("LEDGER", dataset="DATASET"{evidence})', 'period="PERIOD"']
        return words


def _call(name: str, given: list[str]) -> str:
    """Return a call, on several lines where one would be long."""
    line = ", ".join(given)
    if len(f"{name}({line})") <= _MAX_LINE_LENGTH:
        return f"{name}({line})"
    inside = line if len(line) + 4 <= _MAX_LINE_LENGTH else ",\n    ".join(given)
    return f"{name}(\n    {inside}\n)"


def _table(head: str, values: Mapping[str, object]) -> str:
    return "\n".join((head, *(f"{name} = {toml_text(value)}" for name, value in values.items())))


def _python(value: object) -> str:
    """Return a value as it is written in Python."""
    if is_dataclass(value):
        given = ((field.name, getattr(value, field.name), field.default) for field in fields(value))
        words = (f"{name}={_python(set_to)}" for name, set_to, plain in given if set_to != plain)
        return f"pkdp.{type(value).__name__}({', '.join(words)})"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_python, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
