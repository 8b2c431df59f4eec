"""Worker main, guard and horse die or stand still, one after the other and together (T13, I1, I11)."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.guard_kit import HIDDEN, PYTHON, Desk, Worker, alive, guarded, no_process_left
from workers import processes, sweep
from workers.tree import Guard, GuardGone, Killed, kill_descendants

AGENT = f"""{PYTHON[0]} -I -S -c '{HIDDEN}' $OUT.hidden; echo $$ > $OUT; trap "" TERM; while :; do sleep 0.01; done"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with no_process_left():
        yield tmp_path


def _agent(worker: Worker) -> list[int]:
    """Pids of the command's tree once it runs: the leader, and a child that no walk from it would find."""
    paths = [worker.folder / "out", worker.folder / "out.hidden"]
    wait_until(lambda: all(path.exists() and path.read_text().endswith("\n") for path in paths), "the agent runs")
    return [int(path.read_text()) for path in paths]


def test_t13_main_killed_takes_tree_and_horse_along(folder: Path) -> None:
    worker = Worker(folder, AGENT)
    agent = _agent(worker)
    worker.close()
    wait_until(lambda: not alive(worker.guard), "the guard has ended", 5)
    assert not any(alive(pid) for pid in [*agent, worker.horse])


def test_t13_main_killed_while_everything_is_frozen(folder: Path) -> None:
    worker = Worker(folder, AGENT)
    agent = _agent(worker)
    worker.tell("beat", 0.05, "p_1_1")
    wait_until(lambda: worker.state("horse") == "T", "frozen")
    worker.close()
    wait_until(lambda: not alive(worker.guard), "the guard has ended", 5)
    assert not any(alive(pid) for pid in [*agent, worker.horse])


def test_t13_horse_killed_then_killall_proves_its_tree_gone(tmp_path: Path) -> None:
    with guarded(tmp_path) as desk:
        horse = os.fork()
        if horse == 0:
            runner = desk.guard.horse_side("p_1_1")
            runner.run(desk.command(["sh", "-c", AGENT]))
            os._exit(0)
        paths = [desk.folder / "out", desk.folder / "out.hidden"]
        wait_until(lambda: all(path.exists() and path.read_text() for path in paths), "the agent runs")
        os.kill(horse, signal.SIGKILL)
        os.waitpid(horse, 0)
        gone = desk.guard.await_gone(desk.guard.kill_all(), 10)
        assert gone is not None
        assert gone.survivors == 0
        assert not desk.tree()
        # The next horse, over the same socket, gets its own answers.
        assert desk.horse_of("p_2_1").run(desk.command(["sh", "-c", "exit 4"])).exit_code == 4


def test_t13_guard_killed_falls_to_main_which_proves_it_gone(folder: Path) -> None:
    worker = Worker(folder, AGENT)
    agent = _agent(worker)
    os.kill(worker.guard, signal.SIGKILL)
    worker.tell("orphans")
    answer = json.loads((folder / "orphans").read_text())
    assert answer["killed"] >= 2
    assert answer["survivors"] == 0
    assert not any(alive(pid) for pid in agent)
    assert alive(worker.horse)
    worker.close()
    os.kill(worker.horse, signal.SIGKILL)


def test_t13_stopped_guard_does_not_answer_and_is_replaced(folder: Path) -> None:
    worker = Worker(folder, AGENT)
    agent = _agent(worker)
    os.kill(worker.guard, signal.SIGSTOP)
    worker.tell("ping")
    assert json.loads((folder / "ping").read_text()) is False
    worker.tell("orphans")
    assert json.loads((folder / "orphans").read_text())["survivors"] == 0
    assert not any(alive(pid) for pid in agent)
    worker.close()
    os.kill(worker.horse, signal.SIGKILL)


def test_guard_that_was_stopped_hears_its_beats_before_its_old_deadline(tmp_path: Path) -> None:
    with guarded(tmp_path) as desk:
        job = desk.start("echo > $OUT; while [ ! -e go ]; do sleep 0.01; done")
        desk.await_file()
        desk.beat(0.2, "p_1_1")
        assert desk.guard.ping(5)
        os.kill(desk.guard.pid, signal.SIGSTOP)
        desk.beat(60, "p_1_1")
        until = time.monotonic() + 0.3
        wait_until(lambda: time.monotonic() > until, "the first deadline has passed")
        os.kill(desk.guard.pid, signal.SIGCONT)
        assert desk.guard.ping(5)
        (desk.folder / "go").touch()
        assert job.result().frozen == 0


def test_guard_gone_is_an_error_in_main_and_horse(tmp_path: Path) -> None:
    with no_process_left():
        desk = Desk(Guard.spawn(), tmp_path)
        job = desk.start("echo > $OUT; sleep 100")
        desk.await_file()
        desk.guard.end()
        with pytest.raises(GuardGone):
            job.result()
        with pytest.raises(GuardGone):
            wait_until(lambda: desk.beat(60), "never")
        with pytest.raises(GuardGone):
            desk.guard.ping(1)
        with pytest.raises(GuardGone):
            desk.run("exit 0")
        desk.guard.close()
        result = kill_descendants(spare=_others(desk))
        assert result.survivors == 0
        assert result.killed >= 1


def _others(desk: Desk) -> set[int]:
    """Children of this process that are not the test's: the servers of other tests."""
    return {p.pid for p in processes.everyone() if p.ppid == os.getpid() and not _runs_in(p.pid, desk.folder)}


