"""The transition tables and the rules on top of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import lifecycle
from scheduler.lifecycle import PLAN_TRANSITIONS, TRANSITIONS, Fence, Timing
from scheduler.model import FINISHED, LIVE, PLAN_ENDED, FailureClass, PlanState, TaskEvent, TaskState


def test_each_event_and_source_has_one_target() -> None:
    assert len({(m.event, m.source) for m in TRANSITIONS}) == len(TRANSITIONS)
    assert len({(m.event, m.source) for m in PLAN_TRANSITIONS}) == len(PLAN_TRANSITIONS)


def test_a_finished_task_is_moved_only_by_an_operator() -> None:
    moves = [m for m in TRANSITIONS if m.source in FINISHED and m.source is not m.target]
    assert {m.event for m in moves} == {TaskEvent.REOPEN}
    assert all(m.source is not TaskState.COMPLETED for m in moves), "completed work is never started again"


def test_completed_is_reached_only_by_accept_from_verifying() -> None:
    (move,) = [m for m in TRANSITIONS if m.target is TaskState.COMPLETED and m.event is not TaskEvent.JOIN]
    assert (move.event, move.source, move.fence) == (TaskEvent.ACCEPT, TaskState.VERIFYING, Fence.TOKEN)


def test_a_live_task_is_cancelled_only_with_proof() -> None:
    for move in TRANSITIONS:
        if move.target is TaskState.CANCELLED and move.source in LIVE:
            assert move.fence is Fence.GONE


def test_every_live_state_can_end_without_its_worker() -> None:
    for state in LIVE:
        free = {m.event for m in TRANSITIONS if m.source is state and m.fence is Fence.TOKEN_OR_LAPSED}
        assert free, f"{state} would run for ever when its worker is lost"


def test_every_state_can_be_reached_and_left() -> None:
    reached, front = {TaskState.PENDING}, [TaskState.PENDING]
    while front:
        state = front.pop()
        for move in TRANSITIONS:
            if move.source is state and move.target not in reached:
                reached.add(move.target)
                front.append(move.target)
    assert reached == set(TaskState) - {TaskState.INVALIDATED}


def test_plans_end_only_where_they_may() -> None:
    ends = {(m.source, m.target) for m in PLAN_TRANSITIONS if m.target in PLAN_ENDED}
    assert ends == {
        (PlanState.RUNNING, PlanState.COMPLETED),
        (PlanState.RUNNING, PlanState.FAILED),
        (PlanState.CANCELLING, PlanState.CANCELLED),
    }


def test_the_tables_given_to_the_scripts_are_the_tables() -> None:
    table = lifecycle.task_table()
    assert sum(len(v) for v in table.values()) == len(TRANSITIONS)
    assert table["accept"] == {"verifying": "completed"}
    assert lifecycle.plan_table()["submit"] == {"": "draft"}


@pytest.mark.parametrize("kind", FailureClass)
def test_every_class_has_a_default(kind: FailureClass) -> None:
    assert lifecycle.retriable(kind) in (True, False)


def test_configuration_and_scope_are_not_tried_again() -> None:
    never = {
        FailureClass.CONFIGURATION,
        FailureClass.SCOPE_VIOLATION,
        FailureClass.MERGE_CONFLICT,
        FailureClass.INSTANCES,
    }
    assert {kind for kind in FailureClass if not lifecycle.retriable(kind)} == never


@given(st.one_of(st.none(), st.integers(0, 10**9)), st.booleans())
def test_the_excuse_is_short_and_single(ago: int | None, already: bool) -> None:
    assert lifecycle.excused(ago, already) == (ago is not None and ago <= 60_000 and not already)


@given(st.integers(200, 600_000))
def test_a_tree_is_frozen_before_its_lease_can_lapse(lease: int) -> None:
    timing = Timing(lease=lease)
    assert timing.renewal <= timing.freeze < timing.lease
    assert timing.freeze >= 2 * timing.renewal or lease < 400
