"""Built-in agents, one per file; each is also the example for plug-in authors."""

from __future__ import annotations

from scheduler.errors import Infrastructure
from scheduler.model import Attempt
from workers.agents.command import CommandRunner
from workers.agents.python import PythonRunner
from workers.plugins import Agent


def agent_for(attempt: Attempt) -> Agent:
    """The agent that a task's `agent.use` names."""
    use = attempt.task.agent.use
    if use == "command":
        return CommandRunner()
    if use == "python":
        return PythonRunner()
    raise Infrastructure(f"this worker has no agent {use}")
