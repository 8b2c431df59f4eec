"""Shared by the tests of plan files: load a text, and give its problems as a person sees them."""

from __future__ import annotations

import textwrap

import pytest

from scheduler.errors import InvalidPlan
from scheduler.planfile import Loaded, load_text


def loaded(text: str | bytes, file: str = "plan.yaml", **options: object) -> Loaded:
    data = text if isinstance(text, bytes) else textwrap.dedent(text).encode()
    return load_text(data, file, **options)  # type: ignore[arg-type]


def errors(text: str | bytes, file: str = "plan.yaml", **options: object) -> list[str]:
    with pytest.raises(InvalidPlan) as caught:
        loaded(text, file, **options)
    return [problem.render(file) for problem in caught.value.problems.errors]


def plan(task: str = "", head: str = "", more: str = "") -> str:
    """A sound plan of one task `a` on line 4, with lines added to its header (line 3), the task and the list."""
    fields = f", {task}" if task else ""
    return f"name: p\ngoal: g\n{head}\ntasks:\n- {{id: a, agent: {{use: command, run: x}}{fields}}}\n{more}"
