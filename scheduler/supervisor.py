"""Starts and restarts what a `run` or an `up` needs: the embedded server, one daemon, the workers. Knows no tasks.

Children live in sessions of their own, so a terminal's Ctrl-C reaches only the supervisor; they end with it (parent
death signal), and what they leave falls to it (subreaper). Their logs go to the state folder.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals

import structlog

from scheduler import death, errors
from scheduler.embedded import Embedded
from scheduler.settings import Settings

log = structlog.get_logger()

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0
HEALTHY = 10.0
HOPELESS = 6
WORKER_MEMORY = 60 * 2**20
DAEMON_MEMORY = 80 * 2**20
MEMORY_SHARE = 0.7


@dataclass
class Child:
    """One process that is kept alive."""

    name: str
    argv: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    due: float = 0.0


@dataclass
class Crew:
    """The processes of one `run` (with `plan`) or of an `up`. `workers` maps pool -> how many."""

    settings: Settings
    workers: Mapping[str, int]
    plan: str = ""
    with_daemon: bool = True
    children: list[Child] = field(default_factory=list)
    embedded: Embedded | None = None

    def start(self) -> None:
        """Start everything."""
        death.adopt_orphans()
        folder = self.settings.state_dir / "logs" / (self.plan or "up")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        parent = ("--parent", str(os.getpid()))
        python = (sys.executable, "-P", "-m")
        if self.with_daemon:
            argv = [*python, "scheduler", "--only", self.plan, *parent]
            self.children.append(Child("daemon", argv, folder / "daemon.log"))
        for pool, count in self.workers.items():
            for number in range(1, count + 1):
                name = f"{pool}-{number}"
                argv = [*python, "workers", "--pool", pool, "--plan", self.plan, "--name", name, *parent]
                self.children.append(Child(name, argv, folder / f"{name}.log"))
        for child in self.children:
            self._start(child)

    def _start(self, child: Child) -> None:
        handle = os.open(child.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            child.process = subprocess.Popen(
                list(child.argv),
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=handle,
                start_new_session=True,
                env=child_environment(self.settings),
            )
        finally:
            os.close(handle)
        child.started = time.monotonic()

    def check(self) -> None:
        """Heal the server and restart what died, with back-off. Raises Infrastructure when something never lives."""
        if self.embedded is not None and self.embedded.ensure():
            log.warning("server.restarted")
        now = time.monotonic()
        for child in self.children:
            if child.process is None:
                if now >= child.due:
                    self._start(child)
                continue
            status = child.process.poll()
            if status is None:
                if now - child.started > HEALTHY:
                    child.failures = 0
                continue
            child.failures += 1
            log.warning("child.died", child=child.name, status=status, log=str(child.log))
            if child.failures >= HOPELESS:
                raise errors.Infrastructure(
                    f"{child.name} keeps ending (status {status}): {last_words(child.log)}",
                    hint=f"Its log is {child.log}.",
                )
            child.process = None
            child.due = now + min(FIRST_PAUSE * 2 ** (child.failures - 1), LONGEST_PAUSE)

    def signal(self, number: Signals) -> None:
        """Pass a signal to every worker."""
        for child in self.children:
            if child.process is not None and child.process.poll() is None and child.name != "daemon":
                child.process.send_signal(number)

    def stop(self, number: Signals, seconds: float) -> list[str]:
        """End workers (INT: hand back at once, TERM: finish first), then the daemon. Returns whom it had to kill."""
        self.signal(number)
        killed = self._wait([c for c in self.children if c.name != "daemon"], seconds)
        for child in self.children:
            if child.process is not None and child.process.poll() is None:
                child.process.terminate()
        killed += self._wait([c for c in self.children if c.name == "daemon"], 5.0)
        return killed

    def _wait(self, children: Sequence[Child], seconds: float) -> list[str]:
        end = time.monotonic() + seconds
        killed = []
        for child in children:
            if child.process is None:
                continue
            try:
                child.process.wait(max(end - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()
                killed.append(child.name)
        return killed

    def kill(self) -> None:
        """Kill every child now; the guards end the agents' trees."""
        for child in self.children:
            if child.process is not None and child.process.poll() is None:
                child.process.kill()
                child.process.wait()


def child_environment(settings: Settings) -> dict[str, str]:
    """The environment of daemon and workers: ours, with the settings that hold here, however they came about."""
    return {**os.environ, "DAGWARD_SETTINGS": settings.model_dump_json()}


def machine_memory() -> int | None:
    """Bytes of memory of this machine, where it can be known."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def memory_needed(workers: Mapping[str, int]) -> int:
    """Bytes that the crew is expected to use, agents not counted."""
    return DAEMON_MEMORY + WORKER_MEMORY * sum(workers.values())


def check_memory(workers: Mapping[str, int]) -> None:
    """Refuse a crew that would take more than its share of the machine."""
    have, need = machine_memory(), memory_needed(workers)
    if have is not None and need > have * MEMORY_SHARE:
        raise errors.Refusal(
            f"{sum(workers.values())} workers need about {need // 2**20} MB, more than 70 % of {have // 2**20} MB",
            hint="Lower `concurrency` in the plan, or a pool's limit in the configuration.",
        )


def last_words(file: Path) -> str:
    """The end of a log, for a message: an error of ours and its next step are two lines."""
    with contextlib.suppress(OSError):
        lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if lines:
            return " ".join(line[:300] for line in lines[-2:])
    return "no output"
