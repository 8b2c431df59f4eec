"""Following a plan to its end: one line per state change, one a minute for the oldest running task, the last words.

Shared by `run` and `wait`. Must not start or stop anything.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click
import redis

from scheduler import errors
from scheduler.model import PLAN_ENDED, EventView, PlanState, PlanView, TaskState
from scheduler.report.outcome import needs_person
from scheduler.report.progress import Progress, line_of
from scheduler.store import Views

MINUTE = 60.0
LOOK = 0.2
NO_WORKER = 60.0


class Follower:
    """Prints what happens to one plan."""

    def __init__(self, views: Views, plan: str, *, quiet: bool = False) -> None:
        self.views = views
        self.plan = plan
        self.quiet = quiet
        self.position = "0-0"
        self.progress = Progress()
        self.last_minute = time.monotonic()
        self.lonely_since: float | None = None

    def skip_history(self) -> None:
        """Begin with what happens from now on; what was before is only counted."""
        for event in self.views.events(self.plan):
            self.progress.see(event)
            self.position = event.id

    def until_settled(self, wait: float, care: Callable[[], None]) -> PlanView:
        """Follow until the plan has ended, or only a person can move it for `wait` seconds.

        `care` is called often, also while the server is away: a supervisor's duties; it may raise.
        """
        patience = time.monotonic() + wait
        while True:
            care()
            try:
                self._events(LOOK)
                view = self.views.plan(self.plan)
                if view.state in PLAN_ENDED or view.state is PlanState.DEADLOCKED:
                    self._events(0.001)
                    return view
                self._lonely(view)
            except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
                time.sleep(LOOK)
                continue
            except errors.NotFound:
                raise errors.EpochMismatch(f"plan {self.plan} is gone from the store") from None
            if not needs_person(view):
                patience = time.monotonic() + wait
            elif time.monotonic() >= patience:
                return view
            self._minute()

    def _events(self, seconds: float) -> None:
        for event in self.views.follow(self.plan, self.position, seconds):
            self.position = event.id
            self.progress.see(event)
            self._print(event)

    def _print(self, event: EventView) -> None:
        text = line_of(event, self.progress)
        if text and not self.quiet:
            colour = _COLOURS.get(event.event)
            styled = click.style(text, fg=colour) if colour and sys.stderr.isatty() else text
            click.echo(styled, err=True)

    def _minute(self) -> None:
        if time.monotonic() - self.last_minute < MINUTE or self.quiet:
            return
        self.last_minute = time.monotonic()
        text = self.progress.oldest(self.views.tasks(self.plan, self.progress.running()), self._server_time())
        if text:
            click.echo(text, err=True)

    def _server_time(self) -> int:
        seconds, micros = self.views.client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def _lonely(self, view: PlanView) -> None:
        """A pool with ready tasks and no live worker for a minute is not live: say so and end."""
        if view.state is not PlanState.RUNNING or view.counts[TaskState.PENDING] == 0:
            self.lonely_since = None
            return
        empty = self.views.lonely_pools(self.plan)
        if not empty:
            self.lonely_since = None
            return
        self.lonely_since = self.lonely_since or time.monotonic()
        if time.monotonic() - self.lonely_since > NO_WORKER:
            raise errors.Infrastructure(
                f"no worker has served pool {', '.join(empty)} for {NO_WORKER:.0f} s, and tasks wait for it",
                hint=f"Start one: `dagward worker --pool {empty[0]}`. The plan stays as it is.",
            )


_COLOURS = {"accept": "green", "fail": "red", "retry": "yellow", "plan.complete": "green", "plan.fail": "red"}
