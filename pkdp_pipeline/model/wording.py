"""Worded: a message that says what to write, in Python or, to those who wrote a job file, in TOML."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = ["ANALYST", "JOB_FILE", "PYTHON", "Speech", "Worded", "listed", "worded_for"]

_FIELDS = {
    "BoundedDependence": ("epsilon", "delta"),
    "BoundedParticipation": ("times",),
    "BoundedSensitivity": ("changes",),
}


class Speech:
    """How advice is written: here for those who call the library from Python."""

    def setting(self, name: str, value: object) -> str:
        """Return how an argument is given."""
        return f"{name}={value}"

    def noise(self, epsilon: float) -> str:
        """Return how noise is asked for."""
        return f"noise=pkdp.GeometricNoise({epsilon:g})"

    def evidence(self, kind: str) -> str:
        """Return how evidence is written; `kind` is the name of its class."""
        return f"pkdp.{kind}({', '.join(_FIELDS.get(kind, ()))})"

    def evidence_name(self, kind: str) -> str:
        """Return how evidence is named."""
        return kind

    def declare(self, kind: str) -> str:
        """Return how evidence is declared about a data set."""
        return f"{self.declaring}: evidence={self.evidence(kind)}"

    declaring = "when you open the ledger"

    def budget_of_part(self, part: str) -> str:
        """Return how a budget is written that holds one total only."""
        return f'pkdp.Budget(…, part="{part}")'

    names_releases = True
    """Whether releases that stand already may be named: their labels and periods are the curator's words."""
    same_people = "; or pkdp.SamePeople() for one exact count beside noise"
    budget = "pkdp.Budget(1.0, 1e-6)"
    larger_budget = "open the ledger with a larger budget"
    revise = "publish with revise=True"
    no_target = "target=None"
    leakage_of_total = "leakage=pkdp.Leakage.total() in the attacker"


class _JobFile(Speech):
    def setting(self, name: str, value: object) -> str:
        return f"{name} = {value}"

    def noise(self, epsilon: float) -> str:
        return f"noise = {{ epsilon = {epsilon:g} }}"

    def evidence(self, kind: str) -> str:
        fields = "".join(f", {field} = …" for field in _FIELDS.get(kind, ()))
        return f'{{ kind = "{self.evidence_name(kind)}"{fields} }}'

    def evidence_name(self, kind: str) -> str:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()

    def declare(self, kind: str) -> str:
        return f"{self.declaring}: evidence = {self.evidence(kind)}"

    declaring = "in the job file, above its first [table]"

    def budget_of_part(self, part: str) -> str:
        return f'budget = {{ …, part = "{part}" }}'

    same_people = ""  # a job says so by itself
    budget = "budget = { epsilon = 1.0, delta = 1e-6 }"
    larger_budget = "write a larger budget in the job file"
    revise = "run with --revise"
    no_target = 'target = "none" above the first [table]'
    leakage_of_total = 'leakage = { name = "the number of people present", tells = "people_present" } below [attacker]'


class _Analyst(Speech):
    def setting(self, name: str, value: object) -> str:
        return f"{name} := {value}"

    def noise(self, epsilon: float) -> str:
        return f"noise := {epsilon:g}"

    names_releases = False
    larger_budget = "ask the curator for a larger budget"
    no_target = ""  # the curator's choice


PYTHON = Speech()
ANALYST: Speech = _Analyst()
JOB_FILE: Speech = _JobFile()


class Worded(str):
    """A text for Python, of which the advice can be had in another speech; as the message of an error.

    Parameters
    ----------
    say : callable
        Returns the text in a speech.

    Notes
    -----
    A copy in another process, or what is made from it as from any text, speaks Python alone.
    """

    __slots__ = ("_say",)
    _say: Callable[[Speech], str]

    def __new__(cls, say: Callable[[Speech], str]) -> Worded:
        """Make the text that it is in Python."""
        text = super().__new__(cls, say(PYTHON))
        text._say = say
        return text

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def spoken(self, speech: Speech) -> str:
        """Return the text in another speech."""
        return self._say(speech)


def worded_for(error: BaseException, speech: Speech) -> str:
    """Return an error's message, its advice in a speech where it can be had in it."""
    message = error.args[0] if error.args else ""
    return message.spoken(speech) if isinstance(message, Worded) else str(error)


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
