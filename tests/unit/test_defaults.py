"""Specs are stored and hashed without their default values, so a default belongs to the format.

When this test fails, a stored plan would silently mean something else: write the new default under a new field, or
raise `format` and the store's format.
"""

from __future__ import annotations

from scheduler.model import PlanSpec, TaskSpec
from scheduler.model.agents import CommandAgent

TASK = TaskSpec(id="a", agent=CommandAgent(use="command", run="true"))


def test_the_defaults_of_a_task_are_part_of_format_1() -> None:
    assert TASK.model_dump(mode="json", by_alias=True) == {
        "id": "a",
        "title": "",
        "prompt": "",
        "blocked_by": [],
        "agent": {"use": "command", "run": "true"},
        "timeout": 3_600_000,
        "stall": None,
        "retries": {"max": 2, "backoff": 5_000, "max_backoff": 300_000},
        "env": {"pass": [], "set": {}, "secrets": []},
        "pool": "default",
        "priority": 0,
        "scope": {"write": ["**"], "protect": []},
        "verify": [{"exit": True}],
        "for_each": None,
        "if": None,
        "on_failure": "fail",
        "fallback": None,
    }


def test_the_defaults_of_a_plan_are_part_of_format_1() -> None:
    plan = PlanSpec(name="p", goal="g", tasks=(TASK,))
    assert plan.model_dump(mode="json", by_alias=True, exclude={"tasks"}) == {
        "format": 1,
        "name": "p",
        "goal": "g",
        "params": {},
        "repo": None,
        "base": "HEAD",
        "concurrency": 4,
        "approval": "auto",
        "scope": {"write": ["**"], "protect": []},
        "acceptance": [],
        "fail_fast": False,
    }
