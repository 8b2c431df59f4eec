"""The plan file as it is written: aliases, defaults, edges from either end, durations as texts.

One pydantic model per mapping of the file; `dagward schema` is made from them. They know shapes only: whether a
reference exists or an edge closes a cycle is not seen here. Must not know about lines or about the normal form.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, StrictBool, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from scheduler.model.agents import CommandAgent, PythonAgent
from scheduler.model.base import Frozen, Json
from scheduler.model.checks import (
    PLUGIN_PATTERN,
    DiffRule,
    ExitCheck,
    FileRule,
    OutputsRule,
    WeakeningRule,
    check_kind,
)
from scheduler.model.plan import Env, TaskId
from scheduler.planfile.durations import PATTERN, BadDuration, parse_duration


def _duration(value: object) -> int:
    try:
        return parse_duration(value)
    except BadDuration as error:
        raise PydanticCustomError("duration", "{text}", {"text": error.message, "remedy": error.remedy}) from None


def _pause(value: object) -> int:
    try:
        return parse_duration(value, zero=True)
    except BadDuration as error:
        raise PydanticCustomError("duration", "{text}", {"text": error.message, "remedy": error.remedy}) from None


_AS_TEXT = WithJsonSchema({"type": "string", "pattern": PATTERN, "examples": ["90s", "20m", "2h"]})
Duration = Annotated[int, BeforeValidator(_duration), _AS_TEXT]
Pause = Annotated[int, BeforeValidator(_pause), _AS_TEXT]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(strict=True)]
FOR_EACH = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.[A-Za-z_][A-Za-z0-9_-]*$"
"""`<task>.<output>`"""


class Written(Frozen):
    """A mapping of the file: only the written names count, and nothing is turned into another type."""

    model_config = ConfigDict(populate_by_name=False)


class FileEdge(Written):
    """One end of an edge. `verified`: the result was accepted; `settled`: the task has ended, in whatever way."""

    task: str
    when: Literal["verified", "settled"] = "verified"


class FileRetries(Written):
    """Charged attempts after the first, and the pause before each: doubling from `backoff` to `max_backoff`."""

    max: Annotated[Count, Field(ge=0, le=100)] = 2
    backoff: Pause = 5_000
    max_backoff: Pause | None = None


class FileEnv(Env):
    """The agent's environment. `pass` and `secrets` name variables of the worker; checks never get `secrets`."""

    model_config = ConfigDict(populate_by_name=False)


class FileScope(Written):
    """What a result may touch: `path`, `dir/**` or `**`. A task may narrow the plan's scope, never widen it."""

    write: list[str] | None = None
    protect: list[str] | None = None


class FileRunCheck(Written):
    """A shell command in a clean copy of the result; it accepts when it exits 0."""

    run: Text
    timeout: Duration | None = None
    env: dict[str, str] = {}
    prove: StrictBool = False


class FileJunitCheck(Written):
    """A test command and the path of the JUnit report that it writes. It accepts when the command exits 0, no test
    failed, at least `min` tests ran, and not fewer than on the result's base."""

    junit: Text
    run: Text
    min: Annotated[Count, Field(ge=1)] = 1
    timeout: Duration | None = None
    env: dict[str, str] = {}
    prove: StrictBool = False


class FilePythonCheck(Written):
    """A function `package.module:function`, or an entry point of the group `dagward.verifiers`; `with` is for it."""

    python: Annotated[str, Field(pattern=PLUGIN_PATTERN)]
    with_: Annotated[dict[str, Json], Field(alias="with")] = {}
    timeout: Duration | None = None
    env: dict[str, str] = {}
    prove: StrictBool = False


def _true_is_empty(value: object) -> object:
    return {} if value is True else value


class FileWeakeningCheck(Written):
    """No test or assertion of the base is deleted, skipped or loosened. `true`, or {paths: [...]} of a scope's form."""

    weakening: Annotated[
        WeakeningRule, BeforeValidator(_true_is_empty, json_schema_input_type=Literal[True] | WeakeningRule)
    ]


class FileOutputsRule(OutputsRule):
    """A JSON Schema (draft 2020-12) for what the task writes to $DAGWARD_OUTPUTS."""

    model_config = ConfigDict(populate_by_name=False)


class FileOutputsCheck(Written):
    """The task's outputs match a schema."""

    outputs: FileOutputsRule


class FileFileCheck(Written):
    """A file of the result."""

    file: FileRule


class FileDiffCheck(Written):
    """The result's diff against its base."""

    diff: DiffRule


