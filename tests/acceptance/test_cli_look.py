"""The reading commands as people call them, against a served state folder."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from scheduler.model import Failure, Log, Result, TaskState
from tests import factory
from tests.acceptance.command import Scene, argv, columns, dagward, environment, words
from tests.conftest import wait_until

TASKS = ["a", "b", "c", "d", "x", "y", "q"]


def rich_plan(served: Scene, name: str) -> str:
    """a runs, b is in back-off, c and d wait for them, x failed its check, y is skipped, q has no worker."""
    store = served.store
    slow = factory.task("b", backoff=600_000)
    plan = factory.submit(
        store,
        [
            factory.task("a"),
            slow,
            factory.task("c", ["a", "b"]),
            factory.task("d", ["c"]),
            factory.task("x", retries=0),
            factory.task("y", ["x"]),
            factory.task("q", pool="llm"),
        ],
        name=name,
    )
    for claim in [claim for claim in served.claims(4) if claim.plan == plan]:
        served.start(claim)
        if claim.task == "x":
            result = Result(kind="snapshot", digest="d1", log=Log(host="elsewhere", path="x"))
            store.submit(plan, "x", 1, "tok", result)
            bad = factory.evidence(1, "tok", accepted=False)
            store.record(plan, "x", bad.model_copy(update={"reason": "exit code 1", "output": "one\nassert 1 == 2\n"}))
            failure = Failure(kind="rejected", reason="exit 0: exit code 1", check=0)
            store.fail(claim, "tok", failure, again=True, jitter=0.5)
        elif claim.task == "b":
            store.fail(claim, "tok", Failure(kind="agent_error", reason="exit code 3"), again=True, jitter=0.5)
    served.settle(plan)
    return plan


@pytest.fixture(scope="module")
def plan(served: Scene) -> str:
    return rich_plan(served, "rich")


def test_ps_lists_newest_first_and_says_how_many_more(served: Scene, plan: str) -> None:
    newer = factory.submit(served.store, [factory.task("one")], name="newer")
    rows = columns(served("ps").out)
    assert words(rows, "PLAN")[:2] == [newer, plan]
    assert rows[1]["STATE"] == "running"
    assert rows[1]["DONE"] == "2/7"
    assert rows[1]["RUNNING"] == "1"
    assert served("ps", "-q").out.split()[:2] == [newer, plan]
    made = served("ps", "--json").json()
    assert made["schema"] == "dagward/ps/1"
    assert made["more"] == 0


def test_ps_hides_old_ended_plans_unless_asked(served: Scene) -> None:
    old = factory.submit(served.store, [factory.task("one")], name="old")
    served.store.cancel(old, "test")
    served.settle(old)
    served.store.client.zadd(served.store.keys.plans(), {old: 1000})
    shown = served("ps", "-q")
    assert old not in shown.out
    assert "1 more: dagward ps --all" in shown.err
    assert old in served("ps", "--all", "-q").out


def test_show_has_a_head_and_every_task(served: Scene, plan: str) -> None:
    shown = served("show", "rich")
    assert f"plan:     {plan}" in shown.out
    assert "hash:     " + "h" * 64 in shown.out
    rows = {row["TASK"]: row for row in columns(shown.out)}
    assert list(rows) == TASKS
    assert rows["c"]["NOTE"] == "waits for 2 blockers"
    assert rows["x"]["NOTE"] == "rejected: exit 0: exit code 1"
    assert rows["x"]["CHARGED"] == "1/1"
    assert "back-off until" in rows["b"]["NOTE"]
    made = served("show", plan, "--json").json()
    assert made["schema"] == "dagward/show/1"
    assert len(made["tasks"]) == 7  # type: ignore[arg-type]


def test_show_cuts_a_long_plan_with_what_failed_first(served: Scene) -> None:
    tasks = [factory.task(f"t{number}") for number in range(230)] + [factory.task("last", retries=0)]
    long = factory.submit(served.store, tasks, name="long", concurrency=1)
    # The last of the file is the one that fails.
    served.store.client.zadd(served.store.keys.ready("default", long), {"last": 1e15})
    claim = next(claim for claim in served.claims(1) if claim.plan == long)
    served.start(claim)
    served.store.fail(claim, "tok", Failure(kind="agent_error", reason="no"), again=False, jitter=0.0)
    shown = served("show", "long")
    rows = columns(shown.out)
    assert len(rows) == 200
    assert rows[0]["TASK"] == "last"
    assert "31 more" in shown.err
    assert len(columns(served("show", "long", "--all").out)) == 231
    assert served("cancel", "long", "--yes").code == 0


def test_graph_of_a_plan_in_every_format(served: Scene, plan: str) -> None:
    text = served("graph", plan).out
    assert "layer 3 (1)" in text
    assert "d pending" in text
    assert served("graph", plan, env={"PYTHONIOENCODING": "ascii"}).out.isascii()
    assert '"a" -> "c";' in served("graph", plan, "--format", "dot").out
    assert served("graph", plan, "--format", "mermaid").out.startswith("flowchart LR\n")
    made = served("graph", plan, "--json").json()
    assert {"from": "c", "to": "d"} in made["edges"]  # type: ignore[operator]


def test_events_are_lines_and_ndjson(served: Scene, plan: str) -> None:
    lines = served("events", plan).out.splitlines()
    assert "plan.submit" in lines[0]
    assert all(line.count("\t") == 6 for line in lines)
    objects = [json.loads(line) for line in served("events", plan, "--json").out.splitlines()]
    assert len(objects) == len(lines)
    assert {each["schema"] for each in objects} == {"dagward/event/1"}
    late = served("events", plan, "--since", objects[-2]["id"], "--json").out.splitlines()
    assert [json.loads(line)["id"] for line in late] == [objects[-1]["id"]]
    assert served("events", plan, "--since", "yesterday").code == 2


def test_events_follow_until_the_plan_ends(served: Scene) -> None:
    plan = factory.submit(served.store, [factory.task("one")], name="followed")
    process = subprocess.Popen(
        argv(served.state, "events", plan, "-f", "--json"), stdout=subprocess.PIPE, text=True, env=environment()
    )
    try:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert first["event"] == "plan.submit"
        claim = next(claim for claim in served.claims(3) if claim.plan == plan)
        factory.through(served.store, claim)
        rest = [json.loads(line) for line in process.stdout.read().splitlines()]
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
    assert [each["event"] for each in rest][-2:] == ["accept", "plan.complete"]


@pytest.mark.parametrize(
    ("task", "words", "step"),
    [
        ("a", "a is running on worker w-", "logs PLAN a -f"),
        ("b", "b waits: back-off until ", "nothing to do"),
        ("c", "c waits: none of its 2 blockers is completed: a (running on worker w-", "logs PLAN a -f"),
        ("d", "d waits: its only blocker is not completed: c (waits for 2 blockers, in the end for a", "why PLAN c"),
        ("x", "x failed after 1 of 1 attempts: rejected: exit 0: exit code 1", "evidence PLAN x"),
        ("y", "y is skipped because x failed", "why PLAN x"),
        ("q", "q waits: no live worker serves pool llm", "dagward worker --pool llm"),
    ],
)
def test_why_names_cause_and_next_step(served: Scene, plan: str, task: str, words: str, step: str) -> None:
    line, following = served("why", plan, task).out.splitlines()
    assert line.startswith(words)
    assert step.replace("PLAN", plan) in following


def test_why_json_has_the_facts_as_fields(served: Scene, plan: str) -> None:
    made: Any = served("why", plan, "b", "--json").json()
    assert made["schema"] == "dagward/why/1"
    cause = made["causes"][0]
    assert (cause["cause"], cause["holder"]) == ("backoff", ["time"])
    assert cause["expected_release"].endswith("Z")
    assert cause["next"].startswith("nothing to do")


def test_why_of_a_plan_names_what_holds_most(served: Scene, plan: str) -> None:
    out = served("why", plan).out
    assert "a is running on worker w-" in out
    assert "and holds 2 tasks" in out
    assert "1 task of pool llm ready (q): no live worker serves pool llm" in out


def test_why_sees_a_full_pool_with_its_holders(served: Scene) -> None:
    store = served.store
    store.client.hset(store.keys.limits(), "narrow", 1)
    plan = factory.submit(store, [factory.task("m", pool="narrow"), factory.task("n", pool="narrow")], name="full")
    served.executor("narrow")
    (claim,) = [claim for claim in store.claim("test", "full") if claim.plan == plan]
    served.start(claim)
    line = served("why", plan, "n").out.splitlines()[0]
    assert line == (
        f"n waits: pool narrow is full (1 of 1), in use by {plan} m; "
        f"the only worker of pool narrow is busy with {plan} m"
    )
    factory.through(store, claim)


def test_evidence_says_what_was_verified_by_what(served: Scene, plan: str) -> None:
    shown = served("evidence", plan)
    (row,) = columns(shown.out)
    assert (row["TASK"], row["KIND"], row["VERDICT"]) == ("x", "exit", "REFUSED exit code 1")
    assert "assert 1 == 2" in shown.err
    made: Any = served("evidence", plan, "x", "--json").json()
    assert made["schema"] == "dagward/evidence/1"
    assert made["evidence"][0]["accepted"] is False
    assert "token" not in made["evidence"][0]
    assert served("evidence", plan, "c").out == ""
    beyond = served("evidence", plan, "x", "--attempt", "9")
    assert beyond.code == 2
    assert "x has no attempt 9" in beyond.err


def test_logs_of_another_host_show_what_is_stored(served: Scene, plan: str) -> None:
    shown = served("logs", plan, "x")
    assert shown.code == 0
    assert "it ran on elsewhere" in shown.err
    assert "rejected: exit 0: exit code 1" in shown.out
    assert "assert 1 == 2" in shown.out
    none = served("logs", plan, "c")
    assert none.code == 2
    assert f"no attempt of c has begun: it is pending\ndagward why {plan} c" in none.err


def log_of(served: Scene, plan: str, task: str) -> Path:
    file = served.state / "attempts" / plan / task / "1" / "agent.log"
    file.parent.mkdir(parents=True)
    return file


def test_logs_pass_bytes_through_and_find_checks(served: Scene, plan: str) -> None:
    file = log_of(served, plan, "a")
    file.write_bytes(b"agent \xff\n")
    for number in range(2):
        log = file.parent / "check-0" / f"check-{number}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_text(f"check run {number}\n")
    done = subprocess.run(argv(served.state, "logs", plan, "a"), capture_output=True, env=environment(), check=True)
    assert done.stdout == b"agent \xff\n"
    assert served("logs", plan, "a", "--check", "0").out == "check run 1\n"
    assert served("logs", plan, "a", "--path").out == f"{file}\n"
    assert served("logs", plan, "a", "--check", "7").code == 2
    made = served("logs", plan, "a", "--json").json()
    assert made["text"] == "agent �\n"


def test_logs_never_follow_a_link(served: Scene) -> None:
    plan = factory.submit(served.store, [factory.task("one")], name="linked")
    claim = next(claim for claim in served.claims(3) if claim.plan == plan)
    served.start(claim)
    secret = served.state / "secret"
    secret.write_text("do not show")
    log_of(served, plan, "one").symlink_to(secret)
    assert "do not show" not in served("logs", plan, "one").out


def test_logs_follow_while_the_attempt_runs(served: Scene) -> None:
    plan = factory.submit(served.store, [factory.task("one")], name="logged")
    process = subprocess.Popen(
        argv(served.state, "logs", plan, "one", "-f"), stdout=subprocess.PIPE, text=True, env=environment()
    )
    try:
        assert process.stdout is not None
        claim = next(claim for claim in served.claims(3) if claim.plan == plan)
        served.start(claim)
        file = log_of(served, plan, "one")
        file.write_text("first\n")
        assert process.stdout.readline() == "first\n"
        with file.open("a") as log:
            log.write("second\n")
        assert process.stdout.readline() == "second\n"
        assert process.poll() is None
        factory.through(served.store, claim)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_queues_and_workers_are_stable_columns(served: Scene, plan: str) -> None:
    rows = {row["POOL"]: row for row in columns(served("queues").out)}
    assert {"default", "llm", "system"} <= set(rows)
    assert rows["llm"]["READY"] == "1"
    assert served("queues", "--json").json()["schema"] == "dagward/queues/1"
    held = [row for row in columns(served("workers").out) if row["HOLDS"] == f"{plan} a"]
    assert [row["STATE"] for row in held] == ["busy"]
    assert served("workers", "--json").json()["schema"] == "dagward/workers/1"


def test_plans_and_tasks_are_found_by_prefix_or_refused(served: Scene, plan: str) -> None:
    assert served("show", plan[:-1]).code == 0
    missing = served("show", "nothing")
    assert (missing.code, missing.out) == (2, "")
    assert "no plan is called nothing" in missing.err
    assert "dagward ps --all" in missing.err
    unknown = served("why", plan, "zzz")
    assert unknown.code == 2
    assert f"plan {plan} has no task zzz" in unknown.err


def test_a_missing_server_is_5_and_no_traceback(tmp_path: Path) -> None:
    gone = dagward(tmp_path / "state", "ps", env={"REDIS_URL": f"unix://{tmp_path}/nothing.sock"})
    assert gone.code == 5
    assert "no server answers" in gone.err
    assert "REDIS_URL" in gone.err


def test_a_state_folder_that_cannot_be_is_5(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = dagward(tmp_path / "file" / "state", "ps")
    assert done.code == 5
    assert "cannot make the state folder" in done.err
    assert "--state-dir" in done.err
    assert dagward(tmp_path / "file" / "state", "doctor").code == 5


def test_a_new_installation_has_no_plan_and_says_so(tmp_path: Path) -> None:
    done = dagward(tmp_path / "state", "ps")
    assert (done.code, done.out) == (0, "")
    assert "no plan yet: dagward init" in done.err
    assert dagward(tmp_path / "state", "workers").out == ""
    assert "default" in dagward(tmp_path / "state", "queues").out


def test_reading_works_after_everything_has_ended(served: Scene, plan: str, tmp_path: Path) -> None:
    from tests.acceptance.command import scene

    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    with scene(state) as other:
        ended = factory.submit(other.store, [factory.task("one")], name="ended")
        (claim,) = other.claims(1)
        factory.through(other.store, claim)
    assert dagward(state, "show", "ended").code == 0
    assert dagward(state, "why", "ended", "one").out.startswith("one is completed: attempt 1, 1 check accepted")
    assert ended in dagward(state, "ps").out
    assert not (state / "server" / "redis.sock").exists(), "the last one out stops the server"


def test_colours_only_on_a_terminal_and_never_under_no_color(served: Scene, plan: str) -> None:
    assert "\x1b[" not in served("show", plan).out
    assert "\x1b[" in on_a_terminal(served, "show", plan)
    assert "\x1b[" not in on_a_terminal(served, "show", plan, env={"NO_COLOR": "1"})


def on_a_terminal(served: Scene, *words: str, env: dict[str, str] | None = None, typed: str = "") -> str:
    """Everything that the command writes on a terminal of its own."""
    import os
    import pty

    parent, child = pty.openpty()
    process = subprocess.Popen(
        argv(served.state, *words),
        stdin=child,
        stdout=child,
        stderr=child,
        env=environment({"TERM": "xterm", **(env or {})}),
    )
    os.close(child)
    os.write(parent, typed.encode())
    out = b""
    try:
        while piece := os.read(parent, 65536):
            out += piece
    except OSError:
        pass  # the other end is closed
    finally:
        os.close(parent)
    process.wait(20)
    return out.decode()


def test_ps_is_quick(served: Scene, plan: str) -> None:
    """The CPU that `ps` takes beside a bare interpreter; the figure of DESIGN section 7 is for an idle machine."""
    import resource

    served("ps")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(3):
        served("ps")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3
    assert spent < 1.5, f"{spent:.2f} s of CPU"


def test_why_says_which_state_a_cancelled_task_is_in(served: Scene) -> None:
    plan = factory.submit(served.store, [factory.task("one")], name="stopped")
    claim = next(claim for claim in served.claims(3) if claim.plan == plan)
    served.start(claim)
    served.store.cancel(plan, "test")
    assert "one is being cancelled: worker w-" in served("why", plan, "one").out
    served.store.cancelled(claim, "tok")
    served.settle(plan)
    wait_until(lambda: served.views.task(plan, "one").state is TaskState.CANCELLED, "the cancel")
    assert served("why", plan, "one").out.startswith("one is cancelled")


def test_events_stop_quietly_when_the_reader_goes(served: Scene, plan: str) -> None:
    process = subprocess.Popen(
        argv(served.state, "events", plan, "-f"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    end = time.monotonic() + 20
    number = 0
    while process.poll() is None and time.monotonic() < end:
        number += 1  # each task writes events, and the next write meets the closed pipe
        factory.submit(served.store, [factory.task("one")], name="noise")
        served.store.client.xadd(served.store.keys.events(plan), {"d": json.dumps({"ev": "record", "by": str(number)})})
    assert process.wait(1) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
