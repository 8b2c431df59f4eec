"""What reads: plans, tasks, evidence, events, workers, pools. Writes nothing; never takes an error for emptiness."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

import redis

from scheduler import errors, scripts
from scheduler.instances import instance_spec, split_instance
from scheduler.model import (
    EventView,
    Evidence,
    Failure,
    Json,
    PlanState,
    PlanVersion,
    PlanView,
    PoolView,
    Result,
    TaskSpec,
    TaskState,
    TaskView,
    WorkerView,
)
from scheduler.store.keys import Keys

PAGE = 1000


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a task stands for what builds on it. `expanded`: how many instances a `for_each` task has, once it has."""

    state: TaskState
    attempt: int
    stands_in: str  # the fallback that was called for it
    expanded: int | None
    template: str  # the `for_each` task of an instance

    def instances(self, task: str) -> list[str]:
        """The ids of its instances, in item order."""
        return [f"{task}.{number}" for number in range(self.expanded or 0)]


Row = Mapping[str, str]


class Views:
    """Reads of one installation over one client."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self.client = client
        self.keys = keys
        self._spec = lru_cache(maxsize=4096)(self._read_spec)

    # Plans

    def plan_ids(self) -> list[str]:
        """All plans, the newest first."""
        return cast("list[str]", self.client.zrevrange(self.keys.plans(), 0, -1))

    def find(self, word: str) -> str:
        """The plan that an id, a unique prefix or a name (its newest) means. NotFound or Refusal otherwise."""
        ids = self.plan_ids()
        if word in ids:
            return word
        for plan in ids:
            if plan.rpartition("-")[0] == word:
                return plan
        found = [plan for plan in ids if plan.startswith(word)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise errors.NotFound(f"no plan is called {word}")
        shown = ", ".join(found[:5])
        raise errors.Refusal(f"{word} fits {len(found)} plans: {shown}", hint="Give more letters of the id.")

    def plan(self, plan: str) -> PlanView:
        """One plan. NotFound when it is not there."""
        row = self._hash(self.keys.plan(plan))
        if not row:
            raise errors.NotFound(f"no plan is called {plan}")
        record = json.loads(cast("str", self.client.get(self.keys.version(plan, int(row["version"])))) or "{}")
        return _plan_view(plan, row, record)

    def plans(self, ids: Sequence[str]) -> list[PlanView]:
        """Several plans, in the order given."""
        return [self.plan(plan) for plan in ids]

    def version(self, plan: str, version: int = 1) -> PlanVersion:
        """One immutable version with all its tasks."""
        raw = cast("str | None", self.client.get(self.keys.version(plan, version)))
        if raw is None:
            raise errors.NotFound(f"plan {plan} has no version {version}")
        record = json.loads(raw)
        specs = [task for task in self.specs(plan) if not task.id.startswith("_")]
        record["spec"]["tasks"] = [task.model_dump(by_alias=True) for task in specs]
        return PlanVersion.model_validate(record)

    def header(self, plan: str, version: int = 1) -> Mapping[str, Json]:
        """A version's record without its tasks: repo, base commit, params, scope, goal."""
        raw = cast("str | None", self.client.get(self.keys.version(plan, version)))
        if raw is None:
            raise errors.NotFound(f"plan {plan} has no version {version}")
        return cast("Mapping[str, Json]", json.loads(raw))

    # Tasks

    def task_ids(self, plan: str) -> list[str]:
        """All tasks of a plan in the order of its file, system tasks last."""
        return cast("list[str]", self.client.zrange(self.keys.order(plan), 0, -1))

    def task_id(self, plan: str, word: str) -> str:
        """The task that an id or a unique prefix means."""
        ids = self.task_ids(plan)
        if word in ids:
            return word
        found = [task for task in ids if task.startswith(word)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise errors.NotFound(f"plan {plan} has no task {word}", hint=f"List its tasks with `dagward show {plan}`.")
        raise errors.Refusal(f"{word} fits {len(found)} tasks: {', '.join(found[:5])}", hint="Give more letters.")

    def places(self, plan: str, tasks: Sequence[str]) -> dict[str, float]:
        """The place of each task in the plan's file; instances stand right behind their task."""
        scores = self.client.zmscore(self.keys.order(plan), list(tasks))
        return {task: float(score) for task, score in zip(tasks, scores, strict=True) if score is not None}

    def specs(self, plan: str, version: int = 1) -> list[TaskSpec]:
        """The specs of all tasks, in order."""
        out: list[TaskSpec] = []
        ids = self.task_ids(plan)
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            raws = cast("list[str | None]", self.client.hmget(self.keys.specs(plan, version), page))
            for task, raw in zip(page, raws, strict=True):
                if raw is None and split_instance(task) is not None:
                    continue  # instances are not part of the version
                if raw is None:
                    raise errors.StoreCorrupt(f"the spec of {task} in plan {plan} is missing")
                out.append(TaskSpec.model_validate_json(raw))
        return out

    def spec(self, plan: str, task: str, version: int = 1) -> TaskSpec:
        """One task's spec; immutable, so remembered."""
        return self._spec(plan, task, version)

    def _read_spec(self, plan: str, task: str, version: int) -> TaskSpec:
        instance = split_instance(task)
        if instance is not None:
            there, item = self.item(plan, task)
            if not there:
                raise errors.NotFound(f"plan {plan} has no task {task}")
            return instance_spec(self._spec(plan, instance[0], version), instance[1], item)
        raw = cast("str | None", self.client.hget(self.keys.specs(plan, version), task))
        if raw is None:
            raise errors.NotFound(f"plan {plan} has no task {task}")
        return TaskSpec.model_validate_json(raw)

    def tasks(self, plan: str, ids: Sequence[str] | None = None) -> list[TaskView]:
        """All tasks, or those named, as they stand."""
        wanted = list(ids) if ids is not None else self.task_ids(plan)
        out: list[TaskView] = []
        for start in range(0, len(wanted), PAGE):
            page = wanted[start : start + PAGE]
            titles = cast("list[str | None]", self.client.hmget(self.keys.specs(plan, 1), page)) if page else []
            with self.client.pipeline(transaction=False) as pipe:
                for task in page:
                    pipe.hgetall(self.keys.row(plan, task))
                rows = cast("list[Row]", pipe.execute())
            failures = self._failures(plan, page, rows)
            for task, row, title, failure in zip(page, rows, titles, failures, strict=True):
                if not row:
                    raise errors.NotFound(f"plan {plan} has no task {task}")
                out.append(_task_view(task, row, json.loads(title or "{}").get("title", ""), failure))
        return out

    def _failures(self, plan: str, page: Sequence[str], rows: Sequence[Row]) -> list[Failure | None]:
        with self.client.pipeline(transaction=False) as pipe:
            for task, row in zip(page, rows, strict=True):
                attempt = int(row.get("att", 0))
                pipe.hmget(self.keys.results(plan, task), [f"f{attempt}", f"f{attempt - 1}"])
            raws = cast("list[list[str | None]]", pipe.execute())
        return [Failure.model_validate_json(raw[0] or raw[1] or "") if any(raw) else None for raw in raws]

    def task(self, plan: str, task: str) -> TaskView:
        """One task as it stands."""
        return self.tasks(plan, [task])[0]

    # Results and evidence

    def result(self, plan: str, task: str, attempt: int) -> Result | None:
        """What an attempt produced, if it got that far."""
        raw = cast("str | None", self.client.hget(self.keys.results(plan, task), str(attempt)))
        return Result.model_validate_json(raw) if raw else None

    def failure(self, plan: str, task: str, attempt: int) -> Failure | None:
        """Why an attempt failed, if it did."""
        raw = cast("str | None", self.client.hget(self.keys.results(plan, task), f"f{attempt}"))
        return Failure.model_validate_json(raw) if raw else None

    def evidence(self, plan: str, task: str, attempt: int) -> list[Evidence]:
        """The stored records of one attempt, in the order of the checks."""
        raws = self._hash(self.keys.evidence(plan, task, attempt))
        return sorted((Evidence.model_validate_json(raw) for raw in raws.values()), key=lambda e: e.check)

    def standings(self, plan: str, tasks: Sequence[str]) -> dict[str, Standing]:
        """Where tasks stand, as far as it matters for what builds on them."""
        with self.client.pipeline(transaction=False) as pipe:
            for task in tasks:
                pipe.hmget(self.keys.row(plan, task), ["st", "att", "sub", "exp", "of"])
            rows = cast("list[list[str | None]]", pipe.execute())
        out = {}
        for task, (state, attempt, stands_in, expanded, template) in zip(tasks, rows, strict=True):
            if state is None:
                raise errors.NotFound(f"plan {plan} has no task {task}")
            size = int(expanded) if expanded is not None else None
            out[task] = Standing(TaskState(state), int(attempt or 0), stands_in or "", size, template or "")
        return out

    def gate(self, plan: str, task: str) -> Literal["if", "for_each", ""]:
        """Which gate of a task is to be judged next."""
        condition, each = self.client.hmget(self.keys.row(plan, task), ["g_if", "g_each"])
        return "if" if condition else "for_each" if each else ""

    def item(self, plan: str, task: str) -> tuple[bool, Json]:
        """The item of an instance; (False, None) for any other task."""
        raw = cast("str | None", self.client.hget(self.keys.row(plan, task), "item"))
        return (False, None) if raw is None else (True, cast("Json", json.loads(raw)))

    # History

    def events(self, plan: str, after: str = "-", count: int | None = None) -> Iterator[EventView]:
        """A plan's history from the first event, or after the position `after`."""
        start = after if after == "-" else f"({after}"
        while True:
            page = cast(
                "list[tuple[str, dict[str, str]]]",
                self.client.xrange(self.keys.events(plan), min=start, count=count or PAGE),
            )
            for position, fields in page:
                yield event_view(position, fields["d"])
            if count is not None or len(page) < PAGE:
                return
            start = f"({page[-1][0]}"

    def follow(self, plan: str, after: str, seconds: float) -> list[EventView]:
        """Block until there are events after `after`, at most `seconds`."""
        got = self.client.xread({self.keys.events(plan): after}, count=PAGE, block=max(1, int(seconds * 1000)))
        entries = cast("list[tuple[str, list[tuple[str, dict[str, str]]]]]", got)
        return [event_view(position, fields["d"]) for position, fields in (entries[0][1] if entries else [])]

    # Workers and pools

    def workers(self) -> list[WorkerView]:
        """Every registered executor, lost ones included while a cancel waits for their host."""
        now = self.now()
        leases = dict(cast("list[tuple[str, float]]", self.client.zrange(self.keys.sessions(), 0, -1, withscores=True)))
        for session in cast("set[str]", self.client.smembers(self.keys.lapsed())):
            leases.setdefault(session, 0.0)
        out = []
        for session, expiry in leases.items():
            row = self._hash(self.keys.executor(session))
            if row:
                held = cast("set[str]", self.client.smembers(self.keys.held(session)))
                out.append(_worker_view(row, sorted(held), int(expiry) - now))
        return sorted(out, key=lambda w: (w.pool, w.name))

    def pools(self) -> list[PoolView]:
        """Every configured pool: its limit, use, ready tasks of all active plans, and workers."""
        limits = self._hash(self.keys.limits())
        used = self._hash(self.keys.used())
        active = sorted(cast("set[str]", self.client.smembers(self.keys.active())))
        workers = self.workers()
        out = []
        for pool in sorted(limits):
            ready = sum(int(self.client.zcard(self.keys.ready(pool, plan))) for plan in active)
            mine = [w for w in workers if w.pool == pool and w.state != "lost"]
            out.append(
                PoolView(
                    pool=pool,
                    limit=int(limits[pool]),
                    used=int(used.get(pool, 0)),
                    ready=ready,
                    workers=len(mine),
                    idle=sum(1 for w in mine if w.state in {"idle", "lingering"}),
                )
            )
        return out

    def live(self, plan: str) -> set[str]:
        """Tasks of a plan that hold a lease."""
        return cast("set[str]", self.client.smembers(self.keys.live(plan)))

    def lonely_pools(self, plan: str) -> list[str]:
        """Pools in which this plan has ready tasks and no live worker serves it."""
        pools = (cast("str | None", self.client.hget(self.keys.plan(plan), "pools")) or "").split(",")
        waiting = [pool for pool in pools if pool and self.client.zcard(self.keys.ready(pool, plan)) > 0]
        if not waiting:
            return []
        live = [w for w in self.workers() if w.state != "lost" and w.plan in ("", plan)]
        return [pool for pool in waiting if all(w.pool != pool for w in live)]

    def why(self, plan: str, task: str) -> Mapping[str, Json]:
        """The claim's own predicates for one task, with their facts."""
        values = {"plan": plan, "task": task}
        return scripts.load("why").call(self.client, self.keys.root, values)

    def now(self) -> int:
        """Server time in milliseconds."""
        seconds, micros = self.client.time()
        return seconds * 1000 + micros // 1000

    def _hash(self, key: str) -> dict[str, str]:
        return cast("dict[str, str]", self.client.hgetall(key))


def event_view(position: str, raw: str) -> EventView:
    """One stored event. Its position carries the server's time."""
    data = cast("dict[str, Json]", json.loads(raw))
    detail = {k: v for k, v in data.items() if k not in {"ev", "task", "att", "from", "to", "by"}}
    return EventView(
        id=position,
        at=int(position.partition("-")[0]),
        event=str(data["ev"]),
        task=str(data.get("task", "")),
        attempt=cast("int", data.get("att", 0)),
        source=str(data.get("from", "")),
        target=str(data.get("to", "")),
        actor=str(data.get("by", "")),
        detail=detail,
    )


def _plan_view(plan: str, row: Row, record: Mapping[str, Json]) -> PlanView:
    repo = cast("str | None", record.get("repo"))
    return PlanView(
        plan=plan,
        name=row["name"],
        goal=row["goal"],
        state=PlanState(row["state"]),
        reason=row.get("reason", ""),
        version=int(row["version"]),
        hash=row["hash"],
        approved=row.get("approved") == row["hash"],
        created_at=int(row["created"]),
        ended_at=int(row.get("ended", 0)),
        counts={state: int(row.get(f"n:{state}", 0)) for state in TaskState},
        concurrency=int(row["concurrency"]),
        used=int(row.get("used", 0)),
        repo=repo,
        base_commit=cast("str | None", record.get("base_commit")),
        branch=f"dagward/{plan}" if repo else "",
    )


def _task_view(task: str, row: Row, title: str, failure: Failure | None) -> TaskView:
    state = TaskState(row["st"])
    done = state is TaskState.COMPLETED
    return TaskView(
        task=task,
        title=title,
        state=state,
        attempt=int(row.get("att", 0)),
        charged=int(row.get("charged", 0)),
        retries=int(row["max"]),
        pool=row["pool"],
        edges_left=int(row.get("wait", 0)),
        not_before=int(row.get("nb", 0)),
        since=int(row.get("t0", 0)),
        session=row.get("sess", ""),
        cancel=row.get("cancel") == "1",
        failure=None if done else failure,
        cause=row.get("cause", ""),
        result=row.get("res", ""),
        checks=int(row["ck"]),
        handed_back=int(row.get("hb", 0)),
    )


def _worker_view(row: Row, attempts: Sequence[str], lease: int) -> WorkerView:
    state = row["state"] if lease > 0 else "lost"
    if state == "draining":
        state = "busy"
    return WorkerView(
        name=row["name"],
        host=row["host"],
        pid=int(row["pid"]),
        pool=row["pool"],
        plan=row.get("plan", ""),
        state=cast("Literal['idle', 'lingering', 'busy', 'lost']", state),
        attempts=tuple(member.replace("|", " ") for member in attempts),
        lease=lease,
        version=row.get("version", ""),
    )
