"""The last words of a run: what was verified by what, or which root tasks failed and what to do next. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.model import Evidence, PlanState, PlanView, Result, TaskState, TaskView
from scheduler.report.outcome import story_of
from scheduler.report.plain import flat, visible
from scheduler.report.progress import duration

TAIL = 20


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One task with its last result and evidence."""

    task: TaskView
    result: Result | None
    evidence: Sequence[Evidence]
    log_tail: str = ""


def proof_rows(reports: Sequence[TaskReport]) -> list[tuple[str, str, str, str, str]]:
    """Rows `task, state, attempt, result, verified by` of a completed or partly completed plan."""
    rows = []
    for report in reports:
        checks = "; ".join(f"{'ok' if e.accepted else 'REFUSED'} {e.title}" for e in report.evidence)
        short = report.result.digest[:12] if report.result else "-"
        rows.append((report.task.task, str(report.task.state), str(report.task.attempt), short, checks or "-"))
    return rows


def failure_lines(plan: PlanView, reports: Sequence[TaskReport]) -> list[str]:
    """For each failed root task: the check's command, its last lines, the kept result, the next command."""
    lines: list[str] = []
    for report in reports:
        task = report.task
        if task.state is not TaskState.FAILED:
            continue
        reason = flat(f"{task.failure.kind}: {task.failure.reason}" if task.failure else "failed")
        lines += ["", f"{task.task} failed after {task.charged} of {task.retries + 1} attempts: {reason}"]
        refused = next((e for e in report.evidence if not e.accepted), None)
        output = refused.output if refused else report.log_tail
        if refused:
            lines.append(f"  check: {flat(refused.title)}")
        lines += [f"  | {line}" for line in visible(output).rstrip().splitlines()[-TAIL:]]
        if report.result is not None and report.result.kind == "commit":
            lines.append(f"  kept: refs/dagward/{plan.plan}/{task.task}/{task.attempt} ({report.result.digest[:12]})")
        logs = f"dagward logs {plan.plan} {task.task}"
        lines.append(f"  next: {f'{story_of(plan.plan, task)}; {logs}' if refused else logs}")
    skipped = plan.counts[TaskState.SKIPPED]
    if skipped:
        lines += ["", f"{skipped} task{'s' if skipped != 1 else ''} skipped because of these"]
    return lines


def headline(plan: PlanView) -> str:
    """The verdict in one line."""
    took = duration(plan.ended_at - plan.created_at) if plan.ended_at else ""
    counts = ", ".join(f"{count} {state}" for state, count in plan.counts.items() if count)
    text = f"plan {plan.plan} {plan.state}: {counts}"
    if took:
        text += f" in {took}"
    if plan.state is PlanState.COMPLETED and plan.branch:
        text += f"; branch {plan.branch}"
    return text


def as_json(plan: PlanView, reports: Sequence[TaskReport]) -> Mapping[str, object]:
    """The same for machines."""
    return {
        "schema": "dagward/outcome/1",
        "plan": plan.model_dump(mode="json"),
        "tasks": [
            {
                **report.task.model_dump(mode="json"),
                "result": report.result.model_dump(mode="json") if report.result else None,
                "evidence": [e.model_dump(mode="json", exclude={"token"}) for e in report.evidence],
            }
            for report in reports
        ],
    }
