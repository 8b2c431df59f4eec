"""What `doctor` looks at: this host, its programs, the server, the state folder. Changes nothing but what opening does.

It does not fit into `preflight` (that refuses a server) nor into the command (that prints). Must not know click.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scheduler import errors
from scheduler.settings import Settings

DISK_WARN = 2 * 2**30
DISK_FAIL = 200 * 2**20
LOG_TAIL = 256 * 1024
DAY = 86_400.0
PR_GET_CHILD_SUBREAPER = 37

Join = Callable[[], contextlib.AbstractContextManager[object]]
Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One look: how it is, and what to do when it is not ok."""

    check: str
    status: Status
    detail: str
    remedy: str = ""


def checkup(settings: Settings, join: Join, now: float) -> Iterator[Finding]:
    """Every look, one after the other. `join` holds the embedded server while it is looked at; `now` is Unix time."""
    yield python()
    yield package()
    yield git()
    yield state_folder(settings.state_dir)
    yield disk(settings.state_dir)
    yield from server(settings, join)
    yield from kernel()
    yield Finding("sandbox", "warn", "no sandbox in this version: agents run as this user, with its rights and network",
                  "Run dagward as a user of its own, or in a container, when you do not trust an agent.")  # fmt: skip
    yield sessions(settings.state_dir)
    yield alarms(settings.state_dir, now)


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Python 3.11 or newer."""
    text = ".".join(map(str, version))
    if version < (3, 11):
        return Finding("python", "fail", f"Python {text} is too old", "Use Python 3.11 or newer.")
    return Finding("python", "ok", f"Python {text} at {sys.executable}")


def package() -> Finding:
    """The packages `scheduler` and `workers` that are imported are ours."""
    from scheduler import __version__
    from scheduler.daemon import own_package

    try:
        own_package()
    except errors.DagwardError as error:
        return Finding("package", "fail", error.message, error.hint)
    return Finding("package", "ok", f"dagward {__version__}")


def git() -> Finding:
    """git is there and new enough; scratch plans do without."""
    from scheduler.git import require_git, version

    try:
        require_git()
    except errors.DagwardError as error:
        return Finding("git", "fail", error.message, error.hint)
    return Finding("git", "ok", f"git {'.'.join(map(str, version()))}")


def state_folder(folder: Path) -> Finding:
    """The state folder is a folder of this user and nobody else may look into it."""
    try:
        info = folder.lstat()
    except FileNotFoundError:
        return Finding("state folder", "ok", f"{folder} does not exist yet; the first command makes it")
    except OSError as error:
        return Finding("state folder", "fail", f"{folder}: {error.strerror}", "Name another folder by --state-dir.")
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or not os.access(folder, os.W_OK):
        return Finding("state folder", "fail", f"{folder} is not a folder of this user", "Name another by --state-dir.")
    if info.st_mode & 0o077:
        mode = f"{stat.S_IMODE(info.st_mode):04o}"
        return Finding("state folder", "fail", f"{folder} has mode {mode}: others may look in", f"chmod 700 {folder}")
    return Finding("state folder", "ok", f"{folder}, mode 0700")


def disk(folder: Path) -> Finding:
    """There is room for logs, trees and the server's append-only file."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        return Finding("disk", "warn", f"{there}: {error.strerror}", "Look by hand: df -h")
    text = f"{free // 2**20} MB free for {folder}"
    if free < DISK_FAIL:
        return Finding("disk", "fail", text, "Make room, or put the state folder elsewhere by --state-dir.")
    if free < DISK_WARN:
        return Finding("disk", "warn", text, "Make room soon: a full disk stops the server's writes.")
    return Finding("disk", "ok", text)


