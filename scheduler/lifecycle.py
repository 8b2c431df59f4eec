"""The two transition tables, and the rules on top of them: retry or fail, charged or not, frozen or not.

The rule of every move exists once, here: `scripts` hands the rows to the Lua scripts when it loads them, the README's
picture and the tests are made from them. Pure: must not know Redis, RQ, files or clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from scheduler.model import FailureClass, PlanEvent, PlanState, TaskEvent, TaskState


class Fence(StrEnum):
    """What a caller must show before an event is allowed."""

    NONE = "none"
    ATTEMPT = "attempt"  # the attempt number of a claim that has not started
    TOKEN = "token"  # attempt number and owner token
    TOKEN_OR_LAPSED = "token_or_lapsed"  # the token, or a lease that the server sees lapsed
    GONE = "gone"  # proof that no process of the attempt lives


@dataclass(frozen=True, slots=True)
class Move:
    """One arrow: `event` takes a task from `source` to `target` when `fence` is shown; `who` moves it."""

    event: TaskEvent
    source: TaskState
    target: TaskState
    fence: Fence
    who: str


@dataclass(frozen=True, slots=True)
class PlanMove:
    """One arrow of the plan's table."""

    event: PlanEvent
    source: PlanState | None
    target: PlanState
    who: str


_T, _E, _F = TaskState, TaskEvent, Fence

TRANSITIONS: tuple[Move, ...] = (
    Move(_E.CLAIM, _T.PENDING, _T.CLAIMED, _F.NONE, "daemon, or a worker at hand-over"),
    Move(_E.CLAIM, _T.VERIFYING, _T.VERIFYING, _F.NONE, "daemon: verification alone, after a takeover"),
    Move(_E.START, _T.CLAIMED, _T.RUNNING, _F.ATTEMPT, "worker"),
    Move(_E.START, _T.VERIFYING, _T.VERIFYING, _F.ATTEMPT, "worker, after a takeover"),
    Move(_E.HAND_BACK, _T.CLAIMED, _T.PENDING, _F.TOKEN_OR_LAPSED, "worker that drains; recovery"),
    Move(_E.HAND_BACK, _T.RUNNING, _T.PENDING, _F.TOKEN, "worker that drains"),
    Move(_E.SUBMIT, _T.RUNNING, _T.VERIFYING, _F.TOKEN, "worker; the result is stored in the same step"),
    Move(_E.RECORD, _T.VERIFYING, _T.VERIFYING, _F.TOKEN, "verifier; stores one evidence record"),
    Move(_E.TAKEOVER, _T.VERIFYING, _T.VERIFYING, _F.TOKEN_OR_LAPSED, "daemon, or a worker that drains"),
    Move(_E.ACCEPT, _T.VERIFYING, _T.COMPLETED, _F.TOKEN, "worker; refused without evidence for every check"),
    Move(_E.RETRY, _T.RUNNING, _T.PENDING, _F.TOKEN_OR_LAPSED, "worker, recovery"),
    Move(_E.RETRY, _T.VERIFYING, _T.PENDING, _F.TOKEN_OR_LAPSED, "worker, recovery"),
    Move(_E.FAIL, _T.CLAIMED, _T.FAILED, _F.TOKEN_OR_LAPSED, "worker (configuration), recovery"),
    Move(_E.FAIL, _T.RUNNING, _T.FAILED, _F.TOKEN_OR_LAPSED, "worker, recovery"),
    Move(_E.FAIL, _T.VERIFYING, _T.FAILED, _F.TOKEN_OR_LAPSED, "worker, recovery"),
    Move(_E.ASK_CANCEL, _T.PENDING, _T.CANCELLED, _F.NONE, "operator, plan"),
    Move(_E.ASK_CANCEL, _T.CLAIMED, _T.CLAIMED, _F.NONE, "operator, plan"),
    Move(_E.ASK_CANCEL, _T.RUNNING, _T.RUNNING, _F.NONE, "operator, plan"),
    Move(_E.ASK_CANCEL, _T.VERIFYING, _T.VERIFYING, _F.NONE, "operator, plan"),
    Move(_E.CANCELLED, _T.CLAIMED, _T.CANCELLED, _F.GONE, "worker, recovery"),
    Move(_E.CANCELLED, _T.RUNNING, _T.CANCELLED, _F.GONE, "worker, recovery"),
    Move(_E.CANCELLED, _T.VERIFYING, _T.CANCELLED, _F.GONE, "worker, recovery"),
    Move(_E.SKIP, _T.PENDING, _T.SKIPPED, _F.NONE, "daemon, with the cause"),
    Move(_E.SKIP, _T.SKIPPED, _T.SKIPPED, _F.NONE, "daemon, when a graver cause is found"),
    Move(_E.OPEN, _T.PENDING, _T.PENDING, _F.NONE, "daemon: a gate opens (`if`, fallback, end of the plan)"),
    Move(_E.EXPAND, _T.PENDING, _T.PENDING, _F.NONE, "daemon: the instances of a `for_each` task appear"),
    Move(_E.JOIN, _T.PENDING, _T.COMPLETED, _F.NONE, "daemon: all instances of a `for_each` task are completed"),
    Move(_E.FAIL, _T.PENDING, _T.FAILED, _F.NONE, "daemon: a gate cannot be judged, or an instance did not complete"),
    Move(_E.REOPEN, _T.FAILED, _T.PENDING, _F.NONE, "operator"),
    Move(_E.REOPEN, _T.SKIPPED, _T.PENDING, _F.NONE, "operator"),
    Move(_E.REOPEN, _T.CANCELLED, _T.PENDING, _F.NONE, "operator"),
)

