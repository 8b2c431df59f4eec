"""What RQ calls, in the horse: serve a pool for a while, one attempt after the other, and settle each.

One job is a stay of at most 30 s of hand-overs: the next task comes in the same round trip that completes the last.
Must not renew (main does) and must not own processes (the guard does).
"""

from __future__ import annotations

import random
import secrets
import time
import traceback
from collections.abc import Callable

import structlog

from scheduler import errors, lifecycle
from scheduler.model import Attempt, Claim, Failure, FailureClass, TaskState, lease_id
from workers import sweep
from workers.desk import HAND_BACK, WORK, Desk
from workers.endings import Broken, Ending, Failed, Proven, StopAttempt, Stopped
from workers.environment import Folder
from workers.gather import gather
from workers.produce import Work, in_process, produce
from workers.redact import Redactor
from workers.tree import GuardGone
from workers.verification import verify
from workers.watched_runner import WatchedRunner
from workers.workspace import Mirror, publish

log = structlog.get_logger()

STAY = 30.0
_desk: list[Desk] = []


def sit(desk: Desk) -> None:
    """Called by main before any fork: the desk that the horse will work at."""
    _desk[:] = [desk]


class Crashed(errors.Infrastructure):
    """Its worker's log has the traceback. This is a defect of dagward or of the host; report it."""

    code = "crashed"


def serve(payload: str) -> None:
    """The one entry point of RQ jobs: begin with this claim, then take what is handed over.

    An exception that nobody expected ends the horse: main proves its trees gone and hands back what it held. RQ
    stores the text of what is raised here, so nothing but a redacted line leaves.
    """
    desk = _desk[0]
    try:
        _serve(desk, payload)
    except GuardGone:
        raise  # main sees it too, proves everything gone and hands back
    except Exception as error:  # noqa: BLE001 -- the horse's last words
        text = desk.redact(f"{type(error).__name__}: {error}")[:500]
        log.error("horse.crashed", error=text, traceback=desk.redact(traceback.format_exc()))
        desk.line.tell({"crashed": text})
        raise Crashed(text) from None


def _serve(desk: Desk, payload: str) -> None:
    claims = [Claim.model_validate_json(payload)]
    end = time.monotonic() + STAY
    while claims:
        claim = claims.pop(0)
        log_fields = {"plan": claim.plan, "task": claim.task, "attempt": claim.attempt}
        with structlog.contextvars.bound_contextvars(**log_fields):
            more = desk.flag.value == WORK and time.monotonic() < end
            claims.extend(execute(desk, claim, 1 if more and not claims else 0))
        if not claims:
            claims.extend(_next(desk, end))


def _next(desk: Desk, end: float) -> list[Claim]:
    """Linger on the inbox for the next claim, until the stay is over or the worker was asked to stop."""
    while desk.flag.value == WORK and time.monotonic() < end:
        present = desk.store.present(desk.session, "lingering")
        if not present.alive:
            return []
        if present.claims:
            return list(present.claims)
        desk.store.linger(desk.session, min(1.0, max(end - time.monotonic(), 0.01)))
    leaving = desk.store.present(desk.session, "busy" if desk.flag.value == WORK else "draining")
    if desk.flag.value == WORK:
        return list(leaving.claims)
    for claim in leaving.claims:
        desk.store.hand_back(claim, "", "the worker stops")
    return []


def execute(desk: Desk, claim: Claim, count: int) -> list[Claim]:
    """One attempt from start to its end in the store. Returns the claims that were handed over with it."""
    if claim.sweep:
        killed = sweep.kill_marked(sweep.TASK_MARK, f"{claim.plan}/{claim.task}", desk.session)
        if killed.survivors:
            log.error("process.unkillable", survivors=killed.survivors)
            desk.store.hand_back(claim, "", "processes of its last attempt cannot be killed", counted=True)
            return []
    token = secrets.token_hex(16)
    try:
        state = desk.store.start(claim, token)
    except errors.Conflict as error:
        if error.facts.get("cancel"):
            desk.store.cancelled(claim, "")
        else:
            log.warning("attempt.refused", reason=error.message)
        return []
    except errors.Fenced as error:
        log.warning("attempt.refused", reason=error.message)
        return []
    log.info("attempt.started", verify_only=claim.verify_only)
    began = time.monotonic()
    ending = _attempt(desk, claim, token, state)
    log.info("attempt.ended", ending=type(ending).__name__.lower(), seconds=round(time.monotonic() - began, 3))
    return _settle(desk, claim, token, ending, count)


