"""The horse's side of the guard: the Runner of one attempt, used in the worker's forked child.

Must not know main's side, leases or stores. Answers of an earlier horse on the same socket are dropped by their id.
"""

from __future__ import annotations

import itertools
import os
import select
import time

from scheduler.errors import Infrastructure
from workers.channel import LIMIT, Channel, Message
from workers.plugins import Command, Ended, EndReason

SLICE = 1.0  # seconds between two looks at whether this process waits in vain
SLACK = 900  # slices beyond the command's own limits: longer than a command may stay frozen

_REASONS: tuple[EndReason, ...] = ("exit", "timeout", "stall", "cancelled", "fenced", "spawn", "frozen")


class GuardGone(Infrastructure):
    """The worker stops this attempt's processes itself and is started again by its supervisor."""

    code = "guard_gone"


class AttemptRunner:
    """Runs commands of one attempt through the guard: the `Runner` of `workers.plugins`, used in the horse."""

    def __init__(self, fd: int, attempt: str) -> None:
        self._channel = Channel(fd)
        self._attempt = attempt
        self._prefix = f"h{os.getpid()}.{time.monotonic_ns()}"
        self._ids = itertools.count(1)

    def run(self, command: Command) -> Ended:
        """Start, stream, limit, stop, prove gone. Raises GuardGone when the guard ends first.

        An exception in this process (a signal handler's) stops the command before it goes on its way.
        """
        ident = f"{self._prefix}.{next(self._ids)}"
        try:
            self._channel.send({"op": "run", "id": ident, "attempt": self._attempt, **_order(command)})
        except ValueError:
            return Ended("spawn", None, f"its arguments and environment are larger than {LIMIT} bytes")
        patience = command.timeout + command.grace
        try:
            return self._await(ident, patience)
        except GuardGone:
            raise
        except BaseException:
            self._channel.send({"op": "stop", "id": ident})
            self._await(ident, patience)
            raise

    def _await(self, ident: str, patience: int) -> Ended:
        # Counted in slices of waiting, not by the clock: time in which this process is frozen does not count.
        slices = int(patience / 1000 / SLICE) + SLACK
        while slices > 0:
            for message in self._channel.receive():
                if message["op"] == "ended" and message.get("id") == ident:  # others are stale: of an earlier horse
                    return _ended(message)
            if self._channel.closed:
                raise GuardGone("the guard ended while a command ran")
            if not self._ready():
                slices -= 1
        raise GuardGone("the guard did not report the end of a command")

    def _ready(self) -> bool:
        poll = select.poll()
        poll.register(self._channel.fd, select.POLLIN | (select.POLLOUT if self._channel.pending else 0))
        ready = bool(poll.poll(SLICE * 1000))
        self._channel.flush()
        return ready


def _order(command: Command) -> Message:
    return {
        "argv": list(command.argv),
        "cwd": str(command.cwd),
        "env": dict(command.env),
        "log": str(command.log),
        "timeout": command.timeout,
        "stall": command.stall,
        "cap": command.cap,
        "stdin": None if command.stdin is None else str(command.stdin),
        "grace": command.grace,
        "redact": list(command.redact),
    }


def _ended(message: Message) -> Ended:
    found = [reason for reason in _REASONS if reason == message.get("reason")]
    if not found:
        raise GuardGone(f"the guard answered with an unknown end: {message.get('reason')}")
    code, thawed = message.get("exit_code"), message.get("thawed_ago")
    return Ended(
        reason=found[0],
        exit_code=code if isinstance(code, int) else None,
        message=str(message.get("message", "")),
        thawed_ago=thawed if isinstance(thawed, int) else None,
        **{name: count(message, name) for name in ("duration", "frozen", "output", "dropped", "killed", "survivors")},
    )


def count(message: Message, name: str) -> int:
    """A number of a message; 0 when it is not there."""
    value = message.get(name)
    return value if isinstance(value, int) else 0
