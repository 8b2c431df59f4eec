"""What a plan came to: its exit code, and what its person should read last. Pure."""

from __future__ import annotations

from scheduler import errors
from scheduler.model import PlanState, PlanView, TaskView


def exit_code(plan: PlanView) -> int:
    """The exit code of `run` and `wait` for a plan as it stands; a plan that can still move by itself has none (0)."""
    if plan.state is PlanState.COMPLETED:
        return 0
    if plan.state in (PlanState.FAILED, PlanState.CANCELLED):
        return errors.EXIT_FAILED
    if plan.state is PlanState.DEADLOCKED:
        return errors.EXIT_DEADLOCKED
    if needs_person(plan):
        return errors.EXIT_PERSON
    return 0


def needs_person(plan: PlanView) -> bool:
    """Whether only a person can move the plan, and nothing of it runs."""
    return plan.state in (PlanState.DRAFT, PlanState.AWAITING_APPROVAL, PlanState.PAUSED) and plan.used == 0


def next_step(plan: PlanView) -> str:
    """The command that moves a plan which waits for a person."""
    if plan.state is PlanState.AWAITING_APPROVAL:
        return f"dagward approve {plan.plan} --version {plan.version} --hash {plan.hash}"
    if plan.state is PlanState.PAUSED and plan.reason == "signal":
        return "dagward run FILE --resume"
    return f"dagward show {plan.plan}"


def story_of(plan: str, task: TaskView) -> str:
    """The command that tells why a task failed: the evidence when a check refused it, else what its agent said."""
    refused = task.failure is not None and task.failure.check is not None
    return f"dagward {'evidence' if refused else 'logs'} {plan} {task.task}"
