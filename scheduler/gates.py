"""Judges what only the daemon may: the `if` of a task whose edges hold, and the items of a `for_each` task.

A condition that cannot be evaluated, or items that are no list or would leave the task's scope, fail the task as a
configuration failure. Must not run anything of the plan.
"""

from __future__ import annotations

import json
from typing import cast

import structlog

from scheduler import conditions, errors, lineage
from scheduler.instances import instance_spec
from scheduler.model import Json, TaskSpec
from scheduler.store import Store, Views

log = structlog.get_logger()


def judge(store: Store, views: Views, plan: str) -> int:
    """Judge every open question of a plan once. Returns how many there were."""
    waiting = store.gates(plan)
    for task in waiting:
        spec = views.spec(plan, task)
        known = lineage.outputs(lineage.ancestors(views, plan, task))
        try:
            if views.gate(plan, task) == "if":
                _condition(store, views, plan, spec, known)
            else:
                store.expand(plan, task, _items(spec, known))
        except errors.Refusal as error:
            store.open(plan, task, "fail", error.message)
            log.warning("gate.failed", plan=plan, task=task, reason=error.message)
    return len(waiting)


def _condition(store: Store, views: Views, plan: str, spec: TaskSpec, known: dict[str, Json]) -> None:
    header = cast("dict[str, Json]", views.header(plan)["spec"])
    params = cast("dict[str, str | None]", header["params"])
    holds = conditions.evaluate(spec.if_ or "true", params=params, outputs=known)
    store.open(plan, spec.id, "open" if holds else "skip", "its condition is false")
    log.info("gate.judged", plan=plan, task=spec.id, holds=holds)


def _items(spec: TaskSpec, known: dict[str, Json]) -> list[str]:
    task, _, name = (spec.for_each or "").partition(".")
    found = known.get(task)
    items = found.get(name) if isinstance(found, dict) else None
    if not isinstance(items, list):
        shown = "is not there" if items is None else f"is {type(items).__name__}, not a list"
        raise errors.Refusal(f"for_each: the output {name} of {task} {shown}")
    for number, item in enumerate(items):
        instance_spec(spec, number, item)
    return [json.dumps(item, ensure_ascii=False) for item in items]
