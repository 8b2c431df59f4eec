"""Collects a plan's outcome from the store and the state folder, and prints it."""

from __future__ import annotations

import contextlib
import os
import shlex
from pathlib import Path

from scheduler.cli.context import put_json, put_rows, say
from scheduler.model import PLAN_ENDED, PlanView, Result, TaskState
from scheduler.report.final import TaskReport, as_json, failure_lines, headline, proof_rows
from scheduler.report.outcome import exit_code, needs_person, next_step
from scheduler.store import Views

SHOWN = 60
TAIL_BYTES = 8192


def reports(views: Views, plan: str, state_dir: Path, *, every: bool) -> list[TaskReport]:
    """Task reports; without `every` only of failed and completed tasks, at most SHOWN."""
    tasks = views.tasks(plan)
    if not every:
        wanted = [t for t in tasks if t.state in (TaskState.FAILED, TaskState.COMPLETED)]
        tasks = sorted(wanted, key=lambda t: t.state is not TaskState.FAILED)[:SHOWN]
    out = []
    for task in tasks:
        result = views.result(plan, task.task, task.attempt)
        evidence = views.evidence(plan, task.task, task.attempt)
        tail = tail_of(state_dir / "attempts" / plan / task.task / str(task.attempt) / "agent.log")
        out.append(TaskReport(task, result, evidence, tail))
    return out


def log_path(state_dir: Path, result: Result | None) -> Path | None:
    """Where a result's log lies, when it is of this host's state folder."""
    return state_dir / result.log.path if result is not None and result.log is not None else None


def tail_of(file: Path, size: int = TAIL_BYTES) -> str:
    """The end of a log as text; empty when it is not here."""
    with contextlib.suppress(OSError):
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as opened:
            end = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, end - size))
            return opened.read().decode("utf-8", "replace")
    return ""


def finish(views: Views, plan: PlanView, state_dir: Path, *, as_json_: bool, file: str = "FILE") -> int:
    """Print the outcome; returns the exit code."""
    if as_json_:
        put_json(as_json(plan, reports(views, plan.plan, state_dir, every=True)))
        return exit_code(plan)
    shown = reports(views, plan.plan, state_dir, every=False)
    if plan.state in PLAN_ENDED:
        put_rows(("TASK", "STATE", "ATTEMPT", "RESULT", "VERIFIED BY"), proof_rows(shown))
    for line in failure_lines(plan, shown):
        say(line)
    say(headline(plan))
    if needs_person(plan):
        say(f"it waits for a person: {next_step(plan)}")
        say(f"then go on with: dagward run {shlex.quote(file)} --resume")
    return exit_code(plan)
