"""Random interleavings of claimers, workers, recovery, cancel, pause and reopen against the real store.

After every step all invariants that can be seen from outside are checked (I1-I3, I10, I12, I13, I15, I16), and every
write of an attempt that was taken back must be refused without a trace.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from scheduler import errors, lifecycle
from scheduler.embedded import Embedded
from scheduler.lifecycle import Timing
from scheduler.model import Claim, Failure, FailureClass, PlanState, TaskState
from scheduler.store import Store, StoreConfig, Views, connect
from scheduler.store.keys import Keys
from tests import factory

SERVER: list[Embedded] = []
DAG = st.lists(st.sets(st.integers(0, 6), max_size=3), min_size=1, max_size=7)


class Running:
    """A started attempt as its worker sees it. `step` counts how far it has come."""

    def __init__(self, claim: Claim, token: str) -> None:
        self.claim = claim
        self.token = token
        self.alive = True


class StoreMachine(RuleBasedStateMachine):
    """One plan, a few executors, and everything that can happen to them."""

    claims = Bundle("claims")
    running = Bundle("running")

    @initialize(dag=DAG, concurrency=st.integers(1, 4), retries=st.integers(0, 2), required=st.booleans())
    def begin(self, dag: list[set[int]], concurrency: int, retries: int, required: bool) -> None:
        client = connect(StoreConfig(SERVER[0].url))
        self.store = Store(client, Keys(f"m{secrets.token_hex(6)}"), Timing(lease=600_000, dispatch=600_000))
        self.views = Views(client, self.store.keys)
        self.store.set_limits({"default": 3, "system": 1, "llm": 1})
        tasks = [
            factory.task(f"t{n}", [f"t{b}" for b in blockers if b < n], retries=retries)
            for n, blockers in enumerate(dag)
        ]
        self.specs = {t.id: t for t in tasks}
        self.plan = factory.submit(
            self.store, tasks, concurrency=concurrency, approval="required" if required else "auto"
        )
        self.approved = not required
        self.executors = [factory.executor(self.store) for _ in range(3)]
        self.calls = 0
        self.gone: set[str] = set()

    # What people do

    @rule()
    def approve(self) -> None:
        assume(self.store.plan_state(self.plan) is PlanState.AWAITING_APPROVAL)
        self.store.approve(self.plan, 1, "h" * 64, "me")
        self.approved = True

    @rule()
    def pause_and_resume(self) -> None:
        if self.store.plan_state(self.plan) is PlanState.RUNNING:
            self.store.interrupt(self.plan, "me")
        elif self.store.plan_state(self.plan) is PlanState.PAUSED:
            self.store.resume(self.plan, "me", only="signal")

    @rule(number=st.integers(0, 6))
    def cancel_task(self, number: int) -> None:
        assume(f"t{number}" in self.specs)
        with maybe(errors.Conflict):
            self.store.cancel(self.plan, "me", f"t{number}")

    @rule(really=st.integers(0, 9))
    def cancel_plan(self, really: int) -> None:
        assume(really == 0)
        with maybe(errors.Conflict):
            self.store.cancel(self.plan, "me")

    @rule()
    def reopen(self) -> None:
        assume(self.store.plan_state(self.plan) is PlanState.FAILED)
        self.store.reopen(self.plan, "me")

    # What the daemon does

    @rule(target=claims, repeat=st.booleans())
    def claim(self, repeat: bool) -> object:
        self.calls += 1
        got = self.store.claim("d", str(self.calls))
        if repeat:
            again = self.store.claim("d", str(self.calls))
            assert again == got or not got
            got = again
        return multiple(*got)

    @rule()
    def settle(self) -> None:
        for plan in self.store.dirty():
            self.store.settle(plan, 2)

    @rule()
    def dispatch_deadlines_pass(self) -> None:
        for member in self.store.client.zrange(self.store.keys.dispatch(), 0, -1):
            self.store.client.zadd(self.store.keys.dispatch(), {member: 1})
        self.store.expire()

    @rule()
    def back_off_passes(self) -> None:
        for member in self.store.client.zrange(self.store.keys.later(), 0, -1):
            plan, _, task = member.partition("|")
            self.store.client.hdel(self.store.keys.row(plan, task), "nb")
            self.store.client.zadd(self.store.keys.later(), {member: 1})

    @rule(index=st.integers(0, 2), swept=st.booleans())
    def a_session_is_lost(self, index: int, swept: bool) -> None:
        session = self.executors[index].session
        self.store.client.zadd(self.store.keys.sessions(), {session: 1})
        self.store.recover(session, "1", swept=swept)
        if self.store.lapsed() and swept:
            self.store.recover(session, "", swept=True)
        self.gone.add(session)
        self.executors[index] = factory.executor(self.store)

    @rule()
    def hosts_are_swept(self) -> None:
        for session in self.store.lapsed():
            self.store.recover(session, "", swept=True)

    # What workers do

    @rule(index=st.integers(0, 2))
    def idle(self, index: int) -> None:
        self.store.present(self.executors[index].session, "idle")

    @rule(target=claims, index=st.integers(0, 2))
    def linger(self, index: int) -> object:
        return multiple(*self.store.present(self.executors[index].session, "lingering").claims)

    @rule(target=running, claim=consumes(claims), twice=st.booleans())
    def start(self, claim: Claim, twice: bool) -> object:
        token = secrets.token_hex(8)
        try:
            self.store.start(claim, token)
            if twice:
                self.store.start(claim, token)
        except errors.Fenced:
            return multiple()
        except errors.Conflict as error:
            if error.facts.get("cancel"):
                self.store.cancelled(claim, "")
            return multiple()
        return Running(claim, token)

    @rule(target=running, index=st.integers(0, 2))
    def take(self, index: int) -> object:
        """The common way in one step: settle, wait, claim by hand-over, start."""
        self.settle()
        self.back_off_passes()
        out = []
        for claim in self.store.present(self.executors[index].session, "lingering").claims:
            token = secrets.token_hex(8)
            with maybe(errors.Conflict):
                self.store.start(claim, token)
                out.append(Running(claim, token))
        return multiple(*out)

    @rule(index=st.integers(0, 2), kind=st.sampled_from(FailureClass))
    def take_and_fail(self, index: int, kind: FailureClass) -> None:
        for claim in self.store.present(self.executors[index].session, "lingering").claims:
            token = secrets.token_hex(8)
            with maybe(errors.Conflict):
                self.store.start(claim, token)
                again = lifecycle.retriable(kind)
                self.store.fail(claim, token, Failure(kind=kind, reason="r"), again=again, jitter=0)

    @rule(index=st.integers(0, 2), other=st.integers(0, 2))
    def a_verification_changes_hands(self, index: int, other: int) -> None:
        """Submitted and accepted by its first owner's evidence; lost; the next owner must verify anew."""
        for claim in self.store.present(self.executors[index].session, "lingering").claims:
            old, new = secrets.token_hex(8), secrets.token_hex(8)
            with maybe(errors.Conflict):
                if self.store.start(claim, old) is TaskState.RUNNING:
                    self.store.submit(self.plan, claim.task, claim.attempt, old, factory.result())
                self.store.record(self.plan, claim.task, factory.evidence(claim.attempt, old))
                self.store.client.zadd(self.store.keys.sessions(), {claim.session: 1})
                self.store.recover(claim.session, "1")
                self.executors[index] = factory.executor(self.store)
                for again in self.store.present(self.executors[other].session, "lingering").claims:
                    self.store.start(again, new)
                    if again.task != claim.task:
                        continue
                    for call in (
                        lambda c=claim, o=old: self.store.accept(c, o),
                        lambda c=claim, o=old: self.store.hand_back(c, o, "x"),
                        lambda c=claim, o=old: self.store.fail(
                            c, o, Failure(kind=FailureClass.LOST, reason="r"), again=True, jitter=0
                        ),
                    ):
                        with pytest.raises(errors.Fenced):
                            call()
                    with pytest.raises(errors.NoEvidence):
                        self.store.accept(again, new)

    @rule(claim=consumes(claims))
    def a_claim_is_handed_back(self, claim: Claim) -> None:
        with maybe(errors.Fenced, errors.Conflict):
            self.store.hand_back(claim, "", "drain", counted=True)

    @rule(attempt=running, accepted=st.booleans())
    def submit_and_record(self, attempt: Running, accepted: bool) -> None:
        with self.fenced(attempt):
            self.store.submit(self.plan, attempt.claim.task, attempt.claim.attempt, attempt.token, factory.result())
        with self.fenced(attempt):
            self.store.record(
                self.plan,
                attempt.claim.task,
                factory.evidence(attempt.claim.attempt, attempt.token, accepted=accepted),
            )

    @rule(target=claims, attempt=running)
    def accept(self, attempt: Running) -> object:
        got: tuple[Claim, ...] = ()
        with self.fenced(attempt, errors.NoEvidence):
            got = self.store.accept(attempt.claim, attempt.token, 1)
            assert self.store.accept(attempt.claim, attempt.token, 0) is not None
        return multiple(*got)

    @rule(attempt=running, kind=st.sampled_from(FailureClass))
    def fail(self, attempt: Running, kind: FailureClass) -> None:
        with self.fenced(attempt):
            failure = Failure(kind=kind, reason="r")
            self.store.fail(attempt.claim, attempt.token, failure, again=lifecycle.retriable(kind), jitter=0)

    @rule(attempt=running, thaw=st.booleans())
    def hand_back(self, attempt: Running, thaw: bool) -> None:
        with self.fenced(attempt):
            self.store.hand_back(attempt.claim, attempt.token, "drain", thaw=thaw)

    @rule(attempt=running)
    def prove_gone(self, attempt: Running) -> None:
        with self.fenced(attempt):
            self.store.cancelled(attempt.claim, attempt.token)

    @contextmanager
    def fenced(self, attempt: Running, *more: type[errors.DagwardError]) -> Iterator[None]:
        """A write of a worker: refused when its attempt is not its own any more, and then without a trace."""
        row = self.store.client.hgetall(self.store.keys.row(self.plan, attempt.claim.task))
        owns = row.get("att") == str(attempt.claim.attempt) and row.get("tok") == attempt.token
        before = self.everything() if not owns else None
        try:
            yield
        except errors.Fenced:
            assert not owns
            assert self.everything() == before
        except (errors.Conflict, *more):
            pass
        else:
            repeated = row.get("att") == str(attempt.claim.attempt) and row["st"] in ("pending", "cancelled")
            assert owns or repeated

    def everything(self) -> dict[str, object]:
        from tests.integration.test_store import dump

        return dump(self.store)

    # What must hold

    @invariant()
    def counters_and_indexes_equal_the_rows(self) -> None:
        keys, client = self.store.keys, self.store.client
        view, tasks = self.views.plan(self.plan), self.views.tasks(self.plan)
        counted = {state: sum(1 for t in tasks if t.state is state) for state in TaskState}
        assert view.counts == counted
        holding = [t for t in tasks if t.session]
        assert view.used == len(holding)
        assert int(client.hget(keys.used(), "default") or 0) == len(holding)
        assert view.used <= view.concurrency
        assert client.smembers(keys.live(self.plan)) == {t.task for t in holding}
        for task in holding:
            assert f"{self.plan}|{task.task}" in client.smembers(keys.held(task.session))
        states = {t.task: t.state for t in tasks}
        ready = set(client.zrange(keys.ready("default", self.plan), 0, -1))
        later = {m.partition("|")[2] for m in client.zrange(keys.later(), 0, -1)}
        for task in tasks:
            open_blockers = sum(
                1 for e in self.specs[task.task].blocked_by if states[e.task] is not TaskState.COMPLETED
            )
            assert task.edges_left == open_blockers
            row = client.hgetall(keys.row(self.plan, task.task))
            free = (task.state is TaskState.PENDING and not open_blockers) or (
                task.state is TaskState.VERIFYING and row.get("vt") == "1" and not task.session
            )
            assert (task.task in ready or task.task in later) == free, (task, ready, later)
            assert task.charged <= task.retries + 1
            if task.state is TaskState.COMPLETED:
                (evidence,) = self.views.evidence(self.plan, task.task, task.attempt)
                assert evidence.accepted
                assert evidence.token == row["tok"]
            if task.state in (TaskState.CLAIMED, TaskState.RUNNING):
                assert task.session, "running without a lease"
        if not self.approved:
            assert all(t.attempt == 0 for t in tasks)

    @invariant()
    def an_open_plan_with_ready_tasks_has_its_turn(self) -> None:
        keys, client = self.store.keys, self.store.client
        view = self.views.plan(self.plan)
        has = client.zcard(keys.ready("default", self.plan)) > 0
        wants = view.state is PlanState.RUNNING and view.used < view.concurrency and has
        if wants:
            assert client.zscore(keys.turn("default"), self.plan) is not None

    @invariant()
    def the_events_replay_to_the_stored_states(self) -> None:
        states: dict[str, str] = {}
        plan_state = ""
        table = lifecycle.task_table()
        for event in self.views.events(self.plan):
            if event.task:
                assert states.get(event.task, "pending") == event.source
                assert table[event.event][event.source] == event.target
                states[event.task] = event.target
            else:
                assert plan_state == event.source
                plan_state = event.target
        view = self.views.plan(self.plan)
        assert plan_state == view.state
        for task in self.views.tasks(self.plan):
            assert states.get(task.task, "pending") == task.state

    def teardown(self) -> None:
        """Drive the plan to its end: nothing may be stuck."""
        if not hasattr(self, "store"):
            return
        if self.store.plan_state(self.plan) is PlanState.AWAITING_APPROVAL:
            self.approve()
        if self.store.plan_state(self.plan) is PlanState.PAUSED:
            self.store.resume(self.plan, "me")
        for executor in self.executors:
            self.store.recover(executor.session, "", swept=True)
        self.hosts_are_swept()
        worker = factory.executor(self.store)
        for _ in range(200):
            if self.views.plan(self.plan).state in (PlanState.COMPLETED, PlanState.FAILED, PlanState.CANCELLED):
                break
            self.back_off_passes()
            self.settle()
            for claim in self.store.present(worker.session, "lingering").claims:
                token = secrets.token_hex(8)
                state = self.store.start(claim, token)
                if state is TaskState.RUNNING:
                    self.store.submit(self.plan, claim.task, claim.attempt, token, factory.result())
                self.store.record(self.plan, claim.task, factory.evidence(claim.attempt, token))
                self.store.accept(claim, token)
            self.counters_and_indexes_equal_the_rows()
        else:
            pytest.fail(f"stuck: {[(t.task, t.state) for t in self.views.tasks(self.plan)]}")
        self.the_events_replay_to_the_stored_states()
        self.store.client.close()


@contextmanager
def maybe(*kinds: type[Exception]) -> Iterator[None]:
    """An expected no."""
    try:
        yield
    except kinds:
        return


def test_t01_random_interleavings(server: Embedded) -> None:
    SERVER[:] = [server]
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
