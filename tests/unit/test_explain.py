"""Sentences of `why`, for every state a task can be in."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from scheduler.explain import explain
from scheduler.model import Failure, PlanState, PlanView, TaskState, TaskView
from scheduler.report.causes import Blocker, Explanation, Facts
from scheduler.report.holdups import Question, Row, explain_plan, questions

NOW = 1_796_040_190_000  # 12:03:10 UTC
HASH = "ab" * 32


def plan(state: PlanState = PlanState.RUNNING, **fields: Any) -> PlanView:
    counts = dict.fromkeys(TaskState, 0) | fields.pop("counts", {})
    made = {"plan": "p-bcdfg", "name": "p", "goal": "g", "version": 1, "hash": HASH, "approved": True}
    return PlanView(
        **made | {"state": state, "created_at": NOW - 60_000, "counts": counts, "concurrency": 4, "used": 0} | fields
    )


def task(name: str = "t7", state: TaskState = TaskState.PENDING, **fields: Any) -> TaskView:
    made = {"task": name, "title": "", "state": state, "attempt": 0, "charged": 0, "retries": 2, "pool": "default"}
    return TaskView(**made | {"edges_left": 0, "since": NOW - 12_000, "checks": 2} | fields)


def facts(state: TaskState = TaskState.PENDING, **fields: Any) -> Facts:
    return Facts.read({"state": state, "now": NOW, "since": NOW - 12_000, "attempt": 1, "causes": {}} | fields)


def tell(*, of: PlanView | None = None, view: TaskView | None = None, known: Facts, **more: Any) -> Explanation:
    return explain(of or plan(), view or task(state=known.state), known, zone=UTC, **more)


def test_edges_name_the_open_blockers_and_where_each_is() -> None:
    running = Blocker(
        task("t3", TaskState.RUNNING), facts(TaskState.RUNNING, worker="default-1", host="h", lease=5000), limit=60_000
    )
    paused = Blocker(task("t5", not_before=NOW), facts(causes=[{"cause": "backoff", "release": NOW}]))
    soon = Blocker(task("t6", not_before=NOW + 5_000), facts())
    known = facts(causes=[{"cause": "edges", "left": 2}, {"cause": "no_worker", "pool": "default"}])
    told = tell(known=known, blockers=[running, soon], edges=3)
    assert told.line == (
        "t7 waits: 2 of its 3 blockers are not completed: "
        "t3 (running on worker default-1 for 12.0 s), t6 (waits: back-off until 12:03:15)"
    )
    assert told.next == "dagward logs p-bcdfg t3 -f"
    assert [cause.cause for cause in told.causes] == ["edges", "no_worker"]
    assert told.causes[0].holder == ("task t3", "task t6")
    assert told.causes[0].release == 0, "of several blockers nobody can say when the last ends"
    alone = tell(known=known, blockers=[running], edges=1)
    assert alone.line.startswith("t7 waits: its only blocker is not completed: t3 (")
    assert alone.causes[0].release == NOW - 12_000 + 60_000
    assert "t5 (waits: backoff)" in tell(known=known, blockers=[paused], edges=2).line


def test_a_chain_names_its_far_end() -> None:
    far = Blocker(task("c", edges_left=2), facts(), below=("a, which is running",))
    told = tell(known=facts(causes=[{"cause": "edges", "left": 1}]), blockers=[far], edges=1)
    assert told.line.endswith("c (waits for 2 blockers, in the end for a, which is running)")
    assert told.next == "dagward why p-bcdfg c"


def test_backoff_has_its_release() -> None:
    told = tell(known=facts(causes=[{"cause": "backoff", "release": NOW + 30_000}]))
    assert told.line == "t7 waits: back-off until 12:03:40 after attempt 1 failed"
    assert told.as_json()["causes"] == [
        {
            "cause": "backoff",
            "text": "back-off until 12:03:40 after attempt 1 failed",
            "holder": ["time"],
            "since": "2026-11-30T12:02:58.000Z",
            "expected_release": "2026-11-30T12:03:40.000Z",
            "next": "nothing to do: it goes again at 12:03:40",
            "tasks": 1,
        }
    ]


@pytest.mark.parametrize(
    ("state", "fields", "words", "step"),
    [
        (PlanState.AWAITING_APPROVAL, {"approved": False}, "awaits approval by a person", f"--version 1 --hash {HASH}"),
        (PlanState.PAUSED, {"reason": "signal"}, "the plan is paused (signal)", "dagward run FILE --resume"),
        (PlanState.CANCELLING, {}, "the plan is being cancelled", "dagward cancel p-bcdfg"),
    ],
)
def test_a_plan_that_does_not_run_comes_first(state: PlanState, fields: dict[str, Any], words: str, step: str) -> None:
    causes = [{"cause": "backoff", "release": NOW + 1}, {"cause": "plan", "state": state}]
    told = tell(of=plan(state, **fields), known=facts(causes=causes))
    assert words in told.line.partition(";")[0]
    assert step in told.next


def test_slots_name_limit_and_holders() -> None:
    full = {"cause": "pool", "pool": "llm", "used": 8, "limit": 8}
    told = tell(known=facts(causes=[full], holders=["other-xxxxx|a", "p-bcdfg|b"]))
    assert told.line == "t7 waits: pool llm is full (8 of 8), in use by other-xxxxx a, p-bcdfg b"
    assert told.causes[0].holder == ("other-xxxxx a", "p-bcdfg b")
    busy = tell(known=facts(causes=[{"cause": "concurrency", "used": 2, "limit": 2, "holders": ["b", "a"]}]))
    assert busy.line == "t7 waits: 2 of 2 attempts of this plan are in use by a, b"
    lonely = tell(known=facts(causes=[{"cause": "no_worker", "pool": "llm"}]))
    assert lonely.line == "t7 waits: no live worker serves pool llm"
    assert lonely.next.startswith("dagward worker --pool llm")
    idle = tell(known=facts(causes=[{"cause": "no_idle_worker", "pool": "default", "workers": 2}], holders=["p|a"]))
    assert idle.line == "t7 waits: all 2 workers of pool default are busy with p a"


def test_ready_without_a_cause_says_who_has_to_move() -> None:
    told = tell(known=facts())
    assert told.line == "t7 is ready: a daemon claims it for an idle worker"
    assert "dagward up" in told.next


def test_live_tasks_name_worker_lease_and_limit() -> None:
    held = {"worker": "default-1", "host": "h1", "session": "s", "lease": 6_100}
    told = tell(known=facts(TaskState.RUNNING, **held), view=task(state=TaskState.RUNNING, charged=1), limit=60_000)
    assert told.line == (
        "t7 is running on worker default-1 on h1 for 12.0 s (attempt 1, 1 of 3 charged, lease 6.1 s left)"
    )
    assert told.causes[0].release == NOW - 12_000 + 60_000
    late = tell(known=facts(TaskState.RUNNING, **held | {"lease": -3_000}))
    assert "whose lease ended 3.0 s ago" in late.line
    claimed = tell(known=facts(TaskState.CLAIMED, **held, dispatch=4_000))
    assert "it starts within 4.0 s or goes back" in claimed.line
    assert claimed.causes[0].release == NOW + 4_000
    overdue = tell(known=facts(TaskState.CLAIMED, **held, dispatch=-1))
    assert "has not started it in time" in overdue.line
    verifying = tell(known=facts(TaskState.VERIFYING, **held, verify_only=True))
    assert verifying.line.startswith("t7 is verifying on worker default-1")


def test_a_taken_over_verification_waits_like_a_task() -> None:
    known = facts(TaskState.VERIFYING, verify_only=True, causes=[{"cause": "no_worker", "pool": "default"}])
    assert tell(known=known).line == "the verification of t7 waits: no live worker serves pool default"


def test_cancelling_says_what_is_left_to_prove() -> None:
    held = {"worker": "default-1", "host": "h1", "session": "s", "cancel": True}
    stopping = tell(known=facts(TaskState.RUNNING, **held, lease=5_000))
    assert "stops its agent and proves it gone" in stopping.line
    lost = tell(known=facts(TaskState.RUNNING, **held, worker_state="lost"))
    assert "waits for the sweep of host h1" in lost.line
    assert lost.causes[0].holder == ("host h1",)
    assert "start any worker on h1" in lost.next
    silent = tell(known=facts(TaskState.RUNNING, **held, lease=-2_000))
    assert "has not renewed for 2.0 s" in silent.line


def test_ended_tasks() -> None:
    done = tell(known=facts(TaskState.COMPLETED), view=task(state=TaskState.COMPLETED, attempt=2))
    assert done.line == "t7 is completed: attempt 2, 2 checks accepted"
    why = Failure(kind="rejected", reason="pytest -q: exit code 1\nmore")
    failed = tell(known=facts(TaskState.FAILED), view=task(state=TaskState.FAILED, charged=3, failure=why))
    assert failed.line == "t7 failed after 3 of 3 attempts: rejected: pytest -q: exit code 1 more"
    assert failed.next == "dagward logs p-bcdfg t7", "no check has recorded anything"
    refused = tell(
        known=facts(TaskState.FAILED), view=task(state=TaskState.FAILED, failure=why.model_copy(update={"check": 0}))
    )
    assert refused.next == "dagward evidence p-bcdfg t7"
    skipped = tell(known=facts(TaskState.SKIPPED, cause="t3 failed"))
    assert skipped.line == "t7 is skipped because t3 failed"
    assert skipped.next == "dagward why p-bcdfg t3"
    assert tell(known=facts(TaskState.CANCELLED)).line == "t7 is cancelled"


def row(
    name: str, state: TaskState = TaskState.PENDING, *, edges: int = 0, next_: tuple[str, ...] = (), nb: int = 0
) -> Row:
    waits = state is TaskState.PENDING
    return Row(
        name, state, edges, nb, "default", NOW - 1_000, "w" if state is TaskState.RUNNING else "", False, waits, next_
    )


def test_plan_causes_are_ordered_by_what_they_hold() -> None:
    chain = [row(f"c{n}", edges=1, next_=(f"c{n + 1}",)) for n in range(9)]
    rows = [
        row("ready1"),
        row("ready2"),
        row("small", TaskState.RUNNING, next_=("s",)),
        row("s", edges=1),
        row("big", TaskState.RUNNING, next_=("c0",)),
        *chain,
        row("c9", edges=1),
        row("later", nb=NOW + 5_000),
    ]
    asked = questions(rows, NOW)
    assert asked == [Question("default", "ready1", 2)]
    told = explain_plan(plan(counts={TaskState.RUNNING: 2}), rows, [(asked[0], ())], NOW)
    assert [cause.tasks for cause in told.causes] == [10, 2, 1, 1]
    assert told.causes[0].text == "big is running on worker w for 1.0 s and holds 10 tasks"
    assert told.causes[1].text.startswith("2 tasks of pool default ready (ready1)")
    assert told.next == "dagward logs p-bcdfg big -f"
    assert told.as_json()["task"] is None


def test_a_stopped_plan_names_that_first_and_a_failed_one_its_roots() -> None:
    paused = explain_plan(plan(PlanState.PAUSED, reason="signal"), [row("a"), row("b", edges=1)], [], NOW)
    assert paused.causes[0].text == "the plan is paused (signal)"
    assert paused.causes[0].tasks == 2
    failed = explain_plan(plan(PlanState.FAILED), [row("a", TaskState.FAILED), row("b", TaskState.SKIPPED)], [], NOW)
    assert [cause.text for cause in failed.causes] == ["a failed"]
    assert failed.next == "dagward why p-bcdfg a"


def test_a_plan_of_ten_thousand_tasks_is_explained_in_a_bounded_time() -> None:
    rows = [row(f"f{n}", TaskState.RUNNING, next_=tuple(f"t{m}" for m in range(n, 9_000, 100))) for n in range(100)]
    rows += [row(f"t{n}", edges=1, next_=(f"t{n + 1}",) if n < 8_999 else ()) for n in range(9_000)]
    told = explain_plan(plan(), rows, [], NOW)
    assert told.causes[0].tasks == 9_000
    assert len(told.causes) == 4
