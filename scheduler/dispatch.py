"""Hands attempts to RQ by dotted name. The only scheduler module that imports rq.

RQ carries ids to a process and nothing more: JSON, one allowed entry point, no callbacks, no retries, no results.
Must not know Redis keys of ours, and no state of RQ's is ever used in a decision.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Protocol

import redis
from rq import Queue
from rq.exceptions import DuplicateJobError
from rq.job import Job
from rq.serializers import JSONSerializer

from scheduler.model import Claim

ENTRY = "workers.run.serve"
QUEUE_PREFIX = "dagward-"


class ForbiddenJob(Exception):
    """A job in our queue that dagward did not write. It is never run."""


class AttemptJob(Job):
    """A job that can be nothing but one attempt: any other function or callback is refused when it is read."""

    @property
    def func(self) -> Callable[..., object]:
        """The one entry point; a job that names another function is refused."""
        if self.func_name != ENTRY or self.instance is not None:
            raise ForbiddenJob(f"a job names {str(self.func_name)[:80]!r}")
        found: Callable[..., object] = super().func
        return found

    @property
    def success_callback(self) -> None:
        """None, whatever the stored job says."""
        return

    @property
    def failure_callback(self) -> None:
        """None, whatever the stored job says."""
        return

    @property
    def stopped_callback(self) -> None:
        """None, whatever the stored job says."""
        return


class Dispatch(Protocol):
    """How the daemon hands a claim over."""

    def send(self, claim: Claim) -> None:
        """Put the claim into its executor's queue. Twice is once."""
        ...

    def forget(self, queue: str) -> None:
        """Remove the queue of an executor that is gone."""
        ...


class RqDispatch:
    """Dispatch over hardened RQ 3."""

    def __init__(self, connection: redis.Redis) -> None:
        self.connection = connection

    def _queue(self, name: str) -> Queue:
        return Queue(name, connection=self.connection, job_class=AttemptJob, serializer=JSONSerializer)

    def send(self, claim: Claim) -> None:
        """One job: serve this executor's pool, beginning with this attempt. Ids only, no values."""
        payload = json.dumps(claim.model_dump(mode="json", exclude_defaults=True), separators=(",", ":"))
        with contextlib.suppress(DuplicateJobError):
            self._queue(claim.queue).enqueue_call(
                func=ENTRY,
                args=(payload,),
                job_id=claim.id,
                timeout=-1,
                result_ttl=0,
                failure_ttl=60,
                description="attempt",
            )

    def forget(self, queue: str) -> None:
        """Delete the queue and what was left in it; its executor never comes back under that name."""
        if queue.startswith(QUEUE_PREFIX):
            self._queue(queue).delete(delete_jobs=True)
            self.connection.delete(f"rq:wip:{queue}", f"rq:queue:{queue}:intermediate")
