"""`approve`, `cancel`, `doctor` and `config` as people call them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from scheduler.model import PlanState, TaskState
from tests import factory
from tests.acceptance.command import Scene, argv, dagward, environment
from tests.acceptance.test_cli_look import on_a_terminal

HASH = "h" * 64


def waiting(served: Scene, name: str) -> str:
    return factory.submit(
        served.store, [factory.task("one"), factory.task("two", ["one"])], name=name, approval="required"
    )


def test_approve_by_version_and_a_prefix_of_the_hash(served: Scene) -> None:
    plan = waiting(served, "prefix")
    done = served("approve", plan, "--version", "1", "--hash", HASH[:8])
    assert (done.code, done.out) == (0, "")
    assert f"version 1 of plan {plan} is approved: the plan is running" in done.err
    assert served.views.plan(plan).approved
    again = served("approve", plan, "--version", "1", "--hash", HASH, "--json").json()
    assert (again["schema"], again["new"]) == ("dagward/approve/1", False)


def test_approve_refuses_what_was_not_read(served: Scene) -> None:
    plan = waiting(served, "refused")
    for words, message in [
        (("--version", "1", "--hash", "h" * 7), "too short"),
        (("--version", "1", "--hash", "g" * 12), "at version 1 with hash " + HASH),
        (("--version", "2", "--hash", HASH), "at version 1 with hash " + HASH),
        ((), f"dagward approve {plan} --version 1 --hash {HASH}"),
        (("--version", "1"), "an approval names version and hash"),
    ]:
        done = served("approve", plan, *words)
        assert done.code == 2, words
        assert message in done.err, done.err
        assert served.views.plan(plan).state is PlanState.AWAITING_APPROVAL
        assert not served.views.plan(plan).approved


def test_an_agent_may_not_approve_or_cancel(served: Scene) -> None:
    plan = waiting(served, "inside")
    done = served("approve", plan, "--version", "1", "--hash", HASH, env={"DAGWARD_ATTEMPT": "1"})
    assert done.code == 2
    assert "an agent may not approve a plan" in done.err
    assert served("cancel", plan, "--yes", env={"DAGWARD_ATTEMPT": "1"}).code == 2
    assert served.views.plan(plan).state is PlanState.AWAITING_APPROVAL


def test_a_terminal_shows_what_is_approved_and_asks(served: Scene) -> None:
    plan = waiting(served, "asked")
    said = on_a_terminal(served, "approve", plan, typed="n\n")
    assert "2 by command" in said
    assert "runs: true" in said
    assert "may write **" in said
    assert "nothing was approved" in said
    assert not served.views.plan(plan).approved
    on_a_terminal(served, "approve", plan, typed="y\n")
    assert served.views.plan(plan).approved


def test_cancel_settles_without_a_daemon(served: Scene) -> None:
    plan = factory.submit(served.store, [factory.task("one"), factory.task("two", ["one"])], name="idle")
    done = served("cancel", plan)
    assert (done.code, done.out) == (0, "")
    assert f"plan {plan} is cancelled: nothing of it lives" in done.err
    assert served.views.plan(plan).counts[TaskState.CANCELLED] == 2
    assert served("cancel", plan, "--json").json()["state"] == "cancelled"


def test_cancel_says_how_many_agents_are_being_stopped(served: Scene) -> None:
    plan = factory.submit(served.store, [factory.task("one"), factory.task("two")], name="busy")
    claims = [claim for claim in served.claims(4) if claim.plan == plan]
    for claim in claims:
        served.start(claim)
    done = served("cancel", plan)
    assert done.code == 0
    assert f"plan {plan} is being cancelled: 2 agents are being stopped" in done.err
    assert "one is being cancelled: worker w-" in done.err
    held = served("cancel", plan, "--wait", "100ms", "--json")
    assert held.code == 5
    assert len(held.json()["stopping"]) == 2  # type: ignore[arg-type]
    assert f"dagward why {plan}" in held.err
    process = subprocess.Popen(
        argv(served.state, "cancel", plan, "--wait", "30s"), stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        for claim in claims:
            served.store.cancelled(claim, "tok")
        assert process.wait(20) == 0, "the wait ends as soon as nothing lives"
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        said = process.stderr.read()
        process.stderr.close()
    assert "is cancelled: nothing of it lives" in said
    assert served.views.plan(plan).state is PlanState.CANCELLED


def test_cancel_of_a_lost_worker_names_the_host_that_has_to_sweep(served: Scene) -> None:
    plan = factory.submit(served.store, [factory.task("one")], name="lost")
    claim = next(claim for claim in served.claims(4) if claim.plan == plan)
    served.start(claim)
    served.store.cancel(plan, "test")
    sessions = served.store.keys.sessions()
    served.store.client.zadd(sessions, {claim.session: 1000})
    served.store.recover(claim.session, "1000")
    done = served("cancel", plan, "--wait", "1ms")
    assert done.code == 5
    assert "waits for the sweep of host h" in done.err
    served.store.recover(claim.session, "", swept=True)
    assert served("cancel", plan, "--wait", "1s").code == 0
    assert served.views.plan(plan).state is PlanState.CANCELLED


def test_cancel_one_task(served: Scene) -> None:
    tasks = [factory.task("one"), factory.task("two", ["one"]), factory.task("other")]
    plan = factory.submit(served.store, tasks, name="single")
    done = served("cancel", plan, "one")
    assert f"task one of plan {plan} is cancelled" in done.err
    states = {task.task: task.state for task in served.views.tasks(plan)}
    assert states == {"one": "cancelled", "two": "skipped", "other": "pending"}
    assert served.views.plan(plan).state is PlanState.RUNNING


def test_cancel_asks_on_a_terminal(served: Scene) -> None:
    plan = factory.submit(served.store, [factory.task("one")], name="sure")
    claim = next(claim for claim in served.claims(4) if claim.plan == plan)
    served.start(claim)
    said = on_a_terminal(served, "cancel", plan, typed="n\n")
    assert "1 agent is stopped and their work" in said or "1 agent is stopped" in said
    assert served.views.plan(plan).state is PlanState.RUNNING
    on_a_terminal(served, "cancel", plan, "--yes")
    assert served.views.plan(plan).state is PlanState.CANCELLING


def checks(made: dict[str, Any]) -> dict[str, str]:
    return {each["check"]: each["status"] for each in made["checks"]}


def test_doctor_of_a_sound_host(served: Scene) -> None:
    done = served("doctor", "--json")
    assert done.code == 0, done.out
    made = done.json()
    assert (made["schema"], made["ok"]) == ("dagward/doctor/1", True)
    found = checks(made)
    assert found["sandbox"] == "warn"
    assert {found[name] for name in ("python", "git", "server", "store", "subreaper", "sessions")} == {"ok"}
    text = served("doctor").out
    assert "no sandbox in this version: agents run as this user" in text


def test_doctor_names_each_fault_with_its_remedy(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "sessions").mkdir(parents=True)
    state.chmod(0o755)
    (state / "logs" / "up").mkdir(parents=True)
    (state / "logs" / "up" / "w.log").write_text('{"survivors": 1, "event": "process.unkillable"}\n')
    dead = {"session": "s1", "pid": 2**22 - 1, "start": 1, "guard_pid": 1, "guard_start": 1, "boot": "another"}
    (state / "sessions" / "s1.json").write_text(json.dumps(dead))
    bad = dagward(
        state, "doctor", "--json", env={"REDIS_URL": f"unix://{tmp_path}/nothing.sock", "PATH": "/nonexistent"}
    )
    assert bad.code == 5
    made: Any = bad.json()
    found = checks(made)
    assert found["git"] == found["state folder"] == found["server"] == "fail"
    assert found["sessions"] == found["alarms"] == "warn"
    remedies = {each["check"]: each["remedy"] for each in made["checks"]}
    assert remedies["state folder"] == f"chmod 700 {state}"
    assert all(remedies[name] for name in ("git", "server", "sessions", "alarms"))
    (state / "sessions" / "s2.json").write_text("{")
    worse: Any = dagward(state, "doctor", "--json", env={"REDIS_URL": f"unix://{tmp_path}/nothing.sock"}).json()
    assert checks(worse)["sessions"] == "fail"


def test_doctor_knows_a_worker_that_lives(served: Scene) -> None:
    stat = Path(f"/proc/{os.getpid()}/stat").read_bytes()
    start = int(stat[stat.rindex(b")") + 2 :].split()[19])
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    folder = served.state / "sessions"
    folder.mkdir(exist_ok=True)
    record = {"session": "me", "pid": os.getpid(), "start": start, "guard_pid": 1, "guard_start": 1, "boot": boot}
    file = folder / "me.json"
    file.write_text(json.dumps(record))
    assert checks(served("doctor", "--json").json())["sessions"] == "ok"
    file.write_text(json.dumps({**record, "start": start + 1}))
    assert checks(served("doctor", "--json").json())["sessions"] == "warn"
    file.unlink()


def test_config_show_hides_the_password(tmp_path: Path) -> None:
    state = tmp_path / "state"
    env = {"REDIS_URL": "redis://user:hunter22@localhost:1/0", "DAGWARD_LEASE": "9000"}
    shown = dagward(state, "config", "show", env=env)
    assert shown.code == 0
    assert "lease\t9000" in shown.out
    assert "hunter22" not in shown.out + shown.err
    made = dagward(state, "config", "show", "--json", env=env).json()
    assert made["schema"] == "dagward/config/1"
    assert not state.exists()
    began = time.monotonic()
    failed = dagward(state, "doctor", env=env)
    assert failed.code == 5
    assert "hunter22" not in failed.out + failed.err
    assert time.monotonic() - began < 30
