"""The scripts against a real server: every event, its fence, its refusal, and that a refusal wrote nothing."""

from __future__ import annotations

import secrets

import pytest

from scheduler import errors
from scheduler.model import Failure, FailureClass, PlanState, TaskState
from scheduler.store import Store, Views
from tests import factory
from tests.conftest import wait_until


def dump(store: Store) -> dict[str, object]:
    """Everything that the installation stores, to show that a refusal wrote nothing."""
    out: dict[str, object] = {}
    for key in sorted(store.client.scan_iter(match=f"{store.keys.root}*", count=1000)):
        out[key] = _value(store, key)
    return out


def _value(store: Store, key: str) -> object:
    kind = store.client.type(key)
    if kind == "hash":
        return store.client.hgetall(key)
    if kind == "zset":
        return store.client.zrange(key, 0, -1, withscores=True)
    if kind == "set":
        return store.client.smembers(key)
    if kind == "list":
        return store.client.lrange(key, 0, -1)
    if kind == "stream":
        return store.client.xrange(key)
    return store.client.get(key)


def one(store: Store) -> object:
    (claim,) = store.claim("d", secrets.token_hex(4))
    return claim


def state(views: Views, plan: str, task: str) -> TaskState:
    return views.task(plan, task).state


def test_a_diamond_runs_in_order_and_completes(store: Store, views: Views) -> None:
    t = factory.task
    plan = factory.submit(store, [t("a"), t("b", ["a"]), t("c", ["a"]), t("d", ["b", "c"])])
    for _ in range(2):
        factory.executor(store)
    (first,) = store.claim("d", "1")
    assert first.task == "a"
    factory.through(store, first)
    store.present(first.session, "idle")
    got = store.claim("d", "2")
    assert sorted(c.task for c in got) == ["b", "c"]
    for claim in got:
        factory.through(store, claim)
        store.present(claim.session, "idle")
    (last,) = store.claim("d", "3")
    assert last.task == "d"
    factory.through(store, last)
    view = views.plan(plan)
    assert view.state is PlanState.COMPLETED
    assert factory.counts(view.counts) == {"completed": 4}
    assert view.used == 0
    names = [e.event for e in views.events(plan)]
    assert names[:2] == ["plan.submit", "plan.approve"]
    assert names[-1] == "plan.complete"


def test_no_claim_without_an_idle_executor(store: Store) -> None:
    factory.submit(store, [factory.task("a")])
    before = dump(store)
    assert store.claim("d", "1") == ()
    assert dump(store) == before


def test_a_repeated_claim_returns_the_first_answer(store: Store) -> None:
    factory.submit(store, [factory.task("a"), factory.task("b")])
    factory.executor(store)
    first = store.claim("d", "x")
    assert len(first) == 1
    assert store.claim("d", "x") == first


