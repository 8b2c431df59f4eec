"""What a plan must come to, whatever the order: a pure reference model of edges, conditions, fallbacks and failures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from scheduler.model import TaskSpec, When


@dataclass(frozen=True)
class End:
    """How a task ended. `number` orders causes: the task in whose name dependents are skipped."""

    state: str
    hard: bool
    number: int
    cause: str


def outcome(
    tasks: Sequence[TaskSpec], fails: Collection[str], conditions: Mapping[str, bool | None], sizes: Mapping[str, int]
) -> dict[str, End]:
    """The end of every task. `fails` are those whose work fails, `conditions` what each `if` says (None: an error),
    `sizes` the items of each for_each task; a failing instance is named `task.N`."""
    numbers = {task.id: n for n, task in enumerate(tasks)}
    specs = {task.id: task for task in tasks}
    of = {task.fallback: task.id for task in tasks if task.fallback}
    ends: dict[str, End] = {}

    def resolve(task: str) -> End:
        end = find(task)
        fallback = specs[task].fallback
        return resolve(fallback) if end.state == "failed" and fallback else end

    def blame(task: str) -> tuple[bool, int, str]:
        end = resolve(task)
        return (not end.hard, end.number, end.cause)

    def find(task: str) -> End:
        if task not in ends:
            ends[task] = judge(specs[task])
        return ends[task]

    def judge(spec: TaskSpec) -> End:
        number = numbers[spec.id]
        replaced = of.get(spec.id)
        if replaced and find(replaced).state != "failed":
            return End("skipped", False, number, f"{replaced} did not fail")
        for edge in spec.blocked_by:
            find(edge.task)
        broken = [
            blame(edge.task)
            for edge in spec.blocked_by
            if edge.when is When.VERIFIED and resolve(edge.task).state != "completed"
        ]
        if broken:
            soft, first, cause = min(broken)
            return End("skipped", not soft, first, cause)
        said = conditions.get(spec.id, True) if spec.if_ else True
        if said is False:
            return End("skipped", False, number, "its condition is false")
        failed = End("failed", not (spec.on_failure == "continue" or spec.fallback), number, f"{spec.id} failed")
        if said is None:
            return failed
        if spec.for_each:
            bad = [n for n in range(sizes.get(spec.id, 0)) if f"{spec.id}.{n}" in fails]
            if bad:
                return failed
            return End("completed", True, number, "")
        return failed if spec.id in fails else End("completed", True, number, "")

    for task in tasks:
        find(task.id)
    return ends


def verdict(ends: Mapping[str, End]) -> str:
    """completed, or failed when a bad end counts."""
    return "failed" if any(end.state != "completed" and end.hard for end in ends.values()) else "completed"
