"""What the guard is made of, without a guard: framing, capture, orders, rulings, walks over a table of processes."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers import processes, sweep
from workers.capture import Capture, open_log
from workers.channel import LIMIT, Channel, Message
from workers.guarded import GuardGone, _ended, _order
from workers.lease import Lease
from workers.plugins import Command, Ended
from workers.processes import Process
from workers.spawn import BadOrder, Order

Ends = tuple[Channel, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours.fileno()), theirs


def test_messages_survive_any_cut(ends: Ends) -> None:
    channel, other = ends
    sent: list[Message] = [{"op": "x", "n": n, "text": "ü\udcff\n"} for n in range(5)]
    got: list[Message] = []
    for message in sent:
        for byte in b"\n" + json.dumps(message).encode() + b"\n":
            other.send(bytes([byte]))
            got += channel.receive()
    assert got == sent
    assert channel.refused == 0


def test_half_a_line_spoils_only_itself(ends: Ends) -> None:
    channel, other = ends
    other.send(b'{"op":"lost","text":"')
    assert channel.receive() == []
    other.send(b'\n{"op":"kept"}\n')
    assert channel.receive() == [{"op": "kept"}]
    assert channel.refused == 1


def test_what_came_before_the_end_is_delivered(ends: Ends) -> None:
    channel, other = ends
    other.send(b'{"op":"last"}\n')
    other.close()
    assert channel.receive() == [{"op": "last"}]
    assert channel.closed


def test_reset_counts_as_the_end(ends: Ends) -> None:
    """The owner died with unread answers: ECONNRESET instead of end of file."""
    channel, other = ends
    channel.send({"op": "unread"})
    other.close()
    assert channel.receive() == []
    assert channel.closed


def test_send_to_nobody_closes_and_does_not_raise(ends: Ends) -> None:
    channel, other = ends
    other.close()
    channel.send({"op": "x"})
    assert channel.closed
    assert not channel.pending


def test_endless_line_is_skipped_with_bounded_memory(ends: Ends) -> None:
    channel, other = ends
    other.setblocking(False)
    for _ in range(3 * LIMIT // 50_000):
        other.send(b"x" * 50_000)
        assert channel.receive() == []
        assert len(channel._read) <= LIMIT
    other.send(b'\n{"op":"after"}\n')
    assert channel.receive() == [{"op": "after"}]


def test_message_beyond_the_limit_is_refused_before_it_is_sent(ends: Ends) -> None:
    channel, _ = ends
    with pytest.raises(ValueError, match="larger than"):
        channel.send({"op": "x", "text": "y" * LIMIT})
    assert not channel.pending


def test_sending_never_blocks_and_ends_at_the_backlog(ends: Ends) -> None:
    channel, other = ends
    message: Message = {"op": "x", "text": "y" * 100_000}
    channel.send(message)
    while not channel.pending and not channel.closed:
        channel.send(message)
    assert not channel.closed
    while channel.pending:
        channel.send(message)
    assert channel.closed
    assert other.recv(100) != b""


@pytest.mark.parametrize("seed", range(40))
def test_capture_keeps_both_halves_whatever_the_cuts(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    cap = choose.choice([0, 1, 2, 3, 7, 64, 1000])
    text = bytes(choose.randrange(256) for _ in range(choose.choice([0, 1, cap, cap + 1, 3 * cap, 2500])))
    source, target = os.pipe()
    capture = Capture(source, open_log(str(tmp_path / "log")), cap)
    rest = text
    while rest:
        size = choose.randrange(1, 200)
        os.write(target, rest[:size])
        rest = rest[size:]
        assert capture.read()
    os.close(target)
    capture.finish()
    head, tail = cap - cap // 2, cap // 2
    dropped = max(0, len(text) - cap)
    log = (tmp_path / "log").read_bytes()
    assert (capture.total, capture.dropped) == (len(text), dropped)
    if not dropped:
        assert log == text
    else:
        note = b"[dagward: %d bytes left out]\n" % dropped
        kept = text[:head]
        assert log == kept + (b"" if kept.endswith(b"\n") or not kept else b"\n") + note + (
            text[-tail:] if tail else b""
        )


def test_log_of_a_full_disk_is_none_and_everything_is_dropped() -> None:
    source, target = os.pipe()
    os.write(target, b"12345")
    os.close(target)
    capture = Capture(source, None, 100)
    capture.finish()
    assert (capture.total, capture.dropped) == (5, 5)


COMMAND = Command(["a", "\udcff"], Path("/w"), {"K": "v"}, Path("/l"), 1500, stall=200, cap=10, grace=300)


def _message(**changes: object) -> Message:
    return {"op": "run", "id": "h1", "attempt": "p_1_1", **_order(COMMAND), **changes}


def test_order_is_what_the_command_was() -> None:
    order = Order(json.loads(json.dumps(_message())))
    assert (order.argv, order.cwd, order.env, order.log) == (["a", "\udcff"], "/w", {"K": "v"}, "/l")
    assert (order.timeout, order.stall, order.grace, order.cap, order.stdin) == (1.5, 0.2, 0.3, 10, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"argv": []},
        {"argv": "sh"},
        {"argv": ["a", 1]},
        {"argv": [""]},
        {"env": None},
        {"env": {"A": 1}},
        {"timeout": -1},
        {"timeout": 1.5},
        {"timeout": True},
        {"stall": "x"},
        {"cap": None},
        {"cwd": ""},
        {"attempt": None},
        {"stdin": 0},
    ],
)
def test_order_of_another_shape_is_refused(changes: Message) -> None:
    with pytest.raises(BadOrder):
        Order(_message(**changes))


def test_ended_is_read_field_by_field() -> None:
    answer: Message = {
        "op": "ended",
        "reason": "timeout",
        "exit_code": -9,
        "killed": 2,
        "thawed_ago": 5,
    }
    assert _ended(answer) == Ended("timeout", -9, thawed_ago=5, killed=2)
    with pytest.raises(GuardGone, match="unknown end"):
        _ended({"op": "ended", "reason": "bored"})


def test_lease_rules_only_on_what_it_can_know() -> None:
    lease = Lease()
    assert not lease.lapsed(1e9)
    lease.renew({"op": "beat", "deadline": 10, "held": ["a"], "sent": 5.0})
    assert not lease.lapsed(9.9)
    assert lease.lapsed(10.0)
    assert lease.ruling("a", since=7.0) == "held"
    assert lease.ruling("b", since=4.0) == "fenced"
    assert lease.ruling("b", since=6.0) == "unknown"
    lease.renew({"op": "beat", "deadline": 20, "held": []})
    assert lease.ruling("b", since=6.0) == "fenced"


@pytest.mark.parametrize("beat", [{}, {"deadline": "soon", "held": []}, {"deadline": 1.0, "held": None}])
def test_lease_refuses_what_is_no_beat(beat: Message) -> None:
    lease = Lease()
    with pytest.raises(ValueError, match="deadline"):
        lease.renew(beat)
    assert lease.deadline is None


def _process(pid: int, ppid: int, state: str = "S", threads: int = 1) -> Process:
    fields = [state, ppid, pid, pid, *([0] * 13), threads, 0, pid * 10]
    return Process(pid, [str(field).encode() for field in fields])


def test_walk_finds_descendants_parents_first_and_spares_subtrees() -> None:
    people = [_process(7, 5), _process(5, 2), _process(3, 2), _process(2, 1), _process(9, 1), _process(8, 3, "Z")]
    assert [process.pid for process in processes.beneath([2], people)] == [5, 3, 7]
    assert [process.pid for process in processes.beneath([2], people, spare=[5])] == [3]
    assert processes.beneath([4], people) == []


def test_leader_that_ended_before_its_threads_is_alive() -> None:
    assert _process(2, 1, "Z", threads=3).alive
    assert not _process(2, 1, "Z").alive


def test_own_process_is_read_from_proc() -> None:
    me = processes.look(os.getpid())
    assert me is not None
    assert (me.ppid, me.group, me.session) == (os.getppid(), os.getpgrp(), os.getsid(0))
    assert me.alive
    assert processes.look(2**22 + 1) is None


def test_leader_file_lies_beside_the_record(tmp_path: Path) -> None:
    assert sweep.leader_file(tmp_path, "s1") == tmp_path / "sessions" / "s1.leader"
    assert (tmp_path / "sessions").stat().st_mode & 0o777 == 0o700
