"""Reads of many tasks or plans in few round trips, for the commands that look at a whole plan. Writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from scheduler import errors
from scheduler.model import Evidence, TaskState
from scheduler.store.views import PAGE, Views


@dataclass(frozen=True, slots=True)
class Glance:
    """What decides whether a task waits, and since when it does (server milliseconds)."""

    task: str
    state: TaskState
    attempt: int
    edges_left: int
    not_before: int
    pool: str
    session: str
    since: int
    cancel: bool
    taken_over: bool  # verification that waits for a worker

    @property
    def waits(self) -> bool:
        """Whether the claim has to take it before it moves."""
        return self.state is TaskState.PENDING or (self.taken_over and not self.session)


_FIELDS = ("st", "att", "wait", "nb", "pool", "sess", "t0", "cancel", "vt")


def glances(views: Views, plan: str, ids: Sequence[str] | None = None) -> list[Glance]:
    """All tasks of a plan, or those named, in one pass of pages."""
    wanted = list(ids) if ids is not None else views.task_ids(plan)
    out: list[Glance] = []
    for start in range(0, len(wanted), PAGE):
        page = wanted[start : start + PAGE]
        with views.client.pipeline(transaction=False) as pipe:
            for task in page:
                pipe.hmget(views.keys.row(plan, task), list(_FIELDS))
            rows = cast("list[list[str | None]]", pipe.execute())
        out += [_glance(plan, task, row) for task, row in zip(page, rows, strict=True)]
    return out


def _glance(plan: str, task: str, row: Sequence[str | None]) -> Glance:
    state, attempt, wait, not_before, pool, session, since, cancel, taken = row
    if state is None:
        raise errors.NotFound(f"plan {plan} has no task {task}")
    return Glance(
        task=task,
        state=TaskState(state),
        attempt=int(attempt or 0),
        edges_left=int(wait or 0),
        not_before=int(not_before or 0),
        pool=pool or "default",
        session=session or "",
        since=int(since or 0),
        cancel=cancel == "1",
        taken_over=taken == "1",
    )


def dependents(views: Views, plan: str, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Each named task with the tasks that it blocks directly."""
    out: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(ids), PAGE):
        page = ids[start : start + PAGE]
        raws = cast("list[str | None]", views.client.mget([views.keys.dependents(plan, task) for task in page]))
        out.update((task, tuple(json.loads(raw)) if raw else ()) for task, raw in zip(page, raws, strict=True))
    return out


def evidence(views: Views, plan: str, attempts: Iterable[tuple[str, int]]) -> list[list[Evidence]]:
    """The stored records of several attempts (task, number), each in the order of its checks."""
    wanted = list(attempts)
    out: list[list[Evidence]] = []
    for start in range(0, len(wanted), PAGE):
        with views.client.pipeline(transaction=False) as pipe:
            for task, attempt in wanted[start : start + PAGE]:
                pipe.hvals(views.keys.evidence(plan, task, attempt))
            out += [_records(raws) for raws in cast("list[list[str]]", pipe.execute())]
    return out


def _records(raws: Sequence[str]) -> list[Evidence]:
    return sorted((Evidence.model_validate_json(raw) for raw in raws), key=lambda record: record.check)


def worker_names(views: Views, sessions: Iterable[str]) -> dict[str, str]:
    """Each session that is still known with the name of its worker."""
    wanted = sorted(set(sessions) - {""})
    if not wanted:
        return {}
    with views.client.pipeline(transaction=False) as pipe:
        for session in wanted:
            pipe.hget(views.keys.executor(session), "name")
        names = cast("list[str | None]", pipe.execute())
    return {session: name for session, name in zip(wanted, names, strict=True) if name}


def active_plans(views: Views) -> set[str]:
    """Plans that have not ended."""
    return cast("set[str]", views.client.smembers(views.keys.active()))


def plans_since(views: Views, since: int) -> list[str]:
    """Plans submitted at or after this server time, the newest first."""
    return cast("list[str]", views.client.zrevrangebyscore(views.keys.plans(), "+inf", since))
