"""From an attempt to a result: base, workspace, agent, outputs, commit, scope. Nothing here judges the work.

Must not know the store. Raises StopAttempt when stopped from outside; other ends are values.
"""

from __future__ import annotations

import contextlib
import io
import json
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

from scheduler.errors import Refusal
from scheduler.model import Ancestor, Attempt, Failure, FailureClass, Json, Log, Result, Usage
from scheduler.model.agents import PythonAgent, SystemAgent
from scheduler.prompts import PromptRefused
from workers.agents import agent_for
from workers.agents.python import BadFunction, Context, call
from workers.desk import Desk
from workers.endings import Failed
from workers.environment import Folder, MissingEnvironment, base_env, prepare, secrets_of
from workers.planstore import PlanStore
from workers.plugins import Command, Ended, Outcome
from workers.redact import Redactor
from workers.scope import Violation, violations
from workers.watched_runner import WatchedRunner
from workers.workspace import (
    OUTPUTS_CAP,
    BadOutputs,
    MergeConflict,
    Mirror,
    ResultRefused,
    Unsafe,
    base_for,
    commit_result,
    integrate,
    parse_outputs,
    read_outputs,
    result_message,
    write_inputs,
)


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt on one desk."""

    desk: Desk
    attempt: Attempt
    folder: Folder
    runner: WatchedRunner
    mirror: Mirror | None
    redact: Redactor

    def failed(self, kind: FailureClass, reason: str) -> Failed:
        """The attempt failed for this reason (redacted)."""
        return Failed(Failure(kind=kind, reason=self.redact(reason)[:2000]), self.runner.thawed_ago)


def in_process(attempt: Attempt, allowed: tuple[str, ...]) -> bool:
    """Whether this attempt's function runs inside the worker: only what the worker's own settings list."""
    return isinstance(attempt.task.agent, PythonAgent) and attempt.task.agent.call in allowed


def produce(work: Work) -> Result | Failed:
    """Run the attempt's agent and turn what it left into a result."""
    agent = work.attempt.task.agent
    if isinstance(agent, SystemAgent):
        return _integrated(work) if agent.work == "integrate" else _gathered(work)
    try:
        return _produced(work)
    except (MissingEnvironment, PromptRefused) as error:
        return work.failed(FailureClass.CONFIGURATION, error.message)


def _produced(work: Work) -> Result | Failed:
    attempt, desk = work.attempt, work.desk
    began = time.monotonic()
    base: str | None = None
    if work.mirror is not None:
        found = _base(work)
        if isinstance(found, Failed):
            return found
        base = found
        tree = desk.slot.work(work.mirror, base)
    else:
        tree = desk.slot.scratch_work()
    write_inputs(work.folder.inputs, attempt.ancestors, None if work.mirror else desk.snapshots)
    env = base_env(attempt, desk.session) | prepare(attempt, work.folder) | {"DAGWARD_WORKSPACE": str(tree)}
    outcome, ended, outputs = _run(work, tree, env)
    result = _result(work, base, ended, int((time.monotonic() - began) * 1000))
    if not outcome.ok:
        return work.failed(outcome.failure, outcome.reason)
    if isinstance(result, Failed):
        return result
    broken = violations(result[0].changed, attempt.task.scope, result[1])
    if broken:
        return _violated(work, broken)
    try:
        written = work.redact.within(read_outputs(work.folder.written, "outputs.json") | outputs)
        usage = _usage(work.folder.written)
    except Unsafe as error:
        return work.failed(FailureClass.AGENT_ERROR, error.message)
    changed = tuple(work.redact(path) for path in result[0].changed)
    return result[0].model_copy(update={"outputs": written, "usage": usage, "changed": changed})


def _base(work: Work) -> str | Failed:
    attempt = work.attempt
    if work.mirror is None or attempt.base_commit is None:
        raise Refusal(f"plan {attempt.plan} has a repository but no base commit")
    work.mirror.ensure(attempt.base_commit)
    base = base_for(work.mirror, attempt.base_commit, attempt.ancestors)
    if isinstance(base, MergeConflict):
        return work.failed(FailureClass.MERGE_CONFLICT, base.render())
    return base


def _run(work: Work, tree: Path, env: dict[str, str]) -> tuple[Outcome, Ended, dict[str, Json]]:
    attempt, settings = work.attempt, work.desk.settings
    if in_process(attempt, settings.in_process):
        return _run_here(work, tree)
    agent = agent_for(attempt)
    launch = agent.build(attempt, tree, work.folder.path)
    for name, text in launch.files.items():
        (work.folder.path / name).write_text(text, encoding="utf-8")
    stdin = None
    if launch.stdin is not None:
        stdin = work.folder.path / "stdin"
        stdin.write_text(launch.stdin, encoding="utf-8")
    secrets = secrets_of(attempt)
    ended = work.runner.run(
        Command(
            argv=launch.argv,
            cwd=tree,
            env={**env, **launch.env, **secrets},
            log=work.folder.log,
            timeout=attempt.task.timeout,
            stall=attempt.task.stall,
            cap=settings.output_cap,
            stdin=stdin,
            grace=settings.grace,
            redact=work.redact.forms,
        )
    )
    outcome = agent.finish(ended, [])
    return outcome, ended, {}


