"""Worker main: the duty that renews. A forking RQ worker whose main process watches lease, horse and guard.

It runs no agent code and no check. Horse and guard are watched by pidfd; renewals go over an impatient connection;
after each confirmed one the guard is told until when it may let the tree run. Linux only (pidfd, subreaper).
"""

from __future__ import annotations

import os
import random
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import structlog
from redis.exceptions import RedisError

from scheduler import errors, lifecycle
from scheduler.model import Claim, Executor, Failure, FailureClass, Held, Renewal, TaskState
from scheduler.store import Store
from workers import processes, sweep
from workers.desk import DRAIN, HAND_BACK, WORK, Desk
from workers.pulse import DEAF, Pulse
from workers.tree import Frozen, Gone, Guard, GuardGone, Pong, kill_descendants

log = structlog.get_logger()

PROOF = 15.0


@dataclass
class Announced:
    """What the horse said that it is doing."""

    lease: str
    token: str
    claim: Claim
    in_process: bool
    ends: float  # monotonic; when an in-process attempt is over its limit


class Keeper:
    """Renews one session and stops what must be stopped. `store` is impatient: a call fails rather than waits."""

    def __init__(self, desk: Desk, store: Store, executor: Executor) -> None:
        self.desk = desk
        self.store = store
        self.executor = executor
        timing = desk.settings.timing
        self.lease = timing.lease / 1000
        self.every = timing.renewal / 1000
        self.freeze = timing.freeze / 1000
        self.confirmed = time.monotonic()
        self.held: tuple[Held, ...] = ()
        self.now_doing: Announced | None = None
        self.killed: dict[str, float] = {}
        self.pinged: tuple[str, float] | None = None
        self.frozen = False
        self.pulse = Pulse(stopped_limit=max(2.0, self.lease / 2))
        self.why_killed: FailureClass | None = None
        self.story = ""  # what is known of a horse that ended badly
        self.stop_at: float | None = None
        self.told_drain = False

    @property
    def guard(self) -> Guard:
        """The guard of this worker."""
        return self.desk.guard

    # Renewing

    def renew(self, horse: int | None) -> Renewal | None:
        """One renewal and its beat. None when the server did not answer."""
        sent = time.monotonic()
        try:
            renewal = self.store.renew(self.desk.session)
        except (RedisError, OSError) as error:
            log.warning("lease.unconfirmed", reason=str(error)[:200], seconds=round(sent - self.confirmed, 2))
            return None
        if time.monotonic() - sent > self.every:
            return None  # the answer is too old to promise anything
        self.confirmed = sent
        self.held = renewal.held
        for lease in renewal.fenced:
            log.warning("lease.fenced", lease=lease)
            self.guard.kill(lease, "fenced")
        self.guard.beat(sent + self.freeze, {one.id for one in renewal.held}, horse, sent)
        return renewal

    def watch(self, horse: int) -> int:
        """Until the horse ends: renew, pass on what it must know. Returns its wait status."""
        pidfd = os.pidfd_open(horse)
        due = 0.0
        try:
            self.guard.beat(self.confirmed + self.freeze, {one.id for one in self.held}, horse, self.confirmed)
            while True:
                now = time.monotonic()
                late = now - due > self.every and due > 0
                if now >= due:
                    done = self.renew(horse)
                    due = now + (self.every if done else min(self.every, 0.2))
                    if done and not done.alive:
                        self._end_horse(horse, FailureClass.LOST)
                    self._check_guard(late)
                self._enforce(horse)
                if self._forsaken():
                    self._end_horse(horse, None)
                if self._wait(pidfd, min(due, now + 0.25)):
                    break
        except GuardGone:
            self._guard_lost(horse)
        finally:
            os.close(pidfd)
        _, status, _ = os.wait4(horse, 0)
        return status

    def _wait(self, pidfd: int, until: float) -> bool:
        """Wait for something to happen. True when the horse has ended."""
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(self.guard.readable, select.POLLIN)
        poll.register(self.desk.line.read_fd, select.POLLIN)
        if self.guard.writable_wanted:
            poll.register(self.guard.readable, select.POLLIN | select.POLLOUT)
        ready = {fd for fd, _ in poll.poll(max((until - time.monotonic()) * 1000, 0))}
        if self.guard.writable_wanted:
            self.guard.flush()
        if self.guard.readable in ready:
            self._hear()
        for message in self.desk.line.take():
            if "crashed" in message:
                self.why_killed, self.story = FailureClass.INFRASTRUCTURE, str(message["crashed"])
                continue
            if "expect" in message:
                self.pulse.expect(cast("float", message["expect"]), time.monotonic())
                continue
            claim = Claim.model_validate(message["claim"])
            limit = cast("int", message["limit"]) / 1000
            self.now_doing = Announced(
                str(message["lease"]),
                str(message["token"]),
                claim,
                bool(message["in_process"]),
                time.monotonic() + limit,
            )
            self.pulse.expect(limit if message["in_process"] else 0.0, time.monotonic())
        return pidfd in ready

    def _hear(self) -> None:
        for report in self.guard.messages():
            if isinstance(report, Pong) and self.pinged and report.id == self.pinged[0]:
                self.pinged = None
            elif isinstance(report, Frozen):
                self.frozen = report.frozen
                log.warning("tree.frozen" if report.frozen else "tree.thawed")
            elif isinstance(report, Gone) and report.survivors:
                log.error("process.unkillable", survivors=report.survivors)

    def _check_guard(self, late: bool) -> None:
        """A guard that does not answer is killed; its orphans fall to us. Our own lateness excuses it once."""
        now = time.monotonic()
        if self.pinged is None:
            self.pinged = (self.guard.send_ping(), now)
        elif late:
            self.pinged = (self.pinged[0], now)
        elif now - self.pinged[1] > max(2.0, self.lease / 2):
            log.error("guard.silent", seconds=round(now - self.pinged[1], 1))
            self.guard.end()
            raise GuardGone("the guard did not answer")

    # Stopping

    def _enforce(self, horse: int) -> None:
        """Cancels, drains and the limit of in-process attempts."""
        self._drain()
        stop = {one.id for one in self.held if one.cancel}
        doing = self.now_doing
        if self.desk.flag.value == HAND_BACK:
            stop |= {one.id for one in self.held} | ({doing.lease} if doing else set())
        for lease in stop:
            if lease not in self.killed:
                self.killed[lease] = time.monotonic()
                self.guard.kill(lease, "cancelled")
        now = time.monotonic()
        hung = self.pulse.hung(now, stopped=self.stopped(horse), frozen=self.frozen)
        if hung is not None:
            log.error("horse.hung", reason=hung)
            self.story = hung
            self._end_horse(horse, FailureClass.INFRASTRUCTURE)
        if doing is None:
            return
        grace = self.desk.settings.grace / 1000 + (0.0 if doing.in_process else DEAF)
        if doing.lease in self.killed and now > self.killed[doing.lease] + grace:
            self._end_horse(horse, None)
        elif doing.in_process and now > doing.ends and not self.frozen:
            self._end_horse(horse, FailureClass.TIMEOUT)

    def _drain(self) -> None:
        flag = self.desk.flag.value
        if flag == WORK:
            return
        if not self.told_drain:
            self.told_drain = True
            self.stop_at = time.monotonic() + self.desk.settings.drain / 1000
            try:
                self.store.present(self.desk.session, "draining")
                self.store.wake(self.desk.session)
            except (RedisError, OSError) as error:
                log.warning("drain.untold", reason=str(error)[:200])
        if flag == DRAIN and self.stop_at is not None and time.monotonic() > self.stop_at:
            self.desk.flag.set(HAND_BACK)

    def _end_horse(self, horse: int, why: FailureClass | None) -> None:
        self.why_killed = why
        try:
            os.kill(horse, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _guard_lost(self, horse: int) -> None:
        """The guard is gone: its trees fell to us. Kill them and the horse, then go on with a new guard."""
        log.error("guard.lost")
        self._end_horse(horse, FailureClass.INFRASTRUCTURE)

    # Settling for a dead horse

    def ready(self) -> None:
        """Before a job: a guard that has ended meanwhile is replaced."""
        if select.select([self.guard.pidfd], [], [], 0)[0]:
            log.error("guard.lost")
            self._new_guard()

    def after(self, status: int) -> None:
        """The horse has ended. Whatever it still holds is settled for it, once its trees are proven gone.

        A horse that ended well holds nothing; the server is asked all the same, because an exception inside RQ also
        ends with status 0.
        """
        self.now_doing = None
        self.killed.clear()
        self.pulse.rest()
        renewal = self._insist()
        if status == 0 and self.why_killed is None and not renewal.held:
            return
        log.warning("horse.died", status=status, reason=self.why_killed, story=self.story)
        self._prove_gone()
        why, self.why_killed = self.why_killed, None
        renewal = self._insist()
        story, self.story = self.story or ("the guard died" if why is FailureClass.INFRASTRUCTURE else ""), ""
        for one in renewal.held:
            self._settle(one, why, story or f"its process died (status {status})")
        for claim in self._unstarted():
            self._quietly(partial(self.store.hand_back, claim, "", "the worker died", counted=True))

    def _insist(self) -> Renewal:
        """A renewal, however long the server is away. A guard that is gone is replaced on the way."""
        while True:
            try:
                renewal = self.renew(None)
            except GuardGone:
                self._new_guard()
                continue
            if renewal is not None:
                return renewal
            self._give_up()
            time.sleep(min(0.2, self.every))

    def _forsaken(self) -> bool:
        """Asked to stop, and without a server for two leases."""
        return self.desk.flag.value != WORK and time.monotonic() - self.confirmed > 2 * self.lease

    def _give_up(self) -> None:
        """A worker that was asked to stop does not wait for a server that is gone: what starts here next sweeps it."""
        if self._forsaken():
            raise errors.StoreUnavailable("the server did not come back before this worker had to end")

    def _unstarted(self) -> tuple[Claim, ...]:
        try:
            return self.store.present(self.desk.session, "busy").claims
        except (RedisError, OSError):
            return ()

    def _prove_gone(self) -> None:
        """Nothing is released before no descendant lives. Renewals go on meanwhile, so the claim is kept."""
        told = 0.0
        try:
            ident = self.guard.kill_all()
            while (gone := self.guard.await_gone(ident, self.every)) is None or gone.survivors:
                self.renew(None)
                if gone is not None:
                    ident = self.guard.kill_all()
        except GuardGone:
            self._new_guard()
        while kill_descendants({self.guard.pid}, timeout=self.every / 2).survivors:
            if time.monotonic() - told > 60:
                told = time.monotonic()
                log.error("process.unkillable")
            self._insist()

    def _new_guard(self) -> None:
        self.guard.end()
        self.guard.close()
        kill_descendants((), timeout=PROOF)
        settings = self.desk.settings
        self.desk.guard = Guard.spawn(
            frozen_limit=settings.frozen_limit / 1000,
            leader_file=sweep.leader_file(settings.state_dir, self.desk.session),
        )
        self.pinged = None
        self.frozen = False
        sweep.register(settings.state_dir, self.desk.session, self.desk.guard.pid)

    def _settle(self, one: Held, why: FailureClass | None, story: str) -> None:
        claim = one.claim(self.desk.session)
        if one.cancel:
            self._quietly(lambda: self.store.cancelled(claim, one.token))
        elif why is None and self.desk.flag.value == HAND_BACK:
            self._quietly(lambda: self.store.hand_back(claim, one.token, "the worker was stopped"))
        elif one.state is TaskState.VERIFYING:
            self._quietly(lambda: self.store.hand_back(claim, one.token, f"its checks: {story}", counted=True))
        elif why is FailureClass.INFRASTRUCTURE:
            self._quietly(lambda: self.store.hand_back(claim, one.token, story, counted=True))
        else:
            kind = why or FailureClass.LOST
            reason = "over its time limit" if kind is FailureClass.TIMEOUT else story
            failure = Failure(kind=kind, reason=reason)
            again = lifecycle.retriable(kind)
            self._quietly(
                lambda: self.store.fail(claim, one.token, failure, again=again, jitter=random.random())  # noqa: S311
            )

    def _quietly(self, call: Callable[[], object]) -> None:
        """A settlement that must be told to the server, however long it takes, and may be refused as stale."""
        while True:
            try:
                call()
            except (RedisError, OSError):
                self.renew(None)
                self._give_up()
                time.sleep(0.2)
                continue
            except errors.Refusal as error:
                log.warning("attempt.stale", outcome="stale_attempt", reason=error.message)
            return

    def stopped(self, horse: int) -> bool:
        """Whether something has stopped the horse (SIGSTOP) that was not our guard."""
        found = processes.look(horse)
        return found is not None and found.stopped and not self.frozen
