"""The guard: owns the tree of the command that one worker runs. A program, started by `workers.tree.Guard.spawn`.

`python -I -S workers/guard.py MAIN_FD HORSE_FD MAIN_PID FROZEN_LIMIT_MS LEADER_FILE`, in a session of its own,
standard library only, Linux only (subreaper, pidfd, /proc). It outlives the worker: when worker main dies it kills
the command and the horse, proves them gone, and ends. Decisions are in `workers/guarding.py`; this file waits.
Must not know Redis, RQ, plans or tasks.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

# Started with -I -S: neither this folder nor site-packages is on the path. At its end, so that it shadows nothing.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from workers import processes
from workers.channel import Channel, note
from workers.guarding import Guard


def take_signals() -> int:
    """Ignore what asks for an end (main decides it), start clean for the commands. Returns what SIGCHLD wakes."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        signal.signal(number, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return reader


def serve(guard: Guard, wakeup: int, main: int | None) -> None:
    """Poll and step until the guard has finished. `main`: a pidfd; readable once worker main has died."""
    alive = main is not None
    while True:
        guard.step(time.monotonic(), alive)
        if guard.finished:
            return
        poll = select.poll()
        for fd, events in guard.sources().items():
            poll.register(fd, events)
        poll.register(wakeup, select.POLLIN)
        if main is not None and alive:
            poll.register(main, select.POLLIN)
        now = time.monotonic()
        at = guard.wake_at(now)
        ready = dict(poll.poll(None if at is None else max(0.0, at - now) * 1000 + 0.5))
        alive = alive and main not in ready
        if wakeup in ready:
            _drain(wakeup)
        guard.flush()


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            continue
    except BlockingIOError:
        return


def run(argv: list[str]) -> int:
    """Set up and serve. Returns the exit status: 0 after a proven end, 70 after an error of the guard itself."""
    main_fd, horse_fd, main_pid, limit = (int(value) for value in argv[:4])
    os.set_inheritable(main_fd, False)
    os.set_inheritable(horse_fd, False)
    os.chdir("/")
    wakeup = take_signals()
    leader = os.open(argv[4], os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600) if argv[4] else None
    main = Channel(main_fd)
    try:
        processes.become_subreaper()
        watched = os.pidfd_open(main_pid) if os.getppid() == main_pid else None
    except OSError as error:
        note(f"cannot guard on this system: {error}")
        return 70
    guard = Guard(main, Channel(horse_fd), main_pid, limit / 1000, leader)
    main.send({"op": "ready", "id": "", "pid": os.getpid()})
    try:
        serve(guard, wakeup, watched)
    except Exception as error:  # noqa: BLE001 - the last line of defence: main sees the end and takes the tree over
        note(f"ends after an error of its own: {type(error).__name__}: {error}")
        return 70
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
