"""Names of keys. Everything of one installation lies under one hash tag, so one script may touch all of it.

The Lua prelude spells the same names; `tests/unit/test_keys.py` holds both against each other.
"""

from __future__ import annotations

from dataclasses import dataclass

STORE_FORMAT = "1"


@dataclass(frozen=True, slots=True)
class Keys:
    """Key names of the installation `name`."""

    name: str

    @property
    def root(self) -> str:
        """Prefix of every key; the braces are the cluster's hash tag."""
        return f"dagward:{{{self.name}}}:"

    def meta(self) -> str:
        """Hash: `format` of the store and the installation's `epoch`."""
        return f"{self.root}meta"

    def plans(self) -> str:
        """Sorted set: plan id by time of submission."""
        return f"{self.root}plans"

    def active(self) -> str:
        """Set: plans that have not ended."""
        return f"{self.root}active"

    def dirty(self) -> str:
        """Set: plans with something to settle."""
        return f"{self.root}dirty"

    def plan(self, plan: str) -> str:
        """Hash: state, version, hash, counters of one plan."""
        return f"{self.root}p:{plan}"

    def version(self, plan: str, version: int) -> str:
        """String: one immutable version without its tasks, JSON."""
        return f"{self.root}v:{plan}:{version}"

    def specs(self, plan: str, version: int) -> str:
        """Hash: task id -> its spec in that version, JSON."""
        return f"{self.root}s:{plan}:{version}"

    def approvals(self, plan: str) -> str:
        """Hash: version -> who approved which hash, when."""
        return f"{self.root}ap:{plan}"

    def order(self, plan: str) -> str:
        """Sorted set: task id by its number in the plan."""
        return f"{self.root}o:{plan}"

    def row(self, plan: str, task: str) -> str:
        """Hash: state, attempt, ledger, edges left of one task."""
        return f"{self.root}t:{plan}:{task}"

    def dependents(self, plan: str, task: str) -> str:
        """String: the tasks that this one blocks, a JSON list; absent when there are none."""
        return f"{self.root}d:{plan}:{task}"

    def results(self, plan: str, task: str) -> str:
        """Hash: attempt -> result, `f` attempt -> failure; JSON."""
        return f"{self.root}res:{plan}:{task}"

    def evidence(self, plan: str, task: str, attempt: int) -> str:
        """Hash: check index -> evidence record, JSON."""
        return f"{self.root}ev:{plan}:{task}:{attempt}"

    def events(self, plan: str) -> str:
        """Stream: the plan's history."""
        return f"{self.root}e:{plan}"

    def gates(self, plan: str) -> str:
        """List: tasks whose edges hold and whose `if` or `for_each` the daemon has to judge."""
        return f"{self.root}g:{plan}"

    def live(self, plan: str) -> str:
        """Set: tasks with a lease."""
        return f"{self.root}lv:{plan}"

    def ready(self, pool: str, plan: str) -> str:
        """Sorted set: ready tasks of a plan in a pool, by priority and remaining path."""
        return f"{self.root}r:{pool}:{plan}"

    def turn(self, pool: str) -> str:
        """Sorted set: plans that a claim may look at in a pool, the one served longest ago first."""
        return f"{self.root}pl:{pool}"

    def limits(self) -> str:
        """Hash: pool -> limit."""
        return f"{self.root}pools"

    def used(self) -> str:
        """Hash: pool -> slots in use."""
        return f"{self.root}used"

    def sessions(self) -> str:
        """Sorted set: executor session by the end of its lease (server milliseconds)."""
        return f"{self.root}sess"

    def lapsed(self) -> str:
        """Set: sessions recovered but for cancels that wait for their host's sweep."""
        return f"{self.root}lost"

    def executor(self, session: str) -> str:
        """Hash: one registered executor."""
        return f"{self.root}x:{session}"

    def held(self, session: str) -> str:
        """Set: `plan|task` that a session holds."""
        return f"{self.root}xh:{session}"

    def inbox(self, session: str) -> str:
        """List: wake-ups for a lingering executor; never data."""
        return f"{self.root}in:{session}"

    def idle(self, pool: str, plan: str) -> str:
        """Sorted set: idle sessions of a pool that serve `plan`, or every plan (empty)."""
        return f"{self.root}idle:{pool}:{plan or '*'}"

    def dispatch(self) -> str:
        """Sorted set: claims not started, by dispatch deadline."""
        return f"{self.root}disp"

    def later(self) -> str:
        """Sorted set: tasks that wait for a time."""
        return f"{self.root}later"

    def bell(self) -> str:
        """Stream: wakes every daemon."""
        return f"{self.root}bell"

    def keys(self) -> str:
        """Hash: idempotency key -> plan."""
        return f"{self.root}keys"

    def staging(self) -> str:
        """Sorted set: plans being staged, by time of the last batch."""
        return f"{self.root}staging"
