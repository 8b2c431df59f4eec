"""Freezing and thawing: what happens to a command when renewals end (I1)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.guard_kit import HIDDEN, PYTHON, Desk, Worker, alive, guarded, no_process_left, still
from workers import processes
from workers.channel import Message
from workers.guarded import _order

ATTEMPT = "p_1_1"
LOOP = "echo $$ > $OUT; while :; do sleep 0.01; done"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with guarded(tmp_path) as desk:
        yield desk


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with no_process_left():
        yield tmp_path


def _processor_time(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_i1_nothing_is_frozen_before_the_first_beat(desk: Desk) -> None:
    assert desk.run("exit 0").frozen == 0


def test_i1_frozen_at_the_deadline_and_thawed_by_a_beat_that_holds_it(desk: Desk) -> None:
    job = desk.start("while [ ! -e go ]; do :; done; exit 8")
    desk.beat(0.1, ATTEMPT)
    desk.await_frozen()
    leader = desk.tree()[0].pid
    spent, until = _processor_time(leader), time.monotonic() + 0.3
    wait_until(lambda: time.monotonic() > until, "a while passes")
    assert _processor_time(leader) == spent
    (desk.folder / "go").touch()
    desk.beat(60, ATTEMPT)
    ended = job.result()
    assert (ended.reason, ended.exit_code) == ("exit", 8)
    assert ended.frozen >= 300
    assert ended.thawed_ago is not None
    assert ended.thawed_ago < 5_000


def test_i1_hidden_children_and_a_storm_are_frozen_too(desk: Desk) -> None:
    storm = HIDDEN + "\nwhile True:\n    if os.fork() == 0: os._exit(0)\n    os.wait()\n"
    from tests.guard_kit import Job

    job = Job(desk.horse, desk.command([*PYTHON, storm, str(desk.folder / "out")]))
    hidden = int(desk.await_file()[0])
    desk.beat(0.05, ATTEMPT)
    desk.await_frozen()
    process = processes.look(hidden)
    assert process is not None
    assert process.stopped
    before = {process.pid for process in desk.tree()}
    assert len(before) >= 2
    until = time.monotonic() + 0.3
    wait_until(lambda: time.monotonic() > until, "a while passes")
    assert {process.pid for process in desk.tree()} == before
    desk.guard.kill(ATTEMPT, "fenced")
    assert job.result().reason == "fenced"
    assert not alive(hidden)


def test_i1_frozen_time_counts_in_no_limit(desk: Desk) -> None:
    job = desk.start("echo; sleep 100", timeout=500, stall=450)
    wait_until(lambda: desk.log.exists() and desk.log.read_text(), "it runs")
    desk.beat(0.1, ATTEMPT)
    desk.await_frozen()
    until = time.monotonic() + 1.0
    wait_until(lambda: time.monotonic() > until, "both limits would have passed")
    assert job.running
    assert all(still(process) for process in desk.tree())
    desk.beat(60, ATTEMPT)
    ended = job.result()
    assert ended.reason in ("stall", "timeout")
    assert ended.frozen >= 1_000
    assert 400 <= ended.duration - ended.frozen < 1_500


def test_i1_fenced_after_a_freeze_dies_without_running_again(desk: Desk) -> None:
    job = desk.start("trap 'echo ran' TERM CONT EXIT; " + LOOP)
    desk.await_file()
    desk.beat(0.05, ATTEMPT)
    desk.await_frozen()
    desk.beat(60, "another_1_1")
    ended = job.result()
    assert (ended.reason, ended.exit_code, ended.survivors) == ("fenced", -signal.SIGKILL, 0)
    assert "ran" not in desk.log.read_text()


def test_i1_cancel_of_a_frozen_command_does_not_let_it_run(desk: Desk) -> None:
    job = desk.start("trap 'echo ran' TERM CONT EXIT; " + LOOP, grace=60_000)
    desk.await_file()
    desk.beat(0.05, ATTEMPT)
    desk.await_frozen()
    assert desk.guard.await_gone(desk.guard.kill(ATTEMPT, "cancelled"), 10) is not None
    assert job.result().reason == "cancelled"
    assert "ran" not in desk.log.read_text()


def test_i1_a_beat_from_before_the_attempt_neither_thaws_nor_fences(desk: Desk) -> None:
    asked = time.monotonic()
    job = desk.start(LOOP)
    desk.await_file()
    desk.beat(0.05)
    desk.await_frozen()
    desk.guard.beat(time.monotonic() + 60, [], None, sent=asked)
    assert desk.guard.ping(5)
    assert job.running
    assert all(still(process) for process in desk.tree())
    desk.beat(60, ATTEMPT, sent=time.monotonic())
    wait_until(lambda: not any(still(process) for process in desk.tree()), "it goes on")
    desk.guard.kill(ATTEMPT, "fenced")
    job.result()


def test_i1_a_beat_whose_deadline_has_passed_changes_nothing(desk: Desk) -> None:
    job = desk.start(LOOP)
    desk.await_file()
    desk.beat(0.05, ATTEMPT)
    desk.await_frozen()
    desk.beat(-1, ATTEMPT)
    desk.beat(-1)
    assert desk.guard.ping(5)
    assert all(still(process) for process in desk.tree())
    assert job.running
    desk.guard.kill(ATTEMPT, "fenced")
    job.result()


def test_i1_run_while_frozen_waits_for_the_lease(desk: Desk) -> None:
    desk.beat(-1, ATTEMPT)
    assert desk.guard.ping(5)
    job = desk.start("echo > $OUT")
    assert desk.guard.ping(5)
    assert not (desk.folder / "out").exists()
    assert job.running
    desk.beat(60, ATTEMPT)
    assert job.result().exit_code == 0


def test_i1_run_while_frozen_is_refused_when_fenced(desk: Desk) -> None:
    desk.beat(-1, ATTEMPT)
    assert desk.guard.ping(5)
    order = _order(desk.command(["sh", "-c", "echo > $OUT"]))
    desk.horse._channel.send({"op": "run", "id": "1", "attempt": ATTEMPT, **order})
    assert desk.guard.ping(5)
    desk.beat(60, "another_1_1")
    answers: list[Message] = []

    def answered() -> bool:
        answers.extend(desk.horse._channel.receive())
        return bool(answers)

    wait_until(answered, "the run is answered")
    assert (answers[0]["op"], answers[0]["reason"]) == ("ended", "fenced")
    assert not (desk.folder / "out").exists()


def test_i1_frozen_for_too_long_is_killed(tmp_path: Path) -> None:
    with guarded(tmp_path, frozen_limit=0.3) as desk:
        job = desk.start(LOOP)
        desk.await_file()
        desk.beat(0.05, ATTEMPT)
        ended = job.result()
        assert (ended.reason, ended.exit_code) == ("frozen", -signal.SIGKILL)
        assert ended.frozen >= 300


def test_i1_what_the_agent_had_stopped_stays_stopped_after_a_thaw(desk: Desk) -> None:
    job = desk.start("sleep 100 & kill -STOP $!; echo $! > $OUT; while :; do sleep 0.01; done")
    stopped = int(desk.await_file()[0])
    desk.beat(0.05, ATTEMPT)
    desk.await_frozen()
    desk.beat(60, ATTEMPT)
    wait_until(lambda: any(not process.stopped for process in desk.tree()), "it goes on")
    process = processes.look(stopped)
    assert process is not None
    assert process.stopped
    desk.guard.kill(ATTEMPT, "fenced")
    job.result()


def test_i1_the_horse_is_frozen_and_thawed_with_its_command(folder: Path) -> None:
    worker = Worker(folder, "echo $$ > $OUT; while [ ! -e go ]; do sleep 0.01; done")
    wait_until((folder / "out").exists, "the command runs")
    worker.tell("beat", 0.05, ATTEMPT)
    wait_until(lambda: worker.state("horse") == "T", "the horse is frozen")
    wait_until(lambda: all(still(process) for process in worker.tree()), "the tree is frozen")
    assert worker.state("main") == "S"
    worker.tell("beat", 60, ATTEMPT)
    wait_until(lambda: worker.state("horse") != "T", "the horse goes on")
    (folder / "go").touch()
    assert worker.ended()["reason"] == "exit"
    worker.close()


def test_i1_the_horse_goes_on_after_the_fenced_tree_is_gone(folder: Path) -> None:
    worker = Worker(folder, LOOP)
    wait_until((folder / "out").exists, "the command runs")
    worker.tell("beat", 0.05, ATTEMPT)
    wait_until(lambda: worker.state("horse") == "T", "the horse is frozen")
    worker.tell("beat", 60)
    assert worker.ended()["reason"] == "fenced"
    assert not worker.tree()
    worker.close()


def test_i1_horse_without_a_command_is_frozen_and_thawed(folder: Path) -> None:
    worker = Worker(folder, "exit 0")
    assert worker.ended()["reason"] == "exit"
    worker.tell("beat", 0.05)
    wait_until(lambda: worker.state("horse") == "T", "the horse is frozen")
    worker.tell("beat", 60)
    wait_until(lambda: worker.state("horse") != "T", "the horse goes on")
    worker.close()


def test_i1_stopped_main_means_frozen(folder: Path) -> None:
    worker = Worker(folder, LOOP)
    wait_until((folder / "out").exists, "the command runs")
    worker.tell("beat", 0.3, ATTEMPT)
    os.kill(worker.main, signal.SIGSTOP)
    wait_until(lambda: (tree := worker.tree()) and all(still(p) for p in tree), "the tree is frozen")
    wait_until(lambda: worker.state("horse") == "T", "the horse is frozen")
    worker.close()
    wait_until(lambda: not alive(worker.guard), "the guard has ended")
    assert not alive(worker.horse)
