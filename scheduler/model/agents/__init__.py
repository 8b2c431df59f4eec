"""One model per agent kind, one file each; the union is what a task's `agent` may be."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scheduler.model.agents.command import CommandAgent
from scheduler.model.agents.python import PythonAgent
from scheduler.model.agents.system import SystemAgent

AgentSpec = Annotated[CommandAgent | PythonAgent | SystemAgent, Field(discriminator="use")]

__all__ = ["AgentSpec", "CommandAgent", "PythonAgent", "SystemAgent"]
