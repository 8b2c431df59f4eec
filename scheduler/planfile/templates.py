"""Checks the prompts of a file before anything runs.

Must not know the template language; that is `scheduler.prompts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from scheduler.planfile.references import Tasks
from scheduler.planfile.report import Report
from scheduler.prompts import Names, check, is_template


def check_prompts(tasks: Tasks, blockers: Mapping[str, Sequence[str]], params: Collection[str], report: Report) -> None:
    """Syntax, unknown names, and outputs of tasks that do not come before the one that reads them."""
    for at, task in tasks.written:
        prompt, name = task.get("prompt"), task.get("id")
        if not isinstance(prompt, str) or not is_template(prompt):
            continue
        names = Names(params, tasks.first, partial(_before, name, blockers))
        for problem in check(prompt, names):
            place = f"line {problem.line} of the prompt: " if prompt.count("\n") else ""
            report.error(("tasks", at, "prompt"), f"{place}{problem.message}", problem.remedy)


def _before(task: object, blockers: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    stack = list(blockers.get(task, ())) if isinstance(task, str) else []
    while stack:
        each = stack.pop()
        if each not in found:
            found.add(each)
            stack.extend(blockers.get(each, ()))
    return found
