"""A process that cannot be killed: reported as surviving, never as gone, and killed as soon as it can be (I11)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.guard_kit import HIDDEN, PYTHON, ROOT, alive, no_process_left

# The kernel's part is played by a SIGKILL that does nothing for a while, as for a process in uninterruptible sleep.
PROGRAM = """
import json, os, signal, sys, time
from workers import processes, watched
from workers.spawn import Order, start

kill, killpg, numb = os.kill, os.killpg, [True]
os.kill = lambda pid, number: None if numb[0] and number == signal.SIGKILL else kill(pid, number)
os.killpg = lambda pid, number: None if numb[0] and number == signal.SIGKILL else killpg(pid, number)
watched.STUBBORN = 0.3
processes.become_subreaper()
folder = sys.argv[1]
order = Order({"id": "1", "attempt": "a", "argv": ["sh", "-c", "sleep 100 & exit 0"], "cwd": folder,
               "log": folder + "/log", "env": {"PATH": os.environ["PATH"]}, "timeout": 60000, "grace": 0, "cap": 100})
pid, capture = start(order)
command = watched.Watched(order, pid, capture, time.monotonic())
while not command.attend(time.monotonic()):
    time.sleep(0.01)
answer = command.report(time.monotonic())
numb[0] = False
while not (command.attend(time.monotonic()) and command.survivors == 0):
    time.sleep(0.01)
print(json.dumps([answer, processes.reap()[1]]))
"""


def test_i11_survivor_is_reported_and_killed_in_the_background(tmp_path: Path) -> None:
    with no_process_left():
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    answer, left = json.loads(done.stdout)
    assert (answer["reason"], answer["exit_code"], answer["survivors"]) == ("exit", 0, 1)
    assert answer["message"] == "1 of its processes cannot be killed"
    assert left is False


def test_a_test_that_leaves_a_process_fails(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def careless() -> None:
        with no_process_left(patience=0.1):
            subprocess.run([*PYTHON, HIDDEN, str(out)], check=True)
            wait_until(lambda: out.exists() and out.read_text().endswith("\n"), "the hidden process lives")

    with pytest.raises(pytest.fail.Exception, match="left behind"):
        careless()
    assert not alive(int(out.read_text()))
