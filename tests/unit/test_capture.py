"""Masking of secrets in a command's output, however the pieces are cut."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from workers.capture import Capture, open_log
from workers.redact import Redactor


def through(path: Path, pieces: list[bytes], secrets: list[str], cap: int = 1000) -> bytes:
    path.unlink(missing_ok=True)
    source, target = os.pipe()
    capture = Capture(source, open_log(str(path)), cap, [f.encode() for f in Redactor(secrets).forms])
    for piece in pieces:
        os.write(target, piece)
        capture.read()
    os.close(target)
    capture.finish()
    return path.read_bytes()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.binary(max_size=20), st.binary(max_size=20))
def test_no_cut_lets_a_secret_through(tmp_path_factory: object, cuts: list[int], before: bytes, after: bytes) -> None:
    folder = tmp_path_factory.mktemp("c")  # type: ignore[attr-defined]
    data = before + b"hunter2-token" + after + b"hunter2-token" + b"aHVudGVyMi10b2tlbg=="
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(data[at : at + cut])
        at += cut
    pieces.append(data[at:])
    got = through(folder / "log", [p for p in pieces if p], ["hunter2-token"])
    assert b"hunter2-token" not in got
    assert b"aHVudGVyMi10b2tlbg" not in got
    assert got.startswith(before)
    assert got.count(b"***") >= 3


def test_without_secrets_everything_passes(tmp_path: Path) -> None:
    assert through(tmp_path / "log", [b"ab", b"\xff\xfe", b"c"], []) == b"ab\xff\xfec"
