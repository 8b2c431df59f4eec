"""`run` and signals, two runs in one state folder, approval, resume: DESIGN section 9."""

from __future__ import annotations

import signal

from tests.conftest import wait_until
from tests.run_kit import Place

WAITS = """
name: {name}
goal: Wait for a file.
defaults: {{retries: {{max: 0}}}}
tasks:
  - id: first
    agent: {{use: command, run: "echo x > f"}}
  - id: waits
    blocked_by: [first]
    agent: {{use: command, run: "echo ran >> ../../../../{name}.ran; while [ ! -e ../../../../{name}.go ]; do sleep 0.05; done; echo x > f"}}
"""


def test_int_hands_back_uncharged_pauses_and_resumes(place: Place) -> None:
    plan = place.plan(WAITS.format(name="sig"))
    process = place.start("run", str(plan))
    place.appears("sig.ran")
    process.send_signal(signal.SIGINT)
    code, out = place.finish(process)
    assert code == 130, out
    assert f"go on with: dagward run {plan} --resume" in out
    place.nothing_left()
    shown = place.json("ps", "--all")
    assert "paused" in str(shown)
    (place.folder / "sig.go").touch()
    done = place.command("run", str(plan), "--resume")
    assert done.returncode == 0, done.stderr
    assert place.lines("sig.ran") == 2
    events = place.command("events", "sig").stdout
    assert "the worker was stopped" in events
    assert "retry" not in events


def test_a_second_signal_kills(place: Place) -> None:
    plan = place.plan(WAITS.format(name="twice").replace("echo ran", "trap '' TERM; echo ran"))
    place.env["DAGWARD_GRACE"] = "20000"
    process = place.start("run", str(plan))
    place.appears("twice.ran")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)  # another number: two equal ones may arrive as one
    code, out = place.finish(process, timeout=20)
    assert code == 130, out
    place.nothing_left()


def test_two_runs_in_one_state_folder_serve_their_own(place: Place) -> None:
    one = place.start("run", str(place.plan(WAITS.format(name="one"), "one.yaml")))
    two = place.start("run", str(place.plan(WAITS.format(name="two"), "two.yaml")))
    place.appears("one.ran")
    place.appears("two.ran")
    (place.folder / "one.go").touch()
    code, out = place.finish(one)
    assert code == 0, out
    assert place.servers(), "the first to end stopped the server of the second"
    assert two.poll() is None
    (place.folder / "two.go").touch()
    code, out = place.finish(two)
    assert code == 0, out
    assert (place.lines("one.ran"), place.lines("two.ran")) == (1, 1)
    place.nothing_left()


def test_a_plan_that_needs_approval_ends_with_3_and_goes_on_after_it(place: Place) -> None:
    plan = place.plan(
        "name: asks\ngoal: g\napproval: required\ntasks:\n  - {id: a, agent: {use: command, run: 'echo x > f'}}\n"
    )
    done = place.command("run", str(plan))
    assert done.returncode == 3, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "dagward approve" in line]
    words = line.split("dagward approve ")[1].split()
    before = place.json("show", "asks")
    inside = place.command("approve", *words, DAGWARD_ATTEMPT="1")
    assert inside.returncode == 2
    assert place.command("approve", words[0], "--version", "1", "--hash", "0" * 64).returncode == 2
    assert place.json("show", "asks") == before
    assert place.command("approve", *words).returncode == 0
    done = place.command("run", str(plan), "--resume")
    assert done.returncode == 0, done.stderr
    place.nothing_left()


def test_cancel_stops_the_agent_and_ends_with_1(place: Place) -> None:
    process = place.start(
        "run", str(place.plan(WAITS.format(name="stop").replace("echo ran", "setsid sleep 64 & echo ran")))
    )
    place.appears("stop.ran")
    assert place.command("cancel", "stop", "--yes").returncode == 0
    code, out = place.finish(process)
    assert code == 1, out
    assert "plan cancelled" in out
    place.nothing_left()


def test_a_failed_plan_is_resumed_with_one_more_attempt(place: Place) -> None:
    plan = place.plan(
        "name: again\ngoal: g\ndefaults: {retries: {max: 0}}\ntasks:\n"
        "  - {id: a, agent: {use: command, run: 'test -e ../../../../fixed && echo x > f'}}\n"
        "  - {id: b, blocked_by: [a], agent: {use: command, run: 'echo x > f'}}\n"
    )
    assert place.command("run", str(plan)).returncode == 1
    assert place.command("run", str(plan), "--resume").returncode == 1
    (place.folder / "fixed").touch()
    done = place.command("run", str(plan), "--resume")
    assert done.returncode == 0, done.stderr
    plan.write_text(plan.read_text().replace("goal: g", "goal: other"))
    refused = place.command("run", str(plan), "--resume")
    assert refused.returncode == 2
    assert "is completed" in refused.stderr


def test_up_serves_submitted_plans(place: Place) -> None:
    up = place.start("up", "--workers", "1")
    plan = place.plan("name: sub\ngoal: g\ntasks:\n  - {id: a, agent: {use: command, run: 'echo x > f'}}\n")
    done = place.command("submit", str(plan), "--key", "k1")
    assert done.returncode == 0, done.stderr
    again = place.command("submit", str(plan), "--key", "k1")
    assert again.stdout == done.stdout
    waited = place.command("wait", done.stdout.strip(), "--timeout", "60s")
    assert waited.returncode == 0, waited.stderr
    up.send_signal(signal.SIGTERM)
    place.finish(up)
    place.nothing_left()


def test_readers_start_and_stop_the_server(place: Place) -> None:
    place.command(
        "run", str(place.plan("name: r\ngoal: g\ntasks:\n  - {id: a, agent: {use: command, run: 'echo x > f'}}\n"))
    )
    wait_until(lambda: not place.servers(), "the server to stop after the run")
    assert "completed" in place.command("ps", "--all").stdout
    assert not place.servers()
