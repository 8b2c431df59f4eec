"""Agents that misbehave: each ends as the plan says, with the reason in the last lines, and no process is left."""

from __future__ import annotations

import pytest

from tests.run_kit import Place

HEAD = "name: bad\ngoal: Misbehave.\ndefaults: {retries: {max: 0}}\ntasks:\n"


def run(place: Place, task: str) -> tuple[int, str]:
    done = place.command("run", str(place.plan(HEAD + task)))
    place.nothing_left()
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ('  - {id: a, agent: {use: command, run: "echo why >&2; exit 3"}}\n', "agent_error: exit 3"),
        ('  - {id: a, agent: {use: command, run: "kill -9 $$"}}\n', "agent_error: ended by signal 9"),
        ('  - {id: a, timeout: 500ms, agent: {use: command, run: "sleep 60"}}\n', "timeout: stopped at its time limit"),
        (
            "  - {id: a, timeout: 500ms, agent: {use: command, run: \"trap '' TERM; setsid sleep 61 & "
            'while :; do sleep 1; done"}}\n',
            "timeout: stopped at its time limit",
        ),
        ('  - {id: a, stall: 500ms, agent: {use: command, run: "sleep 60"}}\n', "stall: no output"),
        (
            '  - {id: a, timeout: 500ms, agent: {use: command, run: "exec >&- 2>&-; sleep 60"}}\n',
            "timeout: stopped at its time limit",
        ),
        ('  - {id: a, agent: {use: command, run: "no-such-program-here"}}\n', "configuration: exit 127"),
        ('  - {id: a, agent: {use: command, run: "echo x > $DAGWARD_OUTPUTS"}}\n', "agent_error: the outputs are not JSON"),
        (
            '  - {id: a, agent: {use: command, run: "true"}, verify: [{run: "echo broken thing; false"}]}\n',
            "rejected: echo broken thing; false",
        ),
        (
            '  - {id: a, agent: {use: command, run: "true"}, verify: [{run: "nosuchcheck"}]}\n',
            "configuration: nosuchcheck",
        ),
        ('  - {id: a, scope: {write: ["ok/**"]}, agent: {use: command, run: "echo x > bad"}}\n', "scope_violation: "),
    ],
    ids=["exit", "signal", "hang", "ignores-term", "stall", "closes-output", "missing", "outputs", "check", "no-check", "scope"],
)  # fmt: skip
def test_a_bad_agent_fails_with_its_reason(place: Place, task: str, reason: str) -> None:
    code, out = run(place, task)
    assert code == 1, out
    assert reason in out
    assert "a failed after 1 of 1 attempts" in out
    assert f"next: dagward {'evidence' if 'check: ' in out else 'logs'}" in out


def test_200_megabytes_and_invalid_utf8_are_capped_and_kept(place: Place) -> None:
    code, out = run(
        place,
        "  - id: a\n    agent:\n      use: command\n      run: |\n"
        "        printf '\\377\\376 start\\n'\n"
        "        head -c 200000000 /dev/zero | tr '\\0' x\n        echo\n        echo the-end\n        exit 1\n",
    )
    assert code == 1, out
    assert "the-end" in out
    logs = list(place.state.glob("attempts/*/a/1/agent.log"))
    assert len(logs) == 1
    data = logs[0].read_bytes()
    assert len(data) < 11_000_000
    assert data.startswith(b"\xff\xfe start\n")
    assert b"bytes left out" in data


def test_children_left_by_a_good_agent_are_gone_before_it_counts(place: Place) -> None:
    done = place.command(
        "run",
        str(
            place.plan(
                HEAD + '  - {id: a, agent: {use: command, run: "setsid sleep 62 & (sleep 63 &) ; echo x > f"}}\n'
            )
        ),
    )
    assert done.returncode == 0, done.stderr
    place.nothing_left()


def test_failure_spreads_and_other_branches_go_on(place: Place) -> None:
    done = place.command(
        "run",
        str(
            place.plan(
                HEAD
                + '  - {id: a, agent: {use: command, run: "exit 1"}}\n'
                + '  - {id: b, blocked_by: [a], agent: {use: command, run: "true"}}\n'
                + '  - {id: c, blocked_by: [b], agent: {use: command, run: "true"}}\n'
                + '  - {id: other, agent: {use: command, run: "echo x > f"}}\n'
            )
        ),
        "--json",
    )
    assert done.returncode == 1
    import json

    states = {t["task"]: (t["state"], t["cause"]) for t in json.loads(done.stdout)["tasks"]}
    assert states == {
        "a": ("failed", ""),
        "b": ("skipped", "a failed"),
        "c": ("skipped", "a failed"),
        "other": ("completed", ""),
    }
