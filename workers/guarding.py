"""What the guard decides: one command at a time, two channels, one lease. Standard library only.

Must not know Redis, RQ, plans or tasks: an attempt is a name, a lease is a deadline of the monotonic clock. Time
enters as `now`, in seconds of that clock; what waits for it is in `workers/guard.py`.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from workers import processes
from workers.channel import Channel, Message, note
from workers.doomed import Horse
from workers.freezer import Freezer
from workers.lease import Lease
from workers.spawn import BadOrder, Order, Unstartable, start
from workers.watched import Watched

REMEMBERED = 1000  # attempts that were killed before they ran
RECHECK = 0.25  # seconds between looks at a tree that stands still
RETRY = 0.02  # seconds until the next look at one that does not yet
BUSY = "the guard still has a command of {}"


class Guard:
    """One command at a time, two channels, one lease."""

    def __init__(self, main: Channel, horse: Channel, main_pid: int, frozen_limit: float, leader: int | None) -> None:
        self._main = main
        self._horse_channel = horse
        self._main_pid = main_pid
        self._frozen_limit = frozen_limit
        self._leader = leader
        self._lease = Lease()
        self._freezer = Freezer()
        self._frozen_since: float | None = None
        self._frozen_look = 0.0
        self._command: Watched | None = None
        self._postponed: tuple[Order, float] | None = None  # a run that arrived while frozen, and when
        self._stuck: Watched | None = None  # reported with survivors; still being killed
        self._horse: Horse | None = None
        self._waiting: list[str] = []  # ids of kills that wait for the proof
        self._killed: dict[str, str] = {}  # attempt -> reason, oldest first
        self._ending = False
        self._quit = False

    @property
    def finished(self) -> bool:
        """Main is gone or has said good-bye, and nothing lives any more."""
        if not self._ending or self._command is not None or self._stuck is not None:
            return False
        return self._quit or self._horse is None

    def step(self, now: float, main_alive: bool) -> None:
        """React to everything that has arrived and to the time. Messages come first: after a late wake-up of this
        process the beats that wait in the socket count before the old deadline does."""
        for message in self._main.receive():
            self._heed(message, self._from_main, now)
        if not self._ending and (self._main.closed or not main_alive):
            self._end(now)
        self._keep_lease(now)
        for message in self._horse_channel.receive():
            self._heed(message, self._from_horse, now)
        self._attend(now)
        if self._ending and self._horse is not None and not self._horse.doomed.strike():
            self._drop_horse()

    def wake_at(self, now: float) -> float | None:
        """When the next step is due although nothing happens."""
        times: list[float | None] = []
        if self._ending or self._stuck is not None:
            times.append(now + (0.02 if self._ending and self._stuck is None else 0.2))
        elif self._frozen_since is not None:
            times.append(self._frozen_look)
        elif self._lease.deadline is not None:
            times.append(self._lease.deadline)
        if self._command is not None:
            times.append(self._command.wake_at())
        return min((at for at in times if at is not None), default=None)

    def sources(self) -> dict[int, int]:
        """Descriptors to poll, and for what."""
        wanted = {}
        for channel in (self._main, self._horse_channel):
            if not channel.closed:
                wanted[channel.fd] = select.POLLIN | (select.POLLOUT if channel.pending else 0)
        if self._command is not None and self._command.capture.source is not None:
            wanted[self._command.capture.source] = select.POLLIN
        return wanted

    def flush(self) -> None:
        """Send what had to wait."""
        self._main.flush()
        self._horse_channel.flush()

    def _heed(self, message: Message, handle: Callable[[Message, float], None], now: float) -> None:
        try:
            handle(message, now)
        except ValueError as error:
            note(f"message {message.get('op')} ignored: {error}")

    # What main says

    def _from_main(self, message: Message, now: float) -> None:
        op, ident = message["op"], str(message.get("id", ""))
        if op == "beat":
            self._lease.renew(message)
            self._meet_horse(message.get("horse"))
        elif op == "kill":
            self._kill(str(message.get("attempt")), str(message.get("reason")), ident, now)
        elif op == "killall":
            self._kill_all(ident, now)
        elif op == "ping":
            running = None if self._command is None else self._command.order.attempt
            self._main.send({"op": "pong", "id": ident, "running": running, "frozen": self._frozen_since is not None})
        elif op == "quit":
            self._quit = True
            self._end(now)
        else:
            raise ValueError("unknown")

    def _kill(self, attempt: str, reason: str, ident: str, now: float) -> None:
        if reason not in ("cancelled", "fenced"):
            raise ValueError(f"unknown reason {reason}")
        self._killed[attempt] = reason
        if len(self._killed) > REMEMBERED:
            del self._killed[next(iter(self._killed))]
        if self._postponed is not None and self._postponed[0].attempt == attempt:
            self._refuse(self._postponed[0].id, reason)
            self._postponed = None
        if self._command is not None and self._command.order.attempt == attempt:
            self._command.stop(reason, now, at_once=reason == "fenced")
            self._waiting.append(ident)
        elif self._stuck is not None and self._stuck.order.attempt == attempt:
            self._main.send({"op": "gone", "id": ident, "survivors": self._stuck.survivors})
        else:
            self._main.send({"op": "gone", "id": ident, "survivors": 0})

    def _kill_all(self, ident: str, now: float) -> None:
        self._horse_channel.forget()  # whoever spoke there is dead; half a line must not spoil the next horse's
        self._postponed = None
        self._drop_horse()
        if self._command is not None:
            self._command.stop("cancelled", now, at_once=True)
            self._waiting.append(ident)
        else:
            survivors = 0 if self._stuck is None else self._stuck.survivors
            self._main.send({"op": "gone", "id": ident, "survivors": survivors})

    def _meet_horse(self, pid: object) -> None:
        if pid is not None and not isinstance(pid, int):
            raise ValueError("`horse` must be a pid")
        if self._horse is not None and (self._horse.pid != pid or not self._horse.alive):
            self._drop_horse()  # also when a new horse has the number of the dead one
        if self._horse is None and pid is not None:
            self._horse = Horse.find(pid, self._main_pid)
            self._freezer.horse = None if self._horse is None else self._horse.identity

    def _drop_horse(self) -> None:
        self._horse = self._freezer.horse = None

    def _end(self, now: float) -> None:
        self._ending = True
        self._postponed = None
        if self._command is not None:
            self._command.stop("fenced", now, at_once=True)

    # What the horse says

    def _from_horse(self, message: Message, now: float) -> None:
        if message["op"] == "run":
            try:
                order = Order(message)
            except BadOrder as error:  # answered, or the horse would wait for ever
                self._refuse(str(message.get("id", "")), "spawn", str(error))
                return
            self._run(order, now)
        elif message["op"] == "stop":
            self._stop(message.get("id"), now)
        else:
            raise ValueError("unknown")

    def _stop(self, ident: object, now: float) -> None:
        if self._postponed is not None and self._postponed[0].id == ident:
            self._refuse(self._postponed[0].id, "cancelled")
            self._postponed = None
        elif self._command is not None and self._command.order.id == ident:
            self._command.stop("cancelled", now)

    def _run(self, order: Order, now: float) -> None:
        other = self._command or self._stuck
        if order.attempt in self._killed:
            self._refuse(order.id, self._killed[order.attempt])
        elif self._ending:
            self._refuse(order.id, "fenced")
        elif other is not None or self._postponed is not None:
            known = other.order.attempt if other is not None else "another run"
            self._refuse(order.id, "spawn", BUSY.format(known))
        elif self._frozen_since is not None:
            self._postponed = (order, now)
        else:
            self._start(order, now)

    def _start(self, order: Order, now: float) -> None:
        try:
            pid, capture = start(order)
        except Unstartable as error:
            self._refuse(order.id, "spawn", str(error))
            return
        self._command = Watched(order, pid, capture, now)
        self._write_leader(pid)
        self._horse_channel.send({"op": "started", "id": order.id, "pid": pid})

    def _refuse(self, ident: str, reason: str, text: str = "") -> None:
        self._horse_channel.send({"op": "ended", "id": ident, "reason": reason, "exit_code": None, "message": text})

    # The command and its end

    def _attend(self, now: float) -> None:
        if self._command is not None and self._command.attend(now):
            ended, self._command = self._command, None
            self._answer(ended, now)
        elif self._stuck is not None and self._stuck.attend(now) and self._stuck.survivors == 0:
            self._stuck = None
            self._write_leader(None)
        elif self._command is None and self._stuck is None:
            processes.reap()

    def _answer(self, ended: Watched, now: float) -> None:
        if ended.survivors:
            self._stuck = ended
        else:
            self._write_leader(None)
        self._horse_channel.send({"op": "ended", "id": ended.order.id, **ended.report(now)})
        for ident in self._waiting:
            self._main.send({"op": "gone", "id": ident, "survivors": ended.survivors})
        self._waiting.clear()
        self._frozen_look = now  # a horse that had to wait for this end may go on at once

    def _write_leader(self, pid: int | None) -> None:
        """Leave the leader's identity on disk: the sweep finds it there when this process dies with main."""
        if self._leader is None:
            return
        process = None if pid is None else processes.look(pid)
        line = "" if process is None else f"{process.pid} {process.start}"
        try:
            os.pwrite(self._leader, line.ljust(63).encode("ascii") + b"\n", 0)
        except OSError as error:
            note(f"cannot write the leader's pid: {error.strerror}")

    # The lease

    def _keep_lease(self, now: float) -> None:
        if self._ending:
            return
        if self._lease.lapsed(now):
            self._freeze(now)
        elif self._frozen_since is not None:
            self._rule(now)

    def _freeze(self, now: float) -> None:
        if self._frozen_since is None:
            self._frozen_since, self._frozen_look = now, now
            self._main.send({"op": "froze", "id": ""})
        if now >= self._frozen_look:
            self._freezer.freeze()
            self._frozen_look = now + (RECHECK if self._freezer.settled else RETRY)
        if self._command is not None:
            self._command.froze(now)
            if now - self._frozen_since >= self._frozen_limit:
                self._command.stop("frozen", now, at_once=True)

    def _rule(self, now: float) -> None:
        """Frozen, and the lease is confirmed again: go on, die, or wait for a beat that knows this attempt."""
        self._frozen_look = now + RECHECK
        if self._command is not None:
            if self._command.reason is not None:
                return  # it is being killed; the horse waits for its end
            ruling = self._lease.ruling(self._command.order.attempt, self._command.started)
            if ruling == "fenced":
                self._command.stop("fenced", now, at_once=True)
            if ruling != "held":
                return
        self._freezer.thaw()
        self._frozen_since = None
        self._main.send({"op": "thawed", "id": ""})
        if self._command is not None:
            self._command.thawed(now)
        self._start_postponed(now)

    def _start_postponed(self, now: float) -> None:
        if self._postponed is None:
            return
        (order, since), self._postponed = self._postponed, None
        if self._lease.ruling(order.attempt, since) == "fenced":
            self._refuse(order.id, "fenced")
        else:
            self._run(order, now)
