"""The DAG of a plan: order, ancestors, longest path, cycles. The only room that imports networkx.

Works on ids and positions alone; must not know states, files or the store.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scheduler.model.plan import PlanSpec, TaskSpec

Links = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Graph:
    """An acyclic graph of tasks, numbered by their position in the file. Built by `from_tasks` or `from_spec`."""

    ids: tuple[str, ...]
    _before: Links  # position -> positions of its blockers, ascending
    _after: Links  # position -> positions of its dependents, ascending

    def order(self) -> list[str]:
        """All tasks, blockers first; of several that could come next the one that is first in the file."""
        return [self.ids[at] for at in self._order]

    def blockers(self, task: str) -> list[str]:
        """The direct blockers of a task, in file order."""
        return [self.ids[at] for at in self._before[self._numbers[task]]]

    def dependents(self, task: str) -> list[str]:
        """The tasks that a task blocks directly, in file order."""
        return [self.ids[at] for at in self._after[self._numbers[task]]]

    def ancestors(self, task: str) -> list[str]:
        """All blockers near and far, in topological order; the task itself is not among them."""
        return self._reach(task, self._before)

    def descendants(self, task: str) -> list[str]:
        """All tasks that a task blocks near and far, in topological order; the task itself is not among them."""
        return self._reach(task, self._after)

    def path_length(self, task: str) -> int:
        """Tasks on the longest path from this task to an end of the plan, itself included: at least 1."""
        return self._lengths[self._numbers[task]]

    def sinks(self) -> list[str]:
        """The tasks that block nothing, in file order."""
        return [self.ids[at] for at, after in enumerate(self._after) if not after]

    def layers(self) -> list[list[str]]:
        """Tasks by their distance from the start: layer n holds those whose longest way to them has n tasks."""
        depth = [0] * len(self.ids)
        for at in self._order:
            depth[at] = 1 + max((depth[before] for before in self._before[at]), default=-1)
        made: list[list[str]] = [[] for _ in range(1 + max(depth, default=-1))]
        for at, layer in enumerate(depth):
            made[layer].append(self.ids[at])
        return made

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {task: at for at, task in enumerate(self.ids)}

    @cached_property
    def _order(self) -> list[int]:
        left = [len(before) for before in self._before]
        ready = [at for at, count in enumerate(left) if count == 0]
        made: list[int] = []
        while ready:
            at = heapq.heappop(ready)
            made.append(at)
            for after in self._after[at]:
                left[after] -= 1
                if left[after] == 0:
                    heapq.heappush(ready, after)
        return made

    @cached_property
    def _ranks(self) -> list[int]:
        ranks = [0] * len(self.ids)
        for rank, at in enumerate(self._order):
            ranks[at] = rank
        return ranks

    @cached_property
    def _lengths(self) -> list[int]:
        lengths = [1] * len(self.ids)
        for at in reversed(self._order):
            for before in self._before[at]:
                lengths[before] = max(lengths[before], lengths[at] + 1)
        return lengths

    def _reach(self, task: str, links: Links) -> list[str]:
        found: set[int] = set()
        stack = list(links[self._numbers[task]])
        while stack:
            at = stack.pop()
            if at not in found:
                found.add(at)
                stack.extend(links[at])
        return [self.ids[at] for at in sorted(found, key=self._ranks.__getitem__)]


def from_spec(spec: PlanSpec) -> Graph:
    """The graph of a plan's own tasks, without system tasks."""
    return from_tasks(spec.tasks)


def from_tasks(tasks: Sequence[TaskSpec]) -> Graph:
    """The graph of any tasks, system tasks included. Raises ValueError for an unknown blocker or a cycle."""
    return from_blockers({task.id: [edge.task for edge in task.blocked_by] for task in tasks})


def from_blockers(blockers: Mapping[str, Iterable[str]]) -> Graph:
    """The graph of task -> blockers; the order of the mapping is the order of the file."""
    numbers = {task: at for at, task in enumerate(blockers)}
    try:
        before = [sorted({numbers[each] for each in named}) for named in blockers.values()]
    except KeyError as error:
        raise ValueError(f"unknown blocker {error.args[0]}") from None
    after: list[list[int]] = [[] for _ in before]
    for at, named in enumerate(before):
        for each in named:
            after[each].append(at)
    graph = Graph(tuple(numbers), tuple(map(tuple, before)), tuple(map(tuple, after)))
    if len(graph.order()) != len(numbers):
        raise ValueError("the graph has a cycle")
    return graph


