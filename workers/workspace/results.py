"""Makes a commit of what an agent left on the disk. Its own git, index, configuration and word are not asked.

`.gitignore` holds as for anyone; nothing is forced in. Must not know scope or checks.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from scheduler.errors import Refusal
from scheduler.git import Git, GitFailed
from workers.workspace.beneath import Unsafe, drop_special, is_folder, restore_rights, text
from workers.workspace.changes import SUBMODULE, SYMLINK, Change
from workers.workspace.commits import read_commits, stamp, write_commit
from workers.workspace.mirror import Mirror
from workers.workspace.trees import Slot, restore


class ResultRefused(Refusal):
    """What the agent left in its work tree cannot become a commit. Its files are named above; the agent must not
    leave them."""

    code = "result_refused"


@dataclass(frozen=True, slots=True)
class Committed:
    """The result's commit (the base itself when nothing changed), its changes, and the paths of repositories in the
    work tree (new, moved or removed), which are a scope violation: they are left out of the commit if they are new."""

    commit: str
    changes: tuple[Change, ...]
    submodules: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The changed paths."""
        return tuple(change.path for change in self.changes)


def result_message(title: str, plan: str, task: str, attempt: int) -> str:
    """A commit message: the title in one line and the trailers that name the attempt."""
    subject = " ".join(title.split()) or task
    return f"{subject}\n\nDagward-Plan: {plan}\nDagward-Task: {task}\nDagward-Attempt: {attempt}\n"


def commit_result(slot: Slot, mirror: Mirror, base: str, message: str, when: int) -> Committed:
    """One commit on `base` of the files in the slot's work tree; `when` in milliseconds since the epoch.

    The agent must be proven gone. Raises `ResultRefused` for what git cannot hold.
    """
    if not is_folder(slot.work_path):
        raise ResultRefused("the agent removed its work tree")
    git = slot.git(mirror, slot.work_path)
    if slot.commit_in(mirror, slot.work_path) != base:
        git.run("read-tree", base)
    nested = _stage(slot, git)
    before = read_commits(mirror, [base])[base]
    tree = _without_untouched(mirror, git, before.tree, git.run("write-tree").decode().strip())
    if tree == before.tree:
        return Committed(base, (), nested)
    who = stamp(when).encode()
    commit = write_commit(mirror, tree, (base,), author=who, committer=who, message=message.encode())
    changes = tuple(mirror.changes(base, commit.id))
    moved = tuple(change.path for change in changes if change.is_submodule)
    return Committed(commit.id, changes, tuple(sorted({*nested, *moved})))


def _stage(slot: Slot, git: Git) -> tuple[str, ...]:
    try:
        return _add(git)
    except (GitFailed, PermissionError):
        pass
    # Unreadable files, or a pipe or socket in the place of a tracked file: take the rights back and try once more.
    try:
        restore_rights(slot.work_path)
        drop_special(slot.work_path)
        return _add(git)
    except (GitFailed, Unsafe) as error:
        raise ResultRefused(error.message) from None


def _without_untouched(mirror: Mirror, git: Git, base: str, tree: str) -> str:
    """The tree without the changes that only git made: it normalises line ends of a file whose bytes on the disk are
    those of the base, when the base itself breaks its `.gitattributes`."""
    if tree == base:
        return tree
    found = [change for change in mirror.changes(base, tree) if _is_untouched(change, git.work_tree)]
    return restore(git, found) if found else tree


def _is_untouched(change: Change, root: Path | None) -> bool:
    if root is None or change.old_mode != change.mode or change.mode in (SYMLINK, SUBMODULE):
        return False
    try:
        with (root / os.fsdecode(change.name)).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.new("sha256" if len(change.old) == 64 else "sha1", b"blob %d\0" % size)
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return False
    return digest.hexdigest() == change.old


def _add(git: Git) -> tuple[str, ...]:
    nested = _nested(git)
    specs = [b":(top)", *(b":(top,exclude,literal)" + name for name in nested)]
    git.run("add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul", data=b"\0".join(specs))
    return tuple(text(name) for name in nested)


def _nested(git: Git) -> list[bytes]:
    """Untracked repositories; git lists them as folders and does not look inside."""
    listed = git.run("ls-files", "-o", "-z", "--exclude-standard").split(b"\0")
    return [name.rstrip(b"/") for name in listed if name.endswith(b"/")]
