"""Kills what dead workers of this host left behind, before anything starts here. Linux only (/proc, boot id).

A worker writes itself down as `<state>/sessions/<session>.json` and takes that away at a clean end. A record whose
worker is dead is swept: its guard, the recorded leader, and every process whose environment carries
`DAGWARD_SESSION=<session>`, each with everything beneath it. Must not know the store: the caller tells it what was
proven gone, then calls `forget`. Never touches a process that is neither recorded nor marked.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from scheduler.errors import Infrastructure
from workers import processes
from workers.doomed import Doomed
from workers.orphans import Killed, kill_until_gone
from workers.processes import Process

SESSION_MARK = "DAGWARD_SESSION"
TASK_MARK = "DAGWARD_TASK_KEY"
PATIENCE = 10.0


class UnreadableSession(Infrastructure):
    """Make sure that no worker of this host still runs, remove the file, and start again."""

    code = "unreadable_session"


@dataclass(frozen=True, slots=True)
class Session:
    """A worker as it wrote itself down. Start times in clock ticks since boot (field 22 of /proc/PID/stat)."""

    session: str
    pid: int
    start: int
    guard_pid: int
    guard_start: int
    boot: str


@dataclass(frozen=True, slots=True)
class Swept:
    """A dead worker's session, and what was left of it. With survivors nothing of it may be released."""

    session: str
    killed: int
    survivors: int


def leader_file(state: Path, session: str) -> Path:
    """Where the guard of this session leaves the identity of the command's leader."""
    return _folder(state) / f"{session}.leader"


def register(state: Path, session: str, guard_pid: int) -> None:
    """Write the calling worker down. Call before its first attempt. Raises Infrastructure when the guard is gone."""
    me, guard = processes.look(os.getpid()), processes.look(guard_pid)
    if me is None or guard is None:
        raise Infrastructure(f"the guard of session {session} (process {guard_pid}) is not there")
    record = Session(session, me.pid, me.start, guard.pid, guard.start, _boot())
    path = _folder(state) / f"{session}.json"
    fresh = path.with_suffix(f".{me.pid}.new")
    fresh.write_text(json.dumps(asdict(record)), encoding="utf-8")
    fresh.chmod(0o600)
    fresh.replace(path)


def forget(state: Path, session: str) -> None:
    """Take a session's record away: after its sweep, when the store knows."""
    for path in (_folder(state) / f"{session}.json", leader_file(state, session)):
        path.unlink(missing_ok=True)


def unregister(state: Path, session: str) -> None:
    """Clean end of the calling worker: its guard has proven everything gone."""
    forget(state, session)


def sweep(state: Path) -> list[Swept]:
    """Kill what is left of each recorded worker that is dead, and say what came of it. Idempotent.

    Records stay until `forget`. Raises UnreadableSession for a record that cannot be read: an unknown worker is
    not a dead one.
    """
    records = [_read(path) for path in sorted(_folder(state).glob("*.json"))]
    people = {process.pid: process for process in processes.everyone()}
    boot = _boot()
    return [_sweep(state, record, boot) for record in records if _dead(record, people, boot)]


def kill_marked(name: str, value: str, spare_session: str = "") -> Killed:
    """Kill every process of this host whose environment carries `name=value`, with everything beneath it.

    Spares processes marked with `DAGWARD_SESSION=<spare_session>`, the caller and its ancestors. For an attempt
    that was lost: `kill_marked(TASK_MARK, "<plan>/<task>", own session)` before the next one starts.
    """
    mark, spared = f"{name}={value}", f"{SESSION_MARK}={spare_session}"

    def find(people: list[Process]) -> list[Process]:
        marked = [(process, marks) for process in people if mark in (marks := _marks(process))]
        return [process for process, marks in marked if not spare_session or spared not in marks]

    return kill_until_gone(Doomed(find), PATIENCE)


def _sweep(state: Path, record: Session, boot: str) -> Swept:
    if record.boot != boot:  # the machine was started anew: nothing of it can live
        return Swept(record.session, 0, 0)
    leader = _leader(state, record.session)
    guard = (record.guard_pid, record.guard_start)
    mark = f"{SESSION_MARK}={record.session}"

    def tree(people: list[Process]) -> list[Process]:
        guards = [process.pid for process in people if process.identity == guard]
        named = [p for p in people if p.identity == leader or (p.identity != guard and mark in _marks(p))]
        return [*processes.beneath(guards, people), *named]

    # The guard last: while it lives, orphans stay beneath it and can be told from strangers.
    first = kill_until_gone(Doomed(tree), PATIENCE)
    if first.survivors:
        return Swept(record.session, first.killed, first.survivors)
    last = kill_until_gone(Doomed(lambda people: [p for p in people if p.identity == guard]), PATIENCE)
    return Swept(record.session, first.killed + last.killed, last.survivors)


def _dead(record: Session, people: dict[int, Process], boot: str) -> bool:
    process = people.get(record.pid)
    if record.boot != boot or process is None:
        return True
    return process.start != record.start or not process.alive


def _marks(process: Process) -> frozenset[str]:
    """The DAGWARD_ entries of a process's environment; none when it has ended or is another user's."""
    try:
        text = Path(f"/proc/{process.pid}/environ").read_bytes()
    except OSError:
        return frozenset()
    if b"DAGWARD_" not in text:
        return frozenset()
    return frozenset(os.fsdecode(entry) for entry in text.split(b"\0") if entry.startswith(b"DAGWARD_"))


def _leader(state: Path, session: str) -> tuple[int, int] | None:
    try:
        words = leader_file(state, session).read_text(encoding="ascii").split()
    except FileNotFoundError:
        return None
    return (int(words[0]), int(words[1])) if len(words) == 2 and "".join(words).isdigit() else None


def _read(path: Path) -> Session:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        record = Session(**fields)
    except (OSError, ValueError, TypeError) as error:
        raise UnreadableSession(f"{path}: cannot read this worker's record: {error}") from None
    numbers = (record.pid, record.start, record.guard_pid, record.guard_start)
    if not all(isinstance(number, int) for number in numbers) or record.session != path.stem:
        raise UnreadableSession(f"{path}: this is not a worker's record")
    return record


def _folder(state: Path) -> Path:
    folder = state / "sessions"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
