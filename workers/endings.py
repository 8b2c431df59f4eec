"""How an attempt can end, as values: the phases return them, one place turns them into calls of the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scheduler.model import Failure


@dataclass(frozen=True, slots=True)
class Proven:
    """Every check has an accepting record: the task may be accepted."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed. `thawed_ago` in milliseconds when it had been frozen: shortly after, it is excused once."""

    failure: Failure
    thawed_ago: int | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """Stopped from outside, tree proven gone: a cancel, a drain, or a fence."""

    reason: Literal["cancelled", "fenced"]


@dataclass(frozen=True, slots=True)
class Broken:
    """Not the attempt's fault: it goes back uncharged, a limited number of times."""

    reason: str


Ending = Proven | Failed | Stopped | Broken


class StopAttempt(Exception):
    """Unwinds an attempt that was stopped from outside."""

    def __init__(self, ending: Stopped) -> None:
        super().__init__(ending.reason)
        self.ending = ending
