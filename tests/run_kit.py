"""A real `dagward run` in a folder of its own, with a short lease, for fault and acceptance tests."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from scheduler.store import StoreConfig, Views, connect
from scheduler.store.keys import Keys
from tests.conftest import wait_until

PROGRAM = [sys.executable, "-P", "-c", "from scheduler.cli import main; main()"]
LEASE = 1000


class Place:
    """A folder with a state folder in it; runs commands there and finds their processes."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.started: list[subprocess.Popen[str]] = []
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("DAGWARD_", "REDIS_"))},
            "DAGWARD_STATE_DIR": str(self.state),
            "DAGWARD_LEASE": str(LEASE),
            "DAGWARD_DISPATCH": "3000",
            "DAGWARD_GRACE": "300",
            "DAGWARD_DRAIN": "500",
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PYTHONDONTWRITEBYTECODE": "",
            **settings,
        }

    def plan(self, text: str, name: str = "plan.yaml") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def command(self, *arguments: str, timeout: float = 60, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, *arguments], env={**self.env, **env}, cwd=self.folder, capture_output=True, text=True,
            timeout=timeout, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PROGRAM, *arguments], env=self.env, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.started.append(process)
        return process

    def finish(self, process: subprocess.Popen[str], timeout: float = 60) -> tuple[int, str]:
        out, _ = process.communicate(timeout=timeout)
        return process.returncode, out

    def json(self, *arguments: str) -> object:
        done = self.command(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def views(self) -> Views:
        """Reads beside a command that keeps the server up."""
        from scheduler.embedded import socket_path

        client = connect(StoreConfig(f"unix://{socket_path(self.state)}"), patient=False, timeout=5)
        return Views(client, Keys("main"))

    def appears(self, name: str, seconds: float = 30) -> None:
        wait_until((self.folder / name).exists, f"{name} to appear", seconds)

    def lines(self, name: str) -> int:
        path = self.folder / name
        return len(path.read_text().splitlines()) if path.exists() else 0

    def processes(self) -> list[psutil.Process]:
        """Everything alive that belongs to this place: its daemon, workers, guards, agents, server."""
        mark = str(self.state)
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                words = " ".join(process.cmdline())
                ours = mark in words or process.environ().get("DAGWARD_STATE_DIR") == mark
                if (
                    ours
                    or str(self.folder) in process.environ().get("DAGWARD_WORKSPACE", "")
                    or ("guard.py" in words and any(str(self.state) in word for word in process.cmdline()))
                ):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def named(self, pattern: str) -> list[psutil.Process]:
        found = []
        for process in self.processes():
            try:
                if re.search(pattern, " ".join(process.cmdline())):
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found

    def workers(self) -> list[psutil.Process]:
        """Worker mains: not their horses."""
        mine = self.named(r"-m workers ")
        pids = {process.pid for process in mine}
        return [process for process in mine if process.ppid() not in pids]

    def daemons(self) -> list[psutil.Process]:
        return self.named(r"-m scheduler ")

    def guards(self) -> list[psutil.Process]:
        return self.named(r"workers/guard\.py")

    def servers(self) -> list[psutil.Process]:
        return self.named(r"(valkey|redis)-server")

    def nothing_left(self) -> None:
        wait_until(lambda: not self.processes(), f"no process left, have {self.processes()}", 15)

    def clean(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        for process in self.processes():
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue


def place(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Place]:
    """Generator for fixtures: a place, cleaned afterwards; leftovers fail the test."""
    made = Place(folder, **(settings or {}))
    try:
        yield made
        for process in made.started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=30)
        made.nothing_left()
    finally:
        made.clean()
