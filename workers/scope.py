"""Whether the paths that a result touches keep its scope. Pure.

Must not know how a change was found, nor what happens to a result that breaks its scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduler.model import Scope

EVERYTHING = "**"


@dataclass(frozen=True, slots=True)
class Violation:
    """One path that breaks the scope, and the rule that it breaks: `write`, `protect` or `submodule`."""

    path: str
    rule: str

    def render(self) -> str:
        """One line for people."""
        return {
            "write": f"{self.path} is outside scope.write",
            "protect": f"{self.path} is in scope.protect",
            "submodule": f"{self.path} is a repository of its own (a submodule)",
        }[self.rule]


def matches(pattern: str, path: str) -> bool:
    """Whether `path` (relative, `/` between parts) is named by `path`, `dir/**` or `**`. Nothing else is a wildcard."""
    wanted = pattern.removeprefix("./")
    if wanted == EVERYTHING:
        return True
    if wanted.endswith("/**"):
        return path.startswith(wanted[:-2])
    return path == wanted.rstrip("/")


def is_protected(path: str, protect: Iterable[str]) -> bool:
    """Like `matches`, but wider on purpose: a protected folder written without `/**` protects what is in it,
    and `dir/**` also forbids to put a file or link in the place of `dir`."""
    for pattern in protect:
        root = pattern.removeprefix("./").removesuffix("/**").rstrip("/")
        if pattern.removeprefix("./") == EVERYTHING or path == root or path.startswith(f"{root}/"):
            return True
    return False


def is_writable(path: str, write: Iterable[str]) -> bool:
    """Whether some pattern of `scope.write` names the path."""
    return any(matches(pattern, path) for pattern in write)


def violations(paths: Iterable[str], scope: Scope, submodules: Sequence[str] = ()) -> list[Violation]:
    """All paths that break the scope, sorted; one path is named once, by the graver rule."""
    found = {path: Violation(path, "submodule") for path in submodules}
    for path in paths:
        if path in found:
            continue
        if is_protected(path, scope.protect):
            found[path] = Violation(path, "protect")
        elif not is_writable(path, scope.write):
            found[path] = Violation(path, "write")
    return [found[path] for path in sorted(found)]
