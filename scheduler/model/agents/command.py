"""`agent: {use: command, run: TEXT}`: any program, started by `sh -c` in the task's workspace."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from scheduler.model.base import Frozen


class CommandAgent(Frozen):
    """A shell text. Values reach it through `DAGWARD_*` variables and files, never by substitution."""

    use: Literal["command"]
    run: Annotated[str, Field(min_length=1)]
