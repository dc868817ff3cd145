from __future__ import annotations

import os
import stat

import pytest

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.outputs import make_folder, write_atomically


def test_a_file_is_replaced_whole_and_readable_by_all(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_cannot_be_is_a_config_error(tmp_path):
    (tmp_path / "file").write_text("")
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    with pytest.raises(ConfigError, match="cannot be created"):
        make_folder(tmp_path / "file" / "folder")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_atomically(tmp_path / "missing" / "file", b"")