def _attempt(desk: Desk, claim: Claim, token: str, state: TaskState) -> Ending:
    lease = lease_id(claim.plan, claim.number, claim.attempt, token)
    try:
        attempt = gather(desk.views, claim, token, state)
        redact = Redactor(_secret_values(attempt))
        desk.redact = redact
        here = in_process(attempt, desk.settings.in_process)
        desk.announce(claim, token, lease, in_process=here, limit=attempt.task.timeout)
        work = Work(
            desk=desk,
            attempt=attempt,
            folder=Folder.make(desk.settings.state_dir, claim.plan, claim.task, claim.attempt),
            runner=WatchedRunner(desk.runner(lease), f"{claim.plan}/{claim.task}", redact.forms, desk.expect),
            mirror=Mirror(desk.settings.state_dir, attempt.repo) if attempt.repo else None,
            redact=redact,
        )
        return _perform(work, claim)
    except StopAttempt as stop:
        return stop.ending
    except GuardGone:
        raise  # main sees it too, proves everything gone and hands back
    except errors.DagwardError as error:
        return _ending_of(error, desk.redact)


def _ending_of(error: errors.DagwardError, redact: Callable[[str], str]) -> Ending:
    """What a refusal in the middle of an attempt means for it."""
    if isinstance(error, errors.Fenced):
        return Stopped("fenced")
    if error.facts.get("cancel"):
        return Stopped("cancelled")
    if isinstance(error, errors.Infrastructure | errors.Conflict):
        log.warning("attempt.broken", reason=redact(error.message))
        return Broken(redact(error.message)[:2000])
    return Failed(Failure(kind=FailureClass.CONFIGURATION, reason=redact(error.message)[:2000]))


def _secret_values(attempt: Attempt) -> list[str]:
    import os

    return [os.environ[name] for name in attempt.task.env.secrets if name in os.environ]


def _perform(work: Work, claim: Claim) -> Ending:
    attempt, store = work.attempt, work.desk.store
    result = attempt.result
    if result is None:
        produced = produce(work)
        if isinstance(produced, Failed):
            return produced
        result = produced
        store.submit(attempt.plan, attempt.task.id, attempt.attempt, attempt.token, result)
    ending = verify(work, result)
    if isinstance(ending, Proven) and attempt.task.agent.use == "system" and work.mirror is not None:
        ours = work.mirror.kept(claim.plan, claim.task)
        publish(work.mirror, f"dagward/{claim.plan}", result.digest, ours)
    return ending


def _settle(desk: Desk, claim: Claim, token: str, ending: Ending, count: int) -> list[Claim]:
    """Turn an ending into its call of the store. Tree and checks of the attempt are proven gone by now."""
    store = desk.store
    try:
        if isinstance(ending, Proven):
            return list(store.accept(claim, token, count))
        if isinstance(ending, Stopped):
            _stopped(desk, claim, token, ending)
        elif isinstance(ending, Broken):
            store.hand_back(claim, token, ending.reason, counted=True)
        else:
            _failed(desk, claim, token, ending)
    except errors.Fenced as error:
        log.warning("attempt.stale", outcome="stale_attempt", reason=error.message)
    except errors.Conflict as error:
        if not error.facts.get("cancel"):
            raise
        store.cancelled(claim, token)
    return []


def _stopped(desk: Desk, claim: Claim, token: str, ending: Stopped) -> None:
    if ending.reason == "fenced":
        log.warning("attempt.fenced")
        return
    if desk.flag.value == HAND_BACK:
        desk.store.hand_back(claim, token, "the worker was stopped")
    else:
        desk.store.cancelled(claim, token)


def _failed(desk: Desk, claim: Claim, token: str, ending: Failed) -> None:
    if lifecycle.excused(ending.thawed_ago, already=False):
        try:
            desk.store.hand_back(claim, token, "it failed just after an outage", thaw=True)
        except errors.Conflict as error:
            if not error.facts.get("excused"):
                raise
        else:
            return
    kind = ending.failure.kind
    state = desk.store.fail(
        claim,
        token,
        ending.failure,
        again=lifecycle.retriable(kind),
        jitter=random.random(),  # noqa: S311 -- jitter
    )
    log.info("attempt.failed", kind=kind, reason=ending.failure.reason[:300], state=state)
