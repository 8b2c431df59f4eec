"""Check `diff`: whether the result changes anything, and only what it should."""

from __future__ import annotations

from scheduler.model import Check, DiffCheck
from workers.plugins import CheckTree, Finding, Runner
from workers.scope import is_writable
from workers.verifiers.kinds import expect

_SHOWN = 10


class DiffVerifier:
    """Judges the changed paths that dagward computed itself, from the result and its base."""

    def verify(self, check: Check, tree: CheckTree, runner: Runner) -> Finding:  # noqa: ARG002
        """Accepts when every condition of the check holds."""
        rule = expect(check, DiffCheck).diff
        count = len(tree.changed)
        if rule.nonempty and not count:
            return Finding(accepted=False, reason="the result changes nothing")
        only = rule.only
        outside = [] if only is None else [path for path in tree.changed if not is_writable(path, only)]
        if outside:
            shown = ", ".join(sorted(outside)[:_SHOWN])
            more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
            return Finding(accepted=False, reason=f"changed outside `only`: {shown}{more}")
        return Finding(accepted=True, reason=f"{count} path{'s' if count != 1 else ''} changed")

    def title(self, check: Check) -> str:
        """One line for people."""
        rule = expect(check, DiffCheck).diff
        wanted = ["not empty"] if rule.nonempty else []
        if rule.only is not None:
            wanted.append(f"only {', '.join(rule.only)}")
        return f"diff {' and '.join(wanted)}".strip()
