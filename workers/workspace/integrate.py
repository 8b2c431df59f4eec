"""The plan's branch: one commit per task, and its publication in the user's repository.

The user's repository is touched only here, and only in `refs/heads/dagward/<plan id>`. Must not know slots or checks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler.errors import Infrastructure, Refusal
from scheduler.git import Git, GitFailed
from scheduler.model import Ancestor
from workers.workspace.base import MergeConflict, steps
from workers.workspace.commits import Clash, combine, repeat
from workers.workspace.mirror import Mirror

HEADS = "refs/heads/"


@dataclass(frozen=True, slots=True)
class Integrated:
    """The head of the plan's branch and, for each task, its commit there.

    A task without a change, or whose change was there already, has no entry in `commits`.
    """

    commit: str
    commits: Mapping[str, str]


def integrate(
    mirror: Mirror,
    plan_base: str,
    results: Sequence[Ancestor],
    trailers: Mapping[str, Sequence[str]] | None = None,
) -> Integrated | MergeConflict:
    """One commit per result with a change, in the given topological order, on the plan's base.

    `trailers` adds lines such as `Dagward-Evidence: ...` to a task's message. The same inputs give the same commits.
    """
    current, work = steps(mirror, plan_base, results)
    commits: dict[str, str] = {}
    for one in work:
        tree = combine(mirror, current, one.base, one.result)
        if isinstance(tree, Clash):
            return MergeConflict(one.task, tree.paths)
        if tree == current.tree:
            continue
        message = with_trailers(one.result.message, (trailers or {}).get(one.task, ()))
        current = repeat(mirror, tree, current, one.result, message)
        commits[one.task] = current.id
    return Integrated(current.id, commits)


def with_trailers(message: bytes, lines: Sequence[str]) -> bytes:
    """The message with more lines at the end of its block of trailers."""
    extra = "".join(f"{' '.join(line.split())}\n" for line in lines).encode()
    return message.rstrip(b"\n") + b"\n" + extra


def publish(mirror: Mirror, branch: str, commit: str, ours: Collection[str] = ()) -> None:
    """Write `refs/heads/<branch>` of the user's repository by compare-and-swap, and nothing else there.

    The branch may be absent or stand at one of `ours`, the commits that dagward put there before. One that already
    stands at `commit` is left alone. Raises `Refusal` when it stands elsewhere or is checked out.
    """
    if not branch.startswith("dagward/"):
        raise Refusal(f"{branch} is not a branch of dagward")
    if Path(mirror.repo).is_absolute():
        _publish_local(mirror, Git(cwd=Path(mirror.repo)), branch, commit, ours)
    else:
        _publish_remote(mirror, branch, commit, ours)


def _publish_local(mirror: Mirror, found: Git, branch: str, commit: str, ours: Collection[str]) -> None:
    folder = Path(found.text("rev-parse", "--path-format=absolute", "--git-common-dir"))
    git = Git(git_dir=folder, cwd=folder)
    current = git.attempt("rev-parse", "--verify", "-q", HEADS + branch)
    stands = current.stdout.decode().strip() if current.status == 0 else None
    if stands == commit:
        return
    if stands is not None and stands not in ours:
        raise _moved(mirror.shown, branch, stands)
    _refuse_checked_out(git, mirror.shown, branch)
    options = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-prune")
    git.run(*options, "--", str(mirror.path), commit)
    old = stands or "0" * len(commit)
    done = git.attempt("update-ref", "-m", "dagward", HEADS + branch, commit, old)
    if done.status != 0:
        raise _not_written(mirror.shown, branch, done.stderr)


def _refuse_checked_out(git: Git, repo: str, branch: str) -> None:
    listed = git.run("worktree", "list", "--porcelain", "-z").split(b"\0")
    if f"branch {HEADS}{branch}".encode() in listed:
        hint = f"Switch to another branch there (`git switch -`), then integrate again; {branch} was not moved."
        raise Refusal(f"{branch} is checked out in {repo}", hint=hint)


def _publish_remote(mirror: Mirror, branch: str, commit: str, ours: Collection[str]) -> None:
    ref = HEADS + branch
    said = mirror.git.attempt("ls-remote", "--", mirror.repo, ref, network=True)
    if said.status != 0:
        raise _not_written(mirror.shown, branch, said.stderr)
    stands = said.stdout.decode().split("\t")[0] or None
    if stands == commit:
        return
    if stands is not None and stands not in ours:
        raise _moved(mirror.shown, branch, stands)
    lease = f"--force-with-lease={ref}:{stands or ''}"
    done = mirror.git.attempt("push", "-q", "--no-verify", lease, "--", mirror.repo, f"{commit}:{ref}", network=True)
    if done.status != 0:
        raise _not_written(mirror.shown, branch, done.stderr)


def _moved(repo: str, branch: str, stands: str) -> Refusal:
    hint = "Someone else put it there. Rename or delete that branch, then integrate again."
    return Refusal(
        f"{branch} of {repo} stands at {stands[:12]}, which dagward did not write; it was not touched", hint=hint
    )


def _not_written(repo: str, branch: str, stderr: str) -> Infrastructure:
    said = GitFailed("update-ref", 128, stderr).message
    hint = "A branch called `dagward` stands in the way of `dagward/...`: rename it. Else look at the rights there."
    return Infrastructure(f"{branch} could not be written in {repo}: {said}", hint=hint)
