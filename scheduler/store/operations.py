"""What moves: each method is one script, so one atomic step with its event. Refusals come back as `errors`.

Must not decide: which rows may move is `lifecycle`, what is ready is the claim script, what a plan says is `plans`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import redis
from pydantic import TypeAdapter

from scheduler import scripts
from scheduler.lifecycle import MAX_HAND_BACKS, Timing
from scheduler.model import (
    SYSTEM_PREFIX,
    Claim,
    Evidence,
    Executor,
    Failure,
    Json,
    PlanState,
    PlanVersion,
    Renewal,
    Result,
    TaskSpec,
    TaskState,
    When,
)
from scheduler.store.keys import Keys

STAGE = 500
"""Tasks written by one script when a plan is staged."""

Mode = Literal["idle", "lingering", "busy", "draining"]

_CLAIMS = TypeAdapter(tuple[Claim, ...])


@dataclass(frozen=True, slots=True)
class Staged:
    """One task with what the claim needs precomputed: edges left, longest remaining path, dependents."""

    spec: TaskSpec
    number: int
    edges: int
    path: int
    dependents: Sequence[tuple[str, When]]
    gates: Mapping[str, str] = field(default_factory=dict)
    """Fields of the row that keep the task closed (`g_if g_each g_fb of_fb g_end`) or say how it ends (`fb cont`)."""


@dataclass(frozen=True, slots=True)
class Present:
    """How an executor stands after it has spoken: its session lives, and what it has to start."""

    alive: bool
    claims: tuple[Claim, ...]


def _claims(value: Json) -> tuple[Claim, ...]:
    return _CLAIMS.validate_python(value or [])


class Store:
    """All moves of one installation over one client. Safe to share between forks only when not used before the fork."""

    def __init__(self, client: redis.Redis, keys: Keys, timing: Timing) -> None:
        self.client = client
        self.keys = keys
        self.timing = timing

    def _call(self, script: str, /, **values: str | int | float) -> scripts.Reply:
        return scripts.load(script).call(self.client, self.keys.root, values)

    # Plans

    def stage(
        self, plan: str, version: int, tasks: Sequence[Staged], tick: Callable[[int], None] | None = None
    ) -> None:
        """Write a plan's tasks in batches; nobody sees them before `flip`. `tick` is told how many are written."""
        for start in range(0, len(tasks), STAGE):
            batch = [_item(task) for task in tasks[start : start + STAGE]]
            self._call("stage", plan=plan, version=version, batch=json.dumps(batch, separators=(",", ":")))
            if tick is not None:
                tick(min(start + STAGE, len(tasks)))

    def flip(
        self, plan: str, record: PlanVersion, tasks: Sequence[TaskSpec], *, key: str, content: str, who: str
    ) -> str:
        """Make a staged plan visible. Returns its id, or the first plan's when `key` and `content` were seen before."""
        pools = sorted({task.pool for task in tasks})
        reply = self._call(
            "flip",
            plan=plan,
            name=record.spec.name,
            goal=record.spec.goal,
            version=record.version,
            hash_=record.hash,
            record=record.model_dump_json(exclude={"spec": {"tasks"}}, by_alias=True),
            pools=",".join(pools),
            total=len(tasks),
            concurrency=record.spec.concurrency,
            approval=record.spec.approval,
            key=key,
            content=content,
            who=who,
            sys=next((task.id for task in tasks if task.id.startswith(SYSTEM_PREFIX)), ""),
            fail_fast=int(record.spec.fail_fast),
        )
        return str(reply["plan"])

    def approve(self, plan: str, version: int, hash_: str, who: str) -> bool:
        """Approve one version by its hash. False: it was approved before."""
        return not self._call("approve", plan=plan, version=version, hash_=hash_, who=who)["existing"]

    def interrupt(self, plan: str, who: str) -> None:
        """Pause a plan because its `run` was signalled."""
        self._call("plan_event", plan=plan, event="interrupt", reason="signal", only="", who=who)

    def resume(self, plan: str, who: str, *, only: str = "") -> None:
        """Lift a pause; with `only`, nothing but a pause of that reason."""
        self._call("plan_event", plan=plan, event="resume", reason="", only=only, who=who)

    def cancel(self, plan: str, who: str, task: str = "") -> str:
        """Ask to cancel a plan or one task. Returns the state that holds afterwards."""
        return str(self._call("cancel", plan=plan, task=task, who=who)["state"])

    def reopen(self, plan: str, who: str) -> int:
        """Give failed, skipped and cancelled tasks of a failed plan one more attempt each. Returns how many."""
        count, cursor = 0, 0
        while True:
            reply = self._call("reopen", plan=plan, cursor=cursor, limit=STAGE, who=who)
            count += cast("int", reply["count"])
            cursor = cast("int", reply["cursor"])
            if cursor == 0:
                return count

    # Executors

    def set_limits(self, limits: Mapping[str, int]) -> None:
        """Make the configured pools and their limits known to the claim."""
        self.client.hset(self.keys.limits(), mapping={pool: str(limit) for pool, limit in limits.items()})

    def register(self, executor: Executor) -> None:
        """Begin a session with a fresh lease."""
        self._call(
            "register",
            session=executor.session,
            lease=self.timing.lease,
            name=executor.name,
            host=executor.host,
            pid=executor.pid,
            pool=executor.pool,
            queue=executor.queue,
            plan=executor.plan,
            agents=",".join(executor.agents),
            sandbox=executor.sandbox,
            version=executor.version,
        )

    def present(self, session: str, mode: Mode, count: int = 1) -> Present:
        """Say how the executor stands; a lingering one may be given up to `count` claims at once."""
        reply = self._call(
            "present",
            session=session,
            lease=self.timing.lease,
            mode=mode,
            count=count,
            dispatch=self.timing.dispatch,
        )
        return Present(alive=bool(reply["alive"]), claims=_claims(reply["claims"]))

    def renew(self, session: str) -> Renewal:
        """Extend the lease; what is held, what was taken back, what shall be cancelled."""
        reply = self._call("renew", session=session, lease=self.timing.lease)
        return Renewal.model_validate(
            {"alive": reply["alive"], "held": reply["held"] or (), "fenced": reply["fenced"] or ()}
        )

    def wake(self, session: str) -> None:
        """Wake a lingering executor of our own (a drain)."""
        self.client.rpush(self.keys.inbox(session), "wake")
        self.client.pexpire(self.keys.inbox(session), 60_000)

    def linger(self, session: str, seconds: float) -> bool:
        """Wait for a wake-up in the executor's inbox. True: look at your claims."""
        return self.client.blpop([self.keys.inbox(session)], timeout=seconds) is not None

    # Attempts

    def start(self, claim: Claim, token: str) -> TaskState:
        """Begin a claimed attempt (or its verification) under an owner token."""
        reply = self._call(
            "start",
            plan=claim.plan,
            task=claim.task,
            attempt=claim.attempt,
            session=claim.session,
            token=token,
        )
        return TaskState(str(reply["state"]))

    def submit(self, plan: str, task: str, attempt: int, token: str, result: Result) -> None:
        """Store the result; the attempt is verifying from here on."""
        self._call(
            "submit",
            plan=plan,
            task=task,
            attempt=attempt,
            token=token,
            digest=result.digest,
            result=result.model_dump_json(by_alias=True),
        )

    def record(self, plan: str, task: str, evidence: Evidence) -> None:
        """Store one evidence record of the attempt that it names."""
        self._call(
            "record",
            plan=plan,
            task=task,
            attempt=evidence.attempt,
            token=evidence.token,
            check=evidence.check,
            digest=evidence.result,
            accepted=int(evidence.accepted),
            evidence=evidence.model_dump_json(by_alias=True),
        )

    def accept(self, claim: Claim, token: str, count: int = 0) -> tuple[Claim, ...]:
        """Complete the task, if the evidence is there; take up to `count` next claims in the same round trip."""
        reply = self._call(
            "accept",
            plan=claim.plan,
            task=claim.task,
            attempt=claim.attempt,
            token=token,
            session=claim.session,
            count=count,
            dispatch=self.timing.dispatch,
        )
        return _claims(reply["claims"])

    def fail(self, claim: Claim, token: str, failure: Failure, *, again: bool, jitter: float) -> TaskState:
        """End an attempt badly. The ledger in the store decides between pending and failed. `jitter` is in [0, 1)."""
        reply = self._call(
            "fail",
            plan=claim.plan,
            task=claim.task,
            attempt=claim.attempt,
            token=token,
            session=claim.session,
            failure=failure.model_dump_json(),
            again=int(again),
            jitter=jitter,
        )
        return TaskState(str(reply["state"]))

    def hand_back(
        self, claim: Claim, token: str, reason: str, *, counted: bool = False, thaw: bool = False
    ) -> TaskState:
        """Give an attempt back uncharged. `counted`: three of these fail the task as infrastructure. `thaw`: once."""
        reply = self._call(
            "hand_back",
            plan=claim.plan,
            task=claim.task,
            attempt=claim.attempt,
            token=token,
            session=claim.session,
            reason=reason,
            limit=MAX_HAND_BACKS if counted else 0,
            thaw=int(thaw),
        )
        return TaskState(str(reply["state"]))

    def cancelled(self, claim: Claim, token: str) -> None:
        """Report that nothing of a cancelled attempt lives any more."""
        self._call(
            "cancelled",
            plan=claim.plan,
            task=claim.task,
            attempt=claim.attempt,
            token=token,
            session=claim.session,
        )

    # Daemon

    def claim(self, caller: str, call: str, *, only: str = "", limit: int = 32) -> tuple[Claim, ...]:
        """Claim ready tasks for idle executors. A repeat of `call` by the same `caller` returns the first answer."""
        reply = self._call("claim", caller=caller, call=call, only=only, limit=limit, dispatch=self.timing.dispatch)
        return _claims(reply["claims"])

    def settle(self, plan: str, limit: int = STAGE) -> int:
        """One bounded step of what follows from ended tasks. Returns how much is left."""
        return cast("int", self._call("settle", plan=plan, limit=limit)["left"])

    def gates(self, plan: str) -> list[str]:
        """Tasks whose edges hold and whose `if` or `for_each` has to be judged."""
        return list(dict.fromkeys(cast("list[str]", self.client.lrange(self.keys.gates(plan), 0, STAGE - 1))))

    def open(self, plan: str, task: str, verdict: Literal["open", "skip", "fail"], detail: str = "") -> None:
        """Tell how a task's `if` was judged."""
        self._call("open", plan=plan, task=task, verdict=verdict, detail=detail)

    def expand(self, plan: str, task: str, items: Sequence[str]) -> None:
        """Let the instances of a `for_each` task appear, one for each item (JSON)."""
        for start in range(0, len(items), STAGE):
            page = items[start : start + STAGE]
            batch = [{"i": start + at, "item": item} for at, item in enumerate(page)]
            self._call("grow", plan=plan, task=task, batch=json.dumps(batch, separators=(",", ":")))
        self._call("expand", plan=plan, task=task, count=len(items))

    def expire(self, batch: int = 64) -> list[str]:
        """Give back claims that missed their dispatch deadline. Returns `plan|task` of each."""
        reply = self._call("expire", batch=batch, limit=MAX_HAND_BACKS)
        return [str(member) for member in cast("list[str]", reply["back"] or [])]

    def recover(self, session: str, seen: str, *, swept: bool = False, jitter: float = 0.0) -> list[str]:
        """Take back what a session held whose lease has lapsed, or whose host has proven it gone."""
        reply = self._call("recover", session=session, seen=seen, swept=int(swept), jitter=jitter, limit=MAX_HAND_BACKS)
        return [str(member) for member in cast("list[str]", reply["taken"] or [])]

    def sessions(self) -> Iterator[tuple[str, str]]:
        """Every session with the end of its lease as the server writes it (the witness that `recover` wants)."""
        rows = cast("list[tuple[str, float]]", self.client.zrange(self.keys.sessions(), 0, -1, withscores=True))
        for session, expiry in rows:
            yield session, format(expiry, ".0f")

    def queue_of(self, session: str) -> str:
        """The RQ queue of a session, or nothing when it is gone."""
        return cast("str | None", self.client.hget(self.keys.executor(session), "queue")) or ""

    def next_due(self) -> int | None:
        """Server time at which the next back-off or dispatch deadline falls due."""
        times: list[float] = []
        for key in (self.keys.later(), self.keys.dispatch()):
            first = cast("list[tuple[str, float]]", self.client.zrange(key, 0, 0, withscores=True))
            times += [score for _, score in first]
        return int(min(times)) if times else None

    def unstage(self, older: int) -> int:
        """Remove what submissions that died between staging and flip left behind. Returns how many plans."""
        dead = cast(
            "list[str]", self.client.zrangebyscore(self.keys.staging(), "-inf", self.now() - older, start=0, num=4)
        )
        for plan in dead:
            if self.client.exists(self.keys.plan(plan)):
                continue
            for task in cast("list[str]", self.client.zrange(self.keys.order(plan), 0, -1)):
                pool = cast("str | None", self.client.hget(self.keys.row(plan, task), "pool")) or "default"
                self.client.unlink(
                    self.keys.row(plan, task), f"{self.keys.root}d:{plan}:{task}", self.keys.ready(pool, plan)
                )
            self.client.unlink(self.keys.order(plan), self.keys.specs(plan, 1))
        if dead:
            self.client.zrem(self.keys.staging(), *dead)
        return len(dead)

    def lapsed(self) -> list[str]:
        """Sessions that ended with cancels open: their host still has to prove that nothing lives."""
        return sorted(cast("set[str]", self.client.smembers(self.keys.lapsed())))

    def now(self) -> int:
        """Server time in milliseconds."""
        seconds, micros = self.client.time()
        return seconds * 1000 + micros // 1000

    def listen(self, after: str, seconds: float) -> str:
        """Block until the bell rings or the time is up; returns the position to listen after next."""
        got = self.client.xread({self.keys.bell(): after}, count=128, block=max(1, int(seconds * 1000)))
        entries = cast("list[tuple[str, list[tuple[str, dict[str, str]]]]]", got)
        return entries[0][1][-1][0] if entries else after

    def bell(self) -> str:
        """The position of the newest ring."""
        last = cast("list[tuple[str, dict[str, str]]]", self.client.xrevrange(self.keys.bell(), count=1))
        return last[0][0] if last else "0-0"

    def dirty(self) -> list[str]:
        """Plans with something to settle."""
        return sorted(cast("set[str]", self.client.smembers(self.keys.dirty())))

    def plan_state(self, plan: str) -> PlanState | None:
        """The state of a plan, or None."""
        value = self.client.hget(self.keys.plan(plan), "state")
        return PlanState(str(value)) if value is not None else None


def _next(dependents: Sequence[tuple[str, When]]) -> str:
    if not dependents:
        return ""
    edges = [name if when is When.VERIFIED else [name, when[0]] for name, when in dependents]
    return json.dumps(edges, separators=(",", ":"))


def _item(task: Staged) -> dict[str, Json]:
    spec = task.spec
    return {
        "id": spec.id,
        "n": task.number,
        "spec": spec.model_dump_json(by_alias=True, exclude_defaults=True),
        "pool": spec.pool,
        "checks": len(spec.verify),
        "max": spec.retries.max,
        "backoff": spec.retries.backoff,
        "max_backoff": spec.retries.max_backoff,
        "wait": task.edges,
        "path": task.path,
        "priority": spec.priority,
        "next": _next(task.dependents),
        "gates": dict(task.gates),
    }
