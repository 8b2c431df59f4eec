"""Finds, prints and follows the stored log of one attempt in the state folder of this host. Writes nothing."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from scheduler import errors

if TYPE_CHECKING:
    from scheduler.model import Json
    from scheduler.store import Views

PIECE = 65536
LOOK = 0.2
KEPT = 2_000_000
"""Bytes of a log's end that `logs --json` holds."""


@dataclass(frozen=True, slots=True)
class Where:
    """The log of an agent, or of check number `check`. `host` is empty when nobody has said it yet."""

    plan: str
    task: str
    attempt: int
    check: int | None
    file: Path
    host: str
    here: bool

    @property
    def what(self) -> str:
        """For messages."""
        of = f"check {self.check} of " if self.check is not None else ""
        return f"{of}attempt {self.attempt} of {self.task}"

    @property
    def hint(self) -> str:
        """Where to look instead."""
        if self.host and self.host != socket.gethostname():
            return f"it ran on {self.host}: look there at {self.file.name} of its state folder. Stored of it:"
        return f"{self.file} is not there. Stored of it:"


def newest(views: Views, plan: str, task: str, attempt: int | None, *, wait: bool) -> int:
    """The number of the attempt that is meant. NotFound when it has not begun; with `wait` a claim is waited for."""
    from scheduler.model import FINISHED, PLAN_ENDED

    while True:
        view = views.task(plan, task)
        number = attempt or view.attempt
        if 0 < number <= view.attempt:
            return number
        if not wait or view.state in FINISHED or views.plan(plan).state in PLAN_ENDED:
            which = f"attempt {attempt}" if attempt else "attempt"
            text = f"no {which} of {task} has begun: it is {view.state}" if not attempt else f"{task} has no {which}"
            raise errors.NotFound(text, hint=f"dagward why {plan} {task}")
        time.sleep(LOOK)


def locate(views: Views, state_dir: Path, plan: str, task: str, attempt: int, check: int | None) -> Where:
    """Where the log is. A check's newest log counts; NotFound when the attempt has no such check."""
    folder = state_dir / "attempts" / plan / task / str(attempt)
    file = folder / "agent.log"
    if check is not None:
        count = views.task(plan, task).checks
        if check >= count:
            raise errors.NotFound(f"{task} has no check {check}", hint=f"Its checks are 0 to {count - 1}.")
        file = _newest_log(folder / f"check-{check}")
    result = views.result(plan, task, attempt)
    host = result.log.host if result is not None and result.log is not None else ""
    host = host or str(views.why(plan, task).get("host") or "")
    return Where(plan, task, attempt, check, file, host, file.is_file() and not file.is_symlink())


def appear(views: Views, state_dir: Path, where: Where) -> Where:
    """Wait while the attempt runs and its log is not there yet: it is claimed, or works on another host."""
    while not where.here and where.host in ("", socket.gethostname()) and runs(views, where):
        time.sleep(LOOK)
        where = locate(views, state_dir, where.plan, where.task, where.attempt, where.check)
    return where


def _newest_log(folder: Path) -> Path:
    numbers = [int(path.stem.removeprefix("check-")) for path in folder.glob("check-*.log") if _numbered(path)]
    return folder / f"check-{max(numbers, default=0)}.log"


def _numbered(path: Path) -> bool:
    return path.stem.removeprefix("check-").isdecimal()


def runs(views: Views, where: Where) -> bool:
    """Whether more may still be written to this log."""
    from scheduler.model import LIVE

    view = views.task(where.plan, where.task)
    return view.attempt == where.attempt and view.state in LIVE


def put(where: Where, more: Callable[[], bool] | None = None) -> None:
    """Print a log: byte for byte into a pipe, without control characters on a terminal. `more`: follow while true."""
    with _open(where.file) as log:
        _copy(log)
        while more is not None:
            going = more()  # asked first: what was written before the end is then read below
            _copy(log)
            if not going:
                return
            time.sleep(LOOK)


def _open(file: Path) -> BinaryIO:
    try:
        return os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    except OSError as error:
        raise errors.Refusal(
            f"cannot read {file}: {error.strerror}", hint="Run it as the user of the state folder."
        ) from None


def _copy(log: BinaryIO) -> None:
    from scheduler.report.plain import visible

    raw = sys.stdout.buffer
    while piece := log.read(PIECE):
        if sys.stdout.isatty():
            click.echo(visible(piece.decode("utf-8", "replace"), colours=not os.environ.get("NO_COLOR")), nl=False)
        else:
            raw.write(piece)
            raw.flush()


def as_json(where: Where) -> dict[str, Json]:
    """The end of the log as text, for `logs --json`."""
    text, size = "", 0
    if where.here:
        with _open(where.file) as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - KEPT))
            text = log.read().decode("utf-8", "replace")
    return {
        "schema": "dagward/logs/1",
        "plan": where.plan,
        "task": where.task,
        "attempt": where.attempt,
        "check": where.check,
        "host": where.host or None,
        "path": str(where.file),
        "here": where.here,
        "bytes": size,
        "text": text,
    }
