"""What a plug-in author implements: Protocols for agents and verifiers, and the values they exchange.

Plug-ins see `scheduler.model` and this module, never the store, never the guard's insides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from scheduler.model import Attempt, Check, FailureClass, Json, Result, Usage

EndReason = Literal["exit", "timeout", "stall", "cancelled", "fenced", "spawn", "frozen"]


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run under the guard. Durations in milliseconds; `argv` carries no secret, ever."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    log: Path  # its output (stdout and stderr together) is appended here, up to `cap` bytes
    timeout: int
    stall: int | None = None  # longest time without output
    cap: int = 10_000_000
    stdin: Path | None = None  # None: /dev/null
    grace: int = 2_000  # between SIGTERM and SIGKILL when stopped
    redact: Sequence[str] = ()  # spellings of secrets that never reach the log, the longest first


@dataclass(frozen=True, slots=True)
class Ended:
    """What the guard observed. Returned only when the whole tree is proven gone, unless `survivors` says otherwise.

    reason `exit`: the leader ended by itself with `exit_code` (negative: by that signal);
    `spawn`: the program could not be started, `message` says why; `frozen`: frozen for too long and killed.
    """

    reason: EndReason
    exit_code: int | None
    message: str = ""
    duration: int = 0
    frozen: int = 0  # milliseconds spent frozen; counted in no limit
    thawed_ago: int | None = None  # milliseconds since the last thaw, when it was ever frozen
    output: int = 0  # bytes written by the program
    dropped: int = 0  # bytes that the cap left out
    killed: int = 0  # descendants that had to be killed after the leader ended
    survivors: int = 0  # processes that could not be killed; not zero means an alarm


class Runner(Protocol):
    """Runs one command to its proven end. Implemented by `workers.tree.Guard`."""

    def run(self, command: Command) -> Ended:
        """Start, stream, limit, stop, prove gone."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an agent's run came to, read from its exit and its events; never from its prose."""

    ok: bool
    reason: str = ""
    failure: FailureClass = FailureClass.AGENT_ERROR
    terminal: bool = True  # the agent's own terminal event was seen (for a command: it exited)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Launch:
    """What an agent wants to be started with."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # relative to the attempt's folder
    stdin: str | None = None


class Agent(Protocol):
    """Pure functions around one program, tested by recorded streams."""

    def build(self, attempt: Attempt, workspace: Path, folder: Path) -> Launch:
        """What to start. `workspace` is the work tree, `folder` the attempt's private folder."""
        ...

    def parse(self, line: str) -> Json:
        """One line of output as an event of the agent, or None."""
        ...

    def finish(self, ended: Ended, events: Sequence[Json]) -> Outcome:
        """The outcome, from the exit and the events."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A verifier's answer for one check on one tree."""

    accepted: bool
    reason: str = ""
    exit_code: int | None = None
    output: str = ""
    duration: int = 0
    failure: FailureClass = FailureClass.REJECTED  # configuration when the check itself could not run


class Baseline(Protocol):
    """The base of a result, for checks that compare; and what is remembered of it for the rest of the plan."""

    @property
    def commit(self) -> str:
        """The base's commit."""
        ...

    def tree(self) -> CheckTree:
        """A clean copy of the base, with no baseline of its own. Each call makes it anew, in the same place."""
        ...

    def read(self, path: str) -> bytes | None:
        """The content of one file of the base; None when it holds no regular file there."""
        ...

    def recall(self, name: str) -> Json:
        """What was kept under this name, None when nothing was."""
        ...

    def keep(self, name: str, value: Json) -> None:
        """Remember a value for this plan and host."""
        ...


@dataclass(frozen=True, slots=True)
class CheckTree:
    """A clean copy of a result for one check: never the agent's own folder."""

    path: Path
    result: Result
    folder: Path  # for logs of checks
    env: Mapping[str, str]  # DAGWARD_* and the plan's `pass` and `set`; never secrets
    base: str | None
    task: str
    attempt: int
    redact: Callable[[str], str]
    changed: Sequence[str]  # paths in which the result differs from its base, computed by the worker itself
    baseline: Baseline | None = None  # None: a result without a base, or a tree that is not compared


class Verifier(Protocol):
    """One kind of check."""

    def verify(self, check: Check, tree: CheckTree, runner: Runner) -> Finding:
        """Judge the result in `tree`. Raises nothing for a bad result; that is a Finding."""
        ...

    def title(self, check: Check) -> str:
        """What is checked, in one line for people: the command, the path."""
        ...
