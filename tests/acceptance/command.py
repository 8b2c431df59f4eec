"""The real command as a subprocess, and a scene for it: an embedded server in a temporary state folder."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scheduler.embedded import Embedded
from scheduler.lifecycle import Timing
from scheduler.model import Claim, Executor
from scheduler.settings import epoch_file, load
from scheduler.store import Store, Views, connect, open_store
from tests import factory

INSTALLED = Path(sys.executable).with_name("dagward")
MAIN = [sys.executable, "-c", "from scheduler.cli import main; main()"]
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, object]:
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


def environment(extra: Mapping[str, str] = {}) -> dict[str, str]:
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**env, "XDG_CONFIG_HOME": "/nonexistent", **extra}


def argv(state: Path, *words: str) -> list[str]:
    command = [str(INSTALLED)] if INSTALLED.exists() else MAIN
    return [*command, "--state-dir", str(state), *words]


def dagward(state: Path, *words: str, env: Mapping[str, str] = {}, cwd: Path | None = None) -> Ran:
    """Run `dagward --state-dir STATE WORDS`, stdin closed; never a traceback, whatever it says.

    The commands that it suggests repeat `--state-dir`; that is taken out here, so tests read as people's hands type.
    """
    done = subprocess.run(
        argv(state, *words),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(env),
        cwd=cwd,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    typed = f"dagward --state-dir {shlex.quote(str(state))} "
    return Ran(done.returncode, *(text.replace(typed, "dagward ") for text in (done.stdout, done.stderr)))


@dataclass(frozen=True, slots=True)
class Scene:
    """A served state folder with the store's own calls, to bring plans into a state."""

    state: Path
    store: Store
    views: Views

    def __call__(self, *words: str, env: Mapping[str, str] = {}) -> Ran:
        return dagward(self.state, *words, env=env)

    def claims(self, count: int) -> list[Claim]:
        """Give `count` idle executors what is ready."""
        for _ in range(count):
            factory.executor(self.store)
        return list(self.store.claim("test", os.urandom(4).hex()))

    def start(self, claim: Claim, token: str = "tok") -> Claim:
        self.store.start(claim, token)
        return claim

    def executor(self, pool: str = "default") -> Executor:
        return factory.executor(self.store, pool=pool)

    def settle(self, plan: str) -> None:
        while self.store.settle(plan):
            continue


@contextmanager
def scene(state: Path, lease: int = 600_000) -> Iterator[Scene]:
    """Serve the state folder. Leases are long: nothing here renews."""
    embedded = Embedded(state)
    embedded.join()
    settings = load({"state_dir": str(state)}, {})
    client = connect(settings.store_config())
    open_store(client, settings.keys, epoch_file(settings))
    store = Store(client, settings.keys, Timing(lease=lease, dispatch=lease))
    store.set_limits(settings.limits)
    try:
        yield Scene(state, store, Views(client, settings.keys))
    finally:
        client.close()
        embedded.leave()


def columns(out: str) -> list[dict[str, str]]:
    """A tab-separated table with its header as rows."""
    header, *rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
    return [dict(zip(header, row, strict=True)) for row in rows]


def words(rows: Sequence[Mapping[str, str]], name: str) -> list[str]:
    return [row[name] for row in rows]
