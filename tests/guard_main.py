"""A worker main for fault tests: guard, one horse that runs one command, and orders over standard input.

Orders: `beat SECONDS [ATTEMPT...]`, `ping`, `orphans` (kill what fell to this process). Answers go into
files of the folder, written whole: `pids`, `ended`, `orphans`, `ping`, and after each order its number in `heard`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
from pathlib import Path

from workers import processes, sweep
from workers.plugins import Command
from workers.tree import Guard, GuardGone, kill_descendants

ATTEMPT = "p_1_1"


def put(path: Path, value: object) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(value))
    fresh.replace(path)


def ride(guard: Guard, folder: Path, session: str, text: str) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "OUT": str(folder / "out"),
        "DAGWARD_SESSION": session,
        "DAGWARD_TASK_KEY": f"{session}/t",
    }
    command = Command(["sh", "-c", text], folder, env, folder / "log", 60_000)
    with contextlib.suppress(GuardGone):
        put(folder / "ended", dataclasses.asdict(guard.horse_side(ATTEMPT).run(command)))
    while True:
        signal.pause()


def main(folder: Path, session: str, text: str, register: bool) -> None:
    processes.become_subreaper()
    guard = Guard.spawn(frozen_limit=600, leader_file=sweep.leader_file(folder, session) if register else None)
    if register:
        sweep.register(folder, session, guard.pid)
    horse = os.fork()
    if horse == 0:
        ride(guard, folder, session, text)
    guard.beat(time.monotonic() + 3600, [ATTEMPT], horse)
    put(folder / "pids", {"main": os.getpid(), "guard": guard.pid, "horse": horse})
    for done, line in enumerate(sys.stdin, 1):
        op, *words = line.split()
        if op == "beat":
            guard.beat(time.monotonic() + float(words[0]), words[1:], horse)
        elif op == "orphans":
            guard.end()
            put(folder / "orphans", dataclasses.asdict(kill_descendants(spare={horse})))
        elif op == "ping":
            put(folder / "ping", guard.ping(timeout=0.1))
        put(folder / "heard", done)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "1")