_P, _V = PlanState, PlanEvent

PLAN_TRANSITIONS: tuple[PlanMove, ...] = (
    PlanMove(_V.SUBMIT, None, _P.DRAFT, "person or CI"),
    PlanMove(_V.REQUEST, _P.DRAFT, _P.AWAITING_APPROVAL, "policy: a person decides"),
    PlanMove(_V.APPROVE, _P.DRAFT, _P.RUNNING, "policy `auto`"),
    PlanMove(_V.APPROVE, _P.AWAITING_APPROVAL, _P.RUNNING, "person"),
    PlanMove(_V.INTERRUPT, _P.RUNNING, _P.PAUSED, "`run` on a signal"),
    PlanMove(_V.RESUME, _P.PAUSED, _P.RUNNING, "`run --resume` lifts a signal's pause"),
    PlanMove(_V.ASK_CANCEL, _P.DRAFT, _P.CANCELLING, "person"),
    PlanMove(_V.ASK_CANCEL, _P.AWAITING_APPROVAL, _P.CANCELLING, "person"),
    PlanMove(_V.ASK_CANCEL, _P.RUNNING, _P.CANCELLING, "person"),
    PlanMove(_V.ASK_CANCEL, _P.PAUSED, _P.CANCELLING, "person"),
    PlanMove(_V.CANCELLED, _P.CANCELLING, _P.CANCELLED, "daemon, when nothing of it lives"),
    PlanMove(_V.COMPLETE, _P.RUNNING, _P.COMPLETED, "only by accepted tasks and acceptance"),
    PlanMove(_V.FAIL, _P.RUNNING, _P.FAILED, "daemon, when nothing can move any more"),
    PlanMove(_V.REOPEN, _P.FAILED, _P.RUNNING, "operator"),
)


def task_table() -> dict[str, dict[str, str]]:
    """event -> source -> target, as the scripts get it."""
    table: dict[str, dict[str, str]] = {}
    for move in TRANSITIONS:
        table.setdefault(move.event, {})[move.source] = move.target
    return table


def plan_table() -> dict[str, dict[str, str]]:
    """event -> source -> target for plans; the source of `submit` is the empty word."""
    table: dict[str, dict[str, str]] = {}
    for move in PLAN_TRANSITIONS:
        table.setdefault(move.event, {})[move.source or ""] = move.target
    return table


RETRIED_BY_DEFAULT: Mapping[FailureClass, bool] = {
    FailureClass.AGENT_ERROR: True,
    FailureClass.TIMEOUT: True,
    FailureClass.STALL: True,
    FailureClass.LOST: True,
    FailureClass.REJECTED: True,
    FailureClass.SCOPE_VIOLATION: False,
    FailureClass.MERGE_CONFLICT: False,
    FailureClass.CONFIGURATION: False,
    FailureClass.INFRASTRUCTURE: True,
    FailureClass.INSTANCES: False,
}
"""Whether a failure of this class is worth another charged attempt. A wrong configuration never is."""

MAX_HAND_BACKS = 3
"""Uncharged hand-backs of claims that never started, before the task fails as `infrastructure`."""

THAW_GRACE = 60_000
"""An attempt that fails within this time of thawing is handed back uncharged, once (milliseconds)."""


def retriable(kind: FailureClass) -> bool:
    """Whether this class is tried again while the ledger has attempts left."""
    return RETRIED_BY_DEFAULT[kind]


def excused(thawed_ago: int | None, already: bool) -> bool:
    """Whether a failed attempt is handed back uncharged because it was frozen shortly before."""
    return thawed_ago is not None and thawed_ago <= THAW_GRACE and not already


@dataclass(frozen=True, slots=True)
class Timing:
    """All times that hang on the length of a lease, in milliseconds."""

    lease: int = 8_000
    dispatch: int = 6_000  # a claim that has not started by then goes back

    @property
    def renewal(self) -> int:
        """Between two renewals: a quarter of the lease."""
        return max(self.lease // 4, 50)

    @property
    def freeze(self) -> int:
        """Without a renewal for this long the tree is frozen: three quarters of the lease."""
        return self.lease * 3 // 4
