"""What one worker process has at hand for its attempts: settings, store, trees, the guard's runner. Made in the horse.

Must not decide anything. `Flag` and `Line` are how main and horse speak: one byte of shared memory, one pipe of lines.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from scheduler.model import Claim, Json
from scheduler.settings import Settings
from scheduler.store import Store, Views, connect
from workers.plugins import Runner
from workers.tree import Guard
from workers.workspace import Slot, Snapshots

WORK, DRAIN, HAND_BACK = 0, 1, 2
"""What a worker was asked to do: go on; finish the attempt and stop; stop the attempt and hand it back."""


class Flag:
    """One byte that main writes and its horse reads."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)

    @property
    def value(self) -> int:
        """WORK, DRAIN or HAND_BACK."""
        return self._memory[0]

    def set(self, value: int) -> None:
        """Raise the flag; it is never lowered."""
        self._memory[0] = max(value, self._memory[0])


class Line:
    """A pipe on which the horse tells main what it is about to do. Lines are short, so a write is atomic."""

    def __init__(self) -> None:
        self.read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._rest = b""

    def tell(self, message: Mapping[str, Json]) -> None:
        """One message to main."""
        os.write(self._write_fd, json.dumps(message).encode() + b"\n")

    def take(self) -> list[dict[str, Json]]:
        """What has arrived."""
        try:
            data = self._rest + os.read(self.read_fd, 65536)
        except BlockingIOError:
            return []
        *lines, self._rest = data.split(b"\n")
        return [json.loads(line) for line in lines]


@dataclass
class Desk:
    """Everything an attempt needs in the horse. Built before the fork, used after it: connections open on first use."""

    settings: Settings
    session: str
    name: str
    host: str
    flag: Flag
    line: Line
    guard: Guard
    slot: Slot
    redact: Callable[[str], str] = str  # of the attempt at hand; what it says must name no secret of it
    _runners: dict[str, Runner] = field(default_factory=dict)

    @cached_property
    def store(self) -> Store:
        """The patient store of this process."""
        return Store(connect(self.settings.store_config()), self.settings.keys, self.settings.timing)

    @cached_property
    def views(self) -> Views:
        """The reading side of the same store."""
        return Views(self.store.client, self.settings.keys)

    @cached_property
    def snapshots(self) -> Snapshots:
        """Scratch results of this state folder."""
        return Snapshots(self.settings.state_dir)

    def runner(self, lease: str) -> Runner:
        """The guard's runner for one ownership."""
        if lease not in self._runners:
            self._runners.clear()
            self._runners[lease] = self.guard.horse_side(lease)
        return self._runners[lease]

    def expect(self, seconds: float) -> None:
        """Tell main that a command may run for so long before this process gets on; 0: it has ended."""
        self.line.tell({"expect": seconds})

    def announce(self, claim: Claim, token: str, lease: str, *, in_process: bool, limit: int) -> None:
        """Tell main which attempt begins, and whether main itself must limit it (milliseconds)."""
        self.line.tell(
            {
                "lease": lease,
                "token": token,
                "claim": claim.model_dump(mode="json"),
                "in_process": in_process,
                "limit": limit,
            }
        )
