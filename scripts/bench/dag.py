"""Whole plans through the real process model: wall time per task, from the store's own events."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = [sys.executable, "-P", "-c", "from scheduler.cli import main; main()"]
COMMAND = {"use": "command", "run": "true"}
NOOP = {"use": "python", "call": "bench_noop:noop"}


def shape(name: str) -> list[tuple[str, list[str]]]:
    """`fanout:N`, `chain:N`, `layered:LxW` as (task, blockers)."""
    kind, _, size = name.partition(":")
    if kind == "fanout":
        middle = [f"t{n}" for n in range(int(size))]
        return [("root", []), *((t, ["root"]) for t in middle), ("join", middle)]
    if kind == "chain":
        return [(f"t{n}", [f"t{n - 1}"] if n else []) for n in range(int(size))]
    layers, width = (int(part) for part in size.split("x"))
    chance = random.Random(42)
    return [
        (f"l{a}-{b}", [f"l{a - 1}-{c}" for c in chance.sample(range(width), min(3, width))] if a else [])
        for a in range(layers)
        for b in range(width)
    ]


def measure(name: str, agent: dict[str, str], workers: int) -> tuple[int, float]:
    """Tasks and seconds of one run in a fresh state folder."""
    tasks = shape(name)
    plan = {
        "name": "bench",
        "goal": name,
        "concurrency": workers,
        "defaults": {"agent": agent},
        "tasks": [{"id": t, "blocked_by": b} for t, b in tasks],
    }
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "plan.json").write_text(json.dumps(plan))
        (place / "bench_noop.py").write_text("def noop(context):\n    return None\n")
        (place / "config.toml").write_text('in_process = ["bench_noop:noop"]\n')
        env = {**os.environ, "DAGWARD_STATE_DIR": str(place / "state"), "PYTHONPATH": folder}
        env["DAGWARD_CONFIG"] = str(place / "config.toml")
        subprocess.run([*PROGRAM, "run", "-q", str(place / "plan.json")], env=env, check=True, capture_output=True)
        out = subprocess.run([*PROGRAM, "events", "bench", "--json"], env=env, check=True, capture_output=True).stdout
    events = [json.loads(line) for line in out.splitlines()]
    first = next(e["at"] for e in events if e["event"] == "claim")
    last = next(e["at"] for e in events if e["event"] == "plan.complete")
    return len(tasks), (stamp(last) - stamp(first)) / 1000


def stamp(value: int | str) -> float:
    """Milliseconds of an event's time, as a number or ISO text."""
    if isinstance(value, int):
        return float(value)
    from datetime import datetime

    return datetime.fromisoformat(value).timestamp() * 1000


def main() -> None:
    """Print one line a shape and agent: median of three."""
    shapes = sys.argv[1:] or ["fanout:200", "chain:100", "layered:10x20"]
    print("shape\tagent\ttasks\tseconds\ttasks/s\tms/task")
    for name in shapes:
        for label, agent in (("true", COMMAND), ("in-process", NOOP)):
            runs = [measure(name, agent, 2) for _ in range(3)]
            count, seconds = runs[0][0], statistics.median(r[1] for r in runs)
            print(
                f"{name}\t{label}\t{count}\t{seconds:.2f}\t{count / seconds:.0f}\t{1000 * seconds / count:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
