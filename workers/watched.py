"""One command from its start to the proof that its whole tree is gone. Standard library only.

Must not know leases, messages or horses: it is told to freeze, to thaw, to stop. Everything beneath this process is
the command's, because the process is a subreaper and runs one command at a time; so "no child left" is the proof.
Time enters as `now`, in seconds of the monotonic clock.
"""

from __future__ import annotations

import os
import signal

from workers import processes
from workers.capture import Capture
from workers.spawn import Order

STUBBORN = 10.0  # seconds of SIGKILL after which what lives is reported as surviving
GROUP_KNOWN = 0.5  # seconds; far less than it takes to use up all process ids
_FIRST_PAUSE = 0.001
_LAST_PAUSE = 0.05


class Watched:
    """A running command. Call `attend` whenever something happened; it returns True once the end is known."""

    def __init__(self, order: Order, pid: int, capture: Capture, now: float) -> None:
        self.order = order
        self.pid = pid
        self.capture = capture
        self.started = now
        self.reason: str | None = None  # why it ends; None while it runs
        self.survivors = 0
        self._status: int | None = None
        self._duration = 0.0
        self._reaped_at: float | None = None
        self._timeout_at = now + order.timeout
        self._quiet_since = now
        self._frozen_since: float | None = None
        self._frozen = 0.0
        self._thawed_at: float | None = None
        self._kill_at: float | None = None  # SIGTERM was sent: the end of the grace
        self._killing_since: float | None = None
        self._pause = _FIRST_PAUSE
        self._next_pass = now
        self._killed: set[tuple[int, int]] = set()

    @property
    def frozen_since(self) -> float | None:
        """Since when its tree stands still; None while it may run."""
        return self._frozen_since

    def froze(self, now: float) -> None:
        """Its tree was stopped: from now on no limit runs."""
        if self._frozen_since is None:
            self._frozen_since = now
        if self._kill_at is not None:  # it was being stopped anyway, and cannot use its grace while it stands
            self._kill_now(now)

    def thawed(self, now: float) -> None:
        """Its tree goes on: the limits move by the time that it stood."""
        if self._frozen_since is None:
            return
        stood = now - self._frozen_since
        self._frozen_since, self._thawed_at = None, now
        self._frozen += stood
        self._timeout_at += stood
        self._quiet_since += stood

    def stop(self, reason: str, now: float, *, at_once: bool = False) -> None:
        """Ask the tree to end (SIGTERM), and kill what is left after the grace; `at_once`: kill now.

        A tree that stands still is killed as it stands: it must not run again.
        """
        if self.reason is None or reason == "fenced":
            self.reason = reason
        if self._killing_since is not None:
            return
        if at_once or self._frozen_since is not None:
            self._kill_now(now)
        elif self._kill_at is None:
            people = processes.everyone()
            tree = processes.beneath([os.getpid()], people)
            told = processes.send(tree, signal.SIGTERM)
            processes.send([process for process in told if process.stopped], signal.SIGCONT)
            self._kill_at = now + self.order.grace

    def attend(self, now: float) -> bool:
        """Read, reap, watch the limits, go on killing. True when the tree is gone or will not go."""
        if self.capture.read():
            self._quiet_since = now
        if self._gone(now):
            return True
        self._watch_limits(now)
        if self._killing_since is None or now < self._next_pass:
            return False
        self._pass(now)
        if self._gone(now):
            return True
        if now - self._killing_since >= STUBBORN:
            self.survivors = len(processes.beneath([os.getpid()], processes.everyone()))
        return self.survivors > 0

    def wake_at(self) -> float | None:
        """When `attend` must be called at the latest, although nothing happened."""
        if self._killing_since is not None:
            return self._next_pass
        if self._frozen_since is not None:
            return None
        if self._kill_at is not None:
            return self._kill_at
        if self.order.stall is None:
            return self._timeout_at
        return min(self._timeout_at, self._quiet_since + self.order.stall)

    def report(self, now: float) -> dict[str, object]:
        """What was observed: the fields of `workers.plugins.Ended`. Closes the log. Call once."""
        self.capture.finish()
        stood = self._frozen + (0.0 if self._frozen_since is None else now - self._frozen_since)
        thawed_ago = None if self._thawed_at is None else _millis(now - self._thawed_at)
        return {
            "reason": self.reason or "exit",
            "exit_code": None if self._status is None else os.waitstatus_to_exitcode(self._status),
            "message": self._message(),
            "duration": _millis(self._duration or now - self.started),
            "frozen": _millis(stood),
            "thawed_ago": thawed_ago,
            "output": self.capture.total,
            "dropped": self.capture.dropped,
            "killed": len({pid for pid, _ in self._killed} - {self.pid}),
            "survivors": self.survivors,
        }

    def _gone(self, now: float) -> bool:
        ended, left = processes.reap()
        if self.pid in ended:
            self._leader_ended(ended[self.pid], now)
        if not left:
            self.survivors = 0
        return not left

    def _leader_ended(self, status: int, now: float) -> None:
        self._status = status
        self._reaped_at = now
        self._duration = now - self.started
        if self.reason is None:  # by itself; whatever it left behind must not live on
            self.reason = "exit"
            self._kill_now(now)

    def _watch_limits(self, now: float) -> None:
        if self._frozen_since is not None or self._killing_since is not None:
            return
        if self._kill_at is not None:
            if now >= self._kill_at:
                self._kill_now(now)
        elif now >= self._timeout_at:
            self.stop("timeout", now)
        elif self.order.stall is not None and now >= self._quiet_since + self.order.stall:
            self.stop("stall", now)

    def _kill_now(self, now: float) -> None:
        if self._killing_since is None:
            self._killing_since = self._next_pass = now

    def _pass(self, now: float) -> None:
        people = processes.everyone()
        tree = processes.beneath([os.getpid()], people)
        self._killed.update(process.identity for process in processes.kill(tree, people))
        self._kill_group(now)
        since = now if self._killing_since is None else self._killing_since
        self._pause = 1.0 if now - since > STUBBORN else min(self._pause * 2, _LAST_PAUSE)
        self._next_pass = now + self._pause

    def _kill_group(self, now: float) -> None:
        """The leader's group in one step: a program that forks and ends at once is in no look, but in its group.

        Only while the number cannot have come round to a stranger: until shortly after the leader was reaped.
        """
        if self._reaped_at is not None and now - self._reaped_at > GROUP_KNOWN:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def _message(self) -> str:
        if self.survivors:
            return f"{self.survivors} of its processes cannot be killed"
        if self.reason == "timeout":
            return f"stopped after its time limit of {self.order.timeout:g} s"
        if self.reason == "stall":
            return f"stopped after {self.order.stall or 0:g} s without output"
        return ""


def _millis(seconds: float) -> int:
    return max(0, round(seconds * 1000))
