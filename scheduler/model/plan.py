"""The plan file as values: what people and agents agree on. Normal form only, no reading, no defaults of a machine.

Durations are integer milliseconds. Edges live at the dependent, sorted by task id. `defaults` are already
merged into each task, so two files that mean the same have the same normal form and the same hash.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from scheduler.model.agents import AgentSpec
from scheduler.model.base import Frozen
from scheduler.model.checks import Check, ExitCheck, Millis

FORMAT = 1
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
SYSTEM_PREFIX = "_"
INTEGRATE = "_integrate"
ACCEPTANCE = "_acceptance"

TaskId = Annotated[str, Field(pattern=ID_PATTERN)]


class When(StrEnum):
    """What an edge waits for."""

    VERIFIED = "verified"
    SETTLED = "settled"  # ended in any way: completed, failed, skipped, cancelled


class Edge(Frozen):
    """One blocker of a task."""

    task: str
    when: When = When.VERIFIED


class Scope(Frozen):
    """Paths that a result may touch (`path`, `dir/**` or `**`), and paths that it never may."""

    write: tuple[str, ...] = ("**",)
    protect: tuple[str, ...] = ()


class Retries(Frozen):
    """Charged attempts beyond the first, and the pause between them (doubling, capped, with jitter)."""

    max: Annotated[int, Field(ge=0, le=100)] = 2
    backoff: Annotated[int, Field(ge=0)] = 5_000
    max_backoff: Annotated[int, Field(ge=0)] = 300_000


class Env(Frozen):
    """Environment of the agent. `pass` and `secrets` are names read from the worker's own environment at start;
    their values are never stored. Checks get `pass` and `set`, never `secrets`."""

    pass_: Annotated[tuple[str, ...], Field(alias="pass")] = ()
    set: dict[str, str] = {}
    secrets: tuple[str, ...] = ()


class TaskSpec(Frozen):
    """One task in normal form: everything that a worker needs to know about it, and nothing about its neighbours.

    `scope` is what holds for this task: the plan's, narrowed by its own; `protect` has the patterns of both.
    """

    id: str
    title: str = ""
    prompt: str = ""
    blocked_by: tuple[Edge, ...] = ()
    agent: AgentSpec
    timeout: Millis = 3_600_000
    stall: Millis | None = None
    retries: Retries = Retries()
    env: Env = Env()
    pool: str = "default"
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    scope: Scope = Scope()
    verify: tuple[Check, ...] = (ExitCheck(exit=True),)
    for_each: str | None = None  # `<task>.<output>`: an array; one instance `id.N` for each of its items
    if_: Annotated[str | None, Field(alias="if")] = None  # false: skipped; asked when every edge holds
    on_failure: Literal["fail", "continue"] = "fail"  # continue: its failure does not make the plan failed
    fallback: str | None = None  # the task that is called when this one fails, and then stands in for it


class Approval(StrEnum):
    """Who may let a version run: a policy at once, or a person."""

    AUTO = "auto"
    REQUIRED = "required"


class PlanSpec(Frozen):
    """A whole plan in normal form. `base` is the ref as written; the resolved commit is kept beside the version."""

    format: Literal[1] = 1
    name: TaskId
    goal: Annotated[str, Field(min_length=1)]
    params: dict[str, str | None] = {}
    repo: str | None = None
    base: str = "HEAD"
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 4
    approval: Approval = Approval.AUTO
    scope: Scope = Scope()
    acceptance: tuple[Check, ...] = ()
    fail_fast: bool = False  # a failure cancels the rest
    tasks: tuple[TaskSpec, ...]
