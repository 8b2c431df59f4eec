"""Runs the command of a check under the guard and says what its end means. Shared by `run`, `junit` and `python`.

Must not know how processes are owned; the Runner does that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.model import FailureClass
from workers.plugins import CheckTree, Command, Ended, Finding, Runner

DEFAULT_TIMEOUT = 600_000
"""Milliseconds that a check may take when it names no limit."""

TAIL = 8 * 1024
"""Bytes of output that are kept as evidence."""

_CANNOT_RUN = (126, 127)
_MISSING = re.compile(
    r"^(?:\S*sh: )?(?:line )?(?:\d+: )?(?P<name>[^:\n]+): (?:command )?(?P<why>not found|Permission denied|"
    r"No such file or directory|Is a directory|cannot execute[^\n]*)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Order:
    """What to start in the check tree. `timeout` in milliseconds; `name` is what is missing when nothing else says."""

    argv: Sequence[str]
    name: str
    timeout: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)


def shell(text: str, timeout: int | None, env: Mapping[str, str]) -> Order:
    """A text for `sh -c`."""
    return Order(("sh", "-c", text), text.split(maxsplit=1)[0] if text.strip() else text, timeout, env)


def execute(order: Order, tree: CheckTree, runner: Runner) -> Finding:
    """The exit code decides; 126 and 127 mean that the check itself cannot run."""
    timeout = order.timeout or DEFAULT_TIMEOUT
    log = _new_log(tree.folder)
    ended = runner.run(Command(argv=order.argv, cwd=tree.path, env={**tree.env, **order.env}, log=log, timeout=timeout))
    output = _tail(log, tree)
    accepted, reason, failure = _judge(order.name, ended, output, timeout)
    return Finding(accepted, reason, ended.exit_code, output, ended.duration, failure)


def first_line(text: str) -> str:
    """A shell text as a title for people."""
    first, _, rest = text.strip().partition("\n")
    return f"{first} ..." if rest else first


def last_bytes(text: str) -> str:
    """At most TAIL bytes of a text, beginning with a whole line."""
    kept = text.encode()[-TAIL:].decode("utf-8", "ignore")
    return kept.partition("\n")[2] if len(kept) < len(text) and "\n" in kept else kept


def _judge(name: str, ended: Ended, output: str, timeout: int) -> tuple[bool, str, FailureClass]:
    """Accepted or not, why, and what kind of failure it is if not."""
    code = ended.exit_code
    if ended.survivors:
        found = f"{ended.survivors} processes of the check could not be killed", FailureClass.INFRASTRUCTURE
    elif ended.reason == "spawn":
        found = f"the check cannot be started: {ended.message}", FailureClass.CONFIGURATION
    elif ended.reason == "timeout":
        found = f"no end within {timeout / 1000:g} s", FailureClass.REJECTED
    elif ended.reason != "exit" or code is None:
        found = f"the check was stopped: {ended.message or ended.reason}", FailureClass.INFRASTRUCTURE
    elif code in _CANNOT_RUN:
        found = f"the check cannot run: {_missing(name, output)}", FailureClass.CONFIGURATION
    else:
        reason = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        return code == 0, reason, FailureClass.REJECTED
    return False, *found


def _missing(name: str, output: str) -> str:
    """The command that the shell did not find, as it says itself; else the first word of the check."""
    found = list(_MISSING.finditer(output))
    if found:
        return f"{found[-1]['name'].strip()}: {found[-1]['why']}"
    return f"{name}: not found or not executable"


def _new_log(folder: Path) -> Path:
    """A path that no earlier check of this attempt has written to."""
    number = 0
    while os.path.lexists(log := folder / f"check-{number}.log"):
        number += 1
    return log


def _tail(log: Path, tree: CheckTree) -> str:
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            # More than is kept, so that a secret across the cut is seen whole.
            file.seek(max(0, size - 2 * TAIL))
            data = file.read(2 * TAIL)
    except FileNotFoundError:
        return ""
    text = tree.redact(data.decode("utf-8", "replace"))
    kept = text.encode()[-TAIL:].decode("utf-8", "ignore")
    cut = size > len(data) or len(kept) < len(text)
    return kept.partition("\n")[2] if cut and "\n" in kept else kept