def _no_bool(value: object) -> object:
    return str(value) if isinstance(value, bool) else value  # True == 1, but it is no format


def _exit_word(value: object) -> object:
    return {"exit": True} if value == "exit" else value


_CheckMapping = Annotated[
    Annotated[FileRunCheck, Tag("run")]
    | Annotated[ExitCheck, Tag("exit")]
    | Annotated[FileOutputsCheck, Tag("outputs")]
    | Annotated[FileFileCheck, Tag("file")]
    | Annotated[FileDiffCheck, Tag("diff")]
    | Annotated[FileJunitCheck, Tag("junit")]
    | Annotated[FileWeakeningCheck, Tag("weakening")]
    | Annotated[FilePythonCheck, Tag("python")],
    Discriminator(check_kind),
]
FileCheck = Annotated[
    _CheckMapping, BeforeValidator(_exit_word, json_schema_input_type=Literal["exit"] | _CheckMapping)
]
FileAgent = Annotated[CommandAgent | PythonAgent, Field(discriminator="use")]
Checks = Annotated[list[FileCheck], Field(min_length=1)]
Ends = list[str | FileEdge]
Priority = Annotated[Count, Field(ge=-1000, le=1000)]


class FileFallback(Written):
    """The task that is called when this one fails, and then stands in for it."""

    fallback: str


def _failure_kind(value: object) -> str:
    return "mapping" if isinstance(value, (dict, FileFallback)) else "word"


FileOnFailure = Annotated[
    Annotated[Literal["fail", "continue"], Tag("word")] | Annotated[FileFallback, Tag("mapping")],
    Discriminator(_failure_kind),
]


class FileDefaults(Written):
    """What tasks have that do not say otherwise. A task's own key replaces a default's key whole."""

    agent: FileAgent | None = None
    timeout: Duration = 3_600_000
    stall: Duration | None = None
    retries: FileRetries = FileRetries()
    env: FileEnv | None = None
    pool: str = "default"
    verify: Checks | None = None


class FileTask(Written):
    """One task. Without `agent` the default agent is used; without `verify` only the exit is checked."""

    id: TaskId
    title: str = ""
    prompt: str = ""
    blocked_by: Ends | None = None
    blocked_by_camel: Annotated[Ends | None, Field(alias="blockedBy")] = None
    blocks: Ends | None = None
    for_each: Annotated[str, Field(pattern=FOR_EACH)] | None = None
    if_: Annotated[Text | None, Field(alias="if")] = None
    agent: FileAgent | None = None
    timeout: Duration = 3_600_000
    stall: Duration | None = None
    retries: FileRetries = FileRetries()
    env: FileEnv | None = None
    pool: str = "default"
    priority: Priority = 0
    scope: FileScope = FileScope()
    verify: Checks | None = None
    on_failure: FileOnFailure = "fail"


class FilePlan(Written):
    """A dagward plan file."""

    format: Annotated[Literal[1], BeforeValidator(_no_bool, json_schema_input_type=Literal[1])] = 1
    name: TaskId
    goal: Text
    params: dict[str, str | None] = {}
    repo: Text | None = None
    base: Text = "HEAD"
    concurrency: Annotated[Count, Field(ge=1, le=1000)] = 4
    approval: Literal["auto", "required"] = "auto"
    scope: FileScope = FileScope()
    defaults: FileDefaults = FileDefaults()
    acceptance: list[FileCheck] = []
    fail_fast: StrictBool = False
    tasks: Annotated[list[FileTask], Field(min_length=1)]


_MODELS: dict[str, type[BaseModel]] = {
    "plan": FilePlan,
    "defaults": FileDefaults,
    "task": FileTask,
    "edge": FileEdge,
    "on_failure": FileFallback,
    "retries": FileRetries,
    "env": FileEnv,
    "scope": FileScope,
    "agent command": CommandAgent,
    "agent python": PythonAgent,
    "check run": FileRunCheck,
    "check exit": ExitCheck,
    "check outputs": FileOutputsCheck,
    "check file": FileFileCheck,
    "check diff": FileDiffCheck,
    "check junit": FileJunitCheck,
    "check weakening": FileWeakeningCheck,
    "check python": FilePythonCheck,
    "outputs": FileOutputsRule,
    "file": FileRule,
    "diff": DiffRule,
    "weakening": WeakeningRule,
}
FIELDS: dict[str, tuple[str, ...]] = {
    kind: tuple(info.alias or name for name, info in model.model_fields.items()) for kind, model in _MODELS.items()
}
"""The fields that each mapping of a file may have, by kind of mapping."""

AGENT_KINDS = ("command", "python")
