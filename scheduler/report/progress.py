"""Events as lines for people who follow a plan. Pure; times come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from scheduler.model import EventView, Json, TaskState, TaskView
from scheduler.report.plain import flat

DONE = frozenset({"completed", "failed", "skipped", "cancelled", "invalidated"})


class Progress:
    """What has been seen of a plan: how many tasks, where each is."""

    def __init__(self) -> None:
        self.total = 0
        self.states: dict[str, str] = {}

    def see(self, event: EventView) -> None:
        """Take one event into account."""
        if event.event == "plan.submit":
            self.total = cast("int", event.detail.get("total", 0))
        if event.task and event.target:
            self.states[event.task] = event.target

    @property
    def done(self) -> int:
        """Tasks that have ended."""
        return sum(1 for state in self.states.values() if state in DONE)

    def running(self) -> list[str]:
        """Tasks that an agent or a check works on."""
        return [task for task, state in self.states.items() if state in ("running", "verifying")]

    def oldest(self, tasks: Sequence[TaskView], now: int) -> str:
        """The line of each minute: how far, and what has been running for longest."""
        live = [task for task in tasks if task.state in (TaskState.RUNNING, TaskState.VERIFYING)]
        head = f"{self.done}/{self.total} done, {len(live)} running"
        if not live:
            return head
        first = min(live, key=lambda task: task.since)
        return f"{head}; oldest: {first.task} {first.state} for {duration(now - first.since)}"


def duration(milliseconds: int) -> str:
    """A length of time for people: `850 ms`, `12.3 s`, `4 min 05 s`, `2 h 10 min`."""
    if milliseconds < 1000:
        return f"{max(milliseconds, 0)} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"


def line_of(event: EventView, progress: Progress) -> str:
    """One line for a change that a person wants to see; nothing for the others."""
    count = f"[{progress.done}/{progress.total}]"
    name = f"{event.task} (attempt {event.attempt})"
    detail = event.detail
    lines = {
        "start": f"{count} {name} {'verifying' if detail.get('verify') else 'running'}",
        "accept": f"{count} {event.task} completed",
        "fail": f"{count} {name} failed: {_failure(detail)}",
        "retry": f"{count} {name} goes again: {_failure(detail)}",
        "hand_back": f"{count} {name} handed back: {detail.get('reason', '')}",
        "takeover": f"{count} {name} verification taken over",
        "skip": f"{count} {event.task} skipped: {detail.get('cause', '')}",
        "cancelled": f"{count} {event.task} cancelled",
        "reopen": f"{count} {event.task} reopened",
        "plan.request": f"plan waits for approval of version {detail.get('version')}",
        "plan.approve": f"plan approved by {event.actor}",
        "plan.interrupt": "plan paused by a signal",
        "plan.resume": "plan goes on",
        "plan.reopen": "plan reopened",
        "plan.ask_cancel": f"plan is being cancelled by {event.actor}",
        "plan.cancelled": "plan cancelled",
        "plan.complete": "plan completed",
        "plan.fail": "plan failed",
    }
    if event.event == "ask_cancel" and event.target == "cancelled":
        return f"{count} {event.task} cancelled"
    if event.event == "record" and detail.get("accepted") is False:
        return flat(f"{count} {name} check refused: {detail.get('title', '')}: {detail.get('reason', '')}")
    return flat(lines.get(event.event, ""))


def _failure(detail: dict[str, Json]) -> str:
    failure = detail.get("failure")
    if not isinstance(failure, dict):
        return ""
    return f"{failure.get('kind')}: {failure.get('reason')}"
