"""A runner that speaks up: it unwinds the attempt when it was stopped from outside, and remembers the last thaw.

Must not settle anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from workers import sweep
from workers.endings import StopAttempt, Stopped
from workers.plugins import Command, Ended, Runner

log = structlog.get_logger()


class WatchedRunner:
    """Wraps the guard's runner for one attempt. `task_key` is `plan/task`.

    `redact`: spellings of the attempt's secrets. No command's output reaches a log with one: what an agent has put
    into its result, a check may print. `expect`: told how many seconds this process may now seem to stand still.
    """

    def __init__(
        self,
        inner: Runner,
        task_key: str,
        redact: Sequence[str] = (),
        expect: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._inner = inner
        self._task_key = task_key
        self._redact = redact
        self._expect = expect
        self._thawed_at: float | None = None

    def run(self, command: Command) -> Ended:
        """As the inner runner; raises StopAttempt for a command that was stopped from outside."""
        self._expect((command.timeout + command.grace) / 1000)
        ended = self._inner.run(replace(command, redact=self._redact))
        self._expect(0.0)
        if ended.survivors:
            self._insist(ended.survivors)
        if ended.thawed_ago is not None:
            self._thawed_at = time.monotonic() - ended.thawed_ago / 1000
        if ended.reason in ("cancelled", "fenced", "frozen"):
            raise StopAttempt(Stopped("cancelled" if ended.reason == "cancelled" else "fenced"))
        return ended

    @property
    def thawed_ago(self) -> int | None:
        """Milliseconds since the last thaw of this attempt, None when it was never frozen."""
        return None if self._thawed_at is None else int((time.monotonic() - self._thawed_at) * 1000)

    def _insist(self, survivors: int) -> None:
        """Keep the claim and keep trying: nothing is released while a process of the attempt lives."""
        told = 0.0
        while survivors:
            if time.monotonic() - told > 60:
                told = time.monotonic()
                log.error("process.unkillable", task=self._task_key, survivors=survivors)
            time.sleep(0.5)
            survivors = sweep.kill_marked(sweep.TASK_MARK, self._task_key).survivors
