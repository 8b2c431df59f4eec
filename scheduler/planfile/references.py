"""Ids and edges of a file as written: are they unique, do they exist, do both ends agree, is there a cycle.

`for_each: survey.modules` is an edge to `survey` as well.

Works on plain values, so it also answers for a file whose shape is wrong elsewhere. Must not know other fields.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.graph import find_cycles
from scheduler.model.plan import When
from scheduler.planfile.raw import FOR_EACH
from scheduler.planfile.report import Report, near
from scheduler.planfile.source import Path

MANY = 20
"""Warnings of one kind are listed one by one up to this number, then in one line."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a file: `written` holds (position, task) of everything that is a mapping, `first` id -> position,
    `by_id` id -> task; the first one of an id counts."""

    written: Sequence[tuple[int, dict[str, object]]]
    first: dict[str, int]
    by_id: dict[str, dict[str, object]]


Blockers = dict[str, dict[str, When]]
"""Task -> its blockers, sorted, and what is waited for of each."""

_End = tuple[int, str, int | None, object]
"""Where one end of an edge is written (position of the task, field, position in its list), and its `when`."""

_FOR_EACH = re.compile(FOR_EACH, re.ASCII)
_FIELDS = ("blocked_by", "blockedBy", "blocks")


def find_tasks(value: dict[str, object]) -> Tasks:
    """Everything in `tasks` that can be looked at."""
    listed = value.get("tasks")
    written = (
        [(at, task) for at, task in enumerate(listed) if isinstance(task, dict)] if isinstance(listed, list) else []
    )
    first: dict[str, int] = {}
    by_id: dict[str, dict[str, object]] = {}
    for at, task in written:
        name = task.get("id")
        if isinstance(name, str) and name not in first:
            first[name], by_id[name] = at, task
    return Tasks(written, first, by_id)


def check_ids(tasks: Tasks, report: Report) -> None:
    """Duplicate ids are errors; ids that differ only in case are a warning."""
    lower: dict[str, str] = {}
    for at, task in tasks.written:
        name = task.get("id")
        if not isinstance(name, str):
            continue
        if tasks.first[name] != at:
            line = report.line(("tasks", tasks.first[name], "id"))
            report.error(
                ("tasks", at, "id"), f'duplicate id "{name}", first on line {line}', "give each task its own id"
            )
        elif lower.setdefault(name.lower(), name) != name:
            message = f'the ids "{lower[name.lower()]}" and "{name}" differ only in case'
            report.warn(("tasks", at, "id"), message, "rename one; some file systems cannot tell them apart")


def source_of(for_each: object) -> str | None:
    """The task whose output `for_each` goes through; None when it does not name one."""
    return for_each.partition(".")[0] if isinstance(for_each, str) and _FOR_EACH.fullmatch(for_each) else None


def templates(tasks: Tasks) -> set[str]:
    """The ids of the tasks with `for_each`."""
    return {name for name, task in tasks.by_id.items() if "for_each" in task}


def check_edges(tasks: Tasks, report: Report) -> Blockers:
    """Check all edges; gives them at the dependent, from both ends and from `for_each`."""
    blockers: dict[str, dict[str, _End]] = {name: {} for name in tasks.first}
    for at, task in tasks.written:
        name = task.get("id")
        if not isinstance(name, str):
            continue
        if "blockedBy" in task and "blocked_by" in task:
            _compare_spellings(at, task, report)
        for field in _FIELDS:
            listed = task.get(field)
            if listed and isinstance(listed, list):
                _add_list((at, name, field), listed, blockers, report)
    _add_implied(tasks, blockers, report)
    for cycle in find_cycles(blockers):
        path = _path(blockers[cycle[0]][cycle[-1]])
        report.error(path, f"cycle: {' -> '.join([*cycle, cycle[0]])}", "remove one of these edges")
    return {name: {each: _when(ends[each]) for each in sorted(ends)} for name, ends in blockers.items()}


def _add_implied(tasks: Tasks, blockers: dict[str, dict[str, _End]], report: Report) -> None:
    lists = templates(tasks)
    for name in sorted(lists):
        at = tasks.first[name]
        path: Path = ("tasks", at, "for_each")
        source = source_of(tasks.by_id[name].get("for_each"))
        if source is None:
            continue  # said by the shape
        if source not in blockers:
            report.error(path, f'unknown task "{source}"', near(source, blockers, "tasks"))
        elif source == name:
            report.error(path, f'task "{name}" cannot take its items from itself', "name a task before it")
        else:
            known = blockers[name].setdefault(source, (at, "for_each", None, "verified"))
            if known[3] == "settled":
                message = f'the edge to "{source}" waits for settled, but for_each needs its outputs'
                report.error(_path(known), message, "remove this edge; for_each implies one")
            if source in lists:
                message = f'outputs of "{source}" are a list, one for each of its items'
                report.error(path, message, "let a task between the two write one array")


def _when(end: _End) -> When:
    return When.SETTLED if end[3] == "settled" else When.VERIFIED


def _add_list(
    where: tuple[int, str, str], listed: list[object], blockers: dict[str, dict[str, _End]], report: Report
) -> None:
    at, name, field = where
    for place, item in enumerate(listed):
        other, when = (item, "verified") if isinstance(item, str) else _read_end(item)
        if other is None:
            continue
        end = (at, field, place, when)
        if other not in blockers:
            report.error(_path(end), f'unknown task "{other}"', near(other, blockers, "tasks"))
        elif other == name:
            report.error(_path(end), f'task "{other}" blocks itself', "remove this edge")
        else:
            blocker, dependent = (name, other) if field == "blocks" else (other, name)
            known = blockers[dependent].setdefault(blocker, end)
            if known is not end:
                _compare_ends(known, end, (blocker, dependent), other, report)


def _compare_ends(known: _End, end: _End, edge: tuple[str, str], other: str, report: Report) -> None:
    if known[:2] == end[:2]:
        report.error(_path(end), f'duplicate edge to "{other}"', "keep one of the two")
    elif known[3] != end[3]:
        line = report.line(_path(known))
        message = f"the two ends of {edge[0]} -> {edge[1]} disagree: {end[3]} here, {known[3]} on line {line}"
        report.error(_path(end), message, "write the edge once")


def _path(end: _End) -> Path:
    return ("tasks", end[0], end[1]) if end[2] is None else ("tasks", end[0], end[1], end[2])


def _read_end(item: object) -> tuple[str | None, object]:
    if isinstance(item, str):
        return item, "verified"
    if isinstance(item, dict) and isinstance(item.get("task"), str):
        return item["task"], item.get("when", "verified")
    return None, None


def _compare_spellings(at: int, task: dict[str, object], report: Report) -> None:
    lists = [task["blocked_by"], task["blockedBy"]]
    both = [sorted(map(repr, map(_read_end, each))) for each in lists if isinstance(each, list)]
    if len(both) == 2 and both[0] != both[1]:
        message = "blocked_by and blockedBy are the same field, and they disagree"
        report.error(("tasks", at, "blockedBy"), message, "keep blocked_by", key=True)