def test_nothing_is_claimed_before_the_approval(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")], approval="required")
    factory.executor(store)
    assert store.claim("d", "1") == ()
    assert store.plan_state(plan) is PlanState.AWAITING_APPROVAL
    before = dump(store)
    with pytest.raises(errors.Conflict, match="is at version 1 with hash"):
        store.approve(plan, 1, "0" * 64, "me")
    with pytest.raises(errors.Conflict):
        store.approve(plan, 2, "h" * 64, "me")
    assert dump(store) == before
    assert store.approve(plan, 1, "h" * 64, "me") is True
    assert store.approve(plan, 1, "h" * 64, "me") is False
    assert len(store.claim("d", "2")) == 1
    assert views.why(plan, "a")["state"] == "claimed"


def test_an_approval_of_another_hash_opens_nothing(store: Store, views: Views) -> None:
    """T17: the approval is checked again in the claim, not only when it was given."""
    plan = factory.submit(store, [factory.task("a")])
    factory.executor(store)
    store.client.hset(store.keys.plan(plan), "approved", "0" * 64)
    assert store.claim("d", "1") == ()
    assert views.why(plan, "a")["causes"][0]["cause"] == "approval"


def test_concurrency_holds_and_is_freed(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a"), factory.task("b"), factory.task("c")], concurrency=2)
    for _ in range(3):
        factory.executor(store)
    got = store.claim("d", "1")
    assert len(got) == 2
    assert views.plan(plan).used == 2
    factory.through(store, got[0])
    assert len(store.claim("d", "2")) == 1


def test_stale_writes_are_fenced_and_change_nothing(store: Store) -> None:
    plan = factory.submit(store, [factory.task("a")])
    factory.executor(store)
    claim = one(store)
    store.start(claim, "t1")
    before = dump(store)
    for call in (
        lambda: store.start(claim, "other"),
        lambda: store.submit(plan, "a", 1, "other", factory.result()),
        lambda: store.record(plan, "a", factory.evidence(1, "other")),
        lambda: store.accept(claim, "other"),
        lambda: store.fail(claim, "other", Failure(kind=FailureClass.LOST, reason="x"), again=True, jitter=0),
        lambda: store.hand_back(claim, "other", "x"),
        lambda: store.cancelled(claim, "other"),
    ):
        with pytest.raises(errors.Fenced):
            call()
    assert dump(store) == before


def test_completed_is_impossible_without_evidence(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")])
    factory.executor(store)
    claim = one(store)
    store.start(claim, "t")
    with pytest.raises(errors.Conflict):
        store.accept(claim, "t")
    store.submit(plan, "a", 1, "t", factory.result())
    before = dump(store)
    with pytest.raises(errors.NoEvidence, match="no evidence for check 0"):
        store.accept(claim, "t")
    with pytest.raises(errors.Conflict, match="evidence names other"):
        store.record(plan, "a", factory.evidence(1, "t", digest="other"))
    with pytest.raises(errors.Conflict, match="no check 1"):
        store.record(plan, "a", factory.evidence(1, "t", check=1))
    assert dump(store) == before
    store.record(plan, "a", factory.evidence(1, "t", accepted=False))
    with pytest.raises(errors.NoEvidence, match="did not accept"):
        store.accept(claim, "t")
    assert state(views, plan, "a") is TaskState.VERIFYING
    assert views.evidence(plan, "a", 1)[0].recorded_at > 0


def test_every_step_twice_is_once(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a"), factory.task("b", ["a"])])
    factory.executor(store)
    claim = one(store)
    for _ in range(2):
        assert store.start(claim, "t") is TaskState.RUNNING
    for _ in range(2):
        store.submit(plan, "a", 1, "t", factory.result())
    for _ in range(2):
        store.record(plan, "a", factory.evidence(1, "t"))
    first = store.accept(claim, "t", 1)
    again = store.accept(claim, "t", 1)
    assert [c.task for c in first] == [c.task for c in again] == ["b"]
    assert first[0].attempt == again[0].attempt == 1
    events = [(e.event, e.task) for e in views.events(plan)]
    assert events.count(("start", "a")) == 1
    assert events.count(("accept", "a")) == 1
    assert events.count(("claim", "b")) == 1


def fail(store: Store, kind: FailureClass = FailureClass.AGENT_ERROR, again: bool = True) -> TaskState:
    claim = one(store)
    store.start(claim, secrets.token_hex(4))
    token = store.client.hget(store.keys.row(claim.plan, claim.task), "tok")
    out = store.fail(claim, token, Failure(kind=kind, reason="x"), again=again, jitter=0)
    assert store.fail(claim, token, Failure(kind=kind, reason="x"), again=again, jitter=0) is out
    store.present(claim.session, "idle")
    return out


def test_the_ledger_ends_retries(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a", retries=2), factory.task("b", ["a"]), factory.task("c", ["b"])])
    factory.executor(store)
    assert [fail(store) for _ in range(3)] == [TaskState.PENDING, TaskState.PENDING, TaskState.FAILED]
    view = views.task(plan, "a")
    assert (view.charged, view.attempt, view.state) == (3, 3, TaskState.FAILED)
    while store.settle(plan, 1):
        pass
    assert state(views, plan, "b") is TaskState.SKIPPED
    assert views.task(plan, "c").cause == "a failed"
    assert views.plan(plan).state is PlanState.FAILED


def test_configuration_never_burns_retries(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a", retries=5)])
    factory.executor(store)
    assert fail(store, FailureClass.CONFIGURATION, again=False) is TaskState.FAILED
    store.settle(plan)
    assert views.plan(plan).state is PlanState.FAILED


def test_back_off_keeps_a_task_out_of_the_claim_until_its_time(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a", backoff=300)])
    factory.executor(store)
    assert fail(store) is TaskState.PENDING
    causes = views.why(plan, "a")["causes"]
    assert causes[0]["cause"] == "backoff"
    assert store.claim("d", "early") == ()
    wait_until(lambda: store.claim("d", secrets.token_hex(4)), "the back-off to end")


def test_hand_back_is_uncharged_and_bounded_for_claims_that_never_start(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")])
    ex = factory.executor(store)
    for n in range(3):
        claim = one(store)
        assert claim.attempt == n + 1
        out = store.hand_back(claim, "", "never started", counted=True)
        store.present(ex.session, "idle")
    assert out is TaskState.FAILED
    view = views.task(plan, "a")
    assert view.charged == 0
    assert view.failure is not None
    assert view.failure.kind is FailureClass.INFRASTRUCTURE


def test_verification_that_loses_its_worker_again_and_again_is_left_to_the_ledger(store: Store, views: Views) -> None:
    """Else a check that kills its worker would be tried for ever, charged to nobody."""
    plan = factory.submit(store, [factory.task("a", retries=1)])
    ex = factory.executor(store)
    seen = []
    for attempt in (1, 2):
        claim = one(store)
        assert claim.attempt == attempt
        store.start(claim, "t0")
        store.submit(plan, "a", attempt, "t0", factory.result())
        for n in range(3):
            seen.append(store.hand_back(claim, f"t{n}", "its checks died", counted=True))
            store.present(ex.session, "idle")
            if n < 2:
                claim = one(store)
                assert claim.verify_only
                store.start(claim, f"t{n + 1}")
        assert views.task(plan, "a").charged == attempt
    verifying, pending, failed = TaskState.VERIFYING, TaskState.PENDING, TaskState.FAILED
    assert seen == [verifying, verifying, pending, verifying, verifying, failed]
    failure = views.task(plan, "a").failure
    assert failure is not None
    assert failure.kind is FailureClass.LOST


def test_a_plan_whose_tasks_were_cancelled_before_its_approval_ends_with_it(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")], approval="required")
    store.cancel(plan, "me", "a")
    while store.settle(plan):
        pass
    assert store.plan_state(plan) is PlanState.AWAITING_APPROVAL
    store.approve(plan, 1, "h" * 64, "me")
    assert store.plan_state(plan) is PlanState.FAILED


def test_a_running_attempt_handed_back_is_not_charged(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")])
    factory.executor(store)
    claim = one(store)
    store.start(claim, "t")
    assert views.task(plan, "a").charged == 1
    assert store.hand_back(claim, "t", "drain") is TaskState.PENDING
    assert store.hand_back(claim, "t", "drain") is TaskState.PENDING
    assert views.task(plan, "a").charged == 0


def test_the_excuse_of_a_thaw_holds_once(store: Store) -> None:
    factory.submit(store, [factory.task("a")])
    ex = factory.executor(store)
    claim = one(store)
    store.start(claim, "t")
    assert store.hand_back(claim, "t", "thaw", thaw=True) is TaskState.PENDING
    store.present(ex.session, "idle")
    second = one(store)
    store.start(second, "t2")
    before = dump(store)
    with pytest.raises(errors.Conflict):
        store.hand_back(second, "t2", "thaw", thaw=True)
    assert dump(store) == before


def lapse(store: Store, session: str) -> str:
    seen = dict(store.sessions())[session]
    wait_until(lambda: store.now() > int(seen) + 1, "the lease to lapse")
    return seen


def test_recovery_takes_only_lapsed_leases(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")])
    ex = factory.executor(store)
    claim = one(store)
    store.start(claim, "t")
    seen = dict(store.sessions())[ex.session]
    before = dump(store)
    with pytest.raises(errors.Conflict, match="has renewed"):
        store.recover(ex.session, seen)
    assert dump(store) == before
    seen = lapse(store, ex.session)
    renewal = store.renew(ex.session)
    assert renewal.alive
    assert renewal.held[0].task == "a"
    with pytest.raises(errors.Conflict):
        store.recover(ex.session, seen)
    seen = lapse(store, ex.session)
    assert store.recover(ex.session, seen) == [f"{plan}|a"]
    gone = store.renew(ex.session)
    assert not gone.alive
    assert gone.fenced == (f"{plan}_0_1_t",)
    view = views.task(plan, "a")
    assert view.state is TaskState.PENDING
    assert view.failure is not None
    assert view.failure.kind is FailureClass.LOST
    with pytest.raises(errors.Fenced):
        store.submit(plan, "a", 1, "other", factory.result())
    assert views.plan(plan).used == 0


def test_a_lost_verification_is_taken_over_without_the_agent(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")])
    ex = factory.executor(store)
    claim = one(store)
    store.start(claim, "t")
    store.submit(plan, "a", 1, "t", factory.result())
    store.record(plan, "a", factory.evidence(1, "t"))
    store.recover(ex.session, lapse(store, ex.session))
    factory.executor(store)
    again = one(store)
    assert (again.attempt, again.verify_only) == (1, True)
    with pytest.raises(errors.Fenced):
        store.accept(claim, "t")
    assert store.start(again, "t2") is TaskState.VERIFYING
    with pytest.raises(errors.NoEvidence, match="another attempt"):
        store.accept(again, "t2")
    store.record(plan, "a", factory.evidence(1, "t2"))
    store.accept(again, "t2")
    assert views.task(plan, "a").charged == 1
    assert views.plan(plan).state is PlanState.COMPLETED


def test_a_claim_that_never_starts_expires(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")])
    factory.executor(store)
    claim = one(store)
    assert store.expire() == []
    wait_until(lambda: store.expire() == [f"{plan}|a"], "the dispatch deadline")
    assert state(views, plan, "a") is TaskState.PENDING
    with pytest.raises(errors.Fenced):
        store.start(claim, "late")


def test_cancel_of_a_plan(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a"), factory.task("b"), factory.task("c", ["a"])], concurrency=1)
    ex = factory.executor(store)
    claim = one(store)
    store.start(claim, "t")
    assert store.cancel(plan, "me") == "cancelling"
    assert store.cancel(plan, "me") == "cancelling"
    assert store.renew(ex.session).held[0].cancel
    store.settle(plan)
    assert state(views, plan, "b") is TaskState.CANCELLED
    assert state(views, plan, claim.task) is TaskState.RUNNING
    assert views.plan(plan).used == 1
    store.submit(plan, claim.task, 1, "t", factory.result())
    store.record(plan, claim.task, factory.evidence(1, "t"))
    with pytest.raises(errors.Conflict, match="asked to be cancelled"):
        store.accept(claim, "t")
    store.cancelled(claim, "t")
    store.cancelled(claim, "t")
    while store.settle(plan):
        pass
    view = views.plan(plan)
    assert view.state is PlanState.CANCELLED
    assert factory.counts(view.counts) == {"cancelled": 3}


def test_a_cancelled_attempt_of_a_lost_host_waits_for_the_sweep(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")])
    ex = factory.executor(store)
    claim = one(store)
    store.start(claim, "t")
    store.cancel(plan, "me", "a")
    store.recover(ex.session, lapse(store, ex.session))
    assert state(views, plan, "a") is TaskState.RUNNING
    assert store.lapsed() == [ex.session]
    assert views.workers()[0].state == "lost"
    store.recover(ex.session, "", swept=True)
    assert state(views, plan, "a") is TaskState.CANCELLED
    assert store.lapsed() == []


def test_a_swept_session_is_recovered_at_once(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a")])
    ex = factory.executor(store)
    store.start(one(store), "t")
    assert store.recover(ex.session, "", swept=True) == [f"{plan}|a"]
    assert state(views, plan, "a") is TaskState.PENDING
    assert store.recover(ex.session, "", swept=True) == []


def test_reopen_gives_failed_and_skipped_one_more_attempt(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a", retries=0), factory.task("b", ["a", "x"]), factory.task("x")])
    ex = factory.executor(store)
    claim = one(store)
    assert claim.task == "a"
    store.start(claim, "t")
    store.fail(claim, "t", Failure(kind=FailureClass.AGENT_ERROR, reason="x"), again=True, jitter=0)
    while store.settle(plan):
        pass
    store.present(ex.session, "idle")
    factory.through(store, one(store), "tx")
    assert views.plan(plan).state is PlanState.FAILED
    assert store.reopen(plan, "me") == 2
    assert store.plan_state(plan) is PlanState.RUNNING
    store.present(ex.session, "idle")
    again = one(store)
    assert (again.task, again.attempt) == ("a", 2)
    factory.through(store, again, "t2")
    store.present(ex.session, "idle")
    factory.through(store, one(store), "t3")
    assert views.plan(plan).state is PlanState.COMPLETED


def test_an_interrupted_plan_claims_nothing_and_resumes(store: Store) -> None:
    plan = factory.submit(store, [factory.task("a")])
    factory.executor(store)
    store.interrupt(plan, "run")
    assert store.claim("d", "1") == ()
    with pytest.raises(errors.Conflict):
        store.resume(plan, "me", only="person")
    store.resume(plan, "me", only="signal")
    assert len(store.claim("d", "2")) == 1


def test_submit_is_idempotent_by_key(store: Store) -> None:
    first = factory.submit(store, [factory.task("a")], key="k", content="c")
    assert factory.submit(store, [factory.task("a")], key="k", content="c") == first
    with pytest.raises(errors.Conflict, match="belongs to plan"):
        factory.submit(store, [factory.task("a")], key="k", content="other")


def test_a_lingering_executor_takes_the_next_task_at_once(store: Store, views: Views) -> None:
    plan = factory.submit(store, [factory.task("a"), factory.task("b", ["a"])])
    ex = factory.executor(store)
    claim = one(store)
    store.start(claim, "t")
    store.submit(plan, "a", 1, "t", factory.result())
    store.record(plan, "a", factory.evidence(1, "t"))
    (after,) = store.accept(claim, "t", 1)
    assert (after.task, after.session) == ("b", ex.session)
    assert store.present(ex.session, "lingering").claims == (after,)
    factory.through(store, after, "t2")
    assert store.present(ex.session, "lingering").claims == ()
    assert views.workers()[0].state == "lingering"


def test_a_plan_of_a_run_is_served_only_by_its_executors(store: Store) -> None:
    plan = factory.submit(store, [factory.task("a")])
    factory.executor(store, plan="another")
    assert store.claim("d", "1") == ()
    ex = factory.executor(store, plan=plan)
    (claim,) = store.claim("d", "2", only=plan)
    assert claim.session == ex.session


def test_a_wrong_key_type_is_refused_before_the_first_write(store: Store) -> None:
    plan = factory.submit(store, [factory.task("a"), factory.task("b", ["a"])])
    factory.executor(store)
    claim = one(store)
    store.start(claim, "t")
    store.submit(plan, "a", 1, "t", factory.result())
    store.record(plan, "a", factory.evidence(1, "t"))
    victims = [store.keys.row(plan, "b"), store.keys.live(plan), store.keys.events(plan), store.keys.dispatch()]
    for victim in victims:
        if store.client.exists(victim):
            store.client.rename(victim, "aside")
        store.client.set(victim, "broken")
        before = dump(store)
        with pytest.raises(errors.StoreCorrupt):
            store.accept(claim, "t")
        assert dump(store) == before
        store.client.delete(victim)
        if store.client.exists("aside"):
            store.client.rename("aside", victim)
    store.accept(claim, "t")
