"""Collects what is wrong with one file and gives every problem its line, column and field name.

Must not know any rule: the rules call it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from scheduler.errors import Problem
from scheduler.model.plan import ID_PATTERN
from scheduler.planfile.source import Path, Source

_ID = re.compile(ID_PATTERN, re.ASCII)


@dataclass
class Report:
    """The errors and warnings found so far. Places are looked up here, so a clean file pays nothing for them."""

    source: Source
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def error(self, path: Path, message: str, remedy: str = "", *, key: bool = False) -> None:
        """Refuse the value at `path`; with `key` the key is meant (an unknown field)."""
        self.errors.append(self._problem(path, message, remedy, key=key))

    def warn(self, path: Path, message: str, remedy: str = "") -> None:
        """Tell something that does not stop the plan."""
        self.warnings.append(self._problem(path, message, remedy, key=False))

    def whole(self, name: str, message: str, remedy: str) -> None:
        """Refuse something that is not in the file, such as an option of the command."""
        self.errors.append(_problem(message, name, (0, 0), remedy))

    def at_index(self, index: int | None, path: Path, message: str, remedy: str) -> None:
        """Refuse a place of the text that has no value of its own."""
        place = self.source.position(index) if index is not None else (0, 0)
        self.errors.append(_problem(message, self.name(path), place, remedy))

    def line(self, path: Path) -> int:
        """The line of a value, for messages that name another place."""
        return self.source.locate(path)[0]

    def name(self, path: Path) -> str:
        """`tasks.migrate.agent.run`, with the task's id when it has a usable one, else `tasks[3].agent.run`."""
        parts: list[str] = []
        for depth, step in enumerate(path):
            known = self._task_id(path[: depth + 1]) if depth == 1 else None
            if known is not None:
                parts.append(f".{known}")
            elif isinstance(step, int):
                parts.append(f"[{step}]")
            else:
                parts.append(f".{step}" if parts else step)
        return "".join(parts)

    def _problem(self, path: Path, message: str, remedy: str, *, key: bool) -> Problem:
        return _problem(message, self.name(path), self.source.locate(path, key=key), remedy)

    def _task_id(self, path: Path) -> str | None:
        task = value_at(self.source.value, path) if path[0] == "tasks" else None
        name = task.get("id") if isinstance(task, dict) else None
        return name if isinstance(name, str) and _ID.match(name) else None


def printable(text: str) -> str:
    """The text on one line, with what could move a terminal's cursor written as an escape."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _problem(message: str, name: str, place: tuple[int, int], remedy: str) -> Problem:
    return Problem(printable(message), printable(name), place[0], place[1], printable(remedy))


def sort(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """In the order of their places, each once: a value that many aliases share is reported where it is written."""
    seen: dict[tuple[int, int, str], Problem] = {}
    for problem in problems:
        seen.setdefault((problem.line, problem.column, problem.message), problem)
    return tuple(sorted(seen.values(), key=lambda each: (each.line, each.column, each.field)))


def value_at(value: object, path: Path) -> object:
    """The value at a path, or None where there is none."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def near(name: str, known: Collection[str], what: str) -> str:
    """`did you mean "timeout"? known fields: agent, ...`: the remedy for a name that does not exist."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6) if len(known) <= 1_000 else []
    shown = ", ".join(list(known)[:20]) + (", ..." if len(known) > 20 else "")
    listing = f"known {what}: {shown or 'none'}"
    return f'did you mean "{close[0]}"? {listing}' if close else listing


def describe(value: object) -> str:
    """A value in words, for `must be a text, not ...`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f'"{clip(value)}"'
    return "a list" if isinstance(value, list) else "a mapping"


def clip(text: str, most: int = 40) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 3] + "..."
