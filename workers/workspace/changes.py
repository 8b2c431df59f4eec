"""What a result changed against its base, for commits and snapshots alike. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workers.workspace.beneath import text

ABSENT = "000000"
SUBMODULE = "160000"
SYMLINK = "120000"

Kind = Literal["added", "deleted", "modified"]


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs. Renames are a deletion and an addition. Modes are git's octal texts; `000000`: absent.

    `old` is the id of the content in the base: a blob, or the sha256 in a snapshot; empty or zeros when absent.
    """

    name: bytes
    old_mode: str
    mode: str
    old: str = ""

    @property
    def undo(self) -> bytes:
        """The record for `git update-index -z --index-info` that puts the path back to its base."""
        return f"{self.old_mode if self.old_mode != ABSENT else 0} {self.old}\t".encode() + self.name + b"\0"

    @property
    def path(self) -> str:
        """The path for patterns, JSON and people."""
        return text(self.name)

    @property
    def kind(self) -> Kind:
        """Added, deleted, or modified (content, mode or type)."""
        if self.old_mode == ABSENT:
            return "added"
        return "deleted" if self.mode == ABSENT else "modified"

    @property
    def is_submodule(self) -> bool:
        """Whether a repository of its own is involved."""
        return SUBMODULE in (self.old_mode, self.mode)
