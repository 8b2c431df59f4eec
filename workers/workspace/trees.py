"""The work tree and the check tree of one worker slot, reset between attempts.

Each tree carries a `.git` of its own that borrows the mirror's objects: git works there for agents and checks, and
whatever they do to it (configuration, hooks, index flags, commits) is thrown away unread. Dagward's own git uses the
mirror and an index beside the tree. Must not know plans or tasks.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler.errors import Infrastructure
from scheduler.git import Git, GitFailed
from workers.scope import is_protected
from workers.workspace.beneath import empty_folder, is_folder, remove_tree
from workers.workspace.changes import SUBMODULE, Change
from workers.workspace.digest import tree_digest
from workers.workspace.mirror import Mirror
from workers.workspace.snapshots import Snapshots

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_USER = "[user]\n\tname = dagward\n\temail = dagward@localhost\n[gc]\n\tauto = 0\n[core]\n\tbare = false\n"
_CONFIG = f"{_USER}\trepositoryformatversion = 0\n"
_CONFIG_SHA256 = f"{_USER}\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"


@dataclass(frozen=True, slots=True)
class Tree:
    """A clean copy of a result and the paths that make it up (as bytes, relative to `path`)."""

    path: Path
    tracked: tuple[bytes, ...]

    def digest(self) -> str:
        """sha256 over mode, path and content of the tracked paths as they are on the disk now."""
        return tree_digest(self.path, self.tracked)


class SlotTaken(Infrastructure):
    """Two workers have the same slot. Give one another name, or end the other."""

    code = "slot_taken"


class Slot:
    """`<state>/trees/<name>/`: `work` for the agent, `check` for the checks, `spare` for what they compare with.

    One process at a time; it holds a lock until `close` or its end. A forked child shares it. `patience`: seconds to
    wait for one that is about to die.
    """

    def __init__(self, state: Path, name: str, patience: float = 5.0) -> None:
        if not _NAME.fullmatch(name):
            raise Infrastructure(f"{name!r} cannot be the name of a worker slot")
        self.folder = state / "trees" / name
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.work_path = self.folder / "work"
        self.check_path = self.folder / "check"
        self.spare_path = self.folder / "spare"
        self._lock = _lock(self.folder / "lock", name, patience)

    def work(self, mirror: Mirror, commit: str) -> Path:
        """The work tree at `commit`: exactly its files, nothing left of any earlier attempt."""
        return self._reset(mirror, self.work_path, commit, commit)

    def check(self, mirror: Mirror, commit: str, protect: Sequence[str] = (), base: str | None = None) -> Tree:
        """A clean check tree of a result, with the protected files as they are in `base`."""
        tree = protected_tree(mirror, commit, protect, base, self.folder / "protect.index")
        path = self._reset(mirror, self.check_path, tree, commit)
        listed = self.git(mirror, self.check_path).run("ls-files", "-z").split(b"\0")
        return Tree(path, tuple(name for name in listed if name))

    def spare(self, mirror: Mirror, commit: str, protect: Sequence[str] = (), base: str | None = None) -> Path:
        """Another clean tree, beside the check tree: of a base, or of a result that is to be broken on purpose."""
        tree = protected_tree(mirror, commit, protect, base, self.folder / "protect.index")
        return self._reset(mirror, self.spare_path, tree, commit)

    def scratch_spare(self, snapshots: Snapshots, digest: str) -> Path:
        """Another fresh copy of a snapshot."""
        self._forget(self.spare_path)
        snapshots.checkout(digest, empty_folder(self.spare_path))
        return self.spare_path

    def scratch_work(self) -> Path:
        """An empty work folder for an attempt of a plan without a repository."""
        self._forget(self.work_path)
        return empty_folder(self.work_path)

    def scratch_check(self, snapshots: Snapshots, digest: str) -> Tree:
        """A fresh copy of a snapshot."""
        self._forget(self.check_path)
        snapshots.checkout(digest, empty_folder(self.check_path))
        return Tree(self.check_path, snapshots.tracked(digest))

    def close(self) -> None:
        """Give the slot free for another process. The trees stay for the next attempt."""
        os.close(self._lock)

    def __enter__(self) -> Slot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def git(self, mirror: Mirror, path: Path) -> Git:
        """Dagward's own git on one of the trees: the mirror's configuration, an index of ours."""
        return Git(git_dir=mirror.path, work_tree=path, index=self._index(path), cwd=path)

    def commit_in(self, mirror: Mirror, path: Path) -> str | None:
        """The tree-ish that the index of this tree was last set to in this mirror; None when unknown."""
        try:
            noted = json.loads(self._note(path).read_text())
        except (OSError, ValueError):
            return None
        known = isinstance(noted, dict) and noted.get("mirror") == str(mirror.path) and self._index(path).is_file()
        return str(noted["tree"]) if known else None

    def _reset(self, mirror: Mirror, path: Path, tree: str, head: str) -> Path:
        usable = is_folder(path) and self.commit_in(mirror, path) is not None
        remove_tree(self._note(path))  # until the end of this, nothing is known about the tree
        if not usable:
            self._fresh(mirror, path, tree)
        else:
            try:
                self._reuse(mirror, path, tree)
            except (GitFailed, OSError):
                # Damaged in a way that git does not mend: rights taken away, a lock of a killed process, a lost index.
                self._fresh(mirror, path, tree)
        self._note(path).write_text(json.dumps({"mirror": str(mirror.path), "tree": tree}))
        self._plant(mirror, path, head)
        return path

    def _fresh(self, mirror: Mirror, path: Path, tree: str) -> None:
        self._forget(path)
        empty_folder(path)
        self.git(mirror, path).run("read-tree", "--reset", "-u", tree)

    def _reuse(self, mirror: Mirror, path: Path, tree: str) -> None:
        git = self.git(mirror, path)
        remove_tree(path / ".git")
        path.chmod(0o700)
        git.run("read-tree", "--reset", "-u", tree)
        git.run("clean", "-ffdxq")
        if git.run("ls-files", "-o", "-m", "-z"):
            raise GitFailed("clean", 1, "something was left")
        for name in _submodules(git):
            empty_folder(path / os.fsdecode(name))  # git looks into no repository but its own

    def _forget(self, path: Path) -> None:
        for name in (self._note(path), self._index(path), self._index(path).with_suffix(".index.lock")):
            remove_tree(name)

    def _index(self, path: Path) -> Path:
        return self.folder / f"{path.name}.index"

    def _note(self, path: Path) -> Path:
        return self.folder / f"{path.name}.json"

    def _plant(self, mirror: Mirror, path: Path, head: str) -> None:
        """A repository for agents and checks to look into; a copy of our index makes its `git status` quick."""
        own = path / ".git"
        for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
            (own / folder).mkdir(parents=True)
        (own / "HEAD").write_text(f"{head}\n")
        (own / "config").write_text(_CONFIG if len(head) == 40 else _CONFIG_SHA256)
        (own / "objects/info/alternates").write_text(f"{mirror.path / 'objects'}\n")
        shutil.copyfile(self._index(path), own / "index")


def _lock(path: Path, name: str, patience: float) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < end:
                time.sleep(0.02)
                continue
            os.close(handle)
            raise SlotTaken(f"the worker slot {name} is in use by another process") from None
        return handle


def _submodules(git: Git) -> list[bytes]:
    mode = SUBMODULE.encode() + b" "
    listed = git.run("ls-files", "-s", "-z").split(b"\0")
    return [record.partition(b"\t")[2] for record in listed if record.startswith(mode)]


def protected_tree(mirror: Mirror, commit: str, protect: Sequence[str], base: str | None, index: Path) -> str:
    """`commit` itself, or a tree like it whose protected paths are those of `base`. Uses `index` for scratch."""
    if base is None or base == commit or not protect:
        return commit
    touched = [change for change in mirror.changes(base, commit) if is_protected(change.path, protect)]
    if not touched:
        return commit
    git = Git(git_dir=mirror.path, index=index)
    for leftover in (index, index.with_suffix(".index.lock")):
        remove_tree(leftover)
    git.run("read-tree", commit)
    return restore(git, touched)


def restore(git: Git, changes: Sequence[Change]) -> str:
    """Put these paths of the index back to their base; answers the tree that the index holds then."""
    # Removals first: a file that is in the way of a folder of the base must be gone.
    ordered = sorted(changes, key=lambda change: change.kind != "added")
    git.run("update-index", "-z", "--index-info", data=b"".join(change.undo for change in ordered))
    return git.run("write-tree").decode().strip()


def free_slot(state: Path) -> Slot:
    """The first slot of this state folder that no process holds: workers of several runs share the trees."""
    for number in itertools.count(1):
        try:
            return Slot(state, f"slot-{number}", patience=0)
        except SlotTaken:
            continue
    raise AssertionError("unreachable")