def _run_here(work: Work, tree: Path) -> tuple[Outcome, Ended, dict[str, Json]]:
    attempt = work.attempt
    spec = attempt.task.agent
    if not isinstance(spec, PythonAgent):
        raise TypeError(f"not a python agent: {spec}")
    context = Context(
        plan=attempt.plan,
        task=attempt.task.id,
        attempt=attempt.attempt,
        params=attempt.params,
        workspace=tree,
        inputs=work.folder.inputs,
        prompt=(work.folder.path / "prompt.md").read_text(encoding="utf-8"),
        checklist=PlanStore(work.folder.path / "checklist.json"),
    )
    printed = io.StringIO()
    began = time.monotonic()
    outputs: dict[str, Json] = {}
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            outputs = _as_stored(call(spec.call, context))
        outcome = Outcome(ok=True)
    except BadOutputs as error:
        outcome = Outcome(ok=False, reason=error.message)
    except BadFunction as error:
        outcome = Outcome(ok=False, reason=error.message, failure=FailureClass.CONFIGURATION)
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- agent code may raise anything
        traceback.print_exc(file=printed)
        outcome = Outcome(ok=False, reason=f"{type(error).__name__}: {error}")
    said = work.redact(printed.getvalue())[: work.desk.settings.output_cap]
    work.folder.log.write_text(said, encoding="utf-8", errors="backslashreplace")
    ended = Ended(reason="exit", exit_code=0 if outcome.ok else 1, duration=int((time.monotonic() - began) * 1000))
    return outcome, replace(ended, output=len(printed.getvalue())), outputs


def _as_stored(outputs: dict[str, Json]) -> dict[str, Json]:
    """What an in-process function returned, as its child would have written it. TypeError: it is no JSON."""
    text = json.dumps(outputs)
    if len(text) > OUTPUTS_CAP:
        raise BadOutputs(f"the outputs are larger than {OUTPUTS_CAP} bytes")
    return parse_outputs(text)


def _result(work: Work, base: str | None, ended: Ended, duration: int) -> tuple[Result, tuple[str, ...]] | Failed:
    """Commit or snapshot what was left, of failed attempts too, and keep it under a name."""
    attempt, desk = work.attempt, work.desk
    log = Log(
        host=desk.host,
        path=str(work.folder.log.relative_to(desk.settings.state_dir)),
        bytes=ended.output,
        dropped=ended.dropped,
    )
    common = {"exit_code": ended.exit_code, "terminal": ended.reason == "exit", "log": log, "duration": duration}
    if work.mirror is None:
        try:
            digest = desk.snapshots.store(desk.slot.work_path)
        except Refusal as error:
            return work.failed(FailureClass.AGENT_ERROR, error.message)
        changed = tuple(change.path for change in desk.snapshots.changes(None, digest))
        return Result.model_validate({"kind": "snapshot", "digest": digest, "changed": changed, **common}), ()
    if base is None:
        raise Refusal("a commit needs a base")
    message = result_message(attempt.task.title or attempt.task.id, attempt.plan, attempt.task.id, attempt.attempt)
    try:
        made = commit_result(desk.slot, work.mirror, base, message, int(time.time() * 1000))
    except ResultRefused as error:
        return work.failed(FailureClass.AGENT_ERROR, error.message)
    work.mirror.keep(attempt.plan, attempt.task.id, attempt.attempt, made.commit)
    fields = {"kind": "commit", "digest": made.commit, "base": base, "changed": made.paths, **common}
    return Result.model_validate(fields), made.submodules


def _violated(work: Work, broken: list[Violation]) -> Failed:
    shown = "; ".join(violation.render() for violation in broken[:10])
    more = f"; and {len(broken) - 10} more" if len(broken) > 10 else ""
    return work.failed(FailureClass.SCOPE_VIOLATION, shown + more)


def _usage(folder: Path) -> Usage:
    raw = read_outputs(folder, "usage.json")
    counts = {name: raw.get(name) for name in Usage.model_fields}
    return Usage.model_validate({name: n for name, n in counts.items() if type(n) is int and 0 <= n < 2**53})


def _integrated(work: Work) -> Result | Failed:
    """The plan's branch as a commit of the mirror: one commit per completed task with a change."""
    attempt = work.attempt
    if work.mirror is None or attempt.base_commit is None:
        raise Refusal(f"plan {attempt.plan} has nothing to integrate into")
    work.mirror.ensure(attempt.base_commit)
    trailers = {one.task: [f"Dagward-Evidence: {_evidence_digest(work, one)}"] for one in attempt.ancestors}
    made = integrate(work.mirror, attempt.base_commit, attempt.ancestors, trailers)
    if isinstance(made, MergeConflict):
        return work.failed(FailureClass.MERGE_CONFLICT, made.render())
    work.mirror.keep(attempt.plan, attempt.task.id, attempt.attempt, made.commit)
    changed = tuple(change.path for change in work.mirror.changes(attempt.base_commit, made.commit))
    commits: dict[str, Json] = dict(made.commits)
    return Result(
        kind="commit",
        digest=made.commit,
        base=attempt.base_commit,
        exit_code=0,
        changed=changed,
        outputs={"branch": f"dagward/{attempt.plan}", "commit": made.commit, "commits": commits},
    )


def _evidence_digest(work: Work, one: Ancestor) -> str:
    import hashlib

    records = work.desk.views.evidence(work.attempt.plan, one.task, one.attempt)
    text = "\n".join(record.model_dump_json() for record in records)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _gathered(work: Work) -> Result | Failed:
    """A scratch plan's acceptance looks at `<task>/files` and `<task>/outputs.json` of every end of the plan."""
    tree = work.desk.slot.scratch_work()
    write_inputs(tree, work.attempt.ancestors, work.desk.snapshots)
    digest = work.desk.snapshots.store(tree)
    return Result(kind="snapshot", digest=digest, exit_code=0)
