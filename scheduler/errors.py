"""What dagward refuses, and what to do next.

One base class. Each class docstring is the operator's next step and is printed below the message;
the instance carries the facts of the case. Must not know who prints it or where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_PERSON = 3
EXIT_BUDGET = 4
EXIT_INFRASTRUCTURE = 5
EXIT_DEADLOCKED = 6
EXIT_INTERRUPTED = 130


class DagwardError(Exception):
    """Run `dagward doctor` and look into the logs of the state folder."""

    exit_code = EXIT_INFRASTRUCTURE
    code = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.facts: dict[str, object] = {}
        self._hint = hint

    @property
    def hint(self) -> str:
        """The next step for the person who reads the message."""
        return self._hint if self._hint is not None else " ".join((self.__doc__ or "").split())


class Refusal(DagwardError):
    """Nothing was changed. Correct the command and run it again."""

    exit_code = EXIT_REFUSED
    code = "refused"


class Conflict(Refusal):
    """The task or plan has moved on. Look at it with `dagward show`, then decide again."""

    code = "conflict"


class Fenced(Refusal):
    """This attempt was taken back. Its agent must be stopped; the newer attempt holds the task."""

    code = "fenced"


class NoEvidence(Refusal):
    """A task completes only with stored accepting evidence for every check. Run its verification again."""

    code = "no_evidence"


class NotApproved(Refusal):
    """Approve the version first: `dagward approve PLAN --version N --hash HASH`."""

    code = "not_approved"


class NotFound(Refusal):
    """List what exists with `dagward ps --all`."""

    code = "not_found"


@dataclass(frozen=True, slots=True)
class Problem:
    """One error or warning of a plan file: where it is, what is wrong, what to write instead.

    line and column count from 1; 0 means that the file as a whole is meant.
    """

    message: str
    field: str = ""
    line: int = 0
    column: int = 0
    remedy: str = ""

    def render(self, file: str) -> str:
        """One line for a terminal: `file:line:column: field: message; remedy`."""
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        parts = [place, *([self.field] if self.field else []), self.message]
        text = ": ".join(parts)
        return f"{text}; {self.remedy}" if self.remedy else text


@dataclass(frozen=True, slots=True)
class Problems:
    """All errors and warnings of one plan file, in the order of their lines."""

    file: str
    errors: Sequence[Problem] = field(default_factory=tuple)
    warnings: Sequence[Problem] = field(default_factory=tuple)


class InvalidPlan(Refusal):
    """Correct the lines above and validate again: `dagward validate FILE`."""

    code = "invalid_plan"

    def __init__(self, problems: Problems) -> None:
        count = len(problems.errors)
        super().__init__(f"{problems.file}: {count} error{'s' if count != 1 else ''}")
        self.problems = problems


class Infrastructure(DagwardError):
    """Something that dagward needs is missing. `dagward doctor` names it."""

    exit_code = EXIT_INFRASTRUCTURE
    code = "infrastructure"


class StoreUnavailable(Infrastructure):
    """Start the server or correct REDIS_URL; without a URL dagward starts its own embedded server."""

    code = "store_unavailable"


class StoreRefused(Infrastructure):
    """The server does not keep what it acknowledges. Use `appendonly yes` and `maxmemory-policy noeviction`."""

    code = "store_refused"


class EpochMismatch(Infrastructure):
    """The store is not the one that this state folder knows: it was emptied or replaced. Restore its
    append-only file, or start anew with another --state-dir."""

    code = "epoch_mismatch"


class FormatMismatch(Infrastructure):
    """The store was written by another version of dagward. Use that version, or another --state-dir."""

    code = "format_mismatch"


class StoreCorrupt(Infrastructure):
    """A key holds what dagward never writes there. Nothing was changed. Run `dagward doctor`."""

    code = "store_corrupt"


class Interrupted(DagwardError):
    """Go on with `dagward run FILE --resume`."""

    exit_code = EXIT_INTERRUPTED
    code = "interrupted"
