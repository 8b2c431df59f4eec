"""`agent: {use: python, call: "package.module:function"}`: a Python function that takes an attempt context."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from scheduler.model.base import Frozen


class PythonAgent(Frozen):
    """A dotted function. It runs in the worker only when the worker's configuration allow-lists it,
    else in a child process."""

    use: Literal["python"]
    call: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$")]
