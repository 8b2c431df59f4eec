"""`use: command`: any program by `sh -c`. Its end is its terminal event; its exit code is its answer.

Must not read the agent's text for status.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scheduler.model import Attempt, FailureClass, Json
from scheduler.model.agents import CommandAgent
from workers.plugins import Ended, Launch, Outcome


class CommandRunner:
    """Agent protocol for shell texts."""

    def build(self, attempt: Attempt, workspace: Path, folder: Path) -> Launch:  # noqa: ARG002 -- the protocol's shape
        """`sh -c TEXT` in the workspace; nothing is substituted into the text."""
        spec = attempt.task.agent
        if not isinstance(spec, CommandAgent):
            raise TypeError(f"not a command agent: {spec}")
        return Launch(argv=("sh", "-c", spec.run))

    def parse(self, line: str) -> Json:  # noqa: ARG002 -- the protocol's shape
        """Free text carries no events."""
        return None

    def finish(self, ended: Ended, events: Sequence[Json]) -> Outcome:  # noqa: ARG002 -- the protocol's shape
        """Zero is success; 126 and 127 mean that a program of the text is missing."""
        return outcome_of(ended)


def outcome_of(ended: Ended) -> Outcome:
    """The outcome of a program whose only event is its end."""
    stopped = {
        "spawn": (ended.message, FailureClass.CONFIGURATION),
        "timeout": (f"stopped at its time limit; gone after {ended.duration / 1000:.1f} s", FailureClass.TIMEOUT),
        "stall": ("no output for too long", FailureClass.STALL),
    }
    if ended.reason in stopped:
        reason, kind = stopped[ended.reason]
        return Outcome(ok=False, reason=reason, failure=kind, terminal=False)
    code = ended.exit_code
    if code == 0:
        return Outcome(ok=True)
    if code in (126, 127):
        reason = f"exit {code}: a program that the command names cannot be run"
        return Outcome(ok=False, reason=reason, failure=FailureClass.CONFIGURATION)
    reason = f"ended by signal {-code}" if code is not None and code < 0 else f"exit {code}"
    return Outcome(ok=False, reason=reason)
