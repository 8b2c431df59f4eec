"""The text of a plan file -> plain values, and the line and column of each of them.

Must not know what a plan is: it knows text, mappings, lists and scalars.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

Step = str | int
Path = tuple[Step, ...]
"""Where a value is: keys and list positions from the top."""

MAX_BYTES = 64 * 1024 * 1024

_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Defect:
    """Something wrong with the text itself. `index` counts characters from the start, None: the whole file."""

    message: str
    remedy: str
    index: int | None = None
    path: Path = ()


class Unreadable(Exception):
    """The text cannot be turned into values at all; holds the one defect that stopped the reading."""

    def __init__(self, defect: Defect) -> None:
        super().__init__(defect.message)
        self.defect = defect


class Places(Protocol):
    """Finds values in the text again. Asked only when there is something to report."""

    def find(self, path: Path, *, key: bool) -> int:
        """Character index of the value at `path` (or of its key), or of the nearest value around it."""
        ...


@dataclass(frozen=True)
class Source:
    """Values of one file with a way back to their places.

    `value` is made of dict, list, str, int, float, bool and None."""

    text: str
    value: object
    places: Places
    defects: Sequence[Defect] = field(default_factory=tuple)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in _BREAK.finditer(self.text))]

    def position(self, index: int) -> tuple[int, int]:
        """Line and column of a character, both from 1. A tab is one column; CRLF is one line break."""
        line = bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1

    def locate(self, path: Path, *, key: bool = False) -> tuple[int, int]:
        """Line and column of the value at `path`, or of its key."""
        return self.position(self.places.find(path, key=key))


class Nowhere:
    """Places of a text that could not be read."""

    def find(self, path: Path, *, key: bool) -> int:  # noqa: ARG002 - the shape of Places
        """Always the start."""
        return 0


def decode(data: bytes) -> str:
    """UTF-8 text without its byte order mark. Raises Unreadable with what is wrong."""
    if len(data) > MAX_BYTES:
        raise Unreadable(Defect("the file is larger than 64 MiB", "split the plan"))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable(Defect("the file is UTF-16, not UTF-8", "save it as UTF-8"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the file is not UTF-8 (byte 0x{data[error.start]:02x} on line {line})"
        raise Unreadable(Defect(message, "save it as UTF-8")) from None
    if not text.strip():
        raise Unreadable(Defect("the file is empty", "write a plan; `dagward init` makes an example"))
    return text


def read(data: bytes, *, is_json: bool) -> Source:
    """Parse a file. A name that ends in .json must be JSON; any other may be YAML or JSON."""
    from scheduler.planfile.jsontext import read_json
    from scheduler.planfile.yamltext import read_yaml

    text = decode(data)
    if is_json:
        return read_json(text)
    if text.lstrip().startswith("{"):
        try:
            return read_json(text)
        except Unreadable:  # a YAML flow mapping also begins with a brace
            return read_yaml(text)
    return read_yaml(text)
