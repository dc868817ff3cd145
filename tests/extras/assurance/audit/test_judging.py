"""Events are chosen on samples that do not judge them, and the bounds hold as often as they say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.audit.cases import battery
from pkdp_pipeline.extras.assurance.audit.findings import (
    Audit,
    NotAudited,
    chosen,
    judged,
    judgements,
    of_cell,
    of_table,
)
from pkdp_pipeline.extras.assurance.audit.operators import FrameOperator, Output, observed

SCHEMA = Path(pkdp.__file__).parent / "schemas" / "audit.v1.json"


def samples_of(first, second):
    return tuple(
        [{"noise": place, "the target's cell": int(value)} for place, value in enumerate(values)]
        for values in (first, second)
    )


def judge(samples, certified, epsilons=(0.5,), error=1e-3, fixed=True):
    named = {"case": "case", "engine": "pandas", "trial": "trial"}
    known = certified if callable(certified) else lambda epsilon: certified
    return list(judged(samples, fixed=fixed, **named, epsilons=epsilons, certified=known, error=error))


def test_an_event_with_a_value_for_every_sample_is_not_chosen():
    generator = np.random.default_rng(1)
    samples = samples_of(generator.binomial(20, 0.7, 200), generator.binomial(20, 0.3, 200))
    event = chosen(*samples, 0.5)
    assert "noise" not in event.words
    assert sum(map(event.holds, samples[0])) > 5 * sum(map(event.holds, samples[1]))


@pytest.mark.parametrize("certified", [0.0, 0.3])
def test_a_loss_is_found_where_it_is_larger_than_certified(certified):
    generator = np.random.default_rng(2)
    findings = judge(samples_of(generator.random(2000) < 0.9, generator.random(2000) < 0.1), certified)
    assert any(not finding.passed for finding in findings)
    for finding in findings:
        assert finding.passed == (finding.attained_lower <= certified)
        if finding.could_see is not None:
            assert finding.passed == (finding.estimate < finding.could_see - 1e-12)


def test_nothing_is_found_where_nothing_is_told():
    failed, judged_in_all, epsilon = 0, 0, 0.5
    p, q = 0.6, 0.6 * math.exp(-epsilon)
    for seed in range(60):
        generator = np.random.default_rng(seed)
        findings = judge(samples_of(generator.random(150) < p, generator.random(150) < q), 0.0, (epsilon,), 0.01)
        judged_in_all += len(findings)
        failed += sum(not finding.passed for finding in findings)
    assert failed <= 0.03 * judged_in_all


def test_an_operator_at_its_bound_is_called_wrong_as_rarely_as_is_said():
    share, epsilons, failed = math.exp(-1.0), (0.2, 0.5), 0

    def exact(epsilon):
        return (1 - math.exp(epsilon) * share) / (1 + share)

    def noisy(generator, count):
        return count + generator.geometric(1 - share, 200) - generator.geometric(1 - share, 200)

    for seed in range(50):
        generator = np.random.default_rng(seed)
        samples = samples_of(noisy(generator, 1), noisy(generator, 0))
        findings = judge(samples, exact, epsilons, 0.1 / judgements((True,), len(epsilons)))
        failed += any(not finding.passed for finding in findings)
    assert failed <= 5


def test_as_many_events_are_judged_as_the_error_is_shared_between():
    samples = samples_of([1] * 30, [0] * 30)
    assert len(judge(samples, 0.0, (0.5, 1.0, 2.0))) == judgements((True,), 3)
    assert len(judge(samples, 0.0, (0.5, 1.0, 2.0), fixed=False)) == judgements((False,), 3)


def test_everything_that_is_said_is_seen():
    def loud():
        import logging
        import warnings

        print("out")
        warnings.warn("careful", stacklevel=1)
        logging.getLogger("pkdp_pipeline.somewhere").info("noted, release %s", "0" * 64)
        raise ValueError("broken")

    said = observed(loud).said
    assert [text.split()[0] for text in said] == ["log", "warning", "printed:", "error"]
    assert all(any(word in text for text in said) for word in ("out", "careful", "noted", "broken"))
    assert said[0].endswith("noted, release ")  # ids differ with every draw


def test_the_log_says_nothing_of_anybody():
    case = next(case for case in battery() if case.name == "whole table, cells found")
    operator = FrameOperator(engine="pandas", case=case, keys=[("Ås",), ("Secretville",)])
    whole = pd.DataFrame({"person": range(60), "cell": ["Ås"] * 59 + ["Secretville"]})
    said = {operator.outputs([frame])[0].said for frame in (whole, whole[:-1])}
    assert said == {("log pkdp_pipeline INFO: published: 'histogram by cell', release ",)}


def test_a_hidden_row_and_no_row_are_told_apart():
    keys = [("a",), ("b",)]
    hidden = of_cell((Output(rows=(("a", None), ("b", 4))),), keys, ())
    none = of_cell((Output(rows=(("b", 4),)),), keys, ())
    assert hidden["the target's cell"] != none["the target's cell"]
    assert hidden["the second cell"] == 4


def test_the_order_of_rows_is_looked_at():
    up, down = (of_table((Output(rows=rows),), frozenset()) for rows in ((("a", 1), ("b", 2)), (("b", 2), ("a", 1))))
    assert up["the order of the rows"] != down["the order of the rows"]
    assert up["the sum of shown counts"] == down["the sum of shown counts"] == 3


@pytest.mark.parametrize("certified", [0.0, 1.0])
def test_the_schema_describes_what_is_written(certified):
    findings = tuple(judge(samples_of([1] * 60, [0] * 60), certified))
    audit = Audit(
        findings=findings,
        not_audited=(NotAudited(case="one", engine="duckdb", reason="no rows"),),
        confidence=0.999999,
        samples=60,
        seed=0,
    )
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(audit.to_json())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["passed"] is audit.passed is (certified == 1.0)
    for part, name in ((document, "extra"), (document["findings"][0], "extra")):
        part[name] = 1
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schema).validate(document)
        del part[name]
    assert "FAILED" in str(audit) or audit.passed
