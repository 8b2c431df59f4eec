"""Collects what one attempt needs from the store: its spec, its plan's header, its blockers' results, old evidence.

Reads only. Must not run anything and must not know other tasks beyond the results of those that block this one.
"""

from __future__ import annotations

from typing import cast

from scheduler import lineage
from scheduler.model import Attempt, Claim, Evidence, Failure, Json, Scope, TaskState
from scheduler.store import Views


def gather(views: Views, claim: Claim, token: str, state: TaskState) -> Attempt:
    """The attempt's whole context. Raises Conflict when a blocker is not completed, whatever the caller believes."""
    spec = views.spec(claim.plan, claim.task)
    header = views.header(claim.plan)
    plan = cast("dict[str, Json]", header["spec"])
    failure, rejected = _last(views, claim)
    has_item, item = views.item(claim.plan, claim.task)
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
        ancestors=lineage.ancestors(views, claim.plan, claim.task),
        result=views.result(claim.plan, claim.task, claim.attempt) if state is TaskState.VERIFYING else None,
        rejected=rejected,
        last_failure=failure,
        item=item,
        has_item=has_item,
    )


def _last(views: Views, claim: Claim) -> tuple[Failure | None, tuple[Evidence, ...]]:
    """The newest earlier attempt that failed, and its evidence. Attempts that were handed back left none."""
    for attempt in range(claim.attempt - 1, 0, -1):
        failure = views.failure(claim.plan, claim.task, attempt)
        if failure is not None:
            return failure, tuple(views.evidence(claim.plan, claim.task, attempt))
    return None, ()
