"""Small plans and executors for tests of the store, without a plan file."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from scheduler.model import Claim, Evidence, Executor, PlanSpec, PlanVersion, Result, Retries, TaskSpec
from scheduler.model.agents import CommandAgent
from scheduler.model.plan import Edge
from scheduler.store import Staged, Store


def task(
    id_: str, blocked_by: Sequence[str] = (), *, retries: int = 2, pool: str = "default", backoff: int = 0
) -> TaskSpec:
    return TaskSpec(
        id=id_,
        agent=CommandAgent(use="command", run="true"),
        blocked_by=tuple(Edge(task=b) for b in sorted(blocked_by)),
        retries=Retries(max=retries, backoff=backoff, max_backoff=backoff),
        pool=pool,
    )


def submit(
    store: Store,
    tasks: Sequence[TaskSpec],
    *,
    name: str = "p",
    concurrency: int = 4,
    approval: str = "auto",
    key: str = "",
    content: str = "",
    plan: str = "",
) -> str:
    spec = PlanSpec.model_validate(
        {"name": name, "goal": "g", "concurrency": concurrency, "approval": approval, "tasks": tasks}
    )
    plan = plan or f"{name}-{secrets.token_hex(3)}"
    store.stage(plan, 1, staged(tasks))
    record = PlanVersion(hash="h" * 64, spec=spec)
    return store.flip(plan, record, tasks, key=key, content=content, who="test")


def staged(tasks: Sequence[TaskSpec]) -> list[Staged]:
    from scheduler.submission import staged as with_gates

    return with_gates(tuple(tasks))


def executor(store: Store, *, pool: str = "default", plan: str = "") -> Executor:
    session = secrets.token_hex(6)
    made = Executor(session=session, name=f"w-{session}", host="h", pid=1, pool=pool, queue=f"q-{session}", plan=plan)
    store.register(made)
    store.present(session, "idle")
    return made


def result(digest: str = "d1") -> Result:
    return Result(kind="snapshot", digest=digest, exit_code=0)


def evidence(attempt: int, token: str, *, check: int = 0, accepted: bool = True, digest: str = "d1") -> Evidence:
    return Evidence(
        check=check, kind="exit", title="exit 0", accepted=accepted, result=digest, attempt=attempt, token=token
    )


def through(store: Store, claim: Claim, token: str = "tok") -> tuple[Claim, ...]:
    """Run one claim to completion."""
    store.start(claim, token)
    store.submit(claim.plan, claim.task, claim.attempt, token, result())
    store.record(claim.plan, claim.task, evidence(claim.attempt, token))
    return store.accept(claim, token)


def counts(row: Mapping[object, int]) -> dict[str, int]:
    return {str(k): v for k, v in row.items() if v}
