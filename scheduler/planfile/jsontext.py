"""JSON text -> values, fast; places are looked up again in the text only when there is an error to show.

Must not know what a plan is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from scheduler.planfile.source import Defect, Path, Source, Step, Unreadable

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def read_json(text: str) -> Source:
    """Parse JSON text (RFC 8259, finite numbers only). Raises Unreadable for a syntax error."""
    doubled = False

    def mapping(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal doubled
        made = dict(pairs)
        doubled = doubled or len(made) != len(pairs)
        return made

    try:
        value: object = json.loads(text, object_pairs_hook=mapping, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise Unreadable(Defect(message, "correct the JSON", error.pos)) from None
    except RecursionError:
        raise Unreadable(Defect("the file is nested too deeply", "make it flatter")) from None
    except ValueError as error:
        raise Unreadable(Defect(f"not valid JSON: {error}", "correct the JSON")) from None
    places = JsonPlaces(text)
    return Source(text, value, places, tuple(places.duplicates()) if doubled else ())


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


class JsonPlaces:
    """Finds values in valid JSON text. Skips whole values at the speed of the C decoder, and remembers its way."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = self._skip(0)
        self._seen: dict[int, tuple[Iterator[tuple[Step, int, int]], dict[Step, tuple[int, int]]]] = {}

    def find(self, path: Path, *, key: bool) -> int:
        """Index of the value at `path`, of its key, or of the nearest value around it."""
        at, at_key = self._root, self._root
        for step in path:
            found = self._child(at, step)
            if found is None:
                return at
            at_key, at = found
        return at_key if key else at

    def duplicates(self) -> Iterator[Defect]:
        """Every key that a mapping holds more than once."""
        stack: list[tuple[Path, int]] = [((), self._root)]
        while stack:
            path, at = stack.pop()
            seen: dict[Step, int] = {}
            for step, at_key, at_value in self._children(at):
                if step in seen:
                    yield Defect(f'duplicate key "{step}"', "keep one of the two", at_key, (*path, step))
                seen[step] = at_key
                if self._text[at_value] in "{[":
                    stack.append(((*path, step), at_value))

    def _child(self, at: int, step: Step) -> tuple[int, int] | None:
        # A list of 100,000 tasks is walked only as far as the first place that is asked for.
        rest, seen = self._seen.setdefault(at, (self._children(at), {}))
        while step not in seen:
            item = next(rest, None)
            if item is None:
                return None
            seen[item[0]] = item[1:]
        return seen[step]

    def _children(self, at: int) -> Iterator[tuple[Step, int, int]]:
        opening = self._text[at]
        if opening not in "{[":
            return
        at = self._skip(at + 1)
        position = 0
        while self._text[at] not in "}]":
            step: Step = position
            at_key = at
            if opening == "{":
                step, at = _DECODER.raw_decode(self._text, at)
                at = self._skip(self._skip(at) + 1)
            yield step, at_key, at
            at = self._skip(_DECODER.raw_decode(self._text, at)[1])
            position += 1
            if self._text[at] == ",":
                at = self._skip(at + 1)

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at
