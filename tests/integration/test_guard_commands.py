"""One command at a time through a real guard: ends, limits, trees, output, refusals."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.guard_kit import HIDDEN, PYTHON, Desk, Job, alive, guarded
from workers.channel import Message
from workers.guarded import _order
from workers.plugins import Ended


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with guarded(tmp_path) as desk:
        yield desk


def test_exit_code_and_output(desk: Desk) -> None:
    ended = desk.run("echo out; echo err >&2; exit 3")
    assert (ended.reason, ended.exit_code, ended.output, ended.survivors) == ("exit", 3, 8, 0)
    assert desk.log.read_bytes() == b"out\nerr\n"
    assert desk.log.stat().st_mode & 0o777 == 0o600


def test_end_by_a_signal_is_a_negative_code(desk: Desk) -> None:
    assert desk.run("kill -SEGV $$").exit_code == -signal.SIGSEGV


def test_two_commands_one_after_the_other_append_to_one_log(desk: Desk) -> None:
    assert desk.run("echo one").exit_code == 0
    assert desk.run("echo two").exit_code == 0
    assert desk.log.read_bytes() == b"one\ntwo\n"


def test_environment_is_exactly_what_is_given(desk: Desk) -> None:
    show = "import os; print(sorted(os.environ.items()))"
    ended = desk.horse.run(desk.command([*PYTHON, show], env={"ONLY": "this", "LC_CTYPE": "C.UTF-8"}))
    assert ended.exit_code == 0
    assert desk.log.read_text() == "[('LC_CTYPE', 'C.UTF-8'), ('ONLY', 'this')]\n"


def test_arguments_pass_as_bytes(desk: Desk) -> None:
    odd = os.fsdecode(b"a\xff\xfe b")
    assert desk.horse.run(desk.command(["printf", "%s", odd])).exit_code == 0
    assert desk.log.read_bytes() == b"a\xff\xfe b"


def test_standard_input_is_the_file_or_nothing(desk: Desk) -> None:
    (desk.folder / "in").write_text("given")
    assert desk.run("cat", stdin=desk.folder / "in").output == 5
    assert desk.run("cat").output == 0


def test_a_command_starts_with_default_signals_and_no_foreign_descriptor(desk: Desk) -> None:
    show = "import os; print(open('/proc/self/status').read()); print(sorted(map(int, os.listdir('/proc/self/fd'))))"
    assert desk.horse.run(desk.command([*PYTHON, show])).exit_code == 0
    *status, descriptors = desk.log.read_text().splitlines()
    fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    assert int(fields["SigBlk"], 16) == 0
    # What Python itself ignores: SIGPIPE and SIGXFSZ. Nothing else (32 and 33 are the C library's own).
    assert int(fields["SigIgn"], 16) & 0x7FFFFFFF == 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    assert descriptors == "[0, 1, 2, 3]"  # 3 is the folder that is being listed


def test_invalid_utf8_passes_through(desk: Desk) -> None:
    assert desk.run(r"printf '\377\376\000\n'").exit_code == 0
    assert desk.log.read_bytes() == b"\xff\xfe\x00\n"


def test_t18_sigterm_ignored_is_gone_after_timeout_and_grace(desk: Desk) -> None:
    began = time.monotonic()
    ended = desk.run("trap '' TERM; echo; while :; do sleep 100; done", timeout=300, grace=200)
    assert (ended.reason, ended.exit_code, ended.survivors) == ("timeout", -signal.SIGKILL, 0)
    assert 0.5 <= time.monotonic() - began < 2.5
    assert "0.3 s" in ended.message


def test_sigterm_gives_the_agent_its_grace(desk: Desk) -> None:
    ended = desk.run("trap 'echo saved; exit 7' TERM; while :; do sleep 0.02; done", timeout=200, grace=5_000)
    assert (ended.reason, ended.exit_code) == ("timeout", 7)
    assert desk.log.read_text().endswith("saved\n")
    assert ended.duration < 4_000


def test_grace_is_the_whole_trees(desk: Desk) -> None:
    """The shell dies of SIGTERM at once; its child still has the time to save its work."""
    inner = "trap 'sleep 0.2; echo saved; exit' TERM; while :; do sleep 0.02; done"
    ended = desk.run(f'sh -c "{inner}" & wait', timeout=200, grace=5_000)
    assert ended.reason == "timeout"
    assert "saved" in desk.log.read_text()


def test_stall_counts_from_the_last_output(desk: Desk) -> None:
    ended = desk.run("for i in 1 2 3 4; do echo $i; sleep 0.15; done; sleep 100", stall=400)
    assert ended.reason == "stall"
    assert ended.output == 8
    assert ended.duration >= 800


def test_t13_hidden_children_are_gone(desk: Desk) -> None:
    ended = desk.horse.run(desk.command([*PYTHON, HIDDEN * 2, str(desk.folder / "out")]))
    assert (ended.reason, ended.exit_code, ended.survivors) == ("exit", 0, 0)
    pids = [int(word) for word in desk.await_file()]
    assert pids
    assert not any(alive(pid) for pid in pids)
    assert ended.killed >= 1


def test_t13_stopped_children_are_gone(desk: Desk) -> None:
    ended = desk.run("sleep 100 & kill -STOP $!; echo $! > $OUT; exit 0")
    assert (ended.killed, ended.survivors) == (1, 0)
    assert not alive(int(desk.await_file()[0]))


def test_background_child_that_holds_the_pipe_does_not_delay_the_end(desk: Desk) -> None:
    ended = desk.run("(echo late; sleep 100) & while ! grep -q late log; do sleep 0.01; done; echo last; exit 4")
    assert (ended.reason, ended.exit_code) == ("exit", 4)
    assert ended.killed >= 1
    assert desk.log.read_text() == "late\nlast\n"


def test_agent_that_closes_its_output_and_lives_on_is_running(desk: Desk) -> None:
    job = desk.start("exec >&- 2>&-; while [ ! -e go ]; do sleep 0.01; done; exit 5")
    wait_until(lambda: any(p for p in desk.tree()), "it runs")
    wait_until(lambda: _closed_output(desk), "its output is closed")
    assert job.running
    (desk.folder / "go").touch()
    assert job.result().exit_code == 5


def _closed_output(desk: Desk) -> bool:
    tree = desk.tree()
    return bool(tree) and not Path(f"/proc/{tree[0].pid}/fd/1").exists()


def test_flood_of_output_is_bounded_on_disk_and_in_memory(desk: Desk) -> None:
    before = _memory(desk, "VmRSS")
    ended = desk.run("echo begin; head -c 200000000 /dev/zero; echo; echo end", cap=2_000_000)
    assert (ended.exit_code, ended.output) == (0, 200_000_011)
    assert ended.dropped == ended.output - 2_000_000
    text = desk.log.read_bytes()
    assert text.startswith(b"begin\n")
    assert text.endswith(b"\nend\n")
    assert b"\n[dagward: %d bytes left out]\n" % ended.dropped in text
    assert len(text) < 2_000_100
    assert _memory(desk, "VmHWM") - before < 1_000 + 2_000  # kB: half the cap, and little more
    assert ended.duration < 10_000


def test_many_small_writes_do_not_grow_the_memory(desk: Desk) -> None:
    before = _memory(desk, "VmRSS")
    write = "import os\nfor i in range(100_000): os.write(1, b'.')"
    ended = desk.horse.run(desk.command([*PYTHON, write], cap=50_000))
    assert (ended.output, ended.dropped) == (100_000, 50_000)
    assert _memory(desk, "VmHWM") - before < 2_000


def _memory(desk: Desk, field: str) -> int:
    status = Path(f"/proc/{desk.guard.pid}/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0])


def test_log_can_be_followed_while_the_command_runs(desk: Desk) -> None:
    job = desk.start("echo first; while [ ! -e go ]; do sleep 0.01; done; echo second")
    wait_until(lambda: desk.log.exists() and desk.log.read_text() == "first\n", "the first line is in the log")
    (desk.folder / "go").touch()
    job.result()
    assert desk.log.read_text() == "first\nsecond\n"


def test_disk_full_drops_output_and_the_command_goes_on(desk: Desk) -> None:
    # RLIMIT_FSIZE on the guard: its writes fail from the first byte, as on a full disk.
    import resource

    unlimited = resource.prlimit(desk.guard.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(desk.guard.pid, resource.RLIMIT_FSIZE, (4, unlimited[1]))
    ended = desk.run("echo 1234567; exit 6")
    assert (ended.exit_code, ended.output, ended.dropped) == (6, 8, 4)
    assert desk.log.read_bytes() == b"1234"


@pytest.mark.parametrize(
    ("argv", "options", "message"),
    [
        (["no-such-program"], {}, "cannot start no-such-program: No such file or directory"),
        (["./folder"], {}, "cannot start ./folder: Permission denied"),
        (["./plain"], {}, "cannot start ./plain: Permission denied"),
        (["plain"], {"env": {"PATH": "."}}, "cannot start plain: Permission denied"),
        (["./odd"], {}, "cannot start ./odd: Exec format error"),
        (
            ["true"],
            {"cwd": Path("/no/such/folder")},
            "cannot enter the folder /no/such/folder: No such file or directory",
        ),
        (["true"], {"stdin": Path("/no/input")}, "cannot read the input /no/input: No such file or directory"),
        (["true"], {"log": Path("/no/such/log")}, "cannot open the log /no/such/log: No such file or directory"),
        (["true", "x" * 200_000], {}, "cannot start true: its arguments and environment are too long"),
        (["true", "x" * 2_000_000], {}, "its arguments and environment are larger than 1048576 bytes"),
        (["true", "a\0b"], {}, "cannot start true: embedded null byte"),
        ([], {}, "`argv` must be a list that begins with a program"),
    ],
)
def test_what_cannot_start_says_why(desk: Desk, argv: list[str], options: dict[str, object], message: str) -> None:
    (desk.folder / "folder").mkdir()
    (desk.folder / "plain").write_text("no program")
    (desk.folder / "odd").write_text("\x01\x02")
    (desk.folder / "odd").chmod(0o700)
    ended = desk.horse.run(desk.command(argv, **options))
    assert (ended.reason, ended.exit_code) == ("spawn", None)
    assert ended.message.startswith(message)
    assert desk.run("exit 0").exit_code == 0


def test_log_is_never_written_through_a_link(desk: Desk) -> None:
    (desk.folder / "victim").write_text("untouched")
    desk.log.symlink_to(desk.folder / "victim")
    ended = desk.run("echo x")
    assert ended.reason == "spawn"
    assert "cannot open the log" in ended.message
    assert (desk.folder / "victim").read_text() == "untouched"


def test_log_that_is_a_pipe_is_refused_at_once(desk: Desk) -> None:
    os.mkfifo(desk.log)
    assert desk.run("echo x").reason == "spawn"


def test_cancel_stops_with_grace_and_proves_it(desk: Desk) -> None:
    job = desk.start("trap 'echo bye; exit 1' TERM; echo > $OUT; while :; do sleep 0.02; done")
    desk.await_file()
    gone = desk.guard.await_gone(desk.guard.kill("p_1_1", "cancelled"), 10)
    assert gone is not None
    assert gone.survivors == 0
    assert not desk.tree()
    ended = job.result()
    assert (ended.reason, ended.exit_code) == ("cancelled", 1)
    assert desk.log.read_text().endswith("bye\n")


def test_fenced_is_killed_at_once(desk: Desk) -> None:
    job = desk.start("trap 'echo bye' TERM; echo > $OUT; while :; do sleep 0.02; done", grace=60_000)
    desk.await_file()
    assert desk.guard.await_gone(desk.guard.kill("p_1_1", "fenced"), 10) is not None
    ended = job.result()
    assert (ended.reason, ended.exit_code) == ("fenced", -signal.SIGKILL)
    assert desk.log.read_text() == ""


def test_fence_cuts_the_grace_of_a_cancel_short(desk: Desk) -> None:
    job = desk.start("trap '' TERM; echo > $OUT; while :; do sleep 0.02; done", grace=60_000)
    desk.await_file()
    first = desk.guard.kill("p_1_1", "cancelled")
    second = desk.guard.kill("p_1_1", "fenced")
    assert desk.guard.await_gone(first, 10) is not None
    assert desk.guard.await_gone(second, 10) is not None
    assert job.result().reason == "fenced"


def test_kill_of_an_attempt_that_does_not_run_refuses_it_later(desk: Desk) -> None:
    job = desk.start("while [ ! -e go ]; do sleep 0.01; done", attempt="other_1_1")
    wait_until(desk.tree, "the other attempt runs")
    gone = desk.guard.await_gone(desk.guard.kill("p_1_1", "cancelled"), 10)
    assert gone is not None
    assert job.running  # kills name the attempt
    (desk.folder / "go").touch()
    assert job.result().exit_code == 0
    assert desk.run("echo ran > $OUT") == Ended("cancelled", None)
    assert not (desk.folder / "out").exists()


def test_second_run_is_refused_while_one_runs(desk: Desk) -> None:
    channel = desk.horse._channel
    wait = desk.command(["sh", "-c", "while [ ! -e go ]; do sleep 0.01; done"])
    channel.send({"op": "run", "id": "1", "attempt": "first_1_1", **_order(wait)})
    channel.send({"op": "run", "id": "2", "attempt": "p_1_1", **_order(desk.command(["sh", "-c", "echo > $OUT"]))})
    answers: list[Message] = []

    def answered(number: int) -> bool:
        answers.extend(channel.receive())
        return len(answers) == number

    wait_until(lambda: answered(2), "both are answered")
    assert [(answer["op"], answer["id"]) for answer in answers] == [("started", "1"), ("ended", "2")]
    assert (answers[1]["reason"], answers[1]["message"]) == ("spawn", "the guard still has a command of first_1_1")
    (desk.folder / "go").touch()
    wait_until(lambda: answered(3), "the first ends")
    assert (answers[2]["id"], answers[2]["exit_code"]) == ("1", 0)
    assert not (desk.folder / "out").exists()


def test_stale_answers_are_dropped(desk: Desk) -> None:
    """An earlier horse died before it read its answer; the next one must not take it for its own."""
    old = desk.horse_of("p_1_1")
    command = desk.command(["sh", "-c", "echo > $OUT"])
    old._channel.send({"op": "run", "id": "of-the-dead", "attempt": "p_1_1", **_order(command)})
    desk.await_file()
    wait_until(lambda: not desk.tree(), "the old command has ended")
    assert desk.horse_of("p_1_2").run(desk.command(["sh", "-c", "exit 9"])).exit_code == 9


def test_half_a_message_of_a_dead_horse_spoils_nothing(desk: Desk) -> None:
    os.write(desk.guard._horse.fileno(), b'\n{"op":"run","id":"x')
    assert desk.run("exit 2").exit_code == 2
    os.write(desk.guard._horse.fileno(), b'\n{"op":"run"')
    assert desk.guard.await_gone(desk.guard.kill_all(), 10) is not None
    assert desk.run("exit 3").exit_code == 3


def test_nonsense_is_ignored(desk: Desk) -> None:
    for line in (b"no json\n", b"[]\n", b'{"op":1}\n', b'{"op":"unknown"}\n', b'{"op":"beat","deadline":"x"}\n'):
        os.write(desk.guard.readable, line)
        os.write(desk.guard._horse.fileno(), line)
    os.write(desk.guard.readable, b'{"op":"kill","attempt":"p_1_1","reason":"whim"}\n')
    assert desk.guard.ping(5)
    assert desk.run("exit 0").exit_code == 0


def test_an_exception_in_the_horse_stops_its_command(desk: Desk) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise InterruptedError("stop")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(InterruptedError):
            desk.run("while :; do sleep 0.02; done")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not desk.tree()


def test_t13_fork_storm_is_killed(desk: Desk) -> None:
    storm = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + 60
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < end:
            if os.fork() == 0:
                time.sleep(0.05)
                os._exit(0)
            os.wait()
        os._exit(0)
print("full", flush=True)
time.sleep(60)
"""
    job = Job(desk.horse, desk.command([*PYTHON, storm], grace=200))
    wait_until(lambda: desk.log.exists() and desk.log.read_text(), "all of them fork")
    began = time.monotonic()
    desk.guard.kill("p_1_1", "cancelled")
    ended = job.result()
    assert (ended.reason, ended.survivors) == ("cancelled", 0)
    assert ended.killed >= 200
    assert time.monotonic() - began < 0.2 + 5


