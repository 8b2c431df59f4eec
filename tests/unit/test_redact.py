from __future__ import annotations

import base64
import io
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.redact import RedactingWriter, Redactor

SECRET = "p@ss/w0rd+with=signs"


def test_plain_and_encoded_forms_are_masked() -> None:
    encoded = base64.b64encode(SECRET.encode()).decode()
    text = f"a {SECRET} b {quote(SECRET, safe='')} c {encoded} d"
    assert Redactor([SECRET])(text) == "a *** b *** c *** d"


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
def test_base64_of_a_text_around_the_secret_does_not_carry_it(before: str) -> None:
    text = base64.b64encode(f"{before}{SECRET}!tail".encode()).decode()
    clean = Redactor([SECRET])(f"Basic {text}")
    assert "***" in clean
    assert base64.b64encode(SECRET.encode()).decode()[4:16] not in clean


def test_the_longest_wins_and_short_values_are_left() -> None:
    redact = Redactor(["token", "token-long", "abc", ""])
    assert redact("token-long token abc") == "*** *** abc"


def test_without_secrets_nothing_changes() -> None:
    assert Redactor([])("abc") == "abc"


@given(
    before=st.binary(max_size=40),
    after=st.binary(max_size=40),
    cuts=st.lists(st.integers(0, 120), max_size=6),
    twice=st.booleans(),
)
def test_a_stream_cut_anywhere_reads_like_the_whole(before: bytes, after: bytes, cuts: list[int], twice: bool) -> None:
    redact = Redactor([SECRET, "abcd"])
    data = before + SECRET.encode() * (2 if twice else 1) + after
    sink = io.BytesIO()
    with RedactingWriter(sink, redact) as writer:
        last = 0
        for cut in [*sorted(cuts), len(data)]:
            writer.write(data[last:cut])
            last = max(last, cut)
    assert sink.getvalue() == redact.clean(data)
    assert SECRET.encode() not in sink.getvalue()
