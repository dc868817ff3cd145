"""Whatever a file holds, it is refused or fails in words; nothing that it holds is a traceback."""

from __future__ import annotations

import json
import random

import pytest
from published_files import altered, certificate, composed, outcome, release, report, resealed, written
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.assurance.verification import verify
from pkdp_pipeline.extras.assurance.verification import verify as checked
from pkdp_pipeline.extras.assurance.verification.files import read_json

STRANGE = [
    None, True, False, 0, -1, 1, 2.5, -0.0, 1e-320, 1e308, 10**400, "", "x", "\u202e", "\x1b[2J", [], [[]], [None], {},
    {"a": 1}, {"epsilon": 1}, "pkdp-certificate/1", 10**18,
]  # fmt: skip


def judged(path):
    """Verify a file; it may be refused as none of ours."""
    try:
        verification = verify(path, draws=100)
    except (ArgumentError, ConfigError):
        return None
    assert all(claim.detail.isprintable() for claim in verification.claims)
    return verification


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in inner:
        yield from places(member, (*path, name))


@pytest.mark.parametrize("seed", one_in(4, range(40)))
def test_random_bytes_are_none_of_ours(tmp_path, seed):
    draw = random.Random(seed)
    start = draw.choice([b"", b"PAR1", b"{", b'{"schema": "pkdp-certificate/1"', b"[" * 100_000, b"\xff\xfe"])
    assert judged(written(tmp_path, start + draw.randbytes(draw.randrange(400)))) is None


@thinned(4)
@pytest.mark.parametrize("seed", one_in(3, range(12)))
@pytest.mark.parametrize(
    "make", [release, lambda: certificate().to_json().encode(), lambda: json.dumps(report()).encode()]
)
def test_files_that_were_cut_off_are_none_of_ours(tmp_path, make, seed):
    content = make()
    assert judged(written(tmp_path, content[: random.Random(seed).randrange(len(content))])) is None


@pytest.mark.parametrize("seed", one_in(3, range(30)))
def test_releases_with_flipped_bytes_do_not_pass(tmp_path, seed):
    draw, content = random.Random(seed), bytearray(release())
    content[draw.randrange(4, len(content))] ^= 1 << draw.randrange(8)
    verification = judged(written(tmp_path, bytes(content)))
    # In the name of what wrote the file a bit makes it another program's.
    assert (
        verification is None
        or not verification.passed
        or outcome(verification, "release.content").outcome == "not_checked"
    )


@thinned(6)
@pytest.mark.parametrize("seed", one_in(4, range(100)))
def test_certificates_with_strange_values_fail_in_words(tmp_path, seed):
    draw = random.Random(seed)
    document = json.loads(draw.choice([certificate(), composed()]).to_json())
    path = draw.choice([path for path in places(document) if path])
    changed = altered(document, *path, to=draw.choice(STRANGE))
    if changed == document:
        return
    verification = judged(written(tmp_path, changed))
    if verification is not None and verification.passed:
        # Somebody who declares what nothing rests on has a certificate that is as sound.
        weaker = "weaker than necessary" in outcome(verification, "certificate.numbers").detail
        assert path[-1] in ("delta", "attained") if weaker else path[-2] == "attacker"
        assert pkdp.Certificate.from_json(json.dumps(changed)).verify()


@thinned(6)
@pytest.mark.parametrize("seed", one_in(4, range(40)))
def test_reports_with_strange_values_are_no_traceback(tmp_path, seed):
    draw, document = random.Random(seed), report("noisy", 2)
    path = draw.choice([path for path in places(document) if path])
    judged(written(tmp_path, altered(document, *path, to=draw.choice(STRANGE))))


@thinned(3)
@pytest.mark.parametrize("seed", one_in(3, range(30)))
def test_members_that_are_missing_fail_in_words(tmp_path, seed):
    draw, document = random.Random(seed), json.loads(composed("nested").to_json())
    *path, name = draw.choice([path for path in places(document) if path and isinstance(path[-1], str)])
    inner = document
    for step in path:
        inner = inner[step]
    del inner[name]
    verification = judged(written(tmp_path, document))
    assert verification is None or not verification.passed


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": "pkdp-certificate/1", "schema": "pkdp-certificate/1"}',
        '{"schema": "pkdp-certificate/1", "grid": NaN}',
        '{"schema": "pkdp-certificate/1", "grid": 1e999}',
        '{"schema": "pkdp-certificate/1", "grid": -Infinity}',
        '{"schema": "pkdp-certificate/1", "grid": "\\ud800"}',
        '{"schema": "pkdp-certificate/1", "grid": ' + "9" * 5000 + "}",
        '{"schema": "pkdp-certificate/1", "grid": ' + "[" * 300 + "]" * 300 + "}",
        '{"schema": "pkdp-certificate/1"} {}',
        '{"schema": "pkdp-certificate/3"}',
        '{"schema": "pkdp-run/1"}',
        '{"schema": ["pkdp-report/1"]}',
        "[]",
        "null",
        "",
    ],
)
def test_what_readers_would_read_differently_is_read_by_none(tmp_path, text):
    with pytest.raises(ArgumentError):
        checked(written(tmp_path, text))


@pytest.mark.parametrize("name", ["release.csv", "release.xlsx"])
def test_tables_without_a_certificate_point_to_the_parquet_file(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK\x03\x04\xff" if name.endswith("xlsx") else b"town,count\na,9\n")
    with pytest.raises(ArgumentError, match="the Parquet file"):
        checked(tmp_path / name)


def test_paths_that_are_no_files(tmp_path):
    for path in (tmp_path, tmp_path / "none", "/dev/zero", "a\0b"):
        with pytest.raises(ConfigError):
            checked(path)


def test_arguments_out_of_range(tmp_path):
    path = written(tmp_path, certificate().to_json())
    for wrong in ({"draws": 10}, {"confidence": 1.0}, {"confidence": True}, {"seed": -1}, {"ledger": 5}, {"path": 5}):
        with pytest.raises(ArgumentError):
            verify(**({"path": path} | wrong))


def test_enormous_numbers_are_judged_in_words(tmp_path):
    for path, value in (
        (("mechanism", "k"), 10**15),
        (("mechanism", "k"), 10**300),
        (("attacker", "known"), 10**300),
        (("attacker", "unknown_max"), 10**300),
        (("grid", 3, "epsilon"), 1e300),
        (("attacker", "p_max"), 5e-324),
    ):
        verification = judged(written(tmp_path, altered(json.loads(certificate().to_json()), *path, to=value)))
        assert not verification.passed


def test_a_release_whose_certificate_is_no_json_fails(tmp_path):
    verification = judged(written(tmp_path, resealed(release(), certificate=lambda _: {"a": 1})))
    assert not verification.passed


def test_strict_json_reads_what_is_sound():
    document = json.loads(certificate().to_json())
    assert read_json(json.dumps(document).encode()) == document
    assert pkdp.verify is verify