def with_stand_ins(blockers: Mapping[str, Iterable[str]], fallbacks: Mapping[str, str]) -> dict[str, list[str]]:
    """The order of work when fallbacks may be called: a fallback comes after its task, and what waits for the task
    comes after its fallback too, near and far. Task -> blockers in, and out; `fallbacks` is task -> fallback."""
    made = {task: list(named) for task, named in blockers.items()}
    for named in made.values():
        for each in named:  # grows while it is read: a fallback may have a fallback
            if each in fallbacks and fallbacks[each] not in named:
                named.append(fallbacks[each])
    for task, fallback in fallbacks.items():
        if task not in made[fallback]:
            made[fallback].append(task)
    return made


def of_work(tasks: Sequence[TaskSpec]) -> Graph:
    """The graph of any tasks with the places of their fallbacks: for topological orders of results, where a result
    of a fallback comes before all that is built on it. Raises ValueError as `from_tasks`."""
    blockers = {task.id: [edge.task for edge in task.blocked_by] for task in tasks}
    return from_blockers(with_stand_ins(blockers, {task.id: task.fallback for task in tasks if task.fallback}))


def find_cycle(blockers: Mapping[str, Iterable[str]]) -> list[str] | None:
    """The first of `find_cycles`, or None."""
    found = find_cycles(blockers)
    return found[0] if found else None


def find_cycles(blockers: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """One shortest cycle for each knot of tasks that block each other, self edges left out.

    `blockers` is task -> blockers in file order; unknown blockers are ignored. A cycle is named in the direction
    of work, `a, b, c` for a blocks b blocks c blocks a, and begins with its task that is first in the file.
    """
    after = _without_ends(blockers)
    if not after:
        return []
    import networkx as nx  # 0.1 s to import, and only a broken plan needs it

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((task, each) for task, named in after.items() for each in named)
    place = {task: at for at, task in enumerate(blockers)}
    knots = [set(knot) for knot in nx.strongly_connected_components(graph) if len(knot) > 1]
    found = [_shortest_cycle(min(knot, key=place.__getitem__), knot, after) for knot in knots]
    return sorted((_rotate(cycle, place) for cycle in found), key=lambda cycle: place[cycle[0]])


def _without_ends(blockers: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """task -> dependents of all tasks that are not free of cycles before them; empty for a sound graph."""
    after: dict[str, list[str]] = {task: [] for task in blockers}
    left = dict.fromkeys(blockers, 0)
    for task, named in blockers.items():
        for each in named:
            if each != task and each in after:
                after[each].append(task)
                left[task] += 1
    ready = [task for task, count in left.items() if count == 0]
    while ready:
        task = ready.pop()
        del left[task]
        for each in after[task]:
            left[each] -= 1
            if left[each] == 0:
                ready.append(each)
    if not left:
        return {}
    place = {task: at for at, task in enumerate(blockers)}
    return {task: sorted({each for each in after[task] if each in left}, key=place.__getitem__) for task in left}


def _shortest_cycle(start: str, knot: set[str], after: Mapping[str, Sequence[str]]) -> list[str]:
    came: dict[str, str] = {}
    queue = [start]
    for task in queue:
        for each in after[task]:
            if each == start:
                return _way(start, task, came)
            if each in knot and each not in came:
                came[each] = task
                queue.append(each)
    raise AssertionError("a strongly connected component has a cycle through each of its tasks")


def _way(start: str, end: str, came: Mapping[str, str]) -> list[str]:
    way = [end]
    while way[-1] != start:
        way.append(came[way[-1]])
    return way[::-1]


def _rotate(cycle: list[str], place: Mapping[str, int]) -> list[str]:
    first = min(range(len(cycle)), key=lambda at: place[cycle[at]])
    return cycle[first:] + cycle[:first]
