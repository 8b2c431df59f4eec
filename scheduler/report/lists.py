"""Plans, tasks, events, evidence, pools and workers as rows of tables and lines. Pure; `now` comes in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Protocol, TypeVar

from scheduler.model import FINISHED, EventView, Evidence, Json, PlanView, PoolView, TaskState, TaskView, WorkerView
from scheduler.report.plain import clock, flat, iso
from scheduler.report.progress import duration

PLANS = ("PLAN", "STATE", "DONE", "RUNNING", "AGE", "GOAL")
TASKS = ("TASK", "STATE", "ATTEMPT", "CHARGED", "SINCE", "NOTE")
EVIDENCE = ("TASK", "ATTEMPT", "CHECK", "KIND", "VERDICT", "TITLE", "RESULT", "TREE", "EXIT", "TOOK", "VERIFIER", "AT")
POOLS = ("POOL", "LIMIT", "USED", "READY", "WORKERS", "IDLE")
WORKERS = ("WORKER", "HOST", "PID", "POOL", "PLAN", "STATE", "LEASE", "HOLDS")

DETAIL = 160
"""Characters of an event's detail on its line; JSON has it whole."""


def plan_row(plan: PlanView, now: int) -> tuple[str, ...]:
    """A plan's line in `ps`: DONE counts every task that has ended, AGE is since its submission."""
    done = sum(plan.counts[state] for state in FINISHED)
    state = f"{plan.state} ({plan.reason})" if plan.reason else str(plan.state)
    live = plan.counts[TaskState.RUNNING] + plan.counts[TaskState.VERIFYING]
    age = duration(now - plan.created_at)
    return (plan.plan, state, f"{done}/{total(plan)}", str(live), age, flat(plan.goal))


def total(plan: PlanView) -> int:
    """How many tasks a plan has, system tasks included."""
    return sum(plan.counts.values())


def plan_lines(plan: PlanView, now: int) -> list[str]:
    """The head of `show`, one `name: value` a line."""
    state = f"{plan.state} ({plan.reason})" if plan.reason else str(plan.state)
    counts = ", ".join(f"{count} {name}" for name, count in plan.counts.items() if count)
    lines = [
        f"plan:     {plan.plan}",
        f"goal:     {flat(plan.goal)}",
        f"state:    {state}",
        f"tasks:    {counts}",
        f"version:  {plan.version} ({'approved' if plan.approved else 'not approved'})",
        f"hash:     {plan.hash}",
        f"created:  {iso(plan.created_at)} ({duration(now - plan.created_at)} ago)",
    ]
    if plan.ended_at:
        lines.append(f"ended:    {iso(plan.ended_at)} (took {duration(plan.ended_at - plan.created_at)})")
    lines.append(f"at once:  {plan.used} of {plan.concurrency}")
    if plan.repo:
        lines += [f"repo:     {plan.repo}", f"base:     {plan.base_commit}", f"branch:   {plan.branch}"]
    return lines


_URGENT = {
    state: place
    for place, state in enumerate(
        (TaskState.FAILED, TaskState.RUNNING, TaskState.VERIFYING, TaskState.CLAIMED, TaskState.PENDING)
    )
}


class HasState(Protocol):
    """Anything that stands for a task."""

    @property
    def state(self) -> TaskState:
        """Where the task is."""


T = TypeVar("T", bound=HasState)


def urgent_first(tasks: Sequence[T], most: int) -> list[T]:
    """At most `most` tasks: all in their order, or when that is too many what failed and runs first."""
    if len(tasks) <= most:
        return list(tasks)
    return sorted(tasks, key=lambda task: _URGENT.get(task.state, len(_URGENT)))[:most]


def task_row(task: TaskView, now: int, zone: tzinfo | None = None) -> tuple[str, ...]:
    """A task's line in `show`: CHARGED is spent/allowed attempts, SINCE how long it is in its state."""
    since = duration(now - task.since) if task.since else "-"
    charged = f"{task.charged}/{task.retries + 1}"
    return (task.task, str(task.state), str(task.attempt or "-"), charged, since, note(task, now, zone))


def note(task: TaskView, now: int, zone: tzinfo | None = None) -> str:
    """What a person should know about a task beside its state."""
    if task.cancel:
        return "being cancelled"
    if task.state is TaskState.PENDING:
        return _waiting(task, now, zone)
    if task.state is TaskState.SKIPPED:
        return flat(task.cause, 200)
    if task.state is TaskState.FAILED and task.failure is not None:
        return flat(f"{task.failure.kind}: {task.failure.reason}", 200)
    return flat(task.title, 80)


