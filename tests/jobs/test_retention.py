from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from thorough import one_in

from pkdp_pipeline.clock import now
from pkdp_pipeline.errors import ConfigError, InputCheckError
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.steps import forget_rows
from pkdp_pipeline.ledger import Ledger

DAY = date(2020, 1, 1)
SECRET = b"Secretville 1"
KEEP = 'retention = { directory = "private", days = 7 }\n'


def keeping(basic: str) -> str:
    return KEEP + basic


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def holders(*folders: Path) -> list[str]:
    """Files that hold a person of the input in plain bytes, or in a Parquet file's column."""
    names = []
    for file in sorted({file for folder in folders for file in folder.rglob("*") if file.is_file()}):
        content = file.read_bytes()
        if SECRET in content or (
            content[:4] == b"PAR1" and SECRET.decode() in str(pd.read_parquet(file).values.tolist())
        ):
            names.append(file.name)
    return names


def test_nothing_is_kept_by_default(job_file, basic, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    job = load_job(job_file(basic + "\n[checks]\nrows = { min = 1 }\n"))
    assert holders(tmp_path) == ["visits.parquet"]
    with pytest.raises(InputCheckError):
        run_job(job, date(2021, 1, 1))
    run_job(job, DAY)
    assert holders(tmp_path) == ["visits.parquet"]
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("stop", one_in(2, ["SIGKILL", "SIGTERM"]))
def test_a_run_in_a_process_of_its_own_leaves_no_rows_behind(job_file, basic, tmp_path, stop):
    """Stopped while the day is being counted, which is where rows are in memory."""
    scratch, home = tmp_path / "scratch", tmp_path / "home"
    scratch.mkdir()
    home.mkdir()
    file = job_file(basic)
    program = f"""
        import sys
        from pkdp_pipeline.jobs import checks
        real = checks.count_units
        def counting(frame, request):
            counted = real(frame, request)
            print("counted", flush=True)
            sys.stdin.readline()
            return counted
        checks.count_units = counting
        from pkdp_pipeline.cli.main import main
        sys.argv = ["pkdp", "run", {str(file)!r}, "--date", "2020-01-01"]
        main()
    """
    environment = {**os.environ, "TMPDIR": str(scratch), "HOME": str(home)}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "counted\n"
        process.send_signal(signal.Signals[stop])
        process.communicate("\n", timeout=300)
        code = process.returncode
    assert code == {"SIGTERM": 143, "SIGKILL": -9}[stop]
    assert holders(tmp_path) == ["visits.parquet"]
    assert [path for path in scratch.rglob("*") if path.is_file()] == []


@pytest.mark.usefixtures("great_expectations")
def test_a_copy_holds_the_needed_columns_of_the_day_for_its_owner_alone(job_file, basic, tmp_path):
    visits = pd.DataFrame(
        {
            "day": [DAY] * 6 + [date(2020, 1, 2)],
            "person": [f"p{number}" for number in range(7)],
            "town": ["Ås"] * 7,
            "size": range(7),
            "diary": ["never needed"] * 7,
        }
    )
    text = keeping(basic) + "\n[[checks.expect]]\ntype = 'expect_column_values_to_not_be_null'\ncolumn = 'size'\n"
    job = load_job(job_file(text, visits))
    run_job(job, DAY)
    (copy,) = (tmp_path / "private").iterdir()
    assert copy.name == "job.2020-01-01.rows.parquet"
    assert (mode(copy), mode(copy.parent)) == (0o600, 0o700)
    kept = pd.read_parquet(copy)
    assert list(kept.columns) == ["day", "person", "town", "size"]
    assert list(kept["size"]) == list(range(6))
    run_job(job, DAY)
    assert holders(tmp_path / "out") == []


def test_a_copy_is_written_by_a_run_that_reads_and_passes_its_checks_only(job_file, basic, tmp_path):
    job = load_job(job_file(keeping(basic) + "\n[checks]\nrows = { min = 1 }\n"))
    with pytest.raises(InputCheckError):
        run_job(job, date(2021, 1, 1))
    assert not (tmp_path / "private").exists()
    run_job(job, DAY)
    (copy,) = (tmp_path / "private").iterdir()
    copy.unlink()
    assert run_job(job, DAY).replayed
    assert list((tmp_path / "private").iterdir()) == []


def test_copies_are_deleted_by_their_own_age_and_nothing_else_is(job_file, basic, tmp_path):
    job = load_job(job_file(keeping(basic)))
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    moment = now().timestamp()
    ages = {
        "job.1999-01-01.rows.parquet": 1,
        "job.2020-01-03.rows.parquet": 6.9,
        "job.2020-01-04.rows.parquet": 7.1,
        ".job.2020-01-05.rows.parquet.partial": 0,
        "another.2020-01-04.rows.parquet": 99,
        "notes.txt": 99,
    }
    for name, days in ages.items():
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (moment - days * 86_400,) * 2)
    forget_rows(job)
    left = {path.name for path in folder.iterdir()}
    assert set(ages) - left == {"job.2020-01-04.rows.parquet", ".job.2020-01-05.rows.parquet.partial"}


