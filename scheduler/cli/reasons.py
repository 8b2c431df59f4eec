"""Collects the facts of `why` from the store, with a bounded number of reads, and hands them to `explain`."""

from __future__ import annotations

from scheduler.explain import explain
from scheduler.model import TaskState
from scheduler.report.causes import Blocker, Explanation, Facts
from scheduler.report.holdups import Row, explain_plan, questions
from scheduler.store import Views, bulk

NAMED = 3
"""Open blockers whose own causes are asked for; the others are counted."""

FAR = 200
"""Steps down a chain of blockers in search of the one that moves."""

_OPEN = frozenset(TaskState) - {TaskState.COMPLETED}


def why_task(views: Views, plan: str, task: str) -> Explanation:
    """Why one task waits."""
    spec = views.spec(plan, task)
    facts = Facts.read(views.why(plan, task))
    edges = [edge.task for edge in spec.blocked_by]
    blockers = _blockers(views, plan, edges) if facts.state is TaskState.PENDING and edges else []
    view = views.plan(plan)
    return explain(view, views.task(plan, task), facts, blockers, edges=len(edges), limit=spec.timeout)


def _blockers(views: Views, plan: str, edges: list[str]) -> list[Blocker]:
    left = [each.task for each in bulk.glances(views, plan, edges) if each.state in _OPEN]
    tasks = views.tasks(plan, left)
    # What moves first: the one that runs is a better answer than one that waits as well.
    tasks.sort(key=lambda task: task.state is TaskState.PENDING and task.edges_left > 0)
    out = []
    for number, task in enumerate(tasks):
        if number >= NAMED:
            out.append(Blocker(task))
            continue
        facts = Facts.read(views.why(plan, task.task))
        below = _bottom(views, plan, task.task) if task.edges_left and task.state is TaskState.PENDING else ()
        out.append(Blocker(task, facts, views.spec(plan, task.task).timeout, below))
    return out


def _bottom(views: Views, plan: str, task: str) -> tuple[str, ...]:
    """The task at the end of a chain of waiting blockers, with its state."""
    for _ in range(FAR):
        edges = [edge.task for edge in views.spec(plan, task).blocked_by]
        left = [each for each in bulk.glances(views, plan, edges) if each.state in _OPEN]
        if not left:
            return ()
        first = min(left, key=lambda each: each.state is TaskState.PENDING)
        if first.state is not TaskState.PENDING or first.edges_left == 0:
            state = first.state if first.state is not TaskState.PENDING else "waits"
            return (f"{first.task}, which {'is ' if state != 'waits' else ''}{state}",)
        task = first.task
    return ()


def why_plan(views: Views, plan: str) -> Explanation:
    """Why a whole plan stands where it is: one pass over its tasks, then one question for each pool."""
    view = views.plan(plan)
    now = views.now()
    seen = bulk.glances(views, plan)
    names = bulk.worker_names(views, (each.session for each in seen))
    below = bulk.dependents(views, plan, [each.task for each in seen if each.state is not TaskState.COMPLETED])
    rows = [
        Row(
            task=each.task,
            state=each.state,
            edges_left=each.edges_left,
            not_before=each.not_before,
            pool=each.pool,
            since=each.since,
            worker=names.get(each.session, ""),
            cancel=each.cancel,
            waits=each.waits,
            next=below.get(each.task, ()),
        )
        for each in seen
    ]
    answers = [(asked, why_task(views, plan, asked.task).causes) for asked in questions(rows, now)]
    return explain_plan(view, rows, answers, now)
