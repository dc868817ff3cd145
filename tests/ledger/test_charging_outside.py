"""What a charge needs computed is computed while the ledger is free, and holds for the ledger as it is charged."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import BudgetExceededError, DifferencingError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.charging import ChargeCheck
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.publish import Certifying, Publication, publish

FRAME = pd.DataFrame({"uid": range(50)})
BUDGET = pkdp.Budget(1.0, 1e-6, part="worst_case")


def publication(ledger: Ledger, noise: float | None, run: Any = None) -> Publication:
    mechanism = pkdp.Count(k=20) if noise is None else pkdp.Count(noise=pkdp.GeometricNoise(noise))
    question = Question(mechanism=mechanism, unit="uid", period="2020", label=f"with {noise}")
    return Publication(question=question, attacker=pkdp.AttackerModel(p_max=0.1), ledger=ledger, run=run)


def copied(work: Any) -> Any:
    """Compute as another process does: from a copy."""
    return pickle.loads(pickle.dumps(work))()


def test_it_is_the_same_charge(tmp_path: Path) -> None:
    charged, computed = [], []

    def elsewhere(work: Any) -> Any:
        computed.append(type(work))
        return copied(work)

    for name, run in (("here", None), ("elsewhere", elsewhere)):
        with Ledger.open(tmp_path / name, budget=BUDGET) as ledger:
            for noise in (0.25, 0.5):
                publication(ledger, noise, run).reserve()
            with pytest.raises(
                BudgetExceededError, match=r"prior: epsilon = 0\.75, requested: 0\.375, together: 1\.13"
            ):
                publication(ledger, 0.375, run).reserve()
            charged.append([(entry.key, entry.certificate, entry.row.part) for entry in ledger.entries()])
            ledger.verify()
    assert len(charged[0]) == 2
    # Where exact sums of the noise fit, nothing else is computed.
    assert computed.count(ChargeCheck) == 1
    # The second one names the first event's hash, which holds when it was made.
    assert charged[0][0] == charged[1][0]
    assert charged[0][1][::2] == charged[1][1][::2]


def test_the_ledger_is_free_meanwhile_and_the_budget_holds_for_what_others_charge_then(tmp_path: Path) -> None:
    """Two questions that fit alone and not together: the sums of the first were made before the second was charged."""
    terms: dict[str, Any] = {"budget": BUDGET, "evidence": pkdp.IndependentGivenHabits()}
    with Ledger.open(tmp_path / "ledger", **terms) as ledger, Ledger.open(tmp_path / "ledger") as other:
        sums = []

        def run(work: Any) -> Any:
            if isinstance(work, ChargeCheck):
                sums.append(work)
            result = copied(work)
            if len(sums) == 1:  # from another connection, which waits for no lock
                publication(other, 0.75).reserve()
            return result

        with pytest.raises(BudgetExceededError, match=r"prior: epsilon = 0\.75, requested: 0\.5, together: 1\.25"):
            publication(ledger, 0.5, run).reserve()
        assert len(sums) == 2
        assert [entry.label for entry in ledger.entries(given_back=True)] == ["with 0.75"]
        ledger.verify()


def test_a_new_certificate_is_held_to_the_budget_while_the_ledger_is_free(tmp_path: Path) -> None:
    sums = []

    def run(work: Any) -> Any:
        if isinstance(work, ChargeCheck):
            sums.append(work)
            other.mark_unreadable("visits")  # from another connection, which waits for no lock
        return copied(work)

    budget = pkdp.Budget(4.0, 1e-6, part="partial_knowledge")
    with Ledger.open(tmp_path / "ledger", budget=budget) as ledger, Ledger.open(tmp_path / "ledger") as other:
        first = publication(ledger, None)
        publish(lambda: FRAME, first)
        weaker = replace(first, attacker=pkdp.AttackerModel(p_max=0.2), run=run)
        again = publish(lambda: FRAME, weaker)
        assert again.certificate.attacker.p_max == 0.2
        assert [work.former.part for work in sums] != [work.entry.row.part for work in sums]
        before = ledger.head()
        sums.clear()
        with pytest.raises(BudgetExceededError, match="The table keeps the certificate it has"):
            publish(lambda: FRAME, replace(first, attacker=pkdp.AttackerModel(p_max=0.6), run=run))
        assert len(sums) == 1
        assert ledger.head() == before
        ledger.verify()


def test_what_may_not_stand_beside_others_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger") as ledger:
        publication(ledger, 0.5).reserve()
        with pytest.raises(DifferencingError):
            publication(ledger, None, lambda _: pytest.fail("computed")).reserve()


def test_threads_that_charge_at_once_stay_within_the_budget(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", budget=BUDGET) as ledger:
        outcomes: list[str] = []
        together = threading.Barrier(4)

        def charge(noise: float) -> None:
            def run(work: Any) -> Any:
                result = work()
                if isinstance(work, Certifying) and noise not in waited:
                    waited.add(noise)
                    together.wait(60)  # all are certified for a ledger that holds nothing
                return result

            try:
                publication(ledger, noise, run).reserve()
                outcomes.append("charged")
            except BudgetExceededError:
                outcomes.append("refused")

        waited: set[float] = set()
        threads = [threading.Thread(target=charge, args=(noise,)) for noise in (0.375, 0.4, 0.45, 0.475)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["charged"] * 2 + ["refused"] * 2
        assert ledger.total().worst_case.epsilon(0.0) <= 1.0
        ledger.verify()
