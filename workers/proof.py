"""`prove: true`: a check that accepted must be seen to refuse the same result, broken on purpose. Once per plan.

A check that cannot fail makes everything "verified". Must not know kinds of checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from scheduler.instances import split_instance
from scheduler.model import Check, FailureClass, JunitCheck, PythonCheck, Result, RunCheck
from workers.facts import Facts
from workers.plugins import CheckTree, Finding, Verifier
from workers.produce import Work
from workers.sabotage import sabotage, victims

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Trial:
    """A check that has accepted a result. `look` makes a CheckTree of a folder, without a baseline."""

    check: Check
    verifier: Verifier
    result: Result
    look: Callable[[Path], CheckTree] = field(repr=False)


def wants_proof(check: Check) -> bool:
    """Whether the plan asks for the proof."""
    return isinstance(check, RunCheck | JunitCheck | PythonCheck) and check.prove


def proved(work: Work, trial: Trial, finding: Finding) -> Finding:
    """The finding of a check that accepted, with its proof; or a configuration failure in its place."""
    attempt = work.attempt
    facts = Facts.of(work.desk.settings.state_dir, attempt.plan)
    instance = split_instance(attempt.task.id)  # instances of one template share their checks and their proof
    name = f"proof {instance[0] if instance else attempt.task.id} {trial.check.model_dump_json(by_alias=True)}"
    known = facts.recall(name)
    if isinstance(known, str):
        return replace(finding, reason=f"{finding.reason}; {known}")
    found = _prove(work, trial)
    if isinstance(found, Finding):
        return found
    facts.keep(name, f"proved before: {found}")
    return replace(finding, reason=f"{finding.reason}; proved: {found}")


def _prove(work: Work, trial: Trial) -> str | Finding:
    """What was broken and refused, as words; a Finding when there is no proof."""
    tree = trial.look(_copy(work, trial.result))
    scope = work.attempt.task.scope
    broken = victims(tree.path, tree.changed, scope.write, scope.protect)
    if not broken:
        reason = "prove: there is no file in the task's scope that could be broken to try the check"
        return Finding(accepted=False, reason=reason, failure=FailureClass.CONFIGURATION)
    sabotage(tree.path, broken)
    found = trial.verifier.verify(trial.check, tree, work.runner)
    shown = ", ".join(broken[:_SHOWN]) + (f" and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else "")
    if found.failure is FailureClass.INFRASTRUCTURE and not found.accepted:
        return found
    if not found.accepted:
        return f"it refuses {shown} broken on purpose"
    reason = f"the check accepts a result that is broken on purpose ({shown}), so it proves nothing"
    return replace(found, accepted=False, reason=reason, failure=FailureClass.CONFIGURATION)


def _copy(work: Work, result: Result) -> Path:
    slot = work.desk.slot
    if work.mirror is None:
        return slot.scratch_spare(work.desk.snapshots, result.digest)
    return slot.spare(work.mirror, result.digest, work.attempt.task.scope.protect, result.base)
