"""The value that every comparison answers with, and what all kinds of files have in common: added lines, comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_LONGEST = 100
_COMMENTED = re.compile(
    r"^\s*(?:#|//|/\*|\*|--|;)\s*(?:(?:async\s+)?def\s+test|assert\b|self\.assert\w+\(|(?:it|test|describe|expect)\s*[.(]|"
    r"func\s+Test|@Test\b|#\[test\]|@pytest\.mark\.parametrize)"
)


@dataclass(frozen=True, slots=True)
class Weakness:
    """One place where the tests say less than before. `line` is of the new text, or of the old one for what is gone;
    0 means the file as a whole."""

    path: str
    line: int
    what: str

    def render(self) -> str:
        """One line for people: `path:line: what`."""
        return f"{self.path}:{self.line}: {self.what}" if self.line else f"{self.path}: {self.what}"


def added_lines(old: str, new: str) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that the new text has more often than the old one, whatever their indentation."""
    known = Counter(line.strip() for line in old.splitlines())
    for number, line in enumerate(new.splitlines(), 1):
        if known[line.strip()] > 0:
            known[line.strip()] -= 1
        else:
            yield number, line


def commented_out(path: str, old: str, new: str) -> list[Weakness]:
    """Comments that hold a test or an assertion, and were not there before."""
    return [
        Weakness(path, number, f"commented out: {short(line)}")
        for number, line in added_lines(old, new)
        if _COMMENTED.match(line)
    ]


def short(text: str) -> str:
    """A piece of code on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 3]}..."