def test_a_copy_that_cannot_be_deleted_is_said_before_anything_is_charged(job_file, basic, tmp_path):
    job = load_job(job_file(keeping(basic)))
    (tmp_path / "private" / "job.2020-01-04.rows.parquet").mkdir(parents=True)
    (tmp_path / "private").chmod(0o700)
    os.utime(tmp_path / "private" / "job.2020-01-04.rows.parquet", (0, 0))
    with pytest.raises(ConfigError, match=r"retention\.directory .* cannot be deleted") as caught:
        run_job(job, DAY)
    assert caught.value.__context__ is None
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert list(ledger.entries()) == []


def test_a_run_deletes_old_copies_even_when_it_replays(job_file, basic, tmp_path):
    job = load_job(job_file(keeping(basic)))
    run_job(job, DAY)
    (copy,) = (tmp_path / "private").iterdir()
    os.utime(copy, (now().timestamp() - 8 * 86_400,) * 2)
    assert run_job(job, DAY).replayed
    assert not copy.exists()


@pytest.mark.parametrize("place", ["out/private", "link", "up"])
def test_a_folder_among_the_outputs_is_refused_even_through_a_link(job_file, basic, tmp_path, place):
    (tmp_path / "out" / "inner").mkdir(parents=True)
    (tmp_path / "out" / "inner").chmod(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "out" / "inner")
    (tmp_path / "up").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match=r"retention.directory|private|outputs"):
        run_job(load_job(job_file(keeping(basic).replace('"private"', f'"{place}"'))), DAY)
    assert holders(tmp_path / "out") == []


def test_a_folder_that_others_can_open_is_refused(job_file, basic, tmp_path):
    (tmp_path / "private").mkdir(mode=0o755)
    (tmp_path / "private").chmod(0o755)
    with pytest.raises(ConfigError, match="chmod 700"):
        run_job(load_job(job_file(keeping(basic))), DAY)
    assert list((tmp_path / "private").iterdir()) == []


@pytest.mark.parametrize("where", ["made", "written"])
def test_a_copy_that_cannot_be_kept_leaves_nothing_and_charges_nothing(job_file, basic, tmp_path, monkeypatch, where):
    job = load_job(job_file(keeping(basic)))

    def broken(*arguments, **names):
        raise OSError(28, "No space left on device", "Secretville 1")

    if where == "made":
        monkeypatch.setattr(pd.DataFrame, "to_parquet", broken)
    else:
        monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(ConfigError, match=f"cannot be {where}") as caught:
        run_job(job, DAY)
    assert "Secretville" not in str(caught.value)
    monkeypatch.undo()
    assert holders(tmp_path / "private", tmp_path / "out") == []
    assert not list(tmp_path.glob("private/*"))
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert list(ledger.entries()) == []
