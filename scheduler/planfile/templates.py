"""Checks the prompts and conditions of a file before anything runs.

Must not know their languages; those are `scheduler.prompts` and `scheduler.conditions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from scheduler import conditions, prompts
from scheduler.planfile.references import Blockers, Tasks, templates
from scheduler.planfile.report import Report


def check_texts(tasks: Tasks, blockers: Blockers, params: Collection[str], report: Report) -> None:
    """Syntax, unknown names, and outputs of tasks that do not come before the one that reads them."""
    lists = templates(tasks)
    for at, task in tasks.written:
        prompt, condition = task.get("prompt"), task.get("if")
        is_template = isinstance(prompt, str) and prompts.is_template(prompt)
        if not is_template and condition is None:
            continue
        before = partial(_before, task.get("id"), blockers)
        names = prompts.Names(params, tasks.first, before, item="for_each" in task, lists=lists)
        if isinstance(prompt, str) and is_template:
            _check_prompt(prompt, at, names, report)
        if isinstance(condition, str) and condition:  # an empty one is said by the shape
            for problem in conditions.check(condition, names):
                report.error(("tasks", at, "if"), problem.message, problem.remedy)


def _check_prompt(prompt: str, at: int, names: prompts.Names, report: Report) -> None:
    for problem in prompts.check(prompt, names):
        place = f"line {problem.line} of the prompt: " if prompt.count("\n") else ""
        report.error(("tasks", at, "prompt"), f"{place}{problem.message}", problem.remedy)


def _before(task: object, blockers: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    stack = list(blockers.get(task, ())) if isinstance(task, str) else []
    while stack:
        each = stack.pop()
        if each not in found:
            found.add(each)
            stack.extend(blockers.get(each, ()))
    return found
