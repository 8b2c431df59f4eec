"""From a loaded plan file to a plan in the store: base resolved, hashed, staged, flipped; and finding one to resume.

Must not run anything. Everything is refused before the first write, or staged where nobody sees it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler import errors
from scheduler.graph import from_tasks
from scheduler.model import SYSTEM_PREFIX, PlanSpec, PlanState, PlanVersion, TaskSpec, When
from scheduler.plans import version_hash, with_system_tasks
from scheduler.repository import resolve
from scheduler.store import Staged, Store, Views

LETTERS = "bcdfghjkmnpqrstvwxz"
"""Letters of plan ids: no vowels, so no words; no letters that look alike."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A version that is ready to be submitted, its tasks with the system tasks, and what a person should know."""

    version: PlanVersion
    tasks: tuple[TaskSpec, ...]
    warnings: tuple[str, ...]


def draft(spec: PlanSpec, folder: Path) -> Draft:
    """Resolve the repository (relative to `folder`, the plan file's) and hash. Writes nothing."""
    warnings: tuple[str, ...] = ()
    commit, repo = None, None
    if spec.repo is not None:
        found = resolve(spec.repo, spec.base, folder)
        commit, repo, warnings = found.commit, found.repo, found.warnings
    version = PlanVersion(hash=version_hash(spec), spec=spec, base_commit=commit, repo=repo)
    return Draft(version, with_system_tasks(spec), warnings)


def new_id(name: str) -> str:
    """`<name>-<5 letters>`."""
    return f"{name}-{''.join(secrets.choice(LETTERS) for _ in range(5))}"


def staged(tasks: tuple[TaskSpec, ...]) -> list[Staged]:
    """The tasks with what the claim needs precomputed."""
    graph = from_tasks(tasks)
    whens = {
        (task.id, edge.task): edge.when for task in tasks for edge in task.blocked_by if edge.when is not When.VERIFIED
    }
    stood_in = {task.fallback: task.id for task in tasks if task.fallback}
    out = []
    for number, task in enumerate(tasks):
        system = task.id.startswith(SYSTEM_PREFIX)  # it starts when all others have ended, not over edges
        below = [(n, whens.get((n, task.id), When.VERIFIED)) for n in graph.dependents(task.id)]
        dependents = [edge for edge in below if not edge[0].startswith(SYSTEM_PREFIX)]
        edges = 0 if system else len(task.blocked_by)
        out.append(Staged(task, number, edges, graph.path_length(task.id), dependents, _gates(task, stood_in)))
    return out


def _gates(task: TaskSpec, stood_in: Mapping[str, str]) -> dict[str, str]:
    gates = {
        "g_if": "1" if task.if_ else "",
        "g_each": "1" if task.for_each else "",
        "g_fb": stood_in.get(task.id, ""),
        "of_fb": stood_in.get(task.id, ""),
        "g_end": "1" if task.id.startswith(SYSTEM_PREFIX) else "",
        "fb": task.fallback or "",
        "cont": "1" if task.on_failure == "continue" else "",
    }
    return {name: value for name, value in gates.items() if value}


def submit(
    store: Store, made: Draft, *, who: str, key: str = "", tick: Callable[[int], None] | None = None
) -> tuple[str, bool]:
    """Store the draft as a plan. Returns its id and whether it is new (False: `key` was seen with this content)."""
    content = content_of(made)
    if key:
        known = store.client.hget(store.keys.keys(), key)
        if known is not None:
            first = json.loads(known)
            if first["content"] != content:
                raise errors.Conflict(
                    f"key {key} belongs to plan {first['plan']} with other content",
                    hint=f"Use another --key for other content, or look at the first: dagward show {first['plan']}",
                )
            return str(first["plan"]), False
    plan = new_id(made.version.spec.name)
    store.stage(plan, made.version.version, staged(made.tasks), tick)
    got = store.flip(plan, made.version, made.tasks, key=key, content=content, who=who)
    return got, got == plan


def content_of(made: Draft) -> str:
    """What must be equal for a repeated submit to be the same: version hash, repository, resolved base."""
    parts = [made.version.hash, made.version.repo or "", made.version.base_commit or ""]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def to_resume(views: Views, spec: PlanSpec) -> str:
    """The newest plan of that name that is not completed or cancelled. A file that has changed since is refused."""
    newest: str | None = None
    for plan in views.plan_ids():
        if plan.rpartition("-")[0] != spec.name:
            continue
        newest = newest or plan
        view = views.plan(plan)
        if view.state in (PlanState.COMPLETED, PlanState.CANCELLED):
            continue
        if view.hash != version_hash(spec):
            raise errors.Conflict(
                f"the file has changed since plan {plan} was submitted",
                hint=f"Run the file without --resume as a new plan, or put it back. Editing a plan that runs "
                f"(`dagward replan {plan} --edit`) is not in this version.",
            )
        return plan
    if newest is not None:
        state = views.plan(newest).state
        raise errors.Conflict(f"plan {newest} is {state}", hint="Run the file without --resume to start a new plan.")
    raise errors.NotFound(f"there is no plan called {spec.name} to resume", hint="Run the file without --resume.")


def reawaken(store: Store, views: Views, plan: str, who: str) -> str:
    """Make a plan go on: reopen what failed, lift a signal's pause, never a person's. Returns what was done."""
    view = views.plan(plan)
    if view.state is PlanState.FAILED:
        return f"{store.reopen(plan, who)} tasks reopened with one more attempt each"
    if view.state is PlanState.PAUSED and view.reason == "signal":
        store.resume(plan, who, only="signal")
        return "resumed"
    return f"it is {view.state}"
