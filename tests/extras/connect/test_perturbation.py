"""Perturbation tables from CSV files: what they say, and what is wrong with them, by file, line, column and rule."""

from __future__ import annotations

import pandas as pd
import pytest

import pkdp_pipeline as pkdp

ROWS = [(0, 0, 1.0), (1, 0, 0.5), (1, 2, 0.5)]
HEAD = "count,shown,probability\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "0,0,1\n1,0,0.5\n1,2,0.5\n",
        "\ufeffprobability, shown ,count\r\n0.5,2,1\r\n\r\n1.0,0,0\r\n0.5,0,1",
        HEAD + '"0","0","1e0"\n1,0,.5\n1,2,.5',
    ],
)
def test_a_file_is_its_rows(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8", newline="")
    expected = pkdp.PerturbationTable(ROWS)
    assert pkdp.PerturbationTable.read_csv(path) == expected
    assert pkdp.PerturbationTable(path) == pkdp.PerturbationTable(str(path)) == expected


def test_a_frame_is_its_rows():
    assert pkdp.PerturbationTable(pd.DataFrame(ROWS)) == pkdp.PerturbationTable(ROWS)


def test_the_certificate_holds_the_table_and_not_its_place(tmp_path):
    texts = []
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(HEAD + "0,0,1\n1,0,0.5\n1,2,0.5\n", encoding="utf-8")
        mechanism = pkdp.Histogram(k=8, display=pkdp.PerturbationTable(tmp_path / name))
        (tmp_path / name).unlink()
        texts.append(pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.1)).to_json())
    assert texts[0] == texts[1]
    assert ".csv" not in texts[0]
    assert pkdp.Certificate.from_json(texts[0]).mechanism.display == pkdp.PerturbationTable(ROWS)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("columns count, shown and probability",)),
        (b"count,shown\n0,0\n", ("columns count, shown and probability",)),
        (b"count;shown;probability\n0;0;1\n", ("separated by commas",)),
        (HEAD.encode() + b"0,0,1\n1,x,1\n", ("line 3", "'shown'", "whole number")),
        (HEAD.encode() + b"0,0,1\n-1,0,1\n", ("line 3", "'count'", "from 0 on")),
        (HEAD.encode() + b"0,0.5,1\n", ("line 2", "'shown'", "whole number")),
        (HEAD.encode() + b"0,0,1.5\n", ("line 2", "'probability'", "between 0 and 1")),
        (HEAD.encode() + b"0,0,nan\n", ("line 2", "'probability'", "between 0 and 1")),
        (HEAD.encode() + b'0,0,"0,5"\n', ("line 2", "'probability'", "with a point")),
        (HEAD.encode() + b"0,0\n", ("line 2", "a value for each")),
        (HEAD.encode() + b"0,0,0.5\n", ("count 0", "must sum to 1")),
        (HEAD.encode() + b"1,0,1\n", ("every count from 0 on",)),
        (HEAD.encode(), ("rows of (count, shown, probability)",)),
        (b"\xff\xfe\x00", ("UTF-8",)),
        (HEAD.encode() + b'0,0,"1\n', ("CSV",)),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path, content, words):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(pkdp.ArgumentError) as raised:
        pkdp.PerturbationTable.read_csv(path)
    for word in ("table.csv", *words):
        assert word in str(raised.value)


@pytest.mark.parametrize("name", ["missing.csv", ".", "a\0b"])
def test_a_file_that_cannot_be_read(tmp_path, name):
    with pytest.raises(pkdp.ConfigError, match="cannot be read"):
        pkdp.PerturbationTable.read_csv(str(tmp_path / name))


def test_what_is_asked_from_elsewhere_names_no_file(tmp_path):
    from pkdp_pipeline.model.mechanisms import mechanism_from_dict

    (tmp_path / "table.csv").write_text(HEAD + "0,0,1\n", encoding="utf-8")
    document = {"mechanism": "histogram", "k": 8, "display": {"perturbation": str(tmp_path / "table.csv")}}
    with pytest.raises(pkdp.ArgumentError, match="must not be a text"):
        mechanism_from_dict(document)
