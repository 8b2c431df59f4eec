"""Whether the horse still gets on, judged from outside by main: pure, time enters as `now` (seconds, monotonic).

Main renews whatever the horse does, so nothing else would notice one that hangs in its own code, was stopped by a
stranger, or does not hear that it must stop. Must not end anything.
"""

from __future__ import annotations

OWN_WORK = 900.0
"""Seconds that the horse may work between two commands: base, commit, snapshot, checks that run no command."""

DEAF = 5.0
"""Seconds beyond an agent's grace after which a stop that the horse does not follow is enforced."""


class Pulse:
    """What is known of one horse. `stopped_limit`: seconds after which a stop that is not our guard's counts."""

    def __init__(self, stopped_limit: float) -> None:
        self._stopped_limit = stopped_limit
        self._stopped_since: float | None = None
        self._until: float | None = None  # None: nothing is announced, so nothing is due
        self._looked: float | None = None

    def expect(self, seconds: float, now: float) -> None:
        """The horse said that it begins something that may take so long, beyond its own work."""
        self._until = now + seconds + OWN_WORK

    def rest(self) -> None:
        """The horse is gone, a new one has said nothing yet."""
        self._until = self._stopped_since = self._looked = None

    def hung(self, now: float, *, stopped: bool, frozen: bool) -> str | None:
        """Why the horse must be taken for hung, or None. Call it often; frozen time counts in no limit."""
        since, self._looked = self._looked, now
        if frozen:
            self._stopped_since = None
            if self._until is not None and since is not None:
                self._until += now - since
            return None
        if not stopped:
            self._stopped_since = None
        elif self._stopped_since is None:
            self._stopped_since = now
        elif now - self._stopped_since > self._stopped_limit:
            return "its process was stopped (SIGSTOP) by something that is not dagward"
        if self._until is not None and now > self._until:
            return f"its process has not got on for {OWN_WORK:.0f} s"
        return None
