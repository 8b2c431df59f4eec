"""T1: eight processes claim ten thousand ready tasks: none twice. Fault test 14."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys

from scheduler.embedded import Embedded
from scheduler.store import Store
from tests import factory

CLAIMER = """
import json, os, secrets, sys
from scheduler.lifecycle import Timing
from scheduler.model import Executor
from scheduler.store import Store, StoreConfig, connect
from scheduler.store.keys import Keys
url, name = sys.argv[1:3]
store = Store(connect(StoreConfig(url)), Keys(name), Timing(lease=600_000, dispatch=600_000))
session = secrets.token_hex(6)
store.register(Executor(session=session, name=session, host="h", pid=os.getpid(), pool="default", queue=session))
got, misses = [], 0
while misses < 3:
    claims = store.present(session, "lingering", 4).claims
    if not claims:
        misses += 1
    for claim in claims:
        store.start(claim, secrets.token_hex(8))
        got.append(claim.task)
print(json.dumps(got))
"""


def test_t01_eight_claimers_take_ten_thousand_tasks_once(server: Embedded, store: Store) -> None:
    tasks = [factory.task(f"t{n}") for n in range(10_000)]
    factory.submit(store, tasks, concurrency=1000)
    store.client.hset(store.keys.plan(store.client.zrange(store.keys.plans(), 0, -1)[0]), "concurrency", 1_000_000)
    store.set_limits({"default": 1_000_000})
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, server.url, store.keys.name], stdout=subprocess.PIPE, env=os.environ.copy()
        )
        for _ in range(8)
    ]
    taken: list[str] = []
    for process in processes:
        out, _ = process.communicate(timeout=100)
        assert process.returncode == 0
        taken += json.loads(out)
    assert len(taken) == len(set(taken)) == 10_000


def test_t01_daemons_race_for_the_same_executors(store: Store) -> None:
    """Two daemons with the same idle executors: each executor gets one claim, each task one executor."""
    factory.submit(store, [factory.task(f"t{n}") for n in range(20)], concurrency=1000)
    for _ in range(10):
        factory.executor(store)
    first = store.claim("one", secrets.token_hex(4), limit=5)
    second = store.claim("two", secrets.token_hex(4), limit=32)
    assert len(first) == len(second) == 5
    assert len({c.session for c in (*first, *second)}) == 10
    assert len({c.task for c in (*first, *second)}) == 10