def _waiting(task: TaskView, now: int, zone: tzinfo | None) -> str:
    last = f"; last: {task.failure.kind}: {flat(task.failure.reason, 120)}" if task.failure is not None else ""
    if task.edges_left:
        return f"waits for {task.edges_left} blocker{'s' if task.edges_left != 1 else ''}{last}"
    if task.not_before > now:
        return f"back-off until {clock(task.not_before, zone)}{last}"
    return f"ready{last}"


def event_line(event: EventView, zone: tzinfo | None = None) -> str:
    """One line of a plan's history, tab-separated: time, event, task, attempt, move, actor, detail."""
    move = f"{event.source} -> {event.target}" if event.source != event.target else event.source
    detail = " ".join(f"{name}={_short(value)}" for name, value in event.detail.items())
    cells = (
        clock(event.at, zone, millis=True),
        event.event,
        event.task or "-",
        str(event.attempt or "-"),
        move.strip() or "-",
        event.actor or "-",
        flat(detail, DETAIL) or "-",
    )
    return "\t".join(cells)


def _short(value: Json) -> str:
    if isinstance(value, dict) and set(value) >= {"kind", "reason"}:
        return f"{value['kind']}: {value['reason']}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def event_json(plan: str, event: EventView) -> dict[str, Json]:
    """One event for `events --json`."""
    return {
        "schema": "dagward/event/1",
        "plan": plan,
        "id": event.id,
        "at": iso(event.at),
        "event": event.event,
        "task": event.task or None,
        "attempt": event.attempt or None,
        "from": event.source or None,
        "to": event.target or None,
        "actor": event.actor or None,
        "detail": event.detail,
    }


def evidence_row(task: str, record: Evidence) -> tuple[str, ...]:
    """A record's line: RESULT is what it was taken on, TREE whether the check left it as it was."""
    verdict = "accepted" if record.accepted else f"REFUSED {flat(record.reason, 80)}"
    return (
        task,
        str(record.attempt),
        str(record.check),
        record.kind,
        verdict,
        flat(record.title, 60),
        record.result[:12],
        tree(record),
        "-" if record.exit_code is None else str(record.exit_code),
        duration(record.duration),
        record.verifier or "-",
        iso(record.recorded_at) if record.recorded_at else "-",
    )


def tree(record: Evidence) -> str:
    """Whether the digests of the check tree before and after are equal; `-` when the check needed no tree."""
    if record.tree_before is None and record.tree_after is None:
        return "-"
    return "same" if record.tree_before == record.tree_after else "CHANGED"


def evidence_json(task: str, record: Evidence) -> dict[str, Json]:
    """One record for `evidence --json`; the owner token stays out."""
    value: dict[str, Json] = record.model_dump(mode="json", exclude={"token", "recorded_at"})
    same = None if record.tree_before is None and record.tree_after is None else record.tree_before == record.tree_after
    return {
        "task": task,
        **value,
        "tree_same": same,
        "recorded_at": iso(record.recorded_at) if record.recorded_at else None,
    }


def refused_lines(task: str, record: Evidence, most: int = 20) -> list[str]:
    """The last lines of a refused check's output, under a head that names it."""
    head = f"{task} attempt {record.attempt} check {record.check} refused: {flat(record.title)}: {flat(record.reason)}"
    return [head, *(f"  | {line}" for line in record.output.rstrip().splitlines()[-most:])]


def pool_row(pool: PoolView) -> tuple[str, ...]:
    """A pool's line in `queues`."""
    numbers = (pool.limit, pool.used, pool.ready, pool.workers, pool.idle)
    return (pool.pool, *(str(number) for number in numbers))


def with_configured(pools: Sequence[PoolView], limits: Mapping[str, int]) -> list[PoolView]:
    """The store's pools, and those of the configuration that no daemon has told it yet."""
    known = {pool.pool for pool in pools}
    fresh = [
        PoolView(pool=name, limit=limit, used=0, ready=0, workers=0, idle=0)
        for name, limit in limits.items()
        if name not in known
    ]
    return sorted([*pools, *fresh], key=lambda pool: pool.pool)


def worker_row(worker: WorkerView) -> tuple[str, ...]:
    """A worker's line in `workers`: LEASE is what is left of it, HOLDS `plan task` of each attempt."""
    lease = duration(worker.lease) if worker.lease > 0 else "lapsed"
    held = "; ".join(worker.attempts) or "-"
    return (worker.name, worker.host, str(worker.pid), worker.pool, worker.plan or "all", worker.state, lease, held)
