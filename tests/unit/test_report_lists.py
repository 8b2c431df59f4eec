"""Rows and lines of the reading commands."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from scheduler.model import EventView, Evidence, Failure, PoolView, TaskState, TaskView
from scheduler.report import lists
from scheduler.report.plain import clipped, clock, flat, iso, visible

NOW = 1_796_040_190_000


def task(name: str, state: TaskState, **fields: Any) -> TaskView:
    made = {"task": name, "title": "", "state": state, "attempt": 1, "charged": 1, "retries": 2, "pool": "default"}
    return TaskView(**made | {"edges_left": 0, "since": NOW - 1_500} | fields)


def test_task_row_says_why_in_a_note() -> None:
    def note(state: TaskState, **fields: Any) -> str:
        return lists.task_row(task("t", state, **fields), NOW, UTC)[-1]

    failure = Failure(kind="timeout", reason="no end\nwithin 5 s")
    assert note(TaskState.FAILED, failure=failure) == "timeout: no end within 5 s"
    assert note(TaskState.PENDING, edges_left=2) == "waits for 2 blockers"
    last = "back-off until 12:03:40; last: timeout: no end within 5 s"
    assert note(TaskState.PENDING, not_before=NOW + 30_000, failure=failure) == last
    assert note(TaskState.PENDING) == "ready"
    assert note(TaskState.SKIPPED, cause="a failed") == "a failed"
    assert note(TaskState.RUNNING, cancel=True) == "being cancelled"
    assert lists.task_row(task("t", TaskState.RUNNING), NOW)[:5] == ("t", "running", "1", "1/3", "1.5 s")


def test_urgent_tasks_come_first_only_when_there_are_too_many() -> None:
    tasks = [task("a", TaskState.COMPLETED), task("b", TaskState.FAILED), task("c", TaskState.RUNNING)]
    assert [t.task for t in lists.urgent_first(tasks, 3)] == ["a", "b", "c"]
    assert [t.task for t in lists.urgent_first(tasks, 2)] == ["b", "c"]


def test_event_line_and_json() -> None:
    detail: dict[str, Any] = {"failure": {"kind": "rejected", "reason": "exit\tcode 1"}, "charged": 1}
    event = EventView(
        id="5-0", at=NOW + 7, event="fail", task="t", attempt=2, source="verifying", target="failed", detail=detail
    )
    line = lists.event_line(event, UTC)
    assert line == "12:03:10.007\tfail\tt\t2\tverifying -> failed\t-\tfailure=rejected: exit code 1 charged=1"
    made = lists.event_json("p", event)
    assert (made["schema"], made["at"], made["from"]) == ("dagward/event/1", "2026-11-30T12:03:10.007Z", "verifying")


def record(**fields: Any) -> Evidence:
    made = {"check": 0, "kind": "run", "title": "pytest -q", "accepted": True, "result": "a" * 40, "attempt": 1}
    return Evidence(**made | {"token": "secret-token", "tree_before": "t", "tree_after": "t", "exit_code": 0} | fields)


def test_evidence_says_what_was_verified_on_what() -> None:
    row = dict(zip(lists.EVIDENCE, lists.evidence_row("t", record(verifier="w@h", recorded_at=NOW)), strict=True))
    assert (row["VERDICT"], row["RESULT"], row["TREE"], row["EXIT"]) == ("accepted", "a" * 12, "same", "0")
    assert (row["VERIFIER"], row["AT"]) == ("w@h", "2026-11-30T12:03:10.000Z")
    assert lists.tree(record(tree_after="u")) == "CHANGED"
    assert lists.tree(record(tree_before=None, tree_after=None)) == "-"
    made = lists.evidence_json("t", record())
    assert "token" not in made
    assert "secret-token" not in str(made)
    lines = lists.refused_lines(
        "t", record(accepted=False, reason="exit code 1", output="\n".join(map(str, range(50))))
    )
    assert len(lines) == 21
    assert lines[-1] == "  | 49"


def test_configured_pools_are_shown_before_any_daemon_has_told_the_store() -> None:
    known = PoolView(pool="llm", limit=2, used=1, ready=3, workers=1, idle=0)
    merged = lists.with_configured([known], {"default": 10, "llm": 8})
    assert [(pool.pool, pool.limit, pool.used) for pool in merged] == [("default", 10, 0), ("llm", 2, 1)]


def test_words_of_agents_cannot_steer_a_terminal() -> None:
    assert visible("a\x1b[31mb\x1b[0m\x1b]0;title\x07\x08c\n\td") == "abc\n\td"
    assert visible("a\x1b[31mb\x1b[2Jc", colours=True) == "a\x1b[31mbc"
    assert visible("50%\r100%") == "50%\r100%"
    assert flat(" a\r\n b\tc ", 4) == "a b…"


def test_times_and_lists() -> None:
    assert iso(NOW) == "2026-11-30T12:03:10.000Z"
    assert clock(NOW + 5, UTC, millis=True) == "12:03:10.005"
    assert clipped(["a", "b", "c"], 2) == "a, b and 1 more"
