"""The file as written -> the normal form: defaults merged, edges at the dependent, everything sorted.

Called only for a file without errors. Must not report anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.instances import plain_pattern
from scheduler.model.checks import (
    Check,
    DiffCheck,
    DiffRule,
    ExitCheck,
    FileCheck,
    JunitCheck,
    OutputsCheck,
    OutputsRule,
    PythonCheck,
    RunCheck,
    WeakeningCheck,
    WeakeningRule,
)
from scheduler.model.plan import Approval, Edge, Env, PlanSpec, Retries, Scope, TaskSpec, When
from scheduler.planfile import raw
from scheduler.planfile.references import Blockers

_ALL_FIELDS = set(TaskSpec.model_fields)
_EXIT: tuple[Check, ...] = (ExitCheck(exit=True),)


def normal_form(plan: raw.FilePlan, blockers: Blockers, params: dict[str, str | None]) -> PlanSpec:
    """The plan that people and agents agree on. `params` are the resolved values."""
    scope = Scope(write=_patterns(plan.scope.write, ("**",)), protect=_patterns(plan.scope.protect, ()))
    # One object for all that wait for the same task in the same way.
    edges = {when: {task: Edge(task=task, when=when) for task in blockers} for when in When}
    shared = _Shared(plan.defaults, scope)
    tasks = tuple(
        shared.task(task, tuple(edges[when][each] for each, when in blockers[task.id].items())) for task in plan.tasks
    )
    return PlanSpec(
        format=plan.format,
        name=plan.name,
        goal=plan.goal,
        params=params,
        repo=plan.repo,
        base=plan.base,
        concurrency=plan.concurrency,
        approval=Approval(plan.approval),
        scope=scope,
        acceptance=_checks(plan.acceptance),
        fail_fast=plan.fail_fast,
        tasks=tasks,
    )


class _Shared:
    """What tasks have in common, made once: 100,000 tasks with the same defaults share one value."""

    def __init__(self, defaults: raw.FileDefaults, scope: Scope) -> None:
        self._defaults = defaults
        self._scope = scope
        self._retries = _retries(defaults.retries)
        self._env = _env(defaults.env)
        self._verify = _checks(defaults.verify) if defaults.verify else _EXIT

    def task(self, task: raw.FileTask, blocked_by: tuple[Edge, ...]) -> TaskSpec:
        """One task; a key of its own replaces the default's key whole."""
        own, defaults = task.model_fields_set, self._defaults
        agent = task.agent or defaults.agent
        if agent is None:
            raise AssertionError(f"task {task.id} has no agent, which the rules refuse")
        # Every value was validated in `raw`; a second time would cost 100,000 tasks half a second and 80 MB.
        return TaskSpec.model_construct(
            _ALL_FIELDS,
            id=task.id,
            title=task.title,
            prompt=task.prompt,
            blocked_by=blocked_by,
            agent=agent,
            timeout=task.timeout if "timeout" in own else defaults.timeout,
            stall=task.stall if "stall" in own else defaults.stall,
            retries=_retries(task.retries) if "retries" in own else self._retries,
            env=_env(task.env) if "env" in own else self._env,
            pool=task.pool if "pool" in own else defaults.pool,
            priority=task.priority,
            scope=_narrowed(task.scope, self._scope) if "scope" in own else self._scope,
            verify=_checks(task.verify) if task.verify else self._verify,
            for_each=task.for_each,
            if_=task.if_,
            on_failure="fail" if isinstance(task.on_failure, raw.FileFallback) else task.on_failure,
            fallback=task.on_failure.fallback if isinstance(task.on_failure, raw.FileFallback) else None,
        )


def _narrowed(scope: raw.FileScope, outer: Scope) -> Scope:
    protect = tuple(sorted({*outer.protect, *_patterns(scope.protect)}))
    return Scope(write=_patterns(scope.write, outer.write), protect=protect)


def _patterns(written: Sequence[str] | None, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    return default if written is None else tuple(sorted({plain_pattern(each) for each in written}))


def _retries(written: raw.FileRetries) -> Retries:
    most = written.max_backoff if written.max_backoff is not None else max(300_000, written.backoff)
    return Retries(max=written.max, backoff=written.backoff, max_backoff=most)


def _env(written: raw.FileEnv | None) -> Env:
    if written is None:
        return Env()
    return Env(pass_=_patterns(written.pass_), set=written.set, secrets=_patterns(written.secrets))


def _checks(written: Sequence[raw.FileCheck]) -> tuple[Check, ...]:
    return tuple(_check(check) for check in written)


def _check(check: raw.FileCheck) -> Check:
    made: Check
    match check:
        case raw.FileRunCheck():
            made = RunCheck(run=check.run, timeout=check.timeout, env=check.env, prove=check.prove)
        case raw.FileJunitCheck():
            made = JunitCheck.model_validate({name: getattr(check, name) for name in JunitCheck.model_fields})
        case raw.FilePythonCheck():
            made = PythonCheck.model_validate({name: getattr(check, name) for name in PythonCheck.model_fields})
        case raw.FileWeakeningCheck():
            made = WeakeningCheck(weakening=WeakeningRule(paths=_only(check.weakening.paths)))
        case raw.FileOutputsCheck():
            made = OutputsCheck(outputs=OutputsRule(schema_=check.outputs.schema_))
        case raw.FileFileCheck():
            made = FileCheck(file=check.file)
        case raw.FileDiffCheck():
            made = DiffCheck(diff=DiffRule(nonempty=check.diff.nonempty, only=_only(check.diff.only)))
        case ExitCheck():
            made = check
    return made


def _only(written: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if written is None else _patterns(written)
