"""Makes the command's tree and the horse stand still, and lets them go on. Standard library only.

Must not know when: the guard decides that by the lease.
"""

from __future__ import annotations

import os
import signal

from workers import processes
from workers.processes import Process

_LOOKS = 20


class Freezer:
    """Stops everything beneath this process, and the horse with everything beneath it.

    Only what it stopped itself is continued: what an agent had stopped before stays stopped.
    """

    def __init__(self) -> None:
        self.horse: tuple[int, int] | None = None  # its identity
        self.settled = False  # the last look found nobody who was not told
        self._stopped: set[tuple[int, int]] = set()

    def freeze(self) -> None:
        """Stop what moves. Call again while `settled` is false, and now and then: a process may wake up late."""
        stopped, self.settled = processes.stop(self._targets, _LOOKS)
        self._stopped |= stopped

    def thaw(self) -> None:
        """Continue what was stopped here, children first, so that no parent sees a stopped child."""
        mine = [process for process in self._targets(processes.everyone()) if process.identity in self._stopped]
        processes.send(reversed(mine), signal.SIGCONT)
        self._stopped.clear()
        self.settled = False

    def _targets(self, people: list[Process]) -> list[Process]:
        me = os.getpid()
        targets = processes.beneath([me], people)
        if self.horse is not None:
            horse = [process for process in people if process.identity == self.horse and process.alive]
            targets += [*horse, *processes.beneath([process.pid for process in horse], people, spare=[me])]
        return targets
