from __future__ import annotations

import re
from datetime import date

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.outputs import describe, public_rows, remarks
from pkdp_pipeline.releases.release import Release


def public(towns, counts):
    table = pd.DataFrame({"town": towns, "count": pd.array(counts, dtype="Int64")})
    return public_rows(Release.seal(table, certify(pkdp.Histogram(k=60), pkdp.AttackerModel(p_max=0.5))), 9)


def test_a_missing_count_reads_suppressed_and_nothing_steers_a_terminal():
    header, rows, _ = public(["a|b", "\x1b[31mred"], [3, None])
    assert header == ["town", "count"]
    assert rows == [["a|b", "3"], ["\\x1b[31mred", "suppressed"]]


def test_different_cells_look_different():
    towns = ["\n", "\\n", "", " ", "(empty)", "(missing)", None, "None", "nan"]
    _, rows, _ = public(towns, range(9))
    assert len({town for town, _ in rows}) == len(towns)
    assert all(town.strip() == town != "" for town, _ in rows)
    assert rows[6] == ["(missing)", "6"]


def test_public_values_cannot_break_the_markdown(job_file):
    frame = pd.DataFrame({"day": [date(2020, 1, 1)] * 5, "person": list("abcde"), "town": ["a|b<i>`\n"] * 5})
    result = run_job(load_job(job_file(frame=frame)), date(2020, 1, 1))
    assert "| a\\|b\\<i\\>\\`\\\\n | 5 |" in result.summary.read_text(encoding="utf-8")


def test_no_name_or_predicate_can_break_the_markdown(job_file, basic):
    basic = basic.replace('"visits"\n', '"<img src=x> [a](b) *c*"\n')
    where = "town != '<i>' and town != '![d](e)'"
    basic = basic.replace('by = "town"', f'by = "town"\nwhere = "{where}"')
    text = run_job(load_job(job_file(basic)), date(2020, 1, 1)).summary.read_text(encoding="utf-8")
    assert text.startswith("# \\<img src=x\\> \\[a\\](b) \\*c\\*, 2020-01-01\n")
    # The predicate stands in the release's sentence as well.
    assert text.count("\\<i\\>") == text.count("\\!\\[d\\](e)") == 2
    assert re.search(r"(?<!\\)[<*\[]", text) is None


def test_the_description_says_each_step(job_file, basic):
    release = 'k = 5\nnoise = { epsilon = 0.5 }\nrelease_threshold = 9\nwhere = "adult"'
    job = load_job(job_file(basic.replace("k = 5", release)))
    text = describe(job, job.release[0])
    for words in ("Distinct person by town, where adult", "k = 5", "epsilon = 0.5", "at least 9"):
        assert words in text


def test_noised_counts_stand_apart_from_exact_ones(job_file, basic):
    noised = 'k = 5\nbelow = "noise"\nnoise = { epsilon = 0.5 }\ndomain = ["Ås", "Bø", "Secretville"]'
    job = load_job(job_file(basic.replace("k = 5", noised)))
    result = run_job(job, date(2020, 1, 1))
    text = result.summary.read_text(encoding="utf-8")
    noisy = result.releases[0].release.table["count"].iloc[2]
    assert f"| Ås | 7 |\n| Bø | 5 |\n| Secretville | ≈ {noisy} |" in text
    for words in ("of at least k = 5 is exact", "added to marked ones", "Numbers with ≈ have noise: 95 %"):
        assert words in text
    (csv,) = result.summary.parent.glob("*.parquet")
    assert pd.read_parquet(csv).columns.tolist() == ["period", "town", "count", "exact"]
    again = run_job(job, date(2020, 1, 1))
    assert (again.replayed, again.summary.read_text(encoding="utf-8")) == (True, text)


def test_bands_are_written_as_bands(job_file, basic):
    bands = 'display = { bands = [0, 5, 6, 20] }\ndomain = ["Ås", "Bø", "Secretville"]'
    job = load_job(job_file(basic.replace("k = 5", f"{bands}\n")))
    result = run_job(job, date(2020, 1, 1))
    text = result.summary.read_text(encoding="utf-8")
    assert "| Ås | 6–19 |\n| Bø | 5 |\n| Secretville | 0–4 |" in text
    assert "every published number is shown in the bands 0–4, 5, 6–19, 20 or more" in text
    assert result.releases[0].release.table["count"].tolist() == [6, 5, 0]


def test_a_declared_number_is_not_rounded_down(job_file, basic):
    job = load_job(job_file(basic.replace("k = 5", "k = 5\nnoise = { epsilon = 1.0000004 }\nrelease_threshold = 9")))
    assert "epsilon = 1.0000004 " in describe(job, job.release[0])


@pytest.mark.parametrize(("threshold", "display"), [(None, None), (9, None), (None, pkdp.Rounding(5))])
def test_what_noise_decides_is_said_to_lean_high(threshold, display):
    noise = pkdp.GeometricNoise(0.5)
    mechanism = pkdp.Histogram(k=5, noise=noise, release_threshold=threshold, display=display)
    table = pd.DataFrame({"town": ["a"], "count": pd.array([30], dtype="Int64")})
    (line,) = remarks(Release.seal(table, pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.5))), ())
    assert ("95 % of such numbers are within ±6 of the counted ones" in line) == (threshold is display is None)
    assert ("within ±6; then numbers are shown to the nearest 5" in line) == (display is not None)
    assert ("Only noisy numbers of at least 9 are shown, so those near 9 lean high" in line) == (threshold == 9)
