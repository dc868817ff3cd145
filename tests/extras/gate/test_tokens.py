"""Tokens: named, kept as hashes, one a line."""

from __future__ import annotations

import hashlib
import stat
from datetime import UTC, date, datetime

import pytest
from moved_clock import clock_at

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.gate.records import add_token, name_of, read_tokens


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens"


def test_tokens_are_added_and_known_by_name(path):
    ana, ben = add_token(path, "ana"), add_token(path, "ben@example.org")
    assert list(read_tokens(path)) == ["ana", "ben@example.org"]
    assert (name_of(path, ana), name_of(path, ben)) == ("ana", "ben@example.org")
    for wrong in ("", "ana", ana[:-1], ana + "x", ana.lower(), hashlib.sha256(ana.encode()).hexdigest(), "\udcff"):
        assert name_of(path, wrong) is None


def test_the_file_is_the_owners_and_holds_no_token(path):
    token = add_token(path, "ana")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token not in path.read_text()
    assert hashlib.sha256(token.encode()).hexdigest() in path.read_text()


def test_tokens_are_long_and_never_the_same(path):
    tokens = {add_token(path, f"ana{number}") for number in range(50)}
    assert len(tokens) == 50
    assert all(len(token) >= 43 for token in tokens)


def test_a_name_has_one_token(path):
    token = add_token(path, "ana")
    with pytest.raises(ArgumentError, match="already"):
        add_token(path, "ana")
    assert name_of(path, token) == "ana"


def test_a_line_that_is_deleted_revokes_its_token(path):
    ana, ben = add_token(path, "ana"), add_token(path, "ben")
    kept = [line for line in path.read_text().splitlines() if not line.startswith("ana ")]
    path.write_text("\n".join(kept))  # without the end of its last line
    carl = add_token(path, "carl")
    assert [name_of(path, token) for token in (ana, ben, carl)] == [None, "ben", "carl"]


def test_a_token_expires_after_its_last_day(path):
    with clock_at(datetime(2027, 12, 31, 23, 59, 59, tzinfo=UTC), "Pacific/Auckland"):
        token = add_token(path, "ana", days=60)
    assert read_tokens(path) == {"ana": date(2028, 2, 29)}
    for moment, name in (
        (datetime(2028, 2, 28, tzinfo=UTC), "ana"),
        (datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC), "ana"),
        (datetime(2028, 3, 1, tzinfo=UTC), None),
    ):
        with clock_at(moment, "America/Los_Angeles"):
            assert name_of(path, token) == name
    for days in (0, -1, 3651, True, 1.5, "9"):
        with pytest.raises(ArgumentError, match="days"):
            add_token(path, "ben", days=days)


@pytest.mark.parametrize("name", ["", " ", "a b", "a\nb sha256:x", "#a", "-a", "é", "a" * 65, "a:b", "a/b"])
def test_what_cannot_be_a_name(path, name):
    with pytest.raises(ArgumentError, match="name"):
        add_token(path, name)
    assert not path.exists()


@pytest.mark.parametrize(
    "text",
    [
        "pkdp_a-token-that-somebody-pasted\n",
        f"ana sha256:{'0' * 64}\n",
        f"ana sha256:{'0' * 63} expires:2099-01-01\n",
        f"ana sha256:{'0' * 64} expires:2099-13-01\n",
        f"ana sha256:{'0' * 64} expires:never\n",
        f"a:b sha256:{'0' * 64} expires:2099-01-01\n",
        f"ana sha256:{'0' * 64} expires:2099-01-01\nana sha256:{'1' * 64} expires:2099-01-01\n",
        f"ana sha256:{'0' * 64} expires:2099-01-01\nben sha256:{'0' * 64} expires:2099-01-01\n",
    ],
)
def test_a_file_that_is_not_one_is_refused_without_quoting_it(path, text):
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError) as refused:
        read_tokens(path)
    assert "pasted" not in str(refused.value)
    assert "000" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(path, mode):
    add_token(path, "ana")
    path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_tokens(path)


def test_a_file_that_is_not_there(path):
    with pytest.raises(ConfigError, match="pkdp gate token"):
        read_tokens(path)
    path.write_bytes(b"\xff")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="UTF-8"):
        read_tokens(path)
