"""When main takes its horse for hung."""

from __future__ import annotations

from workers.pulse import OWN_WORK, Pulse


def test_a_stop_counts_only_when_it_lasts_and_is_not_ours() -> None:
    pulse = Pulse(stopped_limit=2.0)
    assert pulse.hung(0.0, stopped=True, frozen=False) is None
    assert pulse.hung(1.0, stopped=False, frozen=False) is None
    assert pulse.hung(2.0, stopped=True, frozen=False) is None
    assert pulse.hung(3.0, stopped=True, frozen=True) is None
    assert pulse.hung(5.0, stopped=True, frozen=False) is None, "counted anew after our own freeze"
    reason = pulse.hung(7.5, stopped=True, frozen=False)
    assert reason is not None
    assert "SIGSTOP" in reason


def test_a_command_may_take_its_time_and_frozen_time_does_not_count() -> None:
    pulse = Pulse(stopped_limit=2.0)
    assert pulse.hung(10**6, stopped=False, frozen=False) is None, "nothing was announced"
    pulse.rest()
    pulse.expect(100.0, now=0.0)
    assert pulse.hung(100.0 + OWN_WORK, stopped=False, frozen=False) is None
    assert pulse.hung(150.0 + OWN_WORK, stopped=False, frozen=True) is None
    assert pulse.hung(149.0 + OWN_WORK, stopped=False, frozen=False) is None
    assert pulse.hung(151.0 + OWN_WORK, stopped=False, frozen=False) is not None
    pulse.expect(0.0, now=200.0 + OWN_WORK)
    assert pulse.hung(201.0 + OWN_WORK, stopped=False, frozen=False) is None
    pulse.rest()
    assert pulse.hung(10**6, stopped=False, frozen=False) is None
