"""A real guard for tests, in this process or under a worker main of its own; fails a test that leaves a process."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import wait_until
from workers import processes
from workers.doomed import collect
from workers.guarded import AttemptRunner
from workers.plugins import Command, Ended
from workers.processes import Process
from workers.tree import Guard, descendants, kill_descendants

ROOT = Path(__file__).parents[1]
PYTHON = [sys.executable, "-I", "-S", "-c"]
FOREVER = 60_000

# Forks twice, in a session of its own, with an empty environment, and writes its pid into the file of its argument.
HIDDEN = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(fd, b"%d\\n" % os.getpid())
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"], {})
    os._exit(0)
os.wait()
"""


class Job:
    """A command that runs while the test looks on."""

    def __init__(self, horse: AttemptRunner, command: Command) -> None:
        self._ended: Ended | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(horse, command), daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def result(self, seconds: float = 20.0) -> Ended:
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        assert self._ended is not None, f"the command did not end within {seconds} s"
        return self._ended

    def _run(self, horse: AttemptRunner, command: Command) -> None:
        try:
            self._ended = horse.run(command)
        except Exception as error:  # noqa: BLE001 - handed to the test
            self._error = error


class Desk:
    """A guard, and this process as its worker main and its horse."""

    def __init__(self, guard: Guard, folder: Path) -> None:
        self.guard = guard
        self.folder = folder
        self.log = folder / "log"
        self.horse = self.horse_of("p_1_1")

    def horse_of(self, attempt: str) -> AttemptRunner:
        return AttemptRunner(self.guard._horse.fileno(), attempt)

    def command(self, argv: Sequence[str], **options: object) -> Command:
        fields: dict[str, object] = {
            "cwd": self.folder,
            "env": {"PATH": os.environ["PATH"], "OUT": str(self.folder / "out")},
            "log": self.log,
            "timeout": FOREVER,
            "grace": 300,
            **options,
        }
        return Command(argv, **fields)  # type: ignore[arg-type]

    def run(self, text: str, **options: object) -> Ended:
        return self.horse.run(self.command(["sh", "-c", text], **options))

    def start(self, text: str, attempt: str = "p_1_1", **options: object) -> Job:
        return Job(self.horse_of(attempt), self.command(["sh", "-c", text], **options))

    def tree(self) -> list[Process]:
        return processes.beneath([self.guard.pid], processes.everyone())

    def await_frozen(self) -> None:
        def frozen() -> bool:
            pong, tree = self.guard.ask(5), self.tree()
            return pong is not None and pong.frozen and bool(tree) and all(still(process) for process in tree)

        wait_until(frozen, "the tree stands still")

    def await_file(self, name: str = "out", lines: int = 1) -> list[str]:
        path = self.folder / name
        wait_until(lambda: path.exists() and path.read_text().count("\n") >= lines, f"{lines} lines in {name}")
        return path.read_text().split()

    def beat(self, seconds: float, *held: str, sent: float | None = None) -> None:
        self.guard.beat(time.monotonic() + seconds, held, None, sent)


def alive(pid: int) -> bool:
    process = processes.look(pid)
    return process is not None and process.alive


def still(process: Process) -> bool:
    """Stopped, or (D) waiting in vfork for a child that was stopped between fork and exec."""
    return process.stopped or process.state == "D"


@contextlib.contextmanager
def no_process_left(patience: float = 5.0) -> Iterator[None]:
    """Everything that the test starts falls to this process, and must be gone at the end."""
    before = descendants()
    processes.become_subreaper()
    try:
        yield
        end = time.monotonic() + patience
        while (left := descendants(before)) and time.monotonic() < end:
            time.sleep(0.005)
        if left:
            what = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")[:80] for pid in left]
            pytest.fail(f"processes left behind: {dict(zip(left, what, strict=True))}")
    finally:
        kill_descendants(before)
        collect(before)
        ctypes.CDLL(None).prctl(processes.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@contextlib.contextmanager
def guarded(folder: Path, frozen_limit: float = 600.0) -> Iterator[Desk]:
    """A desk whose guard and processes are gone at the end."""
    with no_process_left():
        desk = Desk(Guard.spawn(frozen_limit=frozen_limit), folder)
        try:
            yield desk
        finally:
            desk.guard.quit()


class Worker:
    """A worker main in a process of its own (`tests.guard_main`), driven over its standard input."""

    def __init__(self, folder: Path, text: str, *, register: bool = False) -> None:
        self.folder = folder
        self._orders = 0
        self.session = f"s{os.getpid()}{time.monotonic_ns()}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.guard_main", str(folder), self.session, text, str(int(register))],
            cwd=ROOT,
            stdin=subprocess.PIPE,
        )
        wait_until((folder / "pids").exists, "worker main, guard and horse run", 30)
        self.pids: dict[str, int] = json.loads((folder / "pids").read_text())

    @property
    def main(self) -> int:
        return self.pids["main"]

    @property
    def guard(self) -> int:
        return self.pids["guard"]

    @property
    def horse(self) -> int:
        return self.pids["horse"]

    def tell(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        self._orders += 1
        heard = self.folder / "heard"
        wait_until(lambda: heard.exists() and json.loads(heard.read_text()) >= self._orders, "main has done it")

    def state(self, name: str) -> str:
        process = processes.look(self.pids[name])
        return "" if process is None else process.state

    def tree(self) -> list[Process]:
        return processes.beneath([self.guard], processes.everyone())

    def ended(self) -> dict[str, object]:
        path = self.folder / "ended"
        wait_until(path.exists, "the horse has its answer")
        answer = json.loads(path.read_text())
        assert isinstance(answer, dict)
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