def server(settings: Settings, join: Join) -> Iterator[Finding]:
    """The server answers, keeps what it acknowledges, and is the one that this state folder knows."""
    from scheduler.settings import epoch_file
    from scheduler.store import connect, open_store, preflight

    config = settings.store_config()
    kind = "embedded server" if settings.embedded else "server"
    try:
        with join():
            client = connect(config, patient=False, timeout=10.0)
            warnings = preflight(client, config)
            yield Finding("server", "ok", f"{kind} at {config.public_url}: {_version(client.info('server'))}")
            for warning in warnings:
                yield Finding("server", "warn", warning, "Set it on the server: appendonly yes, appendfsync always.")
            yield Finding("store", "ok", f"epoch {open_store(client, settings.keys, epoch_file(settings))}")
            client.close()
    except errors.DagwardError as error:
        yield Finding("server", "fail", error.message, error.hint)
    except OSError as error:
        yield Finding(
            "server", "fail", f"{kind} at {config.public_url}: {error}", "Name another --state-dir or REDIS_URL."
        )


def _version(info: dict[str, object]) -> str:
    valkey = info.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {info.get('redis_version')}"


def kernel() -> Iterator[Finding]:
    """What owning a process tree needs. Linux only; elsewhere said plainly."""
    if sys.platform != "linux":
        text = f"{sys.platform}: workers need Linux to own, freeze and prove gone an agent's processes"
        yield Finding("processes", "fail", text, "Run workers on Linux; reading commands work here.")
        return
    value = ctypes.c_int()
    reaper = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(value), 0, 0, 0) == 0
    try:
        os.close(os.pidfd_open(os.getpid()))
        pidfd = True
    except (OSError, AttributeError):
        pidfd = False
    yield _feature("subreaper", reaper, "orphans of an agent fall to its guard")
    yield _feature("pidfd", pidfd, "the end of a process is seen without a race")


def _feature(name: str, there: bool, what: str) -> Finding:
    if there:
        return Finding(name, "ok", what)
    return Finding(name, "fail", f"this kernel (or container) has no {name}: not {what}", "Use Linux 5.3 or newer.")


def sessions(folder: Path) -> Finding:
    """Records of workers of this host whose process is gone: what they left is swept before anything starts here."""
    dead, broken = [], []
    for path in sorted((folder / "sessions").glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            alive = _same_process(int(record["pid"]), int(record["start"])) and record["boot"] == _boot()
        except FileNotFoundError:
            continue  # it has just ended
        except (OSError, ValueError, KeyError, TypeError):
            broken.append(path)
            continue
        if not alive:
            dead.append(path.stem)
    if broken:
        hint = "Make sure that no worker of this host runs, then remove the file."
        return Finding("sessions", "fail", f"unreadable record of a worker: {broken[0]}", hint)
    if dead:
        text = f"{len(dead)} workers of this host died and are not swept yet: {', '.join(dead[:5])}"
        return Finding("sessions", "warn", text, "Start any worker here (dagward up): it kills what they left first.")
    return Finding("sessions", "ok", "no dead worker has left anything on this host")


def _same_process(pid: int, start: int) -> bool:
    """Whether a process with this pid and start time (clock ticks since boot) lives."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    fields = raw[raw.rindex(b")") + 2 :].split()
    return int(fields[19]) == start and fields[0] not in (b"Z", b"X")


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def alarms(folder: Path, now: float) -> Finding:
    """Processes that could not be killed, as workers logged them within a day. Their claims are kept for it."""
    found = [line for file in sorted((folder / "logs").glob("*/*.log")) for line in _alarms_of(file, now - DAY)]
    if not found:
        return Finding("alarms", "ok", "no process had to be left alive")
    text = f"{len(found)} alarms of processes that could not be killed; the last: {found[-1][:200]}"
    return Finding("alarms", "warn", text, "Look at these processes by hand (state D: the kernel waits for a device).")


def _alarms_of(file: Path, oldest: float) -> list[str]:
    with contextlib.suppress(OSError), file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_mtime < oldest:
            return []
        end = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, end - LOG_TAIL))
        lines = opened.read().decode("utf-8", "replace").splitlines()
        return [line for line in lines if "process.unkillable" in line]
    return []
