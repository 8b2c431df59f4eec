"""Plan versions: canonical form and hash, containment of scopes, and the system tasks that a plan brings along.

Pure. Must not know files, the store or git. The only import of rfc8785.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence

import rfc8785

from scheduler.model.agents import SystemAgent
from scheduler.model.base import Json
from scheduler.model.checks import ExitCheck, OutputsCheck, PythonCheck
from scheduler.model.plan import ACCEPTANCE, INTEGRATE, Edge, PlanSpec, Retries, TaskSpec, When

SYSTEM_POOL = "system"

_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


def canonical(value: Json) -> bytes:
    """The JSON Canonicalization Scheme of RFC 8785. Raises ValueError for what it cannot hold:
    integers beyond 2^53, numbers that are not finite, and half a surrogate pair."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from None


def task_canonical(task: TaskSpec) -> bytes:
    """The canonical JSON of a task. Fields that have their default are left out, so a release that adds a field
    does not change the hash of any plan that was approved before."""
    value = task.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if any(isinstance(check, OutputsCheck | PythonCheck) for check in task.verify):
        return canonical(value)
    # Without an author's JSON in it a task holds no floats, no keys beyond ASCII and no large integers, and there
    # the C encoder writes the same bytes many times faster; a property test compares the two.
    return _ENCODE(value).encode()


def task_hash(task: TaskSpec) -> str:
    """SHA-256, in hex, of a task's canonical form."""
    return hashlib.sha256(task_canonical(task)).hexdigest()


def version_hash(spec: PlanSpec) -> str:
    """SHA-256, in hex, of the header and the sorted task hashes.

    The order of the tasks in the file, of keys and of edges does not matter, nor do the process and the machine.
    """
    header = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"tasks"})
    header["format"] = spec.format  # always there, whatever its default will be
    hashes: list[Json] = [*sorted(task_hash(task) for task in spec.tasks)]
    return hashlib.sha256(canonical({"header": header, "tasks": hashes})).hexdigest()


def with_system_tasks(spec: PlanSpec) -> tuple[TaskSpec, ...]:
    """The plan's tasks and, last, the system task that ends it.

    With `repo` that is `_integrate`; without, but with `acceptance`, it is `_acceptance`. It waits for every task
    whose acceptance nothing waits for. It is made from the header, so it is no part of the hash.

    The edge to an end that may stay open without failing the plan (`may_end_open`) is `settled`, else `verified`, so
    in most plans a failure skips the system task. With settled edges it may become ready in a plan that has failed.
    """
    if spec.repo is not None:
        return (*spec.tasks, _system_task(INTEGRATE, SystemAgent(use="system", work="integrate"), spec))
    if spec.acceptance:
        return (*spec.tasks, _system_task(ACCEPTANCE, SystemAgent(use="system", work="accept"), spec))
    return spec.tasks


def may_end_open(tasks: Sequence[TaskSpec]) -> frozenset[str]:
    """The tasks that may end without a result and not fail the plan: they have an `if`, may fail by `continue`, are
    a fallback that need not be called, or wait for the result of such a task. A task is also one when its fallback
    may fail by `continue`."""
    by_id = {task.id: task for task in tasks}
    opened = {task.id for task in tasks if task.if_ is not None or task.on_failure == "continue"}
    opened |= {task.fallback for task in tasks if task.fallback is not None}
    below: dict[str, list[str]] = {task.id: [] for task in tasks}
    for task in tasks:
        for edge in task.blocked_by:
            if edge.when is When.VERIFIED:
                below[edge.task].append(task.id)
        if task.fallback is not None and _excuses(by_id, task.fallback):
            opened.add(task.id)
    stack = list(opened)
    while stack:
        for each in below[stack.pop()]:
            if each not in opened:
                opened.add(each)
                stack.append(each)
    return frozenset(opened)


def _excuses(by_id: Mapping[str, TaskSpec], fallback: str) -> bool:
    """Whether the last of a chain of fallbacks fails by `continue`."""
    last = by_id[fallback]
    while last.fallback is not None:
        last = by_id[last.fallback]
    return last.on_failure == "continue"


def _system_task(name: str, agent: SystemAgent, spec: PlanSpec) -> TaskSpec:
    blocking = {edge.task for task in spec.tasks for edge in task.blocked_by if edge.when is When.VERIFIED}
    ends = sorted(task.id for task in spec.tasks if task.id not in blocking)
    lenient = may_end_open(spec.tasks)
    return TaskSpec(
        id=name,
        blocked_by=tuple(Edge(task=each, when=When.SETTLED if each in lenient else When.VERIFIED) for each in ends),
        agent=agent,
        timeout=3_600_000,
        retries=Retries(max=1),
        pool=SYSTEM_POOL,
        verify=spec.acceptance or (ExitCheck(exit=True),),
    )


def pattern_covers(outer: str, inner: str) -> bool:
    """Whether every path that `inner` matches is matched by `outer` (both `path`, `dir/**` or `**`).

    `dir/**` matches everything below dir, not dir itself.
    """
    if outer in ("**", inner):
        return True
    return outer.endswith("/**") and inner.startswith(outer[:-2])


def first_uncovered(outer: Collection[str], inner: Collection[str]) -> str | None:
    """The first pattern of `inner` that no single pattern of `outer` covers, or None when `inner` is no wider."""
    return next((each for each in inner if not any(pattern_covers(wide, each) for wide in outer)), None)
