"""kill -9 in the middle of a plan: worker, guard, daemon, server, singly and all at once. T3, T13; fault tests 1, 5, 7."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable

import psutil
import pytest

from tests.conftest import wait_until
from tests.run_kit import Place

PLAN = """
name: kills
goal: Survive.
concurrency: 2
defaults: {retries: {max: 5, backoff: 100ms}}
tasks:
  - id: quick
    agent: {use: command, run: "echo ran >> ../../../../quick.ran; echo x > f"}
  - id: slow
    blocked_by: [quick]
    agent: {use: command, run: "echo ran >> ../../../../slow.ran; setsid sleep 97 & sleep 1; while [ ! -e ../../../../go ]; do sleep 0.05; done; echo x > f"}
    verify: [{file: {path: f, nonempty: true}}]
  - id: last
    blocked_by: [slow]
    agent: {use: command, run: "echo x > f"}
"""


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL to each that still lives: the death of one may have ended another."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("victim", ["workers", "guards", "daemons", "servers"])
def test_t03_one_kind_is_killed_and_the_plan_completes(place: Place, victim: str) -> None:
    process = place.start("run", str(place.plan(PLAN)))
    place.appears("slow.ran")
    kill(getattr(place, victim)())
    (place.folder / "go").touch()
    code, out = place.finish(process)
    assert code == 0, out
    assert place.lines("quick.ran") == 1
    place.nothing_left()


def test_t03_worker_and_guard_killed_together_leave_no_agent_beside_the_next_attempt(place: Place) -> None:
    process = place.start("run", str(place.plan(PLAN)))
    place.appears("slow.ran")
    wait_until(lambda: place.named(r"sleep 97"), "the agent's child")
    old = list(place.named(r"sleep 97"))
    kill([*place.guards(), *place.workers()])
    wait_until(lambda: place.lines("slow.ran") == 2, "the second attempt", 30)
    assert not any(p.is_running() and p.status() != "zombie" for p in old)
    (place.folder / "go").touch()
    code, out = place.finish(process)
    assert code == 0, out
    place.nothing_left()


def test_t03_everything_killed_at_once_and_resumed(place: Place) -> None:
    plan = place.plan(PLAN)
    process = place.start("run", str(plan))
    place.appears("slow.ran")
    process.send_signal(signal.SIGKILL)
    kill([*place.servers(), *place.daemons(), *place.guards(), *place.workers()])
    process.communicate()
    (place.folder / "go").touch()
    done = place.command("run", str(plan), "--resume")
    assert done.returncode == 0, done.stderr
    assert place.lines("quick.ran") == 1
    place.nothing_left()


def test_t03_run_and_server_killed_leave_no_worker_waiting(place: Place) -> None:
    """Workers end with their supervisor even when the server is gone too; the next run sweeps what they left open."""
    plan = place.plan(PLAN)
    process = place.start("run", str(plan))
    place.appears("slow.ran")
    process.send_signal(signal.SIGKILL)
    kill(place.servers())
    process.communicate()
    wait_until(lambda: not place.processes(), "every process to end without a server", 30)
    (place.folder / "go").touch()
    done = place.command("run", str(plan), "--resume")
    assert done.returncode == 0, done.stderr
    assert place.lines("quick.ran") == 1
    place.nothing_left()
