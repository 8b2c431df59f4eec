"""Recovery's patience: two sightings of one expiry, one renewal apart, and a lease of quiet after any outage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.daemon import Sightings


def test_two_sightings_one_renewal_apart() -> None:
    seen = Sightings(lease=8.0, renewal=2.0)
    assert seen.due({"s": "100"}, 0.0) == []
    assert seen.due({"s": "100"}, 1.9) == []
    assert seen.due({"s": "100"}, 2.0) == [("s", "100")]


def test_a_renewal_in_between_starts_anew() -> None:
    seen = Sightings(lease=8.0, renewal=2.0)
    seen.due({"s": "100"}, 0.0)
    assert seen.due({}, 1.0) == []
    assert seen.due({"s": "100"}, 2.5) == []
    assert seen.due({"s": "200"}, 4.0) == []
    assert seen.due({"s": "200"}, 6.0) == [("s", "200")]


def test_nothing_within_a_lease_of_an_outage() -> None:
    seen = Sightings(lease=8.0, renewal=2.0)
    seen.due({"s": "100"}, 0.0)
    seen.outage(1.0)
    assert seen.due({"s": "100"}, 8.9) == []
    assert seen.due({"s": "100"}, 9.0) == []
    assert seen.due({"s": "100"}, 11.0) == [("s", "100")]


@given(st.lists(st.tuples(st.floats(0.01, 3), st.booleans(), st.booleans()), max_size=40))
def test_never_due_before_a_renewal_of_being_seen_expired(steps: list[tuple[float, bool, bool]]) -> None:
    seen = Sightings(lease=8.0, renewal=2.0)
    now, since, quiet = 0.0, None, 0.0
    for pause, expired, outage in steps:
        now += pause
        if outage:
            seen.outage(now)
            quiet, since = now + 8.0, None
        due = seen.due({"s": "1"} if expired else {}, now)
        if now < quiet:
            assert due == []
            continue
        since = (since if since is not None else now) if expired else None
        assert bool(due) == (since is not None and now - since >= 2.0)
