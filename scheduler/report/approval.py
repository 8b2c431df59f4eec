"""What a person decides about when approving a version: tasks, agents, commands, scope. Pure."""

from __future__ import annotations

from collections import Counter

from scheduler.model import Check, JunitCheck, PlanView, PythonCheck, RunCheck, Scope, TaskSpec
from scheduler.model.agents import CommandAgent, PythonAgent
from scheduler.model.plan import PlanSpec
from scheduler.report.plain import clipped, plural, visible

MOST = 50


def summary(plan: PlanView, spec: PlanSpec) -> list[str]:
    """The lines to read before saying yes. Commands are whole: what is cut is not approved with open eyes."""
    agents = Counter(task.agent.use for task in spec.tasks)
    used = ", ".join(f"{count} by {use}" for use, count in sorted(agents.items()))
    lines = [
        f"plan:    {plan.plan}, version {plan.version}",
        f"goal:    {visible(spec.goal)}",
        f"tasks:   {plural(len(spec.tasks), 'task')}: {used}; at most {spec.concurrency} at once",
        f"scope:   {_scope(spec.scope)}",
    ]
    if plan.repo:
        lines.append(f"repo:    {plan.repo} at {plan.base_commit}")
    if spec.fail_fast:
        lines.append("fails:   fast: a failure cancels the rest")
    secrets = sorted({name for task in spec.tasks for name in task.env.secrets})
    if secrets:
        lines.append(f"secrets: {', '.join(secrets)}")
    for task in spec.tasks[:MOST]:
        lines += _task(task, spec.scope)
    if len(spec.tasks) > MOST:
        lines.append(f"and {len(spec.tasks) - MOST} more tasks: dagward show {plan.plan} --all")
    for check in spec.acceptance:
        text = _started_by(check)
        if text:
            lines.append(f"acceptance runs: {visible(text.strip())}")
    return lines


def _task(task: TaskSpec, outer: Scope) -> list[str]:
    lines = [f"- {task.id}"]
    lines += [f"    {word}: {visible(text)}" for word, text in _conditions(task) if text]
    if isinstance(task.agent, CommandAgent):
        lines += _indented("runs", task.agent.run)
    elif isinstance(task.agent, PythonAgent):
        lines += _indented("calls", task.agent.call)
    for check in task.verify:
        text = _started_by(check)
        if text:
            lines += _indented("check", text)
    if task.scope not in (outer, Scope()):
        lines.append(f"    scope: {_scope(task.scope)}")
    return lines


def _conditions(task: TaskSpec) -> list[tuple[str, str]]:
    """When the task runs, how often, and what its failure means."""
    return [
        ("for each item of", task.for_each or ""),
        ("if", task.if_ or ""),
        (
            "on failure",
            f"calls {task.fallback}" if task.fallback else "goes on" if task.on_failure == "continue" else "",
        ),
    ]


def _started_by(check: Check) -> str:
    """The code of the plan's author that a check starts; empty when it starts none."""
    if isinstance(check, RunCheck | JunitCheck):
        return check.run
    return f"python {check.python}" if isinstance(check, PythonCheck) else ""


def _indented(word: str, text: str) -> list[str]:
    first, *rest = visible(text.strip()).splitlines() or [""]
    return [f"    {word}: {first}", *(f"      {line}" for line in rest)]


def _scope(scope: Scope) -> str:
    protect = f", never {clipped(scope.protect)}" if scope.protect else ""
    return f"may write {clipped(scope.write, 10)}{protect}"