def _runs_in(pid: int, folder: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").resolve() == folder.resolve()
    except OSError:
        return False


def test_main_is_never_blocked_by_a_stopped_guard(tmp_path: Path) -> None:
    with guarded(tmp_path) as desk:
        os.kill(desk.guard.pid, signal.SIGSTOP)
        slowest = 0.0

        def beat() -> bool:
            nonlocal slowest
            began = time.monotonic()
            try:
                desk.guard.beat(began + 60, ["x" * 1000] * 100, None)
            finally:
                slowest = max(slowest, time.monotonic() - began)
            return False

        with pytest.raises(GuardGone, match="does not read"):
            wait_until(beat, "never")
        assert slowest < 0.1
        os.kill(desk.guard.pid, signal.SIGCONT)


def test_sweep_after_main_guard_and_horse_are_killed_together(folder: Path) -> None:
    worker = Worker(folder, AGENT + " # sweep", register=True)
    agent = _agent(worker)
    other = Worker(_sub(folder), AGENT, register=True)
    others = _agent(other)
    assert sweep.sweep(folder) == []
    for pid in (worker.main, worker.guard, worker.horse):
        os.kill(pid, signal.SIGSTOP)
    for pid in (worker.main, worker.guard, worker.horse):
        os.kill(pid, signal.SIGKILL)
    worker.close()
    assert alive(agent[0])
    swept = sweep.sweep(folder)
    assert [(found.session, found.survivors) for found in swept] == [(worker.session, 0)]
    assert swept[0].killed >= 1
    assert not alive(agent[0])
    assert all(alive(pid) for pid in [*others, other.main, other.guard, other.horse])
    assert [found.killed for found in sweep.sweep(folder)] == [0]
    sweep.forget(folder, worker.session)
    assert sweep.sweep(folder) == []
    other.close()
    wait_until(lambda: not alive(other.guard), "the other guard has ended")
    os.kill(agent[1], signal.SIGKILL)  # hidden, without a mark: only a supervisor that is a subreaper reaches it


def _sub(folder: Path) -> Path:
    path = folder / "other"
    path.mkdir()
    return path


def test_sweep_reaches_what_hides_beneath_a_stopped_guard(folder: Path) -> None:
    worker = Worker(folder, AGENT, register=True)
    agent = _agent(worker)
    os.kill(worker.guard, signal.SIGSTOP)
    worker.close()
    swept = sweep.sweep(folder)
    assert [(found.session, found.survivors) for found in swept] == [(worker.session, 0)]
    assert not any(alive(pid) for pid in [*agent, worker.guard])
    os.kill(worker.horse, signal.SIGKILL)


def test_sweep_finds_a_leader_that_cleared_its_environment(folder: Path) -> None:
    worker = Worker(folder, "exec env -i sh -c 'echo $$ > out; while :; do /bin/sleep 0.01; done'", register=True)
    wait_until(lambda: (folder / "out").exists() and (folder / "out").read_text(), "the agent runs")
    leader = int((folder / "out").read_text())
    for pid in (worker.main, worker.guard):
        os.kill(pid, signal.SIGSTOP)
    for pid in (worker.guard, worker.main, worker.horse):
        os.kill(pid, signal.SIGKILL)
    worker.close()
    assert alive(leader)
    assert sweep.sweep(folder)[0].survivors == 0
    assert not alive(leader)


def test_kill_marked_spares_its_own_session_and_the_unmarked(folder: Path) -> None:
    mine = Worker(_sub(folder), "echo > $OUT; while :; do sleep 0.01; done")
    worker = Worker(folder, AGENT)
    agent = _agent(worker)
    wait_until((folder / "other" / "out").exists, "the other runs")
    key = f"{worker.session}/t"
    assert sweep.kill_marked(sweep.TASK_MARK, key, worker.session) == Killed(0, 0)
    assert alive(agent[0])
    assert sweep.kill_marked(sweep.TASK_MARK, "no/such", "s") == Killed(0, 0)
    result = sweep.kill_marked(sweep.TASK_MARK, key, mine.session)
    assert result.killed >= 1
    assert result.survivors == 0
    assert not alive(agent[0])
    assert worker.ended()["exit_code"] == -signal.SIGKILL
    assert mine.tree()
    mine.close()
    worker.close()
    wait_until(lambda: not alive(mine.guard) and not alive(worker.guard), "both guards have ended")


def test_sweep_refuses_a_record_that_it_cannot_read(folder: Path) -> None:
    path = folder / "sessions" / "s1.json"
    path.parent.mkdir()
    for text in ("", "{}", '{"session": "s1"}', "[1]"):
        path.write_text(text)
        with pytest.raises(sweep.UnreadableSession, match=r"s1\.json"):
            sweep.sweep(folder)


def test_sweep_of_another_boot_kills_nobody(folder: Path) -> None:
    worker = Worker(folder, AGENT, register=True)
    agent = _agent(worker)
    path = folder / "sessions" / f"{worker.session}.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "boot": "another"}))
    assert sweep.sweep(folder) == [sweep.Swept(worker.session, 0, 0)]
    assert all(alive(pid) for pid in [*agent, worker.main, worker.guard])
    worker.close()
    wait_until(lambda: not alive(worker.guard), "the guard has ended")


def test_unregister_leaves_nothing(folder: Path) -> None:
    guard = Guard.spawn()
    sweep.register(folder, "s1", guard.pid)
    assert sweep.sweep(folder) == []
    guard.quit()
    sweep.unregister(folder, "s1")
    assert list((folder / "sessions").iterdir()) == []
