"""The bare mirror of one repository in the state folder: the only repository in which dagward's own git works.

Agents never get its path as their git folder. Must not know slots, tasks or checks.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from scheduler.errors import Infrastructure
from scheduler.git import Git, GitFailed, without_password
from workers.workspace.beneath import remove_tree
from workers.workspace.changes import SYMLINK, Change

BASES = "refs/bases"
RESULTS = "refs/dagward"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock of this host; it ends with the process, however that ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class Mirror:
    """`<state>/mirrors/<16 hex of the repository's name>.git`. Several workers of a host use it at once.

    `repo` is an absolute path or a URL. Nothing is ever collected in it, so every result stays reachable by its hash.
    """

    def __init__(self, state: Path, repo: str) -> None:
        self.repo = repo
        name = hashlib.sha256(repo.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._root = state / "mirrors"
        self.path = self._root / f"{name}.git"
        self.git = Git(git_dir=self.path)

    @property
    def shown(self) -> str:
        """The repository for messages, without a password."""
        return without_password(self.repo)

    def ensure(self, commit: str) -> None:
        """Have `commit` (a full hash) with its history. Fetches once; later calls only look."""
        if self._has_base(commit):
            return
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.path.with_suffix(".lock")):
            if self._has_base(commit):
                return
            self._create(commit)
            self._fetch(commit)

    def has(self, commit: str) -> bool:
        """Whether the commit object is here."""
        return self.path.is_dir() and self.git.attempt("cat-file", "-e", f"{commit}^{{commit}}").status == 0

    def keep(self, plan: str, task: str, attempt: int, commit: str) -> str:
        """Name a result, also a failed one: `refs/dagward/<plan>/<task>/<attempt>`. Answers the ref."""
        ref = f"{RESULTS}/{plan}/{task}/{attempt}"
        self.git.run("update-ref", ref, commit)
        return ref

    def kept(self, plan: str, task: str) -> list[str]:
        """The commits of all attempts of a task that were kept here."""
        return self.git.text("for-each-ref", "--format=%(objectname)", f"{RESULTS}/{plan}/{task}/").split()

    def changes(self, base: str, commit: str) -> list[Change]:
        """Every path in which `commit` differs from `base`, in git's order; renames as deletion and addition."""
        return parse_raw(self.git.run(*DIFF, base, commit))

    def read(self, commit: str, path: str) -> bytes | None:
        """The content of a regular file of a commit, None when there is none at this path."""
        listed = self.git.run("--literal-pathspecs", "ls-tree", "-z", commit, "--", path)
        head, _, name = listed.rstrip(b"\0").partition(b"\t")
        mode, kind, blob = [*head.split(), b"", b"", b""][:3]
        if kind != b"blob" or mode == SYMLINK.encode() or os.fsdecode(name) != path:
            return None
        return self.git.run("cat-file", "blob", blob.decode())

    def _has_base(self, commit: str) -> bool:
        # The ref is written after the objects: a fetch that was killed half-way leaves none.
        return self.path.is_dir() and self.git.attempt("rev-parse", "--verify", "-q", f"{BASES}/{commit}").status == 0

    def _create(self, commit: str) -> None:
        if self.path.is_dir():
            return
        form = "sha256" if len(commit) == 64 else "sha1"
        # Made elsewhere and moved, so that a killed `git init` leaves no half mirror.
        new = self.path.with_suffix(".new")
        remove_tree(new)
        Git(cwd=self._root).run("init", "-q", "--bare", f"--object-format={form}", "--template=", str(new))
        new.rename(self.path)

    def _fetch(self, commit: str) -> None:
        # A lock that a killed fetch left; the flock shows that its owner is gone.
        (self.path / BASES / f"{commit}.lock").unlink(missing_ok=True)
        options = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--")
        one = self.git.attempt(*options, self.repo, f"{commit}:{BASES}/{commit}", network=True)
        if one.status == 0:
            return
        # A server may refuse single commits; then its branches and tags hold it or nothing does.
        wide = ("+refs/heads/*:refs/remote/heads/*", "+refs/tags/*:refs/remote/tags/*")
        rest = self.git.attempt(*options, self.repo, *wide, network=True)
        if rest.status != 0:
            raise _unreachable(self.shown, rest.stderr)
        if not self.has(commit):
            hint = "Push the commit there, or correct `base` in the plan file."
            raise Infrastructure(f"{self.shown} has no commit {commit[:12]}", hint=hint)
        self.git.run("update-ref", f"{BASES}/{commit}", commit)


DIFF: Sequence[str] = (
    "diff-tree",
    "-r",
    "-z",
    "--raw",
    "--no-abbrev",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=none",
)


def parse_raw(raw: bytes) -> list[Change]:
    """The records of `git diff-tree -r -z --raw` without renames."""
    fields = raw.split(b"\0")
    found = []
    for head, name in zip(fields[0::2], fields[1::2], strict=False):
        old_mode, mode, old = head.decode().lstrip(":").split(" ")[:3]
        found.append(Change(name, old_mode, mode, old))
    return found


def _unreachable(repo: str, stderr: str) -> Infrastructure:
    failed = GitFailed("fetch", 128, stderr)
    hint = "Check that the repository is there and that this user may read it; dagward never asks for a password."
    return Infrastructure(f"{repo}: {failed.message}", hint=hint)
