"""Tokens: named, kept as hashes, one a line."""

from __future__ import annotations

import hashlib
import stat

import pytest

from pkdp_pipeline.duckdb.gate.tokens import Tokens, add_token
from pkdp_pipeline.errors import ArgumentError, ConfigError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens"


def test_tokens_are_added_and_known_by_name(path):
    ana, ben = add_token(path, "ana"), add_token(path, "ben@example.org")
    tokens = Tokens.read(path)
    assert tokens.names == ("ana", "ben@example.org")
    assert (tokens.name_of(ana), tokens.name_of(ben)) == ("ana", "ben@example.org")
    for wrong in ("", "ana", ana[:-1], ana + "x", ana.lower(), hashlib.sha256(ana.encode()).hexdigest(), "\udcff"):
        assert tokens.name_of(wrong) is None


def test_the_file_is_the_owners_and_holds_no_token(path):
    token = add_token(path, "ana")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token not in path.read_text()
    assert hashlib.sha256(token.encode()).hexdigest() in path.read_text()
    assert token not in repr(Tokens.read(path))


def test_tokens_are_long_and_never_the_same(path):
    tokens = {Tokens.made()[1] for _ in range(50)}
    assert len(tokens) == 50
    assert all(len(token) >= 43 for token in tokens)


def test_a_name_has_one_token(path):
    token = add_token(path, "ana")
    with pytest.raises(ArgumentError, match="already"):
        add_token(path, "ana")
    assert Tokens.read(path).name_of(token) == "ana"


def test_a_line_that_is_deleted_revokes_its_token(path):
    ana, ben = add_token(path, "ana"), add_token(path, "ben")
    kept = [line for line in path.read_text().splitlines() if not line.startswith("ana ")]
    path.write_text("\n".join(kept))  # without the end of its last line
    carl = add_token(path, "carl")
    tokens = Tokens.read(path)
    assert [tokens.name_of(token) for token in (ana, ben, carl)] == [None, "ben", "carl"]


@pytest.mark.parametrize("name", ["", " ", "a b", "a\nb sha256:x", "#a", "-a", "é", "a" * 65, "a:b", "a/b"])
def test_what_cannot_be_a_name(path, name):
    with pytest.raises(ArgumentError, match="name"):
        add_token(path, name)
    assert not path.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# none\n\n",
        "pkdp_a-token-that-somebody-pasted\n",
        f"ana {'0' * 64}\n",
        f"ana sha256:{'0' * 63}\n",
        f"a:b sha256:{'0' * 64}\n",
        f"ana sha256:{'0' * 64}\nana sha256:{'1' * 64}\n",
        f"ana sha256:{'0' * 64}\nben sha256:{'0' * 64}\n",
    ],
)
def test_a_file_that_is_not_one_is_refused_without_quoting_it(path, text):
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError) as refused:
        Tokens.read(path)
    assert "pasted" not in str(refused.value)
    assert "000" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(path, mode):
    add_token(path, "ana")
    path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        Tokens.read(path)


def test_a_file_that_is_not_there(path):
    with pytest.raises(ConfigError, match="pkdp gate token"):
        Tokens.read(path)
    path.write_bytes(b"\xff")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="UTF-8"):
        Tokens.read(path)
