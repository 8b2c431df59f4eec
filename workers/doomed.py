"""Kills trees that the calling process is not the only parent of, and proves them gone. Standard library only.

Must not know why they die. The guard uses it for the horse, worker main and the supervisor for orphans that fell to
them, the sweep for what an earlier worker left on this host.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from workers import processes
from workers.processes import Process

_LOOKS = 50

Find = Callable[[list[Process]], list[Process]]


class Doomed:
    """What `find` picks in a look at the host, with everything beneath it, until nothing of it lives.

    All of it is stopped first: a child that is forked between look and signal would otherwise escape with its
    parent's death. Once seen, a process is doomed even when `find` would not pick it again (its parent has died).
    Never picks the calling process, its ancestors, or what is in `spare` with everything beneath that.
    """

    def __init__(self, find: Find, spare: Iterable[int] = ()) -> None:
        self._find = find
        self._spare = frozenset(spare)
        self._known: set[tuple[int, int]] = set()
        self.killed: set[tuple[int, int]] = set()

    def strike(self) -> list[Process]:
        """One round: stop all, kill all, look again. Returns what still lives, dying or not; call until empty."""
        processes.stop(self._pick, _LOOKS)
        people = processes.everyone()
        self.killed.update(process.identity for process in processes.kill(self._pick(people), people))
        return self._pick(processes.everyone())

    def _pick(self, people: list[Process]) -> list[Process]:
        safe = _line(people) | self._spare
        roots = [*self._find(people), *(process for process in people if process.identity in self._known)]
        roots = [process for process in roots if process.pid not in safe]
        tree = [*roots, *processes.beneath([process.pid for process in roots], people, safe)]
        picked = {process.pid: process for process in tree if process.alive}
        self._known.update(process.identity for process in picked.values())
        return list(picked.values())


def _line(people: list[Process]) -> set[int]:
    """The calling process and its ancestors."""
    parents = {process.pid: process.ppid for process in people}
    line, pid = {0, 1}, os.getpid()
    while pid not in line:
        line.add(pid)
        pid = parents.get(pid, 0)
    return line


def collect(spare: Iterable[int]) -> None:
    """Reap the ended children of the calling process, but not those in `spare`, whose status somebody waits for."""
    me, keep = os.getpid(), set(spare)
    for process in processes.everyone():
        if process.ppid == me and not process.alive and process.pid not in keep:
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                continue


class Horse:
    """The worker's forked child as the guard knows it: not a child of the guard, so it is named by pid and start time.

    A horse that has ended is never mistaken for a stranger that got its pid.
    """

    def __init__(self, process: Process) -> None:
        self.pid = process.pid
        self.identity = identity = process.identity
        self.doomed = Doomed(lambda people: [process for process in people if process.identity == identity])

    @classmethod
    def find(cls, pid: int, main: int) -> Horse | None:
        """The child `pid` of worker main; None when it has already gone or is not main's."""
        process = processes.look(pid)
        if process is None or process.ppid != main or not process.alive:
            return None
        return cls(process)

    @property
    def alive(self) -> bool:
        """Whether it is still the process that was found."""
        process = processes.look(self.pid)
        return process is not None and process.identity == self.identity and process.alive
