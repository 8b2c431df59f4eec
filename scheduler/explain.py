"""Why a task waits: the facts of the claim's own predicates -> sentences with holder, since, release and next step.

Pure: facts come in, words go out. Must not know the store, click or the clock. Times are server milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import cast

from scheduler.model import Json, PlanState, PlanView, TaskState, TaskView
from scheduler.report.causes import Blocker, Cause, Explanation, Facts, as_int
from scheduler.report.outcome import next_step, story_of
from scheduler.report.plain import clipped, clock, flat, plural
from scheduler.report.progress import duration

SLOTS = frozenset({"concurrency", "pool", "no_worker", "no_idle_worker"})
"""Causes that say nothing while an edge or a back-off holds the task anyway."""


def explain(
    plan: PlanView, task: TaskView, facts: Facts, blockers: Sequence[Blocker] = (), *, edges: int = 0,
    limit: int = 0, zone: tzinfo | None = None,
) -> Explanation:  # fmt: skip
    """Why `task` is where it is. `blockers`: the unfinished ones of its `edges`; `limit`: its own time limit."""
    if facts.state is TaskState.PENDING or (facts.verify_only and not facts.session):
        return _waiting(plan, task, facts, _Blockers(blockers, edges), zone)
    if facts.state in (TaskState.CLAIMED, TaskState.RUNNING, TaskState.VERIFYING):
        cause = _held(plan, task, facts, limit)
        return Explanation(plan.plan, task.task, facts.state, f"{task.task} {cause.text}", cause.next, (cause,))
    return _ended(plan, task, facts)


@dataclass(frozen=True, slots=True)
class _Blockers:
    open: Sequence[Blocker]
    edges: int


def _waiting(plan: PlanView, task: TaskView, facts: Facts, blockers: _Blockers, zone: tzinfo | None) -> Explanation:
    causes = tuple(_cause(plan, raw, facts, blockers, zone) for raw in facts.causes)
    causes = tuple(sorted(causes, key=lambda each: _ORDER.index(each.cause)))
    what = f"the verification of {task.task}" if facts.verify_only else task.task
    if not causes:
        text = "is ready: a daemon claims it for an idle worker"
        cause = Cause("ready", text, ("daemon",), facts.since, 0, _start())
        return Explanation(
            plan.plan, task.task, facts.state, f"{what} {text}", f"if it stays so: {cause.next}", (cause,)
        )
    early = [each for each in causes if each.cause not in SLOTS]
    shown = early or list(causes)
    line = f"{what} waits: " + "; ".join(each.text for each in shown)
    return Explanation(plan.plan, task.task, facts.state, line, shown[0].next, causes)


_ORDER = (
    "plan",
    "approval",
    "fail_fast",
    "edges",
    "instances",
    "gate",
    "backoff",
    "concurrency",
    "pool",
    "no_worker",
    "no_idle_worker",
    "state",
)


def _cause(plan: PlanView, raw: Mapping[str, Json], facts: Facts, blockers: _Blockers, zone: tzinfo | None) -> Cause:
    kind = str(raw["cause"])
    if kind == "edges":
        return _edges(plan, facts, blockers, zone)
    if kind == "backoff":
        return backoff(as_int(raw.get("release")), facts, zone)
    if kind in ("plan", "approval"):
        return plan_cause(plan)
    if kind in ("gate", "instances", "fail_fast"):
        return _gate(plan, raw, facts)
    if kind == "state":
        return Cause("state", f"it is {raw.get('state')}", since=facts.since)
    return _slot(kind, raw, facts)


def _gate(plan: PlanView, raw: Mapping[str, Json], facts: Facts) -> Cause:
    """An extra blocker that only the daemon opens."""
    kind, of = str(raw["cause"]), str(raw.get("of", ""))
    if kind == "fail_fast":
        failed = str(raw.get("task", ""))
        text = f"fail_fast: {failed} has failed, so the rest of the plan is cancelled"
        return Cause(kind, text, (f"task {failed}",), next=f"dagward evidence {plan.plan} {failed}")
    if kind == "instances":
        text = f"{raw.get('left')} of its {of} instances have not ended"
        return Cause(kind, text, ("instances",), facts.since, next=f"dagward show {plan.plan}")
    if raw.get("gate") == "fallback":
        text = f"it is the fallback of {of} and is called only when that fails"
        return Cause(kind, text, (f"task {of}",), facts.since, next=f"dagward why {plan.plan} {of}")
    if raw.get("gate") == "end":
        return Cause(kind, "every other task has to end first", ("plan",), next=f"dagward why {plan.plan}")
    text = f"its {raw.get('gate')} waits to be judged by a daemon"
    return Cause(kind, text, ("daemon",), facts.since, next=f"if it stays so: {_start()}")


def _edges(plan: PlanView, facts: Facts, blockers: _Blockers, zone: tzinfo | None) -> Cause:
    left = blockers.open
    if not left:
        return Cause("edges", "its last blocker has just ended", since=facts.since)
    names = [f"{each.task.task} ({standing(each, facts.now, zone)})" for each in left[:3]]
    if blockers.edges == 1:
        head = "its only blocker is not completed"
    elif len(left) == blockers.edges:
        head = f"none of its {blockers.edges} blockers is completed"
    else:
        head = f"{len(left)} of its {blockers.edges} blockers {'is' if len(left) == 1 else 'are'} not completed"
    more = f" and {len(left) - 3} more" if len(left) > 3 else ""
    first = left[0]
    running = next((each for each in left if each.task.state in (TaskState.RUNNING, TaskState.VERIFYING)), None)
    step = (
        f"dagward logs {plan.plan} {running.task.task} -f" if running else f"dagward why {plan.plan} {first.task.task}"
    )
    since = min((each.task.since for each in left), default=0)
    # One blocker that runs ends at its time limit at the latest; of several nobody can say.
    release = running.task.since + running.limit if running and len(left) == 1 and running.limit else 0
    return Cause(
        "edges",
        f"{head}: {', '.join(names)}{more}",
        tuple(f"task {each.task.task}" for each in left[:16]),
        since,
        release,
        step,
    )


def standing(blocker: Blocker, now: int, zone: tzinfo | None = None) -> str:
    """Where a blocker is, in a few words: `running on worker default-1 for 12.0 s`."""
    task, facts = blocker.task, blocker.facts
    for_ = f" for {duration(now - task.since)}" if task.since else ""
    if task.cancel:
        return f"being cancelled{for_}"
    if task.state in (TaskState.CLAIMED, TaskState.RUNNING, TaskState.VERIFYING):
        worker = f" on worker {facts.worker}" if facts is not None and facts.worker else ""
        return f"{task.state}{worker}{for_}"
    if task.state is not TaskState.PENDING:
        return str(task.state)
    if task.edges_left:
        far = f", in the end for {', '.join(blocker.below)}" if blocker.below else ""
        return f"waits for {plural(task.edges_left, 'blocker')}{far}"
    if task.not_before > now:
        return f"waits: back-off until {clock(task.not_before, zone)}"
    causes = [str(raw["cause"]).replace("_", " ") for raw in facts.causes] if facts is not None else []
    return f"waits: {causes[0]}" if causes else "ready"


def backoff(release: int, facts: Facts, zone: tzinfo | None = None) -> Cause:
    """A pause after a failed attempt."""
    text = f"back-off until {clock(release, zone)} after attempt {facts.attempt} failed"
    return Cause(
        "backoff", text, ("time",), facts.since, release, f"nothing to do: it goes again at {clock(release, zone)}"
    )


def plan_cause(plan: PlanView) -> Cause:
    """The plan itself does not run."""
    if plan.state is PlanState.AWAITING_APPROVAL or not plan.approved:
        text = f"version {plan.version} of the plan awaits approval by a person"
        return Cause("approval", text, ("person",), plan.created_at, 0, _approve(plan))
    if plan.state is PlanState.CANCELLING:
        return Cause("plan", "the plan is being cancelled", ("plan",), 0, 0, f"dagward cancel {plan.plan} --wait 1m")
    reason = f" ({plan.reason})" if plan.reason else ""
    holder = "person" if plan.state in (PlanState.PAUSED, PlanState.DRAFT) else "plan"
    return Cause("plan", f"the plan is {plan.state}{reason}", (holder,), 0, 0, next_step(plan))


def _approve(plan: PlanView) -> str:
    return f"dagward approve {plan.plan} --version {plan.version} --hash {plan.hash}"


def _slot(kind: str, raw: Mapping[str, Json], facts: Facts) -> Cause:
    pool = str(raw.get("pool", ""))
    if kind == "concurrency":
        held = sorted(str(each) for each in cast("list[Json]", raw.get("holders") or []))
        text = f"{raw.get('used')} of {raw.get('limit')} attempts of this plan are in use by {clipped(held)}"
        return Cause(
            kind, text, tuple(f"task {each}" for each in held[:16]), next="wait, or raise `concurrency` in the plan"
        )
    if kind == "pool":
        text = f"pool {pool} is full ({raw.get('used')} of {raw.get('limit')})"
        text += f", in use by {clipped(facts.holders)}" if facts.holders else ""
        return Cause(kind, text, facts.holders, next=f"wait, or raise `[pools.{pool}] limit` in the configuration")
    if kind == "no_worker":
        return Cause(kind, f"no live worker serves pool {pool}", (f"pool {pool}",), next=_start(pool))
    workers = as_int(raw.get("workers"))
    text = (
        f"the only worker of pool {pool} is busy" if workers == 1 else f"all {workers} workers of pool {pool} are busy"
    )
    text += f" with {clipped(facts.holders)}" if facts.holders else ""
    return Cause(kind, text, facts.holders, next=f"wait, or start one more: dagward worker --pool {pool}")


def _start(pool: str = "") -> str:
    server = f"dagward worker --pool {pool}" if pool and pool != "default" else "dagward up"
    return f"{server}, or what was started by `run`: dagward run FILE --resume"


def _held(plan: PlanView, task: TaskView, facts: Facts, limit: int) -> Cause:
    where = f"worker {facts.worker} on {facts.host}" if facts.worker else f"session {facts.session or 'unknown'}"
    ago = duration(facts.now - facts.since)
    base = Cause(str(facts.state), "", (where,), facts.since)
    if facts.cancel:
        return _cancelling(facts, where, base)
    if facts.lease is None or facts.lease < 0:
        late = f"{duration(-facts.lease)} ago" if facts.lease is not None else "already"
        text = f"is {facts.state} on {where}, whose lease ended {late}: a daemon takes it back after a second look"
        return replace(base, cause="lease", text=text, next=f"if it stays so: {_start()}")
    if facts.state is TaskState.CLAIMED:
        return _claimed(facts, where, base)
    text = (
        f"is {facts.state} on {where} for {ago} (attempt {facts.attempt}, {task.charged} of {task.retries + 1} charged,"
        f" lease {duration(facts.lease)} left)"
    )
    release = facts.since + limit if limit and facts.state is TaskState.RUNNING else 0
    step = f"dagward logs {plan.plan} {task.task} -f"
    return replace(base, text=text, release=release, next=step)


def _claimed(facts: Facts, where: str, base: Cause) -> Cause:
    left = facts.dispatch if facts.dispatch is not None else 0
    if left >= 0:
        text = f"is claimed by {where} for attempt {facts.attempt}: it starts within {duration(left)} or goes back"
        return replace(base, text=text, release=facts.now + left, next="nothing to do")
    text = f"is claimed by {where}, which has not started it in time: a daemon gives it back"
    return replace(base, text=text, next=f"if it stays so: {_start()}")


def _cancelling(facts: Facts, where: str, base: Cause) -> Cause:
    if facts.lost or facts.lease is None:
        host = facts.host or "its host"
        text = f"is being cancelled and waits for the sweep of host {host}: its {where} was lost"
        step = f"start any worker on {host} (dagward up): what starts there proves that nothing of it lives"
        return replace(base, cause="sweep", holder=(f"host {host}",), text=text, next=step)
    if facts.lease < 0:
        text = f"is being cancelled; {where} has not renewed for {duration(-facts.lease)}, then its host has to sweep"
        return replace(base, cause="lease", text=text, next="start a daemon and a worker on that host: dagward up")
    text = f"is being cancelled: {where} stops its agent and proves it gone"
    return replace(base, cause="cancel", text=text, next="nothing to do")


def _ended(plan: PlanView, task: TaskView, facts: Facts) -> Explanation:
    name, state = task.task, facts.state
    if state is TaskState.COMPLETED:
        text = f"{name} is completed: attempt {task.attempt}, {plural(task.checks, 'check')} accepted"
        return Explanation(plan.plan, name, state, text, f"dagward evidence {plan.plan} {name}")
    if state is TaskState.FAILED:
        why = f": {task.failure.kind}: {flat(task.failure.reason, 300)}" if task.failure else ""
        text = f"{name} failed after {task.charged} of {task.retries + 1} attempts{why}"
        cause = Cause("failed", text, since=facts.since, next=story_of(plan.plan, task))
        return Explanation(plan.plan, name, state, text, cause.next, (cause,))
    if state is TaskState.SKIPPED:
        root = facts.cause.partition(" ")[0]
        text = f"{name} is skipped because {facts.cause or 'a blocker did not complete'}"
        step = f"dagward why {plan.plan} {root}" if root else f"dagward show {plan.plan}"
        holder = (f"task {root}",) if root else ()
        cause = Cause("skipped", text, holder, facts.since, 0, step)
        return Explanation(plan.plan, name, state, text, step, (cause,))
    text = f"{name} is {state}"
    cause = Cause(str(state), text, since=facts.since, next=f"dagward events {plan.plan}")
    return Explanation(plan.plan, name, state, text, cause.next, (cause,))
