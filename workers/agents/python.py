"""`use: python`: a dotted function. In a child process by default; in the worker only when its settings allow-list it.

The function takes one `Context` and returns a mapping (the task's outputs) or None. Must not know the store.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler.errors import Refusal
from scheduler.model import Attempt, FailureClass, Json
from scheduler.model.agents import PythonAgent
from workers.agents.command import outcome_of
from workers.planstore import PlanStore
from workers.plugins import Ended, Launch, Outcome

NO_FUNCTION = 127
"""Exit code of the child for a `BadFunction`."""


class BadFunction(Refusal):
    """Name a function of one argument as `package.module:function`; it returns a mapping or None."""

    code = "bad_function"


@dataclass(frozen=True, slots=True)
class Context:
    """What a Python agent is given. `checklist` is this attempt's own `PlanStore`."""

    plan: str
    task: str
    attempt: int
    params: Mapping[str, str | None]
    workspace: Path
    inputs: Path
    prompt: str
    checklist: PlanStore


class PythonRunner:
    """Agent protocol for functions in a child process."""

    def build(self, attempt: Attempt, workspace: Path, folder: Path) -> Launch:  # noqa: ARG002 -- the protocol's shape
        """The child imports the function with the workspace first on its path."""
        spec = attempt.task.agent
        if not isinstance(spec, PythonAgent):
            raise TypeError(f"not a python agent: {spec}")
        return Launch(
            argv=(sys.executable, "-P", "-m", "workers.agents.child", spec.call, str(folder)),
            env={"PYTHONUNBUFFERED": "1"},
        )

    def parse(self, line: str) -> Json:  # noqa: ARG002 -- the protocol's shape
        """Free text carries no events."""
        return None

    def finish(self, ended: Ended, events: Sequence[Json]) -> Outcome:  # noqa: ARG002 -- the protocol's shape
        """As any program, but the child's own 127 means `BadFunction`; its words are in the log."""
        if ended.reason == "exit" and ended.exit_code == NO_FUNCTION:
            reason = "there is no such function, or what it returned is no mapping"
            return Outcome(ok=False, reason=reason, failure=FailureClass.CONFIGURATION)
        return outcome_of(ended)


def call(name: str, context: Context) -> dict[str, Json]:
    """Import and call the function; its outputs. BadFunction when there is no such thing or the answer has no shape."""
    module, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadFunction(f"{name}: {error}") from error
    if not callable(function):
        raise BadFunction(f"{name} is not a function")
    answer = function(context)
    if answer is None:
        return {}
    if not isinstance(answer, Mapping):
        raise BadFunction(f"{name} returned {type(answer).__name__}, not a mapping")
    return dict(answer)
