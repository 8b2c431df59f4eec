"""What a task builds on: the results of its completed blockers near and far, in topological order.

A failed task that a fallback stands in for has the fallback's result; a `for_each` task is the list of its instances.
Reads through `store.Views` only; used by workers (bases, inputs, prompts) and by the daemon (conditions, items).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler import errors
from scheduler.graph import from_blockers
from scheduler.model import SYSTEM_PREFIX, Ancestor, Edge, Json, TaskState, When
from scheduler.store import Standing, Views


def ancestors(views: Views, plan: str, task: str) -> tuple[Ancestor, ...]:
    """The completed blockers of a task, ties by their place in the file. Conflict when a verified edge is open."""
    edges = views.spec(plan, task).blocked_by
    if not edges:
        return ()
    blockers, standings = _closure(views, plan, [edge.task for edge in edges])
    places = views.places(plan, list(blockers))
    ordered = {one: blockers[one] for one in sorted(blockers, key=lambda one: places[one])}
    direct = frozenset(edge.task for edge in edges)
    known: dict[str, Ancestor] = {}
    for one in from_blockers(ordered).order():
        found = _ancestor(views, plan, one, standings, known)
        if found is not None:
            known[one] = found.model_copy(update={"direct": one in direct})
    if not task.startswith(SYSTEM_PREFIX):
        _require(edges, known, standings)
    return tuple(known.values())


def outputs(found: Iterable[Ancestor]) -> dict[str, Json]:
    """task -> its outputs: a mapping, or for a `for_each` task the list of its instances' mappings in item order."""
    return {one.task: one.outputs for one in found if "." not in one.task}


def _closure(views: Views, plan: str, front: list[str]) -> tuple[dict[str, list[str]], dict[str, Standing]]:
    blockers: dict[str, list[str]] = {}
    standings: dict[str, Standing] = {}
    while front:
        standings |= views.standings(plan, front)
        for one in front:
            standing = standings[one]
            above = [edge.task for edge in views.spec(plan, standing.template or one).blocked_by]
            blockers[one] = [*above, *([standing.stands_in] if standing.stands_in else []), *standing.instances(one)]
        front = sorted({above for one in front for above in blockers[one]} - blockers.keys())
    return blockers, standings


def _ancestor(
    views: Views, plan: str, one: str, standings: Mapping[str, Standing], known: Mapping[str, Ancestor]
) -> Ancestor | None:
    standing = standings[one]
    if standing.state is TaskState.FAILED and standing.stands_in in known:
        return known[standing.stands_in].model_copy(update={"task": one})
    if standing.state is not TaskState.COMPLETED:
        return None
    if standing.expanded is not None:
        parts = tuple(known[name] for name in standing.instances(one))
        return Ancestor(task=one, digest="", parts=parts, outputs=[part.outputs for part in parts])
    result = views.result(plan, one, standing.attempt)
    if result is None:
        raise errors.StoreCorrupt(f"{one} of plan {plan} is completed without a result")
    return Ancestor(
        task=one, attempt=standing.attempt, digest=result.digest, base=result.base, outputs=dict(result.outputs)
    )


def _require(edges: Iterable[Edge], known: Mapping[str, Ancestor], standings: Mapping[str, Standing]) -> None:
    for edge in edges:
        if edge.when is When.VERIFIED and edge.task not in known:
            state = standings[edge.task].state
            raise errors.Conflict(f"{edge.task} is {state}, so what it blocks cannot start")
