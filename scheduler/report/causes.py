"""Values of `why`: the facts of the claim's predicates, and the causes that they are told as. Pure.

Times are server milliseconds. Must not know sentences (that is `explain`) nor where facts come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import cast

from scheduler.model import Json, TaskState, TaskView
from scheduler.report.plain import iso


def as_int(value: Json | None) -> int:
    """A number of the script's answer; 0 for none."""
    return int(value) if isinstance(value, int | float) else 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What the script `why` answers for one task. `lease` and `dispatch` are milliseconds left; None: there is none."""

    state: TaskState
    now: int
    since: int = 0
    attempt: int = 0
    causes: tuple[Mapping[str, Json], ...] = ()
    holders: tuple[str, ...] = ()  # `plan task` that hold slots of the task's pool
    cancel: bool = False
    cause: str = ""
    session: str = ""
    worker: str = ""
    host: str = ""
    lost: bool = False  # the worker was lost and its host has still to prove that nothing lives
    verify_only: bool = False
    lease: int | None = None
    dispatch: int | None = None

    @classmethod
    def read(cls, raw: Mapping[str, Json]) -> Facts:
        """From the script's answer, in which absent means false, empty or none, and an empty list may be `{}`."""
        return cls(
            state=TaskState(str(raw["state"])),
            now=as_int(raw["now"]),
            since=as_int(raw.get("since")),
            attempt=as_int(raw.get("attempt")),
            causes=tuple(cast("list[Mapping[str, Json]]", raw.get("causes") or [])),
            holders=tuple(str(each).replace("|", " ") for each in cast("list[Json]", raw.get("holders") or [])),
            cancel=bool(raw.get("cancel")),
            cause=str(raw.get("cause") or ""),
            session=str(raw.get("session") or ""),
            worker=str(raw.get("worker") or ""),
            host=str(raw.get("host") or ""),
            lost=raw.get("worker_state") == "lost",
            verify_only=bool(raw.get("verify_only")),
            lease=as_int(raw["lease"]) if raw.get("lease") is not None else None,
            dispatch=as_int(raw["dispatch"]) if raw.get("dispatch") is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Blocker:
    """A task that has to complete first. `limit`: its time limit; `below`: what it waits for itself, at the far end."""

    task: TaskView
    facts: Facts | None = None
    limit: int = 0
    below: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that holds a task. `since` and `release` are server times, 0 when nobody can know them."""

    cause: str
    text: str
    holder: tuple[str, ...] = ()
    since: int = 0
    release: int = 0
    next: str = ""
    tasks: int = 1

    def as_json(self) -> dict[str, Json]:
        """For `why --json`."""
        value = cast("dict[str, Json]", asdict(self))
        value["holder"] = list(self.holder)
        del value["release"]
        value["since"] = iso(self.since) if self.since else None
        value["expected_release"] = iso(self.release) if self.release else None
        return value


@dataclass(frozen=True, slots=True)
class Explanation:
    """One sentence, the next step, and every cause. `plan` and `task` are ids; `task` is empty for a whole plan."""

    plan: str
    task: str
    state: str
    line: str
    next: str = ""
    causes: tuple[Cause, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """For `why --json`."""
        return {
            "schema": "dagward/why/1",
            "plan": self.plan,
            "task": self.task or None,
            "state": self.state,
            "text": self.line,
            "next": self.next,
            "causes": [cause.as_json() for cause in self.causes],
        }
