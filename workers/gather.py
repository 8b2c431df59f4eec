"""Collects what one attempt needs from the store: its spec, its plan's header, its blockers' results, old evidence.

Reads only. Must not run anything and must not know other tasks beyond the results of those that block this one.
"""

from __future__ import annotations

from typing import cast

from scheduler.graph import from_blockers
from scheduler.model import Ancestor, Attempt, Claim, Evidence, Failure, Json, Scope, TaskState
from scheduler.store import Views


def gather(views: Views, claim: Claim, token: str, state: TaskState) -> Attempt:
    """The attempt's whole context. Raises Conflict when a blocker is not completed, whatever the caller believes."""
    spec = views.spec(claim.plan, claim.task)
    header = views.header(claim.plan)
    plan = cast("dict[str, Json]", header["spec"])
    failure, rejected = _last(views, claim)
    return Attempt(
        plan=claim.plan,
        goal=str(plan["goal"]),
        task=spec,
        attempt=claim.attempt,
        token=token,
        state=state,
        base_commit=cast("str | None", header.get("base_commit")),
        repo=cast("str | None", header.get("repo")),
        scope=Scope.model_validate(plan["scope"]),
        params=cast("dict[str, str | None]", plan["params"]),
        ancestors=ancestors(views, claim.plan, claim.task),
        result=views.result(claim.plan, claim.task, claim.attempt) if state is TaskState.VERIFYING else None,
        rejected=rejected,
        last_failure=failure,
    )


def _last(views: Views, claim: Claim) -> tuple[Failure | None, tuple[Evidence, ...]]:
    """The newest earlier attempt that failed, and its evidence. Attempts that were handed back left none."""
    for attempt in range(claim.attempt - 1, 0, -1):
        failure = views.failure(claim.plan, claim.task, attempt)
        if failure is not None:
            return failure, tuple(views.evidence(claim.plan, claim.task, attempt))
    return None, ()


def ancestors(views: Views, plan: str, task: str) -> tuple[Ancestor, ...]:
    """The results of all blockers near and far, in topological order, ties by their place in the file."""
    direct = frozenset(edge.task for edge in views.spec(plan, task).blocked_by)
    if not direct:
        return ()
    blockers: dict[str, list[str]] = {}
    front = list(direct)
    while front:
        for one in front:
            blockers[one] = [edge.task for edge in views.spec(plan, one).blocked_by]
        front = [b for b in {b for one in front for b in blockers[one]} if b not in blockers]
    numbers = views.numbers(plan, list(blockers))
    ordered = {one: blockers[one] for one in sorted(blockers, key=lambda one: numbers[one])}
    return views.completed(plan, from_blockers(ordered).order(), direct)
