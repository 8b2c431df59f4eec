"""The words for states, events and failures. One spelling, used in the store, in JSON, in logs and on screen."""

from __future__ import annotations

from enum import StrEnum


class TaskState(StrEnum):
    """Where a task is. `ready` is not a state: it is derived from pending, gates and edges."""

    PENDING = "pending"
    CLAIMED = "claimed"
    RUNNING = "running"
    VERIFYING = "verifying"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    INVALIDATED = "invalidated"


LIVE = frozenset({TaskState.CLAIMED, TaskState.RUNNING, TaskState.VERIFYING})
UNFINISHED = LIVE | {TaskState.PENDING}
FINISHED = frozenset(TaskState) - UNFINISHED


class PlanState(StrEnum):
    """Where a plan is. The reason of a pause is a field beside it, not a state."""

    DRAFT = "draft"
    AWAITING_APPROVAL = "awaiting_approval"
    RUNNING = "running"
    REPLANNING = "replanning"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEADLOCKED = "deadlocked"


PLAN_ENDED = frozenset({PlanState.COMPLETED, PlanState.FAILED, PlanState.CANCELLED})


class TaskEvent(StrEnum):
    """What moves a task. Each is one script in `scheduler/lua`."""

    CLAIM = "claim"
    START = "start"
    HAND_BACK = "hand_back"
    RENEW = "renew"
    SUBMIT = "submit"
    RECORD = "record"
    TAKEOVER = "takeover"
    ACCEPT = "accept"
    RETRY = "retry"
    FAIL = "fail"
    ASK_CANCEL = "ask_cancel"
    CANCELLED = "cancelled"
    SKIP = "skip"
    OPEN = "open"
    EXPAND = "expand"
    JOIN = "join"
    REOPEN = "reopen"


class PlanEvent(StrEnum):
    """What moves a plan."""

    SUBMIT = "submit"
    REQUEST = "request"
    APPROVE = "approve"
    REJECT = "reject"
    PAUSE = "pause"
    RESUME = "resume"
    INTERRUPT = "interrupt"
    ASK_CANCEL = "ask_cancel"
    CANCELLED = "cancelled"
    COMPLETE = "complete"
    FAIL = "fail"
    DEADLOCK = "deadlock"
    WAKE = "wake"
    REOPEN = "reopen"


class FailureClass(StrEnum):
    """Why an attempt failed. Decides by default whether it is tried again and whether that is charged."""

    AGENT_ERROR = "agent_error"
    TIMEOUT = "timeout"
    STALL = "stall"
    LOST = "lost"
    REJECTED = "rejected"
    SCOPE_VIOLATION = "scope_violation"
    MERGE_CONFLICT = "merge_conflict"
    CONFIGURATION = "configuration"
    INFRASTRUCTURE = "infrastructure"
    INSTANCES = "instances"
