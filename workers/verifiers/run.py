"""Check `run`: a shell command in the clean copy of the result accepts by exit code 0.

Must not know how processes are owned; the Runner does that.
"""

from __future__ import annotations

from scheduler.model import Check, RunCheck
from workers.plugins import CheckTree, Finding, Runner
from workers.verifiers.commands import execute, first_line, shell
from workers.verifiers.kinds import expect


class RunVerifier:
    """Runs the text by `sh -c` with the plan's environment, without secrets and without the agent's folder."""

    def verify(self, check: Check, tree: CheckTree, runner: Runner) -> Finding:
        """The exit code decides; 126 and 127 mean that the check itself cannot run."""
        rule = expect(check, RunCheck)
        return execute(shell(rule.run, rule.timeout, rule.env), tree, runner)

    def title(self, check: Check) -> str:
        """One line for people."""
        return first_line(expect(check, RunCheck).run)
