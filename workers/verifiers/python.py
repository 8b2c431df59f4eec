"""Check `python`: a function of the plan's author, or of a package that is installed, judges the check tree.

It runs in a process of its own under the guard; see `child.py` for what it is given and may answer. Must not import it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from scheduler.model import Check, FailureClass, Json, PythonCheck
from workers.plugins import CheckTree, Finding, Runner
from workers.verifiers.commands import Order, execute
from workers.verifiers.kinds import expect
from workers.workspace.beneath import Unsafe, read_beneath

_CHILD = Path(__file__).with_name("child.py")
_CAP = 100_000


class PythonVerifier:
    """Starts the child and reads its answer. Without a readable answer nothing is accepted."""

    def verify(self, check: Check, tree: CheckTree, runner: Runner) -> Finding:
        """The function's verdict. A function that does not exist or gives none is a configuration failure."""
        rule = expect(check, PythonCheck)
        own = [path for path in _files(rule.python) if path in tree.changed]
        if own:
            return Finding(accepted=False, reason=f"the result changes {own[0]}, which is the check itself")
        question, answer = tree.folder / "question.json", tree.folder / "answer.json"
        question.write_text(json.dumps(_question(rule, tree)), encoding="utf-8")
        argv = (sys.executable, "-P", str(_CHILD), rule.python, str(question), str(answer))
        done = execute(Order(argv, rule.python, rule.timeout, {"PYTHONUNBUFFERED": "1", **rule.env}), tree, runner)
        if not done.accepted:
            return _without_answer(done)
        return _answered(done, tree)

    def title(self, check: Check) -> str:
        """One line for people."""
        return f"python {expect(check, PythonCheck).python}"


def _question(rule: PythonCheck, tree: CheckTree) -> dict[str, Json]:
    changed: list[Json] = [*tree.changed]
    return {
        "tree": str(tree.path),
        "plan": tree.env.get("DAGWARD_PLAN", ""),
        "task": tree.task,
        "attempt": tree.attempt,
        "digest": tree.result.digest,
        "base": tree.base,
        "changed": changed,
        "outputs": tree.result.outputs,
        "options": rule.with_,
    }


def _without_answer(done: Finding) -> Finding:
    """The child says on its last line why it could not ask the function."""
    if done.failure is not FailureClass.CONFIGURATION or not done.output.strip():
        return done
    return replace(done, reason=f"the check cannot run: {done.output.strip().splitlines()[-1]}")


def _answered(done: Finding, tree: CheckTree) -> Finding:
    try:
        answer = json.loads(read_beneath(tree.folder, "answer.json", _CAP))
        accepted, reason = answer["accepted"], str(answer["reason"])
    except (OSError, Unsafe, ValueError, KeyError, TypeError):
        return replace(done, accepted=False, reason="the function ended its process without an answer")
    shown = tree.redact(" ".join(reason.split()))[:500] or ("accepted" if accepted is True else "refused")
    return replace(done, accepted=accepted is True, reason=shown)


def _files(name: str) -> Iterator[str]:
    """Where the function's module would lie in the check tree, with the packages around it."""
    module, colon, _ = name.partition(":")
    parts = module.split(".") if colon else []
    for length in range(1, len(parts) + 1):
        stem = "/".join(parts[:length])
        yield f"{stem}/__init__.py"
        yield f"{stem}.py"
