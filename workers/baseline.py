"""What a check may compare a result with: its base as a clean tree, single files of it, and what was found out before.

Must not know kinds of checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.model import Json
from workers.facts import Facts
from workers.plugins import CheckTree
from workers.workspace import Mirror, Slot


@dataclass(frozen=True, slots=True)
class GitBaseline:
    """The base of a result in a repository. `look` makes a CheckTree of a folder."""

    commit: str
    mirror: Mirror
    slot: Slot
    facts: Facts
    look: Callable[[Path], CheckTree] = field(repr=False)

    def tree(self) -> CheckTree:
        """A clean copy of the base in the slot's spare tree."""
        return self.look(self.slot.spare(self.mirror, self.commit))

    def read(self, path: str) -> bytes | None:
        """The content of one file of the base."""
        return self.mirror.read(self.commit, path)

    def recall(self, name: str) -> Json:
        """What was kept under this name for this plan."""
        return self.facts.recall(name)

    def keep(self, name: str, value: Json) -> None:
        """Remember a value for this plan."""
        self.facts.keep(name, value)