def test_t13_a_child_that_forks_and_ends_all_the_time_is_killed(desk: Desk) -> None:
    comet = "import os, time\nend = time.monotonic() + 60\nwhile time.monotonic() < end:\n if os.fork(): os._exit(0)"
    ended = desk.horse.run(desk.command([*PYTHON, comet]))
    assert (ended.reason, ended.exit_code, ended.survivors) == ("exit", 0, 0)


def test_guard_is_small(desk: Desk) -> None:
    assert desk.run("exit 0").exit_code == 0
    assert _memory(desk, "VmRSS") < 16_000
    assert _memory(desk, "RssAnon") < 8_000


def test_quit_kills_what_runs(desk: Desk) -> None:
    job = desk.start("echo > $OUT; exec sleep 100")
    desk.await_file()
    pids = [process.pid for process in desk.tree()]
    desk.guard.quit()
    assert not any(alive(pid) for pid in pids)
    assert job.result().reason == "fenced"


def test_terminal_signals_do_not_end_the_guard(desk: Desk) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(desk.guard.pid, number)
    assert desk.guard.ping(5)
    assert desk.run("exit 0").exit_code == 0


def test_guard_imports_nothing_beyond_the_standard_library(desk: Desk) -> None:
    maps = Path(f"/proc/{desk.guard.pid}/maps").read_text()
    assert "site-packages" not in maps
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in maps or "python" in maps
