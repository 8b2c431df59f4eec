"""The built-in verifiers, one file per kind of check; each is also the example for plug-in authors.

Must not know the store, attempts' life, or git.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.model import Check, FailureClass, check_kind
from workers.plugins import CheckTree, Finding, Runner, Verifier
from workers.verifiers.diff import DiffVerifier
from workers.verifiers.exit import ExitVerifier
from workers.verifiers.file import FileVerifier
from workers.verifiers.junit import JunitVerifier
from workers.verifiers.outputs import OutputsVerifier
from workers.verifiers.python import PythonVerifier
from workers.verifiers.run import RunVerifier
from workers.verifiers.weakening import WeakeningVerifier

VERIFIERS: Mapping[str, Verifier] = {
    "run": RunVerifier(),
    "exit": ExitVerifier(),
    "outputs": OutputsVerifier(),
    "file": FileVerifier(),
    "diff": DiffVerifier(),
    "junit": JunitVerifier(),
    "weakening": WeakeningVerifier(),
    "python": PythonVerifier(),
}


def verify(check: Check, tree: CheckTree, runner: Runner) -> Finding:
    """The finding of the verifier for this check's kind; an unknown kind is a configuration failure."""
    verifier = VERIFIERS.get(check_kind(check) or "")
    if verifier is None:
        reason = f"no verifier for {type(check).__name__} on this worker"
        return Finding(accepted=False, reason=reason, failure=FailureClass.CONFIGURATION)
    return verifier.verify(check, tree, runner)


def title(check: Check) -> str:
    """What a check looks at, in one line for people."""
    kind = check_kind(check) or "check"
    verifier = VERIFIERS.get(kind)
    return verifier.title(check) if verifier is not None else kind


__all__ = ["VERIFIERS", "title", "verify"]
