"""Which tasks can run at once and may write the same files. Pure.

Must not know states: two tasks can run at once when no edge, near or far, orders them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler.graph import Graph
from scheduler.plans import pattern_covers

LOOKS = 20_000
"""Pairs that are looked at; a plan with more shared patterns is answered in part."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two tasks, in the order of the file, and the narrower of the two patterns that meet."""

    one: str
    two: str
    pattern: str


def overlaps(graph: Graph, scopes: Mapping[str, Sequence[str]], most: int) -> Iterator[Overlap]:
    """At most `most` pairs of these tasks, each once. `scopes` is task -> patterns, in file order."""
    holders: dict[str, list[str]] = {}
    for task, patterns in scopes.items():
        for pattern in patterns:
            holders.setdefault(pattern, []).append(task)
    order = {task: at for at, task in enumerate(scopes)}
    seen: set[tuple[str, str]] = set()
    below: dict[str, set[str]] = {}
    for one, two, pattern in _meeting(holders):
        pair = (one, two) if order[one] < order[two] else (two, one)
        if pair in seen or one == two:
            continue
        seen.add(pair)
        if len(seen) > LOOKS:
            return
        if not _ordered(graph, *pair, below):
            yield Overlap(*pair, pattern)
            most -= 1
            if most == 0:
                return


def _meeting(holders: Mapping[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    """Pairs of tasks whose patterns meet: the same one, or one that covers the other."""
    for pattern, tasks in holders.items():
        for at, one in enumerate(tasks):
            for two in tasks[at + 1 :]:
                yield one, two, pattern
        for wider in _wider(pattern):
            if wider != pattern and pattern_covers(wider, pattern):
                for one in holders.get(wider, ()):
                    for two in tasks:
                        yield one, two, pattern


def _wider(pattern: str) -> Iterator[str]:
    """Every pattern that could cover this one: `**`, and `dir/**` for each folder above."""
    yield "**"
    parts = pattern.removesuffix("/**").split("/")
    for length in range(1, len(parts)):
        yield "/".join(parts[:length]) + "/**"


def _ordered(graph: Graph, one: str, two: str, below: dict[str, set[str]]) -> bool:
    for task, other in ((one, two), (two, one)):
        if task not in below:
            below[task] = set(graph.descendants(task))
        if other in below[task]:
            return True
    return False
