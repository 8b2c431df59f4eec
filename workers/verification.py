"""Judging a result: one clean check tree per check, evidence stored before anyone may call the task completed.

The agent never rules on itself: each check sees a fresh copy of the result with protected files from base, and no
secrets. Must not know how the result came about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from scheduler.model import Check, Evidence, Failure, FailureClass, Result, check_kind
from workers.baseline import GitBaseline
from workers.endings import Ending, Failed, Proven
from workers.environment import base_env
from workers.facts import Facts
from workers.plugins import CheckTree, Finding
from workers.produce import Work
from workers.proof import Trial, proved, wants_proof
from workers.verifiers import VERIFIERS
from workers.workspace import Tree, empty_folder

ON_TREE = frozenset({"run", "file", "junit", "weakening", "python"})
"""The kinds of checks that look at the files of the result."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One finding with the digests of the tree around it."""

    finding: Finding
    before: str | None = None
    after: str | None = None


def verify(work: Work, result: Result) -> Ending:
    """Run every check and record its evidence. A check that cannot run ends it as a configuration failure."""
    attempt = work.attempt
    failed: Failed | None = None
    for index, check in enumerate(attempt.task.verify):
        judged = _judge(work, check, index, result)
        evidence = _evidence(work, check, index, result, judged)
        work.desk.store.record(attempt.plan, attempt.task.id, evidence)
        if evidence.accepted:
            continue
        kind = judged.finding.failure
        failure = Failure(kind=kind, reason=f"{evidence.title}: {evidence.reason}"[:2000], check=index)
        failed = failed or Failed(failure, work.runner.thawed_ago)
        if kind is FailureClass.CONFIGURATION:
            return Failed(failure, work.runner.thawed_ago)
    return failed or Proven()


def _judge(work: Work, check: Check, index: int, result: Result) -> Judged:
    kind = check_kind(check) or ""
    verifier = VERIFIERS[kind]
    if kind not in ON_TREE:
        return Judged(verifier.verify(check, _look(work, result, None, index), work.runner))
    tree = _tree(work, result)
    seen = _look(work, result, tree, index)
    before = tree.digest()
    finding = verifier.verify(check, _with_baseline(work, seen), work.runner)
    after = tree.digest()
    if before != after:
        finding = replace(
            finding,
            accepted=False,
            reason="the check changed tracked files of the result",
            failure=FailureClass.CONFIGURATION,
        )
    elif finding.accepted and wants_proof(check):
        finding = proved(work, Trial(check, verifier, result, partial(_aside, seen, "proof")), finding)
    return Judged(finding, before, after)


def _with_baseline(work: Work, tree: CheckTree) -> CheckTree:
    """The tree with its base to compare with, when its result stands on one."""
    if work.mirror is None or tree.base is None:
        return tree
    facts = Facts.of(work.desk.settings.state_dir, work.attempt.plan)

    look = partial(_aside, replace(tree, changed=()), "base")
    return replace(tree, baseline=GitBaseline(tree.base, work.mirror, work.desk.slot, facts, look))


def _aside(tree: CheckTree, name: str, path: Path) -> CheckTree:
    """The same check in another tree, with logs of its own: those of the result itself are what `logs` shows."""
    env = {**tree.env, "DAGWARD_WORKSPACE": str(path)}
    return replace(tree, path=path, folder=empty_folder(tree.folder / name), env=env)


def _tree(work: Work, result: Result) -> Tree:
    slot, attempt = work.desk.slot, work.attempt
    if work.mirror is None:
        return slot.scratch_check(work.desk.snapshots, result.digest)
    return slot.check(work.mirror, result.digest, attempt.task.scope.protect, result.base)


def _look(work: Work, result: Result, tree: Tree | None, index: int) -> CheckTree:
    attempt = work.attempt
    logs = work.folder.path / f"check-{index}"
    env = base_env(attempt, work.desk.session)
    if tree is not None:
        empty_folder(logs)
        env |= {"DAGWARD_WORKSPACE": str(tree.path), "DAGWARD_INPUTS": str(work.folder.inputs)}
    return CheckTree(
        path=tree.path if tree is not None else work.desk.slot.check_path,
        result=result,
        folder=logs,
        env=env,
        base=result.base,
        task=attempt.task.id,
        attempt=attempt.attempt,
        redact=work.redact,
        changed=result.changed,
    )


def _evidence(work: Work, check: Check, index: int, result: Result, judged: Judged) -> Evidence:
    finding = judged.finding
    kind = check_kind(check) or ""
    return Evidence(
        check=index,
        kind=kind,
        title=VERIFIERS[kind].title(check),
        accepted=finding.accepted,
        reason=work.redact(finding.reason),
        result=result.digest,
        attempt=work.attempt.attempt,
        token=work.attempt.token,
        tree_before=judged.before,
        tree_after=judged.after,
        exit_code=finding.exit_code,
        output=work.redact(finding.output),
        duration=finding.duration,
        verifier=f"{work.desk.name}@{work.desk.host}",
    )


def titles(checks: Sequence[Check]) -> list[str]:
    """What a list of checks looks at, for people."""
    return [VERIFIERS[check_kind(check) or ""].title(check) for check in checks]
