"""Reads a JUnit XML report as it streams by: no document type, no entities, nothing fetched, nothing built up.

Must not know who wrote the report or what it is judged by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from xml.parsers import expat

CAP = 64 * 1024 * 1024
"""Bytes of a report."""

MOST = 200_000
"""Tests of a report."""

_MESSAGE = 2_000
_CHUNK = 1 << 16

Outcome = Literal["passed", "failed", "error", "skipped"]


class BadReport(ValueError):
    """The text is not a report that can be trusted; the message says why."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test: `class::name`, how it ended, and what it said when it did not pass."""

    id: str
    outcome: Outcome
    message: str = ""


def parse(data: bytes) -> list[Case]:
    """Every `testcase` of the report, in its order. Raises BadReport."""
    if len(data) > CAP:
        raise BadReport(f"it is larger than {CAP} bytes")
    reader = _Reader()
    try:
        for at in range(0, len(data), _CHUNK):
            reader.parser.Parse(data[at : at + _CHUNK], False)
        reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise BadReport(f"it is not XML: {error}") from None
    if not reader.is_report:
        raise BadReport("it has no testsuite")
    return reader.cases


class _Reader:
    """The state between two tags."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.is_report = False
        self._depth = 0
        self._name = ""
        self._outcome: Outcome = "passed"
        self._message = ""
        self._listening = False
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = _no_doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        self._depth += 1
        if self._depth == 1:
            self.is_report = tag in ("testsuites", "testsuite")
        if tag == "testcase":
            self._name = "::".join(filter(None, (attributes.get("classname"), attributes.get("name") or "?")))
            self._outcome, self._message = "passed", ""
        elif self._name and tag in ("failure", "error", "skipped", "rerunFailure"):
            # What is graver stays: a test may fail and then error in its tear-down.
            if tag in ("failure", "error"):
                self._outcome = "failed" if tag == "failure" else "error"
            elif tag == "skipped" and self._outcome == "passed":
                self._outcome = "skipped"
            self._listening = tag != "skipped"
            self._hear(attributes.get("message", ""))

    def _text(self, text: str) -> None:
        if self._listening:
            self._hear(text)

    def _hear(self, text: str) -> None:
        if self._listening and len(self._message) < _MESSAGE and text.strip():
            self._message += ("\n" if self._message else "") + text.strip("\n")[:_MESSAGE]

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        self._depth -= 1
        self._listening = False
        if tag == "testcase" and self._name:
            if len(self.cases) >= MOST:
                raise BadReport(f"it has more than {MOST} tests")
            self.cases.append(Case(self._name, self._outcome, self._message))
            self._name = ""


def _no_doctype(name: str, system: str | None, public: str | None, internal: bool) -> None:  # noqa: ARG001
    raise BadReport("it declares a document type")
