"""What holds a whole plan: the few causes that hold the most tasks. Pure; one pass over the tasks, bounded searches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.explain import plan_cause
from scheduler.model import LIVE, PLAN_ENDED, PlanState, PlanView, TaskState
from scheduler.report.causes import Cause, Explanation
from scheduler.report.outcome import next_step
from scheduler.report.plain import clipped, clock, plural
from scheduler.report.progress import duration

FRONTS = 20
"""Tasks whose reach is searched: those with the most direct dependents."""

NAMED = 4
"""Tasks that are named for what they hold; in a wide plan many hold the same."""

SHOWN = 8
"""Causes that are worth a line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One task of the plan: where it is and what it blocks. Times are server milliseconds."""

    task: str
    state: TaskState
    edges_left: int
    not_before: int
    pool: str
    since: int
    worker: str = ""
    cancel: bool = False
    waits: bool = False  # the claim has to take it before it moves
    next: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A pool in which ready tasks wait, one of them, and how many they are: its facts answer for all."""

    pool: str
    task: str
    tasks: int


def questions(rows: Sequence[Row], now: int) -> list[Question]:
    """For each pool with ready tasks, the one task to ask about."""
    ready: dict[str, list[str]] = {}
    for row in rows:
        if row.waits and row.edges_left == 0 and row.not_before <= now:
            ready.setdefault(row.pool, []).append(row.task)
    return [Question(pool, names[0], len(names)) for pool, names in sorted(ready.items())]


def explain_plan(
    plan: PlanView, rows: Sequence[Row], answers: Iterable[tuple[Question, Sequence[Cause]]], now: int
) -> Explanation:
    """The causes that hold the most tasks of a plan, the largest first. `answers`: the causes of each question."""
    waiting = sum(1 for row in rows if row.state is TaskState.PENDING)
    if plan.state in PLAN_ENDED:
        return _ended(plan, rows)
    stopped = plan.state is not PlanState.RUNNING or not plan.approved
    fronts = _fronts(plan, rows, now)
    causes = [*fronts, *_backoffs(rows, now, {name for cause in fronts for name in cause.holder})]
    causes += [] if stopped else _pools(answers)
    causes.sort(key=lambda cause: -cause.tasks)
    causes = ([replace(plan_cause(plan), tasks=waiting)] if stopped else []) + causes[:SHOWN]
    line = f"plan {plan.plan} is {plan.state}: {_counts(plan)}"
    return Explanation(plan.plan, "", plan.state, line, causes[0].next if causes else "", tuple(causes))


def _counts(plan: PlanView) -> str:
    return ", ".join(f"{count} {state}" for state, count in plan.counts.items() if count)


def _ended(plan: PlanView, rows: Sequence[Row]) -> Explanation:
    line = f"plan {plan.plan} is {plan.state}: {_counts(plan)}"
    if plan.state is not PlanState.FAILED:
        step = "evidence" if plan.state is PlanState.COMPLETED else "events"
        return Explanation(plan.plan, "", plan.state, line, f"dagward {step} {plan.plan}")
    failed = [row for row in rows if row.state is TaskState.FAILED]
    causes = tuple(
        Cause(
            "failed",
            f"{row.task} failed",
            (f"task {row.task}",),
            row.since,
            0,
            f"dagward why {plan.plan} {row.task}",
        )
        for row in failed[:SHOWN]
    )
    return Explanation(plan.plan, "", plan.state, line, causes[0].next if causes else next_step(plan), causes)


def _fronts(plan: PlanView, rows: Sequence[Row], now: int) -> list[Cause]:
    """Tasks that do not wait for others and hold those that do."""
    pending = {row.task: row for row in rows if row.state is TaskState.PENDING and row.edges_left > 0}
    front = [row for row in rows if row.task not in pending and row.state is not TaskState.COMPLETED]
    front.sort(key=lambda row: (-sum(1 for each in row.next if each in pending), row.state not in LIVE))
    causes = []
    for row in front[:FRONTS]:
        held = _reach(row, pending)
        if held or row.state in LIVE:
            holds = f" and holds {plural(held, 'task')}" if held else ""
            text = f"{row.task} {_standing(row, now)}{holds}"
            causes.append(
                Cause(
                    "edges" if held else str(row.state),
                    text,
                    (f"task {row.task}",),
                    row.since,
                    0,
                    _step(plan, row),
                    held,
                )
            )
    causes.sort(key=lambda cause: -cause.tasks)
    return causes[:NAMED]


def _step(plan: PlanView, row: Row) -> str:
    if row.state in LIVE and not row.cancel:
        return f"dagward logs {plan.plan} {row.task} -f"
    return f"dagward why {plan.plan} {row.task}"


def _standing(row: Row, now: int) -> str:
    ago = f" for {duration(now - row.since)}" if row.since else ""
    if row.cancel:
        return f"is being cancelled{ago}"
    if row.state in LIVE:
        return f"is {row.state}{f' on worker {row.worker}' if row.worker else ''}{ago}"
    if row.state is TaskState.PENDING:
        return f"is in back-off until {clock(row.not_before)}" if row.not_before > now else "is ready"
    return f"is {row.state}, and no daemon has skipped its dependents yet"


def _reach(row: Row, pending: Mapping[str, Row]) -> int:
    """Waiting tasks behind this one, near and far."""
    found: set[str] = set()
    stack = [each for each in row.next if each in pending]
    while stack:
        task = stack.pop()
        if task not in found:
            found.add(task)
            stack.extend(each for each in pending[task].next if each in pending and each not in found)
    return len(found)


def _backoffs(rows: Sequence[Row], now: int, told: Collection[str]) -> list[Cause]:
    """Pauses, but for those of tasks that were named because they hold others."""
    free = [row for row in rows if row.state is TaskState.PENDING and row.edges_left == 0]
    paused = [row for row in free if row.not_before > now and f"task {row.task}" not in told]
    if not paused:
        return []
    first = min(row.not_before for row in paused)
    names = clipped([row.task for row in paused])
    text = f"{plural(len(paused), 'task')} in back-off after a failed attempt: {names}; the next at {clock(first)}"
    return [Cause("backoff", text, ("time",), 0, first, "nothing to do: they go again by themselves", len(paused))]


def _pools(answers: Iterable[tuple[Question, Sequence[Cause]]]) -> list[Cause]:
    out = []
    for question, causes in answers:
        first = causes[0] if causes else Cause("ready", "is ready: a daemon claims it for an idle worker")
        text = f"{plural(question.tasks, 'task')} of pool {question.pool} ready ({question.task}): {first.text}"
        out.append(replace(first, text=text, tasks=question.tasks))
    return out
