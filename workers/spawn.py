"""Starts the program of one order, without a shim and without running Python in the child. Standard library only.

Must not know how the program ends. `posix_spawn` has no working directory, so the guard steps into it for the
moment of the start: it has one thread and uses no relative path itself.
"""

from __future__ import annotations

import errno
import os
import signal
import stat

from workers.capture import Capture, open_log

_EVERY_SIGNAL = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class BadOrder(Exception):
    """A `run` message that does not have the shape of one."""


class Order:
    """What a horse asks for, checked. Times in seconds; the fields are those of `workers.plugins.Command`."""

    __slots__ = ("argv", "attempt", "cap", "cwd", "env", "grace", "id", "log", "redact", "stall", "stdin", "timeout")

    def __init__(self, message: dict[str, object]) -> None:
        self.id = _text(message, "id")
        self.attempt = _text(message, "attempt")
        self.cwd = _text(message, "cwd")
        self.log = _text(message, "log")
        self.argv = _texts(message, "argv")
        self.env = _environment(message)
        self.redact = [os.fsencode(form) for form in _texts(message, "redact")] if message.get("redact") else []
        self.cap = _whole(message, "cap")
        self.timeout = _whole(message, "timeout") / 1000
        self.grace = _whole(message, "grace") / 1000
        self.stall = None if message.get("stall") is None else _whole(message, "stall") / 1000
        self.stdin = None if message.get("stdin") is None else _text(message, "stdin")


class Unstartable(Exception):
    """The program could not be started; the text is for people."""


def start(order: Order) -> tuple[int, Capture]:
    """Start the program in its own session. Returns its pid and its output. Raises Unstartable."""
    sink = _log(order)
    try:
        source, target = os.pipe()  # both close-on-exec
    except OSError as error:
        _close(sink)
        raise Unstartable(f"no pipe for the output: {error.strerror}") from None
    try:
        pid = _start(order, target)
    except BaseException:
        _close(source)
        _close(sink)
        raise
    finally:
        os.close(target)
    return pid, Capture(source, sink, order.cap, order.redact)


def _log(order: Order) -> int | None:
    try:
        return open_log(order.log)
    except (OSError, ValueError) as error:
        raise Unstartable(f"cannot open the log {order.log}: {_why(error)}") from None


def _start(order: Order, output: int) -> int:
    source = _stdin(order)
    try:
        try:
            os.chdir(order.cwd)
        except (OSError, ValueError) as error:
            raise Unstartable(f"cannot enter the folder {order.cwd}: {_why(error)}") from None
        try:
            return _spawn(order, source, output)
        finally:
            os.chdir("/")
    finally:
        os.close(source)


def _stdin(order: Order) -> int:
    path = os.devnull if order.stdin is None else order.stdin
    try:
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise Unstartable(f"cannot read the input {path}: {_why(error)}") from None
    os.set_blocking(source, True)
    return source


def _spawn(order: Order, source: int, output: int) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
    try:
        return os.posix_spawn(
            _find(order.argv[0], order.env),
            order.argv,
            order.env,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_EVERY_SIGNAL,
        )
    except (OSError, ValueError) as error:
        raise Unstartable(f"cannot start {order.argv[0]}: {_why(error)}") from None


def _find(program: str, env: dict[str, str]) -> str:
    """The path to start, looked for on the command's own PATH (a start that fails costs a fork)."""
    if "/" in program:
        return program
    candidates = [f"{folder or '.'}/{program}" for folder in env.get("PATH", os.defpath).split(":")]
    present = [path for path in candidates if _is_file(path)]
    for path in present:
        if os.access(path, os.X_OK):
            return path
    # As a shell does: "permission denied" somewhere on PATH says more than "not found" at its end.
    number = errno.EACCES if present else errno.ENOENT
    raise OSError(number, os.strerror(number))


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - pathlib would cost a third of the guard's start
    except OSError:
        return False


def _why(error: Exception | None) -> str:
    if isinstance(error, OSError):
        if error.errno == errno.E2BIG:
            return "its arguments and environment are too long for this system; hand them over in a file"
        return error.strerror or str(error)
    return str(error)


def _close(fd: int | None) -> None:
    if fd is not None:
        os.close(fd)


def _text(message: dict[str, object], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str) or not value:
        raise BadOrder(f"`{name}` must be a text")
    return value


def _texts(message: dict[str, object], name: str) -> list[str]:
    value = message.get(name)
    if not isinstance(value, list) or not value or not value[0]:
        raise BadOrder(f"`{name}` must be a list that begins with a program")
    texts = [item for item in value if isinstance(item, str)]
    if len(texts) != len(value):
        raise BadOrder(f"`{name}` must hold texts only")
    return texts


def _environment(message: dict[str, object]) -> dict[str, str]:
    value = message.get("env")
    if not isinstance(value, dict):
        raise BadOrder("`env` must be an object")
    texts = {key: item for key, item in value.items() if isinstance(item, str)}
    if len(texts) != len(value):
        raise BadOrder("`env` must hold texts only")
    return texts


def _whole(message: dict[str, object], name: str) -> int:
    value = message.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadOrder(f"`{name}` must be a whole number, not negative")
    return value
