"""A user's repository and a small real Runner for the tests of workspaces and verifiers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from scheduler.model import Ancestor
from workers.plugins import Command, Ended
from workers.workspace import Committed, Mirror, Slot, commit_result, result_message

WHEN = 1_700_000_000_000


@dataclass(frozen=True)
class Repo:
    """A repository of a person, with git as that person would run it."""

    path: Path

    def git(self, *args: str) -> str:
        env = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "Person",
            "GIT_AUTHOR_EMAIL": "person@localhost",
            "GIT_COMMITTER_NAME": "Person",
            "GIT_COMMITTER_EMAIL": "person@localhost",
            "LC_ALL": "C",
        }
        done = subprocess.run(["git", *args], cwd=self.path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")

    def write(self, files: dict[str, str]) -> None:
        for name, content in files.items():
            place = self.path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)

    def commit(self, files: dict[str, str], message: str = "change") -> str:
        self.write(files)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")


def make_repo(path: Path, files: dict[str, str]) -> Repo:
    path.mkdir(parents=True)
    repo = Repo(path)
    repo.git("init", "-q", "-b", "main")
    repo.commit(files, "first")
    return repo


def result_of(
    slot: Slot,
    mirror: Mirror,
    base: str,
    task: str,
    files: dict[str, str | None],
    *,
    when: int = WHEN,
) -> Committed:
    """What an attempt that writes (or, with None, deletes) these files comes to."""
    work = slot.work(mirror, base)
    for name, content in files.items():
        place = work / name
        if content is None:
            place.unlink()
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
    return commit_result(slot, mirror, base, result_message(task, "p-abcde", task, 1), when)


def ancestor(task: str, base: str, done: Committed, *, direct: bool = True) -> Ancestor:
    return Ancestor(task=task, digest=done.commit, base=base, direct=direct)


class ProcessRunner:
    """Runs a command for real in a process group of its own."""

    def run(self, command: Command) -> Ended:
        started = time.monotonic()
        with command.log.open("ab") as log:
            process = subprocess.Popen(
                list(command.argv),
                cwd=command.cwd,
                env=dict(command.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            code: int | None = process.wait(command.timeout / 1000)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        duration = int((time.monotonic() - started) * 1000)
        return Ended("timeout" if code is None else "exit", code, duration=duration)
