"""The daemon: preflight, then tick = recover -> settle -> claim -> dispatch, woken by events; a slow timer is the net.

It only recovers, settles, claims and dispatches; everything slow or untrusted runs in another process. Several of them
side by side need no leader: each script judges for itself. Must not know plan files, git or how an agent runs.
"""

from __future__ import annotations

import random
import secrets
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata

import structlog

import scheduler
from scheduler import errors, gates
from scheduler.dispatch import Dispatch, RqDispatch
from scheduler.settings import Settings, epoch_file
from scheduler.store import Store, Views, connect, open_store, preflight, rq_connection

log = structlog.get_logger()

STAGING_TTL = 3_600_000
STOP_SECONDS = 5


def own_package() -> None:
    """Fail loudly when another distribution's package `scheduler` was imported instead of ours."""
    if getattr(scheduler, "DISTRIBUTION", None) != "dagward":
        raise errors.Infrastructure(
            f"the imported package `scheduler` ({scheduler.__file__}) is not dagward's",
            hint="Install dagward into a virtual environment of its own.",
        )
    try:
        metadata.version("dagward")
    except metadata.PackageNotFoundError as error:
        raise errors.Infrastructure("dagward is not installed", hint="pip install dagward") from error


@dataclass
class Sightings:
    """Expired leases seen so far. A session is due after two sightings of the same expiry, one renewal apart.

    `quiet` holds recovery back for one lease after the daemon itself, or its way to the server, was away: workers
    may have been unable to renew for the same reason.
    """

    lease: float
    renewal: float
    seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    quiet_until: float = 0.0

    def outage(self, now: float) -> None:
        """Forget every sighting and stay quiet for one lease."""
        self.seen.clear()
        self.quiet_until = now + self.lease

    def due(self, expired: dict[str, str], now: float) -> list[tuple[str, str]]:
        """Sessions to recover now, given those that the server sees expired (session -> expiry)."""
        if now < self.quiet_until:
            return []
        self.seen = {
            session: self.seen[session] if session in self.seen and self.seen[session][0] == expiry else (expiry, now)
            for session, expiry in expired.items()
        }
        return [(session, expiry) for session, (expiry, first) in self.seen.items() if now - first >= self.renewal]


class Stop(Exception):
    """A signal ends the wait for the bell; the connection that waited is not used again."""


class Daemon:
    """One scheduler process. `only` restricts claims to one plan. Time and randomness come from outside.

    `recognise` raises when the store is no longer the one that we opened: an emptied one looks like one without work.
    """

    def __init__(
        self,
        store: Store,
        dispatch: Dispatch,
        *,
        only: str = "",
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        recognise: Callable[[], object] = lambda: None,
    ) -> None:
        self.store = store
        self.views = Views(store.client, store.keys)
        self.dispatch = dispatch
        self.only = only
        self.clock = clock
        self.chance = chance
        self.recognise = recognise
        self.name = secrets.token_hex(4)
        self.calls = 0
        timing = store.timing
        self.sightings = Sightings(timing.lease / 1000, timing.renewal / 1000)
        self.sightings.outage(clock())
        self.stopping = False
        self.listening = False
        self.next_look = 0.0

    def tick(self) -> int:
        """One pass. Returns how many attempts were dispatched."""
        self.recover()
        self.settle()
        return self.claim()

    def recover(self) -> None:
        """Take back claims that never started and sessions that stopped renewing."""
        for member in self.store.expire():
            log.info("claim.expired", task=member)
        now = self.clock()
        if now < self.next_look:
            return
        self.next_look = now + self.sightings.renewal / 2
        self.recognise()
        server = self.store.now()
        expired = {session: expiry for session, expiry in self.store.sessions() if int(expiry) < server}
        for session, expiry in self.sightings.due(expired, now):
            self._recover(session, expiry)

    def _recover(self, session: str, expiry: str) -> None:
        queue = self.store.queue_of(session)
        try:
            taken = self.store.recover(session, expiry, jitter=self.chance())
        except errors.Conflict:
            return  # it renewed between our look and the script
        log.warning("session.recovered", session=session, tasks=taken)
        self.dispatch.forget(queue)

    def settle(self) -> None:
        """What follows from ended tasks, in bounded steps; every dirty plan gets one step per pass."""
        for plan in self.store.dirty():
            gates.judge(self.store, self.views, plan)
            while self.store.settle(plan) and not self.stopping:
                continue

    def claim(self) -> int:
        """Claim for every idle executor and hand the attempts over."""
        sent = 0
        while not self.stopping:
            self.calls += 1
            claims = self.store.claim(self.name, str(self.calls), only=self.only)
            for claim in claims:
                if not claim.lingering:
                    self.dispatch.send(claim)
                log.info("attempt.dispatched", plan=claim.plan, task=claim.task, attempt=claim.attempt)
            sent += len(claims)
            if not claims:
                break
        return sent

    def pause(self) -> float:
        """Seconds until the next pass is due even if nobody rings."""
        longest = self.sightings.renewal
        due = self.store.next_due()
        if due is None:
            return longest
        return min(longest, max((due - self.store.now()) / 1000, 0.005))

    def run(self) -> None:
        """Tick until asked to stop. A gap in our own time is treated as an outage: nothing is recovered after it."""
        position = self.store.bell()
        cleaned = 0.0
        while not self.stopping:
            before = self.clock()
            self.tick()
            if before - cleaned > STAGING_TTL / 1000:
                cleaned = before
                self.store.unstage(STAGING_TTL)
            wait = self.pause()
            if self.stopping:
                break
            position = self._listen(position, wait)
            if self.clock() - before > wait + max(1.0, self.sightings.renewal):
                log.warning("daemon.delayed", seconds=round(self.clock() - before, 1))
                self.sightings.outage(self.clock())

    def _listen(self, position: str, wait: float) -> str:
        try:
            self.listening = True
            if self.stopping:
                return position
            return self.store.listen(position, wait)
        except Stop:
            return position
        finally:
            self.listening = False

    def stop(self, *_: object) -> None:
        """End after the current step; a signal handler. Waiting for the bell ends at once."""
        self.stopping = True
        if self.listening:
            self.listening = False
            raise Stop


def open_daemon(settings: Settings, only: str = "") -> Daemon:
    """Preflight: our own package, a server that keeps its word, the installation that the state folder knows."""
    own_package()
    config = settings.store_config()
    client = connect(config)
    for warning in preflight(client, config):
        log.warning("store.warned", warning=warning)
    open_store(client, settings.keys, epoch_file(settings))
    store = Store(client, settings.keys, settings.timing)
    store.set_limits(settings.limits)
    known = epoch_file(settings)
    return Daemon(
        store,
        RqDispatch(rq_connection(config)),
        only=only,
        recognise=lambda: open_store(client, settings.keys, known),
    )


def serve(settings: Settings, only: str = "") -> None:
    """Run one daemon in this process until SIGTERM or SIGINT."""
    daemon = open_daemon(settings, only)

    def on_signal(*_: object) -> None:
        signal.alarm(STOP_SECONDS)  # a server that is away must not keep a daemon, which holds nothing
        daemon.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    log.info("daemon.started", plan=only or None, store=settings.store_config().public_url)
    daemon.run()
    log.info("daemon.stopped")
