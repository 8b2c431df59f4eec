"""T12: failure, conditions, fallbacks and instances spread the same with one worker and with eight, in any order."""

from __future__ import annotations

import json
import random
import secrets

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler import lifecycle
from scheduler.embedded import Embedded
from scheduler.lifecycle import Timing
from scheduler.model import Failure, FailureClass, PlanState, TaskSpec, When
from scheduler.model.plan import Edge
from scheduler.store import Store, StoreConfig, Views, connect
from scheduler.store.keys import Keys
from tests import factory, outcome_model

COUNT = 7


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[TaskSpec], set[str], dict[str, bool | None], dict[str, int]]:
    tasks, fails, conditions, sizes = [], set(), {}, {}
    free = set()
    for n in range(draw(st.integers(2, COUNT))):
        name = f"t{n}"
        blockers = draw(st.sets(st.integers(0, n - 1), max_size=3)) if n else set()
        edges = tuple(
            Edge(task=f"t{b}", when=draw(st.sampled_from([When.VERIFIED, When.VERIFIED, When.SETTLED])))
            for b in sorted(blockers)
        )
        kind = draw(st.sampled_from(["plain"] * 4 + ["continue", "if", "each"]))
        update: dict[str, object] = {"blocked_by": edges}
        if kind == "continue":
            update["on_failure"] = "continue"
        if kind == "if":
            update["if_"] = "params.x"
            conditions[name] = draw(st.sampled_from([True, False, None]))
        if kind == "each":
            update["for_each"] = "t0.items"
            sizes[name] = draw(st.integers(0, 3))
            fails |= {f"{name}.{i}" for i in range(sizes[name]) if draw(st.booleans())}
        if draw(st.booleans()):
            fails.add(name)
        if kind in ("plain", "if") and n:
            free.add(name)
        tasks.append(factory.task(name, retries=draw(st.integers(0, 1))).model_copy(update=update))
    for n, task in enumerate(tasks):  # a later task without edges into what it replaces may be a fallback
        candidates = [c for c in free if int(c[1:]) > n and not _reaches(tasks, c, task.id)]
        if candidates and not task.for_each and draw(st.integers(0, 3)) == 0:
            chosen = draw(st.sampled_from(sorted(candidates)))
            free.discard(chosen)
            tasks[n] = task.model_copy(update={"fallback": chosen})
    return tasks, fails, conditions, sizes


def _reaches(tasks: list[TaskSpec], late: str, early: str) -> bool:
    """Whether `late` waits for `early` in any way, or for something that the fallback of `early` would make wait."""
    specs = {t.id: t for t in tasks}
    stack, seen = [late], set()
    while stack:
        one = stack.pop()
        if one == early:
            return True
        if one not in seen:
            seen.add(one)
            stack += [e.task for e in specs[one].blocked_by]
            stack += [t.id for t in tasks if t.fallback == one]
            stack += [t.fallback for t in tasks if t.fallback and t.id in [e.task for e in specs[one].blocked_by]]
    return False


def play(store: Store, views: Views, plan: str, workers: int, chance: random.Random, case: tuple) -> None:
    """Executors, daemon and gates take turns at random until the plan has ended."""
    _, fails, conditions, sizes = case
    executors = [factory.executor(store) for _ in range(workers)]
    running = []
    for _ in range(5000):
        if store.plan_state(plan) in (PlanState.COMPLETED, PlanState.FAILED):
            return
        turn = chance.randrange(4)
        if turn == 0:
            if plan in store.dirty():
                store.settle(plan, chance.choice([1, 2, 500]))
        elif turn == 1:
            for task in store.gates(plan):
                row = store.client.hgetall(store.keys.row(plan, task))
                if "g_if" in row:
                    said = conditions[task]
                    if said is None:
                        store.open(plan, task, "fail", "no such name")
                    else:
                        store.open(plan, task, "open" if said else "skip", "its condition is false")
                else:
                    store.expand(plan, task, [json.dumps(i) for i in range(sizes[task])])
        elif turn == 2:
            busy = {c.session for c, _ in running}
            idle = [e for e in executors if e.session not in busy]
            if idle:
                for claim in store.present(chance.choice(idle).session, "lingering").claims:
                    token = secrets.token_hex(4)
                    store.start(claim, token)
                    running.append((claim, token))
        elif running:
            claim, token = running.pop(chance.randrange(len(running)))
            if claim.task in fails:
                store.fail(claim, token, Failure(kind=FailureClass.AGENT_ERROR, reason="r"), again=True, jitter=0)
            else:
                store.submit(plan, claim.task, claim.attempt, token, factory.result())
                store.record(plan, claim.task, factory.evidence(claim.attempt, token))
                store.accept(claim, token)
    raise AssertionError(f"stuck: {[(t.task, str(t.state)) for t in views.tasks(plan)]}")


@given(case=plans(), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_t12_the_outcome_is_the_models_at_any_parallelism(server: Embedded, case: tuple, seed: int) -> None:
    tasks, fails, conditions, sizes = case
    expected = outcome_model.outcome(tasks, fails, conditions, sizes)
    client = connect(StoreConfig(server.url))
    for workers in (1, 8):
        store = Store(client, Keys(f"o{secrets.token_hex(6)}"), Timing(lease=600_000, dispatch=600_000))
        store.set_limits({"default": 100, "system": 1})
        views = Views(client, store.keys)
        plan = factory.submit(store, tasks, concurrency=8)
        play(store, views, plan, workers, random.Random(seed), case)
        got = {
            t.task: (str(t.state), t.cause if t.state == "skipped" else "")
            for t in views.tasks(plan)
            if "." not in t.task
        }
        want = {name: (end.state, end.cause if end.state == "skipped" else "") for name, end in expected.items()}
        assert got == want
        assert store.plan_state(plan) == outcome_model.verdict(expected)
        replay(views, plan)
    client.close()


def replay(views: Views, plan: str) -> None:
    """I16: the events give the stored states."""
    table = lifecycle.task_table()
    states: dict[str, str] = {}
    for event in views.events(plan):
        if event.task:
            assert states.get(event.task, "pending") == event.source
            assert table[event.event][event.source] == event.target
            states[event.task] = event.target
    assert {t.task: str(t.state) for t in views.tasks(plan)} == {
        t.task: states.get(t.task, "pending") for t in views.tasks(plan)
    }
