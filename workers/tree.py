"""The worker's side of the guard: `Guard` for worker main, `horse_side` (a `Runner`) for the forked child.

Linux only (subreaper, pidfd, /proc). Worker main spawns one guard, beats it after every confirmed renewal, watches
its pidfd, and kills the orphans itself when the guard dies. Must not know Redis, RQ, plans or tasks.

Main: `Guard.spawn()`, then in its poll loop `beat`, `kill`, `kill_all`, `send_ping`; none of these blocks, answers
come from `messages()` when `readable` is. AttemptRunner: `guard.horse_side(attempt).run(command)`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from workers.channel import Channel, Message
from workers.guarded import AttemptRunner, GuardGone, count
from workers.orphans import Killed, descendants, kill_descendants
from workers.plugins import EndReason

__all__ = ["Frozen", "Gone", "Guard", "GuardGone", "Killed", "Pong", "Report", "descendants", "kill_descendants"]

_NEEDED = ("LD_LIBRARY_PATH",)  # without it some builds of Python do not start
READY = 10.0  # seconds for the guard to start on a busy machine


@dataclass(frozen=True, slots=True)
class Gone:
    """The proof that a kill asked for: `id` is what `kill` or `kill_all` returned."""

    id: str
    survivors: int


@dataclass(frozen=True, slots=True)
class Pong:
    """The guard lives. `running` is the attempt whose command it has."""

    id: str
    running: str | None
    frozen: bool


@dataclass(frozen=True, slots=True)
class Frozen:
    """The guard has frozen tree and horse (`frozen`), or has let them go on."""

    frozen: bool


Report = Gone | Pong | Frozen


class Guard:
    """The guard process as worker main holds it. Every call raises GuardGone when it is not there any more."""

    def __init__(self, process: subprocess.Popen[bytes], main: socket.socket, horse: socket.socket) -> None:
        self._process = process
        self._main = main
        self._horse = horse
        self._channel = Channel(main.fileno())
        self._ids = itertools.count(1)
        self._kept: list[Report] = []
        self.pid = process.pid
        self.pidfd = os.pidfd_open(process.pid)

    @classmethod
    def spawn(cls, *, frozen_limit: float = 600.0, leader_file: Path | None = None) -> Guard:
        """Start a guard for the calling process and wait until it serves.

        `frozen_limit` in seconds: a command frozen for longer is killed. `leader_file` receives pid and start time
        of the running command's leader, for the sweep. The caller should be a subreaper itself
        (`processes.become_subreaper`), or a killed guard's orphans are lost to it.
        """
        ours, theirs = socket.socketpair()
        horse, guard_horse = socket.socketpair()
        with theirs, guard_horse:
            program = Path(__file__).with_name("guard.py")
            numbers = [theirs.fileno(), guard_horse.fileno(), os.getpid(), int(frozen_limit * 1000)]
            process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-X", "utf8", str(program)),
                    *map(str, numbers),
                    "" if leader_file is None else str(leader_file.absolute()),
                ],
                pass_fds=(theirs.fileno(), guard_horse.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _NEEDED if name in os.environ},
                start_new_session=True,
            )
        guard = cls(process, ours, horse)
        try:
            guard._await_ready()
        except GuardGone:
            guard.close()
            raise
        return guard

    @property
    def readable(self) -> int:
        """The descriptor to poll; when it is readable, call `messages`."""
        return self._main.fileno()

    @property
    def writable_wanted(self) -> bool:
        """True while something waits for room in the socket: poll for writing too, then call `flush`."""
        return self._channel.pending

    def beat(self, deadline: float, held: Collection[str], horse: int | None, sent: float | None = None) -> None:
        """The lease is confirmed until `deadline`, for the attempts `held`; `horse` is the living horse's pid.

        Both times in seconds of `time.monotonic`. `sent` is when the renewal was sent: an attempt that began later
        is neither confirmed nor fenced by it. Send one right after each fork, so that the guard knows the horse.
        """
        self._send({"op": "beat", "deadline": deadline, "held": sorted(held), "horse": horse, "sent": sent})

    def kill(self, attempt: str, reason: EndReason) -> str:
        """Stop this attempt's command (`cancelled`: with grace, `fenced`: at once), and refuse later ones.

        Returns the id of the `Gone` that will follow.
        """
        return self._send({"op": "kill", "attempt": attempt, "reason": reason})

    def kill_all(self) -> str:
        """The horse is dead: kill what it left running. Returns the id of the `Gone`; fork no horse before it."""
        return self._send({"op": "killall"})

    def send_ping(self) -> str:
        """Ask whether it lives; the `Pong` has this id."""
        return self._send({"op": "ping"})

    def ask(self, timeout: float = 0.1) -> Pong | None:
        """How it is; None when it does not answer within `timeout` seconds. Other messages are kept meanwhile."""
        report = self._await(self.send_ping(), timeout)
        return report if isinstance(report, Pong) else None

    def ping(self, timeout: float = 0.1) -> bool:
        """Whether it answers within `timeout` seconds."""
        return self.ask(timeout) is not None

    def await_gone(self, ident: str, timeout: float) -> Gone | None:
        """Wait for the proof of one kill; None when it does not come in time. For places that may block."""
        report = self._await(ident, timeout)
        return report if isinstance(report, Gone) else None

    def flush(self) -> None:
        """Send what had to wait for room."""
        self._channel.flush()
        self._check()

    def messages(self) -> list[Report]:
        """Everything that has arrived. Raises GuardGone when the guard has ended."""
        self._take()
        kept, self._kept = self._kept, []
        if not kept:
            self._check()
        return kept

    def quit(self, timeout: float = 15.0) -> None:
        """Clean end: it kills what runs, proves it gone, and ends. After `timeout` seconds it is killed."""
        with contextlib.suppress(GuardGone):
            self._send({"op": "quit"})
        with contextlib.suppress(OSError):  # also heard by a guard that did not read the message
            self._main.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.close()

    def end(self) -> None:
        """Kill a guard that does not answer, and reap it; its trees fall to the caller: `kill_descendants` next."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Give the descriptors back."""
        self._main.close()
        self._horse.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def horse_side(self, attempt: str) -> AttemptRunner:
        """In the horse, after the fork: the Runner of one attempt. Closes this process's copy of main's channel."""
        self._main.close()
        return AttemptRunner(self._horse.fileno(), attempt)

    def _await_ready(self) -> None:
        end = time.monotonic() + READY
        while True:
            messages = self._channel.receive()
            if any(message["op"] == "ready" for message in messages):
                return
            if self._channel.closed or not _wait_readable(self._main.fileno(), end - time.monotonic()):
                self.end()
                raise GuardGone(f"the guard did not start (exit status {self._process.returncode})")

    def _send(self, message: Message) -> str:
        ident = f"m{next(self._ids)}"
        self._channel.send({"id": ident, **message})
        self._check()
        return ident

    def _check(self) -> None:
        if self._channel.closed:
            raise GuardGone(f"the guard (process {self.pid}) is gone or does not read")

    def _take(self) -> None:
        for message in self._channel.receive():
            report = _report(message)
            if report is not None:
                self._kept.append(report)

    def _await(self, ident: str, timeout: float) -> Report | None:
        end = time.monotonic() + timeout
        while True:
            self._take()
            for report in self._kept:
                if not isinstance(report, Frozen) and report.id == ident:
                    self._kept.remove(report)
                    return report
            self._check()
            if not _wait_readable(self._main.fileno(), end - time.monotonic()):
                return None


def _report(message: Message) -> Report | None:
    op, ident = message["op"], str(message.get("id", ""))
    if op == "gone":
        return Gone(ident, count(message, "survivors"))
    if op == "pong":
        running = message.get("running")
        return Pong(ident, running if isinstance(running, str) else None, message.get("frozen") is True)
    if op in ("froze", "thawed"):
        return Frozen(op == "froze")
    return None


def _wait_readable(fd: int, timeout: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return timeout > 0 and bool(poll.poll(timeout * 1000))
