"""Looks at the processes of this host through /proc, and signals sets of them. Linux only, standard library only.

Must not know sessions, attempts, commands or messages: it sees pids, parents and states. Shared by the guard (which
starts without site-packages, hence no dataclasses and no typing here), worker main, the supervisor and the sweep.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterable

PR_SET_CHILD_SUBREAPER = 36

STOPPED = "tT"


class Process:
    """One process as /proc/PID/stat shows it at one moment.

    `start` is its start time in clock ticks since boot (field 22): (pid, start) names one process for ever within
    one boot. `group` and `session` are its process group and session ids.
    """

    __slots__ = ("group", "pid", "ppid", "session", "start", "state", "threads")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.state = fields[0].decode("ascii")
        self.ppid = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.threads = int(fields[17])
        self.start = int(fields[19])

    @property
    def identity(self) -> tuple[int, int]:
        """What stays different when the pid is used again."""
        return (self.pid, self.start)

    @property
    def alive(self) -> bool:
        """False for what only waits to be reaped. A leader that ended before its threads shows as Z and lives on."""
        return self.state not in "ZXx" or self.threads > 1

    @property
    def stopped(self) -> bool:
        """True when no code of it runs (by SIGSTOP or a tracer)."""
        return self.state in STOPPED


def become_subreaper() -> None:
    """Let orphaned descendants fall to the calling process instead of init. OSError where that does not exist."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(number)}")


def look(pid: int) -> Process | None:
    """The process with this pid, also when it waits to be reaped; None when there is none."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return None
    try:
        text = os.read(fd, 4096)
    except ProcessLookupError:
        return None
    finally:
        os.close(fd)
    # The second field is the program's name in parentheses and may hold anything, parentheses too.
    return Process(pid, text[text.rindex(b")") + 2 :].split())


def everyone() -> list[Process]:
    """All processes that this process can see. Not one moment: a walk takes about 20 microseconds per process."""
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    return [process for process in map(look, pids) if process is not None]


def beneath(roots: Iterable[int], people: list[Process], spare: Iterable[int] = ()) -> list[Process]:
    """Living descendants of the processes `roots` among `people`, parents first, without the roots themselves.

    A process in `spare` is left out with everything beneath it.
    """
    children: dict[int, list[Process]] = {}
    for process in people:
        children.setdefault(process.ppid, []).append(process)
    found: list[Process] = []
    seen = set(spare) | set(roots)
    level = list(roots)
    while level:
        below = [child for pid in level for child in children.get(pid, ()) if child.pid not in seen]
        seen.update(child.pid for child in below)
        found.extend(child for child in below if child.alive)
        level = [child.pid for child in below]
    return found


def send(processes: Iterable[Process], number: int) -> list[Process]:
    """Signal each of them at once after the look that found it (before its pid can come round again).

    Returns those that could be signalled: not those that have gone, nor those of another user.
    """
    reached: list[Process] = []
    for process in processes:
        try:
            os.kill(process.pid, number)
        except (ProcessLookupError, PermissionError):
            continue
        reached.append(process)
    return reached


def kill(victims: list[Process], people: list[Process]) -> list[Process]:
    """SIGKILL to the victims, and to each process group that consists of victims only.

    A group is killed in one step of the kernel, so a program that forks and ends faster than we look cannot
    outrun it. `people` must be the same look that found the victims. Returns those that were reached.
    """
    pids = {process.pid for process in victims}
    shared = {process.group for process in people if process.pid not in pids} | {os.getpgrp(), 0, 1}
    for group in {process.group for process in victims} - shared:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    return [process for process in victims if _kill_one(process.pid)]


def _kill_one(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True  # the group's signal was faster
    except PermissionError:
        return False
    return True


def stop(find: Callable[[list[Process]], list[Process]], passes: int) -> tuple[set[tuple[int, int]], bool]:
    """SIGSTOP to all that `find` picks, again and again, since a child may be forked between look and signal.

    Ends after the first look that finds nobody new, at most after `passes` looks. Who has a stop pending runs no
    code and cannot fork any more, whatever state it shows (D: it waits in vfork for a child that was stopped).
    Returns the identities of those that this call stopped (not of those that stood before), and whether it ended so.
    """
    told: set[tuple[int, int]] = set()
    stopped: set[tuple[int, int]] = set()
    for _ in range(passes):
        new = [process for process in find(everyone()) if not process.stopped and process.identity not in told]
        if not new:
            return stopped, True
        told.update(process.identity for process in new)
        stopped.update(process.identity for process in send(new, signal.SIGSTOP))
    return stopped, False


def reap() -> tuple[dict[int, int], bool]:
    """Collect every child that has ended: pid -> wait status, and whether any child is left.

    For a subreaper, no child left is the proof that no descendant lives: an orphan would have become its child.
    Only for a process that does not wait for single children elsewhere.
    """
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended[pid] = status
