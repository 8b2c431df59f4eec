"""Processes that fell to the calling process, a subreaper: worker main's or a supervisor's. Linux only.

Must not know attempts or sessions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from workers import processes
from workers.doomed import Doomed, collect


@dataclass(frozen=True, slots=True)
class Killed:
    """What a kill came to. `survivors` not zero means an alarm: nothing may be released."""

    killed: int
    survivors: int


def descendants(spare: Iterable[int] = ()) -> list[int]:
    """Pids of everything alive beneath the calling process, without `spare` and what is beneath that."""
    return [process.pid for process in processes.beneath([os.getpid()], processes.everyone(), spare)]


def kill_descendants(spare: Iterable[int] = (), timeout: float = 10.0) -> Killed:
    """Kill everything beneath the calling process (a subreaper) but `spare` and its trees, and prove it gone.

    For worker main after its guard died, and for a supervisor after its worker died. Reaps the ended children that
    are not in `spare`, so a child whose status is wanted belongs there. `timeout` in seconds; with survivors call
    again: main passes a short one, so that no renewal waits.
    """
    keep = frozenset(spare)
    me = os.getpid()
    result = kill_until_gone(Doomed(lambda people: processes.beneath([me], people, keep), keep), timeout)
    collect(keep)
    return result


def kill_until_gone(doomed: Doomed, timeout: float) -> Killed:
    """Strike until nothing lives, at most `timeout` seconds (at least one round)."""
    end = time.monotonic() + timeout
    pause = 0.001
    while left := doomed.strike():
        if time.monotonic() >= end:
            break
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    return Killed(len(doomed.killed), len(left))
