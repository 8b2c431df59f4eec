"""Hardened RQ: JSON, one entry point, no callbacks; anything else in the queue runs nothing. Part of fault test 24."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from rq import Queue
from rq.exceptions import DeserializationError
from rq.job import Job
from rq.serializers import JSONSerializer

from scheduler.dispatch import ENTRY, AttemptJob, ForbiddenJob, RqDispatch
from scheduler.embedded import Embedded
from scheduler.model import Claim
from scheduler.store import StoreConfig, rq_connection


@pytest.fixture
def dispatch(server: Embedded) -> RqDispatch:
    return RqDispatch(rq_connection(StoreConfig(server.url)))


def claim(queue: str) -> Claim:
    return Claim(plan="p-abcde", task="t", number=3, attempt=2, session="s", queue=queue)


def test_a_claim_arrives_as_ids(dispatch: RqDispatch) -> None:
    queue = Queue("dagward-one", connection=dispatch.connection, job_class=AttemptJob, serializer=JSONSerializer)
    dispatch.send(claim("dagward-one"))
    dispatch.send(claim("dagward-one"))
    job = queue.jobs[0]
    assert job.id == "p-abcde_3_2"
    assert job.func_name == ENTRY
    assert Claim.model_validate_json(job.args[0]) == claim("dagward-one")
    assert job.timeout == -1
    dispatch.forget("dagward-one")
    assert queue.count == 0


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("attack", ["os.system", "callback", "pickle"])
def test_t24_a_forged_job_runs_nothing(dispatch: RqDispatch, tmp_path: Path, attack: str) -> None:
    witness = tmp_path / "pwned"
    connection = dispatch.connection
    job = Job.create(
        "os.system", args=[f"touch {witness}"], id=f"forged-{attack.replace('.', '-')}", connection=connection,
        serializer=JSONSerializer,
    )  # fmt: skip
    job.save()
    if attack == "callback":
        connection.hset(job.key, mapping={"success_callback_name": "os.system", "failure_callback_name": "os.system"})
    if attack == "pickle":
        connection.hset(job.key, "data", pickle.dumps(Bomb(witness)))
    read = AttemptJob.fetch(job.id, connection=connection, serializer=JSONSerializer)
    assert read.success_callback is None
    assert read.failure_callback is None
    assert read.stopped_callback is None
    with pytest.raises(DeserializationError if attack == "pickle" else ForbiddenJob):
        read.perform()
    assert not witness.exists()


def test_only_our_own_queues_are_forgotten(dispatch: RqDispatch) -> None:
    other = Queue("somebody-elses", connection=dispatch.connection)
    other.enqueue("x.y")
    dispatch.forget("somebody-elses")
    assert other.count == 1
