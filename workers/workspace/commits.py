"""Commit objects read, written and combined in a mirror, without any checkout.

The same inputs give the same hash on every machine. Must not know slots or checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.errors import Infrastructure
from workers.workspace.beneath import text
from workers.workspace.mirror import Mirror

IDENTITY = "dagward <dagward@localhost>"


def stamp(when: int) -> str:
    """Author and committer for a time in milliseconds since the epoch."""
    return f"{IDENTITY} {when // 1000} +0000"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `author` and `committer` are git's lines with their dates; both are kept when it is picked."""

    id: str
    tree: str
    parents: tuple[str, ...]
    author: bytes
    committer: bytes
    message: bytes


@dataclass(frozen=True, slots=True)
class Clash:
    """Paths that cannot be combined."""

    paths: tuple[str, ...]


def read_commits(mirror: Mirror, ids: Iterable[str]) -> Mapping[str, Commit]:
    """Many commits with one process. A missing one is `Infrastructure`: results of another host are not here."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    data = mirror.git.run("cat-file", "--batch", data="".join(f"{one}\n" for one in wanted).encode())
    found: dict[str, Commit] = {}
    place = 0
    for one in wanted:
        end = data.index(b"\n", place)
        head = data[place:end].decode().split(" ")
        place = end + 1
        if len(head) != 3 or head[1] != "commit":
            hint = "Run all workers of this plan on one host and with one state folder."
            raise Infrastructure(f"commit {one[:12]} is not in this host's mirror of {mirror.shown}", hint=hint)
        size = int(head[2])
        found[one] = _parse(one, data[place : place + size])
        place += size + 1
    return found


def _parse(one: str, raw: bytes) -> Commit:
    head, _, message = raw.partition(b"\n\n")
    fields: dict[bytes, bytes] = {}
    parents: list[str] = []
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"parent":
            parents.append(value.decode())
        else:
            fields.setdefault(key, value)
    return Commit(
        one,
        fields[b"tree"].decode(),
        tuple(parents),
        fields[b"author"],
        fields[b"committer"],
        message,
    )


def write_commit(
    mirror: Mirror, tree: str, parents: Sequence[str], *, author: bytes, committer: bytes, message: bytes
) -> Commit:
    """Store a commit with exactly these fields."""
    lines = [f"tree {tree}".encode(), *(f"parent {parent}".encode() for parent in parents)]
    lines += [b"author " + author, b"committer " + committer]
    raw = b"\n".join(lines) + b"\n\n" + message
    one = mirror.git.run("hash-object", "-t", "commit", "-w", "--stdin", data=raw).decode().strip()
    return Commit(one, tree, tuple(parents), author, committer, message)


def repeat(mirror: Mirror, tree: str, onto: Commit, like: Commit, message: bytes) -> Commit:
    """A commit on `onto` with the author and the dates of `like`, so that its hash depends on nothing else."""
    return write_commit(mirror, tree, (onto.id,), author=like.author, committer=like.committer, message=message)


def combine(mirror: Mirror, onto: Commit, base: Commit, picked: Commit) -> str | Clash:
    """The tree of `onto` with the change from `base` to `picked`, as git's cherry-pick would make it."""
    if onto.tree == base.tree:
        return picked.tree
    if base.id not in picked.parents:
        raise Infrastructure(f"result {picked.id[:12]} is not one commit on its base {base.id[:12]}")
    # git 2.38 finds the merge base by history only: a helper with the tree of `onto` on `base` has the right one.
    nobody = stamp(0).encode()
    helper = write_commit(mirror, onto.tree, (base.id,), author=nobody, committer=nobody, message=b"helper\n")
    done = mirror.git.attempt(
        "merge-tree",
        "--write-tree",
        "--name-only",
        "--no-messages",
        "-z",
        helper.id,
        picked.id,
        ok=(0, 1),
    )
    tree, *names = done.stdout.split(b"\0")
    if done.status == 0:
        return tree.decode().strip()
    return Clash(tuple(sorted({text(name) for name in names if name})))
