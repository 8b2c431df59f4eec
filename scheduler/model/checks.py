"""The checks of a plan, one model per kind; the union is what an entry of `verify` or `acceptance` may be.

Durations are integer milliseconds. Must not know how a check is carried out; that is `workers.verifiers`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, StrictBool, Tag

from scheduler.model.base import Frozen, Json

Millis = Annotated[int, Field(gt=0)]
PLUGIN_PATTERN = r"^(?:[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*|[A-Za-z0-9][A-Za-z0-9_.-]{0,63})$"
"""`package.module:function`, or the name of an entry point of the group `dagward.verifiers`."""


class RunCheck(Frozen):
    """A shell command in the check tree; it accepts when it exits 0. `prove`: it must also be seen to refuse a
    result that was broken on purpose, once per plan."""

    run: Annotated[str, Field(min_length=1)]
    timeout: Millis | None = None
    env: dict[str, str] = {}
    prove: StrictBool = False


class JunitCheck(Frozen):
    """A test command and the JUnit report that it writes to `junit`, a path in the check tree. It accepts when the
    command exits 0, no test failed, at least `min` tests ran, and not fewer than on the result's base."""

    junit: Annotated[str, Field(min_length=1)]
    run: Annotated[str, Field(min_length=1)]
    min: Annotated[int, Field(ge=1, strict=True)] = 1
    timeout: Millis | None = None
    env: dict[str, str] = {}
    prove: StrictBool = False


class ExitCheck(Frozen):
    """The agent's terminal event was seen, its exit code is 0, and its scope was kept."""

    exit: Literal[True]


class OutputsRule(Frozen):
    """A JSON Schema (draft 2020-12) that the task's outputs must satisfy. The field is written `schema`."""

    schema_: Annotated[dict[str, Json], Field(alias="schema")]


class OutputsCheck(Frozen):
    """The task's outputs match a schema."""

    outputs: OutputsRule


class FileRule(Frozen):
    """A file of the result: it exists, and when asked is not empty or has this content."""

    path: Annotated[str, Field(min_length=1)]
    nonempty: StrictBool = False
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None


class FileCheck(Frozen):
    """A file of the result."""

    file: FileRule


class DiffRule(Frozen):
    """What the result's diff against its base must look like; `only` takes the patterns of a scope."""

    nonempty: StrictBool = False
    only: tuple[str, ...] | None = None


class DiffCheck(Frozen):
    """The result's diff against its base."""

    diff: DiffRule


class WeakeningRule(Frozen):
    """Which changed files are looked at: patterns as in a scope; None: every file that looks like a test or runs
    tests."""

    paths: tuple[str, ...] | None = None


class WeakeningCheck(Frozen):
    """No test or assertion of the base is deleted, skipped or loosened by the result's diff."""

    weakening: WeakeningRule


class PythonCheck(Frozen):
    """A Python function that judges the check tree in a process of its own. `with` is handed to it as it is."""

    python: Annotated[str, Field(pattern=PLUGIN_PATTERN)]
    with_: Annotated[dict[str, Json], Field(alias="with")] = {}
    timeout: Millis | None = None
    env: dict[str, str] = {}
    prove: StrictBool = False


CHECK_KINDS = ("run", "exit", "outputs", "file", "diff", "junit", "weakening", "python")

_KIND_OF_MODEL: dict[type[object], str] = {
    RunCheck: "run",
    ExitCheck: "exit",
    OutputsCheck: "outputs",
    FileCheck: "file",
    DiffCheck: "diff",
    JunitCheck: "junit",
    WeakeningCheck: "weakening",
    PythonCheck: "python",
}


def check_kind(value: object) -> str | None:
    """The kind of a check is the one key of its mapping that names a kind; None when there is not exactly one.

    A `junit` check has a `run` beside it: that is the command which writes the report.
    """
    if isinstance(value, dict):
        found = [kind for kind in CHECK_KINDS if kind in value]
        if found == ["run", "junit"]:
            return "junit"
        return found[0] if len(found) == 1 else None
    return _KIND_OF_MODEL.get(type(value))


Check = Annotated[
    Annotated[RunCheck, Tag("run")]
    | Annotated[ExitCheck, Tag("exit")]
    | Annotated[OutputsCheck, Tag("outputs")]
    | Annotated[FileCheck, Tag("file")]
    | Annotated[DiffCheck, Tag("diff")]
    | Annotated[JunitCheck, Tag("junit")]
    | Annotated[WeakeningCheck, Tag("weakening")]
    | Annotated[PythonCheck, Tag("python")],
    Discriminator(check_kind),
]
