"""Work that turns against its worker: secrets that leak, checks that kill or hang, a process stopped from outside."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable

import psutil

from scheduler.model import TaskState
from tests.conftest import wait_until
from tests.run_kit import Place

HEAD = "name: bad\ngoal: Misbehave.\ndefaults: {retries: {max: 0}}\ntasks:\n"
VALUE = "correct-horse-battery"


def in_state(place: Place, state: TaskState) -> Callable[[], bool]:
    """Whether task `a` of the only plan stands there."""

    def look() -> bool:
        if not (place.state / "server/redis.sock").exists():
            return False
        views = place.views()
        return any(views.task(plan, "a").state is state for plan in views.plan_ids())

    return look


def test_t24_a_secret_that_an_agent_gives_away_is_in_no_output_log_or_store(place: Place) -> None:
    """It stays in what the agent wrote itself: its workspace, hence its result, and its own outputs file."""
    done = place.command(
        "run",
        str(
            place.plan(
                HEAD + "  - id: a\n    env: {secrets: [TOKEN_X]}\n    agent:\n      use: command\n      run: |\n"
                '        echo "$TOKEN_X"\n        echo "$TOKEN_X" > leak.txt\n'
                '        echo "{\\"say\\": [{\\"$TOKEN_X\\": \\"<$TOKEN_X>\\"}]}" > $DAGWARD_OUTPUTS\n'
                "    verify:\n      - run: cat leak.txt\n"
                "  - {id: b, blocked_by: [a], prompt: '{{ outputs.a.say }}', agent: {use: command, run: "
                "'cat $DAGWARD_PROMPT $DAGWARD_INPUTS/a/outputs.json'}}\n"
            )
        ),
        TOKEN_X=VALUE,
    )
    assert done.returncode == 0, done.stderr
    assert '[{"***": "<***>"}]' in next(place.state.glob("attempts/*/b/1/agent.log")).read_text()
    found = {file for file in place.state.rglob("*") if file.is_file() and VALUE.encode() in file.read_bytes()}
    own = re.compile(r"/(written/outputs\.json|leak\.txt|snapshots/objects/.*)$")
    assert found, "the agent did give it away"
    assert not [file for file in found if not own.search(str(file))]


def test_a_check_that_kills_its_guard_is_not_tried_for_ever(place: Place) -> None:
    task = '  - {id: a, agent: {use: command, run: "true"}, verify: [{run: "kill -9 $PPID; sleep 60"}]}\n'
    done = place.command("run", str(place.plan(HEAD + task)))
    assert done.returncode == 1, done.stderr
    assert "a (attempt 1) failed: lost: its checks: the guard died, 3 times" in done.stderr


def test_t13_a_check_that_hangs_inside_the_worker_can_be_cancelled(place: Place) -> None:
    place.plan(
        HEAD + "  - id: a\n    agent:\n      use: command\n      run: |\n"
        f'        echo \'{{"x": "{"a" * 60}!"}}\' > $DAGWARD_OUTPUTS\n'
        '    verify: [{outputs: {schema: {properties: {x: {pattern: "^(a+)+$"}}}}}]\n'
    )
    run = place.start("run", "plan.yaml")
    wait_until(in_state(place, TaskState.VERIFYING), "the check to run", 30)
    done = place.command("cancel", "bad", "--yes", "--wait", "30s")
    assert done.returncode == 0, done.stderr
    code, out = place.finish(run)
    assert code == 1, out
    assert "a cancelled" in out


def test_a_horse_that_a_stranger_stopped_is_noticed(place: Place) -> None:
    """Its main goes on renewing for it, so nothing but main's own look can end it."""
    place.plan(HEAD + '  - {id: a, agent: {use: command, run: "test $DAGWARD_ATTEMPT = 2 || sleep 60"}}\n')
    run = place.start("run", "plan.yaml")
    wait_until(in_state(place, TaskState.RUNNING), "the agent to run", 30)
    mains = {process.pid for process in place.workers()}
    horses = [p for p in place.named(r"-m workers ") if p.ppid() in mains and p.status() != psutil.STATUS_ZOMBIE]
    assert len(horses) == 1
    horses[0].send_signal(signal.SIGSTOP)
    began = time.monotonic()
    code, out = place.finish(run)
    assert code == 0, out
    assert "handed back: its process was stopped (SIGSTOP)" in out
    assert time.monotonic() - began < 40


def test_outputs_that_nobody_could_read_again_are_the_agents_fault(place: Place) -> None:
    text = (
        "python3 -c \\\"print('{' + chr(34) + 'a' + chr(34) + ':' + '[' * 600 + ']' * 600 + '}')\\\" > $DAGWARD_OUTPUTS"
    )
    done = place.command("run", str(place.plan(HEAD + f'  - {{id: a, agent: {{use: command, run: "{text}"}}}}\n')))
    assert done.returncode == 1
    assert "agent_error: the outputs are nested deeper than 100 levels" in done.stderr


def test_what_an_agent_printed_moves_no_cursor_of_the_one_who_reads_the_end(place: Place) -> None:
    task = "  - {id: a, agent: {use: command, run: \"printf 'one\\\\033[2J\\\\033]0;title\\\\007two\\\\n'; exit 1\"}}\n"
    done = place.command("run", str(place.plan(HEAD + task)))
    assert done.returncode == 1
    assert "| onetwo" in done.stderr
    assert "\x1b" not in done.stderr


def test_10_a_store_that_was_emptied_under_a_run_is_named_and_not_taken_for_a_new_one(place: Place) -> None:
    place.plan(HEAD + '  - {id: a, agent: {use: command, run: "sleep 60"}}\n')
    run = place.start("run", "plan.yaml")
    wait_until(in_state(place, TaskState.RUNNING), "the agent to run", 30)
    place.views().client.flushall()
    code, out = place.finish(run)
    assert code == 5, out
    assert "is gone from the store" in out
    assert "another --state-dir" in out


def test_10_daemon_and_workers_of_an_up_do_not_go_on_with_an_emptied_store(place: Place) -> None:
    up = place.start("up", "--workers", "1")
    wait_until(lambda: len(place.workers()) == 2 and len(place.daemons()) == 1, "the crew", 30)
    wait_until(lambda: len(place.views().workers()) == 2, "the workers to be there", 30)
    place.views().client.flushall()
    code, out = place.finish(up)
    assert code == 5, out
    assert "keeps ending" in out
    assert "the store is empty, but this state folder knows it" in out


def test_a_python_agent_without_its_function_is_told_so(place: Place) -> None:
    task = "  - {id: a, agent: {use: python, call: 'nowhere.at_all:run'}}\n"
    done = place.command("run", str(place.plan(HEAD + task)))
    assert done.returncode == 1
    assert "a failed after 1 of 1 attempts: configuration: there is no such function" in done.stderr
    assert "| nowhere.at_all:run: No module named 'nowhere'" in done.stderr
