"""Values of a running plan: claims, attempts, results, evidence, views. Frozen, JSON both ways, no I/O.

Times named `*_at` are server time in integer milliseconds since the epoch; durations are integer milliseconds.
"""

from __future__ import annotations

from typing import Literal

from scheduler.model.base import Frozen, Json
from scheduler.model.plan import PlanSpec, Scope, TaskSpec
from scheduler.model.states import FailureClass, PlanState, TaskState


class PlanVersion(Frozen):
    """One immutable version of a plan: what was agreed, its hash, and where its code stood."""

    version: int = 1
    hash: str
    spec: PlanSpec
    base_commit: str | None = None
    repo: str | None = None  # absolute path or URL; kept beside the version, not hashed
    parent: str | None = None
    reason: str = "submitted"


class Claim(Frozen):
    """One attempt promised to one executor. Its number and the token of its start are the fence."""

    plan: str
    task: str
    number: int  # position of the task in the plan; part of the RQ job id
    attempt: int
    session: str
    queue: str  # the executor's RQ queue
    lingering: bool = False  # the executor waits inside a job: the claim is already in its inbox
    verify_only: bool = False  # taken over: run the checks on the stored result, not the agent
    sweep: bool = False  # an earlier attempt was lost: kill its leftovers on this host first

    @property
    def id(self) -> str:
        """RQ job id and log name: letters, digits, `_` and `-` only."""
        return f"{self.plan}_{self.number}_{self.attempt}"


class Usage(Frozen):
    """What an attempt spent, as deltas of this attempt."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_micro_usd: int = 0


class Log(Frozen):
    """Where an attempt's stored output is: a path relative to the state folder of one host, and its size."""

    host: str
    path: str
    bytes: int = 0  # what the agent wrote
    dropped: int = 0  # what the cap left out


class Result(Frozen):
    """What an attempt produced, before anyone judged it.

    `digest` is the commit (repository plan) or the snapshot digest (scratch plan) that every check must name.
    """

    kind: Literal["commit", "snapshot"]
    digest: str
    base: str | None = None
    exit_code: int | None = None
    terminal: bool = True
    changed: tuple[str, ...] = ()
    outputs: dict[str, Json] = {}
    usage: Usage = Usage()
    log: Log | None = None
    duration: int = 0


class Evidence(Frozen):
    """The stored record of one check on one result. Written before anything is called completed."""

    check: int  # index into the task's verify list
    kind: str
    title: str  # what was checked, for people: the command, the path
    accepted: bool
    reason: str = ""
    result: str  # digest of the result that was checked
    attempt: int
    token: str
    tree_before: str | None = None  # digest over tracked paths of the check tree
    tree_after: str | None = None
    exit_code: int | None = None
    output: str = ""  # the last part, redacted
    duration: int = 0
    verifier: str = ""  # host and process that ran it
    recorded_at: int = 0


class Failure(Frozen):
    """Why an attempt ended without completing."""

    kind: FailureClass
    reason: str
    check: int | None = None


class Ancestor(Frozen):
    """A completed blocker, near or far, in topological order: what a base or the inputs are built from."""

    task: str
    attempt: int = 0
    digest: str
    base: str | None = None
    outputs: Json = {}
    direct: bool = False
    parts: tuple[Ancestor, ...] = ()  # the instances of a `for_each` task, in item order


class Attempt(Frozen):
    """Everything one worker needs to execute one attempt; nothing about other tasks but their results."""

    plan: str
    goal: str
    task: TaskSpec
    attempt: int
    token: str
    state: TaskState  # running, or verifying after a takeover
    base_commit: str | None = None
    repo: str | None = None
    scope: Scope = Scope()
    params: dict[str, str | None] = {}
    ancestors: tuple[Ancestor, ...] = ()
    result: Result | None = None  # set when only verification is asked for
    rejected: tuple[Evidence, ...] = ()  # evidence of the last rejected attempt
    last_failure: Failure | None = None
    item: Json = None  # of an instance of a `for_each` task
    has_item: bool = False


def lease_id(plan: str, number: int, attempt: int, token: str) -> str:
    """The name of one ownership of one attempt, as guard, renewal and recovery call it."""
    return f"{plan}_{number}_{attempt}_{token[:8]}"


class Held(Frozen):
    """One started attempt that a session holds, as the server sees it at a renewal."""

    plan: str
    task: str
    number: int
    attempt: int
    token: str
    state: TaskState
    cancel: bool = False

    @property
    def id(self) -> str:
        """Its lease id."""
        return lease_id(self.plan, self.number, self.attempt, self.token)

    def claim(self, session: str) -> Claim:
        """The claim behind it, for the calls that end it."""
        return Claim(
            plan=self.plan, task=self.task, number=self.number, attempt=self.attempt, session=session, queue=""
        )


class Renewal(Frozen):
    """The server's answer to a renewal. `alive` false: the session was recovered, everything it held is gone."""

    alive: bool
    held: tuple[Held, ...] = ()
    fenced: tuple[str, ...] = ()  # lease ids taken back since the last renewal


class Executor(Frozen):
    """A worker process as it registers itself."""

    session: str
    name: str
    host: str
    pid: int
    pool: str
    queue: str
    plan: str = ""  # serves only this plan; empty: every plan
    agents: tuple[str, ...] = ()
    sandbox: str = "none"
    version: str = ""


class WorkerView(Frozen):
    """One line of `dagward workers`."""

    name: str
    host: str
    pid: int
    pool: str
    plan: str
    state: Literal["idle", "lingering", "busy", "lost"]
    attempts: tuple[str, ...]
    lease: int  # milliseconds left; negative when lapsed
    version: str


class PoolView(Frozen):
    """One line of `dagward queues`."""

    pool: str
    limit: int
    used: int
    ready: int
    workers: int
    idle: int


class TaskView(Frozen):
    """One task as `show`, `wait` and reports see it."""

    task: str
    title: str
    state: TaskState
    attempt: int
    charged: int
    retries: int
    pool: str
    edges_left: int
    not_before: int = 0
    since: int = 0
    session: str = ""
    cancel: bool = False
    failure: Failure | None = None
    cause: str = ""
    result: str = ""
    checks: int = 0
    handed_back: int = 0


class PlanView(Frozen):
    """One plan as `ps`, `show` and `wait` see it."""

    plan: str
    name: str
    goal: str
    state: PlanState
    reason: str = ""
    version: int
    hash: str
    approved: bool
    created_at: int
    ended_at: int = 0
    counts: dict[TaskState, int]
    concurrency: int
    used: int
    repo: str | None = None
    base_commit: str | None = None
    branch: str = ""


class EventView(Frozen):
    """One line of a plan's history. `id` orders events within a plan; `at` is server time."""

    id: str
    at: int
    event: str
    task: str = ""
    attempt: int = 0
    source: str = ""  # state before
    target: str = ""  # state after
    actor: str = ""
    detail: dict[str, Json] = {}
