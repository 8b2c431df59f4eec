"""Takes the values of secrets out of text before it reaches any log, event, evidence or screen.

Must not know where the values come from.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO
from urllib.parse import quote, quote_plus

from scheduler.model import Json

MASK = "***"
SHORTEST = 4
"""Values below this many characters would blot out ordinary text."""


def _forms(value: str) -> Iterator[str]:
    raw = value.encode("utf-8", "surrogateescape")
    yield value
    yield quote(raw, safe="")
    yield quote_plus(raw, safe="")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(raw).decode()
        yield whole
        yield whole.rstrip("=")
        # Inside a longer text the encoding depends on the offset; what is the same whatever stands around is masked.
        for offset in (0, 1, 2):
            shifted = encode(b"\0" * offset + raw).decode()
            stable = shifted[-(-8 * offset // 6) : (offset + len(raw)) * 8 // 6]
            if len(stable) >= 2 * SHORTEST:
                yield stable


class Redactor:
    """Replaces each secret, also base64- or URL-encoded, by `***`; the longest first."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values if len(value) >= SHORTEST for form in _forms(value)}
        forms |= {form.replace("\n", "\r\n") for form in forms if "\n" in form}
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self.forms = tuple(ordered)  # every spelling that is masked, the longest first
        self._longest = max((len(form.encode("utf-8", "surrogateescape")) for form in ordered), default=0)
        self._text = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._bytes = (
            re.compile(b"|".join(re.escape(form.encode("utf-8", "surrogateescape")) for form in ordered))
            if ordered
            else None
        )

    @property
    def longest(self) -> int:
        """Bytes of the longest form that is looked for; 0 when there is none."""
        return self._longest

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        return self._text.sub(MASK, text) if self._text is not None else text

    def within(self, outputs: Mapping[str, Json]) -> dict[str, Json]:
        """The same for every text of a JSON object, names included."""
        return {self(name): self._within(value) for name, value in outputs.items()}

    def _within(self, value: Json) -> Json:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self._within(each) for each in value]
        return self.within(value) if isinstance(value, dict) else value

    def clean(self, data: bytes) -> bytes:
        """The same for bytes of any encoding that keeps ASCII."""
        return self._bytes.sub(MASK.encode(), data) if self._bytes is not None else data

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """What can be written now, cleaned, and the rest that may be the beginning of a secret."""
        if self._bytes is None:
            return data, b""
        keep = len(data) - self._longest + 1
        if keep <= 0:
            return b"", data
        for found in self._bytes.finditer(data):
            if found.start() < keep < found.end():
                keep = found.end()
                break
        return self.clean(data[:keep]), data[keep:]


class RedactingWriter:
    """A sink that redacts a stream whose chunks may split a secret. Nothing is lost after `close`."""

    def __init__(self, sink: BinaryIO, redactor: Redactor) -> None:
        self._sink = sink
        self._redactor = redactor
        self._rest = b""

    def write(self, data: bytes) -> int:
        """Take a chunk; up to one secret's length of it stays behind until the next chunk or `close`."""
        ready, self._rest = self._redactor.split(self._rest + data)
        if ready:
            self._sink.write(ready)
        return len(data)

    def close(self) -> None:
        """Write what was kept behind. The sink stays open; it belongs to the caller."""
        if self._rest:
            self._sink.write(self._redactor.clean(self._rest))
            self._rest = b""
        self._sink.flush()

    def __enter__(self) -> RedactingWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
