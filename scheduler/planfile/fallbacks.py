"""Rules for `on_failure: {fallback: ID}`: the named task exists, stands in for one task only, and can come after it.

Works on plain values, so it also answers for a file whose shape is wrong elsewhere. Must not know states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from scheduler.graph import find_cycles, with_stand_ins
from scheduler.planfile.references import Blockers, Tasks
from scheduler.planfile.report import Report, near
from scheduler.planfile.source import Path


def check_fallbacks(tasks: Tasks, blockers: Blockers, report: Report) -> None:
    """Everything about fallbacks. `blockers` may hold cycles of its own, which are reported elsewhere."""
    named = {name: found for name, task in tasks.by_id.items() if (found := fallback_of(task)) is not None}
    if not named:
        return
    owner: dict[str, str] = {}
    sound = True
    for task, fallback in named.items():
        wrong = _wrong(task, fallback, tasks) or _taken(task, fallback, owner, tasks, report)
        if wrong is not None:
            report.error(_place(task, tasks), *wrong)
            sound = False
    if sound and not find_cycles(blockers):
        _check_order(named, tasks, blockers, report)


def fallback_of(task: Mapping[str, object]) -> str | None:
    """The id of a task's fallback, when it is written as one."""
    answer = task.get("on_failure")
    found = answer.get("fallback") if isinstance(answer, dict) else None
    return found if isinstance(found, str) else None


def _wrong(task: str, fallback: str, tasks: Tasks) -> tuple[str, str] | None:
    if fallback not in tasks.by_id:
        return f'unknown task "{fallback}"', near(fallback, tasks.by_id, "tasks")
    if fallback == task:
        return f'task "{task}" cannot be its own fallback', "name another task"
    if "for_each" in tasks.by_id[task]:
        return "a fallback of a task with for_each is not in this version", "write on_failure: fail or continue"
    if "for_each" in tasks.by_id[fallback]:
        return f'a fallback with for_each, such as "{fallback}", is not in this version', "name a task without it"
    return None


def _taken(task: str, fallback: str, owner: dict[str, str], tasks: Tasks, report: Report) -> tuple[str, str] | None:
    first = owner.setdefault(fallback, task)
    if first == task:
        return None
    line = report.line(_place(first, tasks))
    return f'"{fallback}" is already the fallback of "{first}" on line {line}', "give each task its own fallback"


def _check_order(named: Mapping[str, str], tasks: Tasks, blockers: Blockers, report: Report) -> None:
    """What waits for a task also waits for its fallback, so the fallback may wait for none of them."""
    owners = {fallback: task for task, fallback in named.items()}
    waiting = {task: found for task in named if (found := _replaced(task, owners, blockers[named[task]])) is not None}
    for task, replaced in waiting.items():
        message = f'the fallback "{named[task]}" waits for "{replaced}", which it replaces'
        report.error(_place(task, tasks), message, "remove the edge; it is called when the task fails")
    for cycle in () if waiting else find_cycles(with_stand_ins(blockers, named)):
        ring = list(pairwise([*cycle, cycle[0]]))
        task, shown = _caller(ring, named, blockers), " -> ".join([*cycle, cycle[0]])
        if all(named.get(one) == other for one, other in ring):
            message, remedy = f"the fallbacks form a cycle: {shown}", "remove one of them"
        elif named[task] in blockers[task]:
            message = f'task "{task}" waits for its own fallback "{named[task]}"'
            remedy = "remove the edge; it is called when the task fails"
        else:
            message = f'the fallback "{named[task]}" of "{task}" closes a cycle: {shown}'
            remedy = "what waits for a task waits for its fallback too; remove one of these edges"
        report.error(_place(task, tasks), message, remedy)


def _replaced(task: str, owners: Mapping[str, str], waits_for: Collection[str]) -> str | None:
    """The task that the fallback of `task` waits for and stands in for, itself or through a chain of fallbacks.
    `owners` is fallback -> its task."""
    if not waits_for:
        return None
    seen: set[str] = set()
    at: str | None = task
    while at is not None and at not in seen:
        if at in waits_for:
            return at
        seen.add(at)
        at = owners.get(at)
    return None


def _caller(ring: Sequence[tuple[str, str]], named: Mapping[str, str], blockers: Blockers) -> str:
    """The task with the fallback that brought the first step of a cycle which is no edge of the file."""
    one, other = next(step for step in ring if step[0] not in blockers[step[1]])
    return one if named.get(one) == other else next(task for task, fallback in named.items() if fallback == one)


def _place(task: str, tasks: Tasks) -> Path:
    return ("tasks", tasks.first[task], "on_failure", "fallback")
