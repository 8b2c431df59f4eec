"""A read-only look at the user's repository when a plan is submitted: which commit its base is, and what to say first.

Must not write anything there, nor know mirrors and work trees.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from scheduler.errors import Infrastructure, Refusal
from scheduler.git import Done, Git, require_git, without_password

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/:]+@[^/:]+:|[A-Za-z0-9.-]{2,}:(?!\\)")
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_TAKEN = "refs/heads/dagward"


@dataclass(frozen=True, slots=True)
class Resolved:
    """A repository as an absolute path (its top folder) or URL, the commit of `base`, and what a person should know."""

    repo: str
    commit: str
    warnings: tuple[str, ...] = ()


def resolve(repo: str, base: str, folder: Path) -> Resolved:
    """Find `repo` (a path relative to `folder`, or a URL) and the commit that `base` names there.

    Raises `Infrastructure` without a usable git and `Refusal`, with the remedy, for everything wrong with the
    repository.
    """
    require_git()
    if repo.startswith("file://"):
        repo = repo.removeprefix("file://")
    if is_url(repo):
        commit = _HASH.fullmatch(base)
        return Resolved(repo, base) if commit else Resolved(repo, _remote_commit(repo, base))
    return _resolve_local(_absolute(repo, folder), base)


def is_url(repo: str) -> bool:
    """Whether `repo` is an address of another host rather than a path."""
    return _URL.match(repo) is not None


def _absolute(repo: str, folder: Path) -> Path:
    path = (folder / Path(repo).expanduser()).resolve()
    if not path.is_dir():
        raise Refusal(f"repo: {path} is not a folder", hint="Correct `repo` in the plan file.")
    return path


def _resolve_local(path: Path, base: str) -> Resolved:
    git = Git(cwd=path)
    top = _top(git, path)
    shallow = git.text("rev-parse", "--is-shallow-repository") == "true"
    if shallow:
        raise Refusal(f"{top} is a shallow clone; results could not be based on it", hint=_UNSHALLOW)
    commit = _commit(git, top, base)
    if git.attempt("show-ref", "--verify", "-q", _TAKEN).status == 0:
        hint = "Rename it: `git branch -m dagward NAME`."
        raise Refusal(f"{top} has a branch `dagward`, so git allows no branches `dagward/...`", hint=hint)
    return Resolved(str(top), commit, _warnings(git, top))


_UNSHALLOW = "Run `git fetch --unshallow` there, then go on."


def _top(git: Git, path: Path) -> Path:
    """The top folder of the working copy, or the folder of a bare repository."""
    done = git.attempt("rev-parse", "--is-bare-repository", "--path-format=absolute", "--git-common-dir")
    if done.status != 0:
        raise _no_repository(path, done)
    bare, common = done.stdout.decode("utf-8", "surrogateescape").splitlines()[:2]
    if bare == "true":
        return Path(common)
    return Path(git.run("rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").rstrip("\n"))


def _no_repository(path: Path, done: Done) -> Refusal:
    if "dubious ownership" in done.stderr:
        hint = "Clone it as the user who runs dagward and name the clone as `repo`, or give this user its files."
        return Refusal(f"{path} belongs to another user", hint=hint)
    if "not a git repository" in done.stderr:
        hint = "Correct `repo`, or make it one: `git init`, then a first commit."
        return Refusal(f"{path} is not a git repository", hint=hint)
    said = done.stderr.strip().splitlines()
    return Refusal(f"git cannot read {path}: {said[-1] if said else done.status}")


def _commit(git: Git, top: Path, base: str) -> str:
    # `--end-of-options`: a base that begins with `-` is a name that does not exist, not an option.
    done = git.attempt("rev-parse", "--verify", "-q", "--end-of-options", f"{base}^{{commit}}")
    if done.status == 0:
        return done.stdout.decode().strip()
    if not git.run("rev-list", "--max-count=1", "--all"):
        raise _no_commits(str(top))
    if base == "HEAD":
        branch = git.attempt("symbolic-ref", "--short", "-q", "HEAD").stdout.decode("utf-8", "replace").strip()
        hint = "Make a first commit there, or name another `base`."
        raise Refusal(f"the branch {branch or 'HEAD'} of {top} has no commits", hint=hint)
    refs = git.text("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
    raise _no_base(str(top), base, refs.splitlines())


def _no_commits(repo: str) -> Refusal:
    hint = "Make a first commit: `git add -A && git commit -m 'first commit'`."
    return Refusal(f"{repo} has no commits", hint=hint)


def _no_base(repo: str, base: str, names: Collection[str]) -> Refusal:
    near = difflib.get_close_matches(base, names, n=3) or sorted(names)[:5]
    hint = f"There are: {', '.join(near)}." if near else "It has no branches or tags."
    return Refusal(f"{repo} has no commit called {base!r}", hint=hint)


def _warnings(git: Git, top: Path) -> tuple[str, ...]:
    if git.text("rev-parse", "--is-inside-work-tree") != "true":
        return ()
    options = ("--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")
    records = Git(cwd=top).attempt("status", *options).stdout.split(b"\0")
    count = sum(1 for record in records if record)
    if not count:
        return ()
    files = "1 file" if count == 1 else f"{count} files"
    return (f"uncommitted changes in {files} are not part of this run",)


def _remote_commit(repo: str, base: str) -> str:
    shown = without_password(repo)
    done = Git().attempt("ls-remote", "--", repo, network=True)
    if done.status != 0:
        said = done.stderr.strip().splitlines()
        hint = "Check the address and the rights of this user; dagward never asks for a password."
        cause = without_password(said[0] if said else str(done.status))
        raise Infrastructure(f"{shown} does not answer: {cause}", hint=hint)
    refs = _refs(done.stdout)
    if not refs:
        raise _no_commits(shown)
    for name in (base, f"refs/tags/{base}", f"refs/heads/{base}", f"refs/{base}"):
        for form in (f"{name}^{{}}", name):
            if form in refs:
                return refs[form]
    short = [name.removeprefix("refs/heads/").removeprefix("refs/tags/") for name in refs if not name.endswith("^{}")]
    raise _no_base(shown, base, short)


def _refs(listed: bytes) -> dict[str, str]:
    lines = (line.split("\t") for line in listed.decode("utf-8", "backslashreplace").splitlines())
    return {name: commit for commit, name in lines}
