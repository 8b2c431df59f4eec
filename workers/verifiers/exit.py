"""Check `exit`: the agent's terminal event was seen and its exit code is 0. Its scope was judged before any check."""

from __future__ import annotations

from scheduler.model import Check
from workers.plugins import CheckTree, Finding, Runner


class ExitVerifier:
    """The check of a task that names none."""

    def verify(self, check: Check, tree: CheckTree, runner: Runner) -> Finding:  # noqa: ARG002
        """Read the supervisor's record of the agent's end; the tree is not looked at."""
        result = tree.result
        if not result.terminal:
            return Finding(accepted=False, reason="the agent ended without its terminal event")
        if result.exit_code != 0:
            reason = f"the agent ended with exit code {result.exit_code}"
            return Finding(accepted=False, reason=reason, exit_code=result.exit_code)
        return Finding(accepted=True, reason="the agent ended with exit code 0", exit_code=0)

    def title(self, check: Check) -> str:  # noqa: ARG002
        """One line for people."""
        return "exit code 0"
