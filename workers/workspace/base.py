"""The commit an attempt starts from: the plan's base with the results of its ancestors, as far as missing in it.

Must not know work trees; nothing is checked out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.model import Ancestor
from workers.workspace.commits import Clash, Commit, combine, read_commits, repeat
from workers.workspace.mirror import Mirror


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """The result of `task` cannot be combined with those before it; `paths` are in dispute."""

    task: str
    paths: tuple[str, ...]

    def render(self) -> str:
        """One line for people."""
        shown = ", ".join(self.paths[:5])
        more = f" and {len(self.paths) - 5} more" if len(self.paths) > 5 else ""
        return f"the result of {self.task} conflicts in {shown}{more}"


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a task that changed something, and the base that it stands on."""

    task: str
    base: Commit
    result: Commit


def steps(mirror: Mirror, start: str, ancestors: Sequence[Ancestor]) -> tuple[Commit, list[Step]]:
    """The start and, in the given order, the ancestors whose result is more than their base; one read for all."""
    pairs = [(one.task, one.base, one.digest) for one in ancestors if one.base is not None and one.base != one.digest]
    ids = [start, *(base for _, base, _ in pairs), *(digest for _, _, digest in pairs)]
    known = read_commits(mirror, ids)
    return known[start], [Step(task, known[base], known[digest]) for task, base, digest in pairs]


def base_for(mirror: Mirror, plan_base: str, ancestors: Sequence[Ancestor]) -> str | MergeConflict:
    """The base of a task whose completed ancestors, in topological order, are `ancestors`.

    A result that stands on what was built so far is used as it is; any other is picked onto it with its own author,
    dates and message, so that every worker builds the same commit.
    """
    if all(one.base in (None, one.digest) for one in ancestors):
        return plan_base
    current, work = steps(mirror, plan_base, ancestors)
    for one in work:
        if one.result.parents == (current.id,):
            current = one.result
            continue
        tree = combine(mirror, current, one.base, one.result)
        if isinstance(tree, Clash):
            return MergeConflict(one.task, tree.paths)
        if tree != current.tree:
            current = repeat(mirror, tree, current, one.result, one.result.message)
    return current.id
