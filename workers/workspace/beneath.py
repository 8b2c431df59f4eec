"""Opens, walks and removes what an agent left on the disk without ever following a link out of the folder.

Must not know what the files mean.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scheduler.errors import Refusal

DEEPEST = 200
"""Folders below each other in what an agent leaves; each costs a descriptor and a level of recursion."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Unsafe(Refusal):
    """Use a plain relative path: no `..`, no leading `/`, no symbolic link in it."""

    code = "unsafe_path"


def text(path: bytes) -> str:
    """A file name for JSON, logs and people; bytes that are not UTF-8 become `\\xNN`."""
    return path.decode("utf-8", "backslashreplace")


def parts(path: str) -> list[str]:
    """The components of a relative path that stays inside; raises `Unsafe` for any other."""
    if not path or path.startswith("/") or "\0" in path:
        raise Unsafe(f"{path!r} is not a path inside the workspace")
    found = [part for part in path.split("/") if part not in ("", ".")]
    if not found or ".." in found:
        raise Unsafe(f"{path!r} is not a path inside the workspace")
    return found


def open_beneath(root: Path, path: str) -> int:
    """A descriptor of the regular file `path` below `root`, opened component by component.

    Raises FileNotFoundError when it is missing and `Unsafe` for links, folders and special files.
    """
    *folders, name = parts(path)
    here = os.open(root, _DIRECTORY)
    try:
        for folder in folders:
            below = _step(folder, here, path)
            os.close(here)
            here = below
        opened = _open_file(name, here, path)
    finally:
        os.close(here)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise Unsafe(f"{path} is not a regular file")
    return opened


def _step(folder: str, here: int, path: str) -> int:
    try:
        return os.open(folder, _DIRECTORY, dir_fd=here)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            if _is_link(folder, here):
                raise Unsafe(f"{path}: {folder} is a symbolic link") from None
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
        raise


def _open_file(name: str, here: int, path: str) -> int:
    try:
        return os.open(name, _FILE, dir_fd=here)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Unsafe(f"{path} is a symbolic link") from None
        if error.errno == errno.ENXIO:  # a socket
            raise Unsafe(f"{path} is not a regular file") from None
        raise


def _is_link(name: str, here: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)
    except OSError:
        return False


def read_beneath(root: Path, path: str, cap: int) -> bytes:
    """At most `cap` bytes of a file below `root`; a longer one is refused. Errors as in `open_beneath`."""
    with os.fdopen(open_beneath(root, path), "rb") as file:
        data = file.read(cap + 1)
    if len(data) > cap:
        raise Unsafe(f"{path} is larger than {cap} bytes", hint="Write less, or into a file of the workspace.")
    return data


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a folder tree: its path below the root and its own status (of the link, not its target).

    `dir_fd` with `name` reaches it; both hold only until the next entry is asked for.
    """

    path: bytes
    name: bytes
    dir_fd: int
    status: os.stat_result


def walk(root: Path) -> Iterator[Entry]:
    """Everything below `root`, sorted by name in each folder, a folder before what is in it. Follows no link."""
    start = os.open(root, _DIRECTORY)
    try:
        yield from _walk(start, b"")
    finally:
        os.close(start)


def _walk(folder: int, prefix: bytes) -> Iterator[Entry]:
    if prefix.count(b"/") > DEEPEST:
        raise Unsafe(f"folders are nested more than {DEEPEST} deep", hint="Remove them, or write them elsewhere.")
    for name in sorted(map(os.fsencode, os.listdir(folder))):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        yield Entry(prefix + name, name, folder, status)
        if stat.S_ISDIR(status.st_mode):
            try:
                below = os.open(name, _DIRECTORY, dir_fd=folder)
            except FileNotFoundError:
                continue  # the caller removed it
            try:
                yield from _walk(below, prefix + name + b"/")
            finally:
                os.close(below)


def restore_rights(root: Path) -> None:
    """Give the owner back the right to read and write everything below `root`. The agent must be gone."""
    root.chmod(0o700)
    for entry in walk(root):
        mode = entry.status.st_mode
        if stat.S_ISDIR(mode):
            _grant(entry, 0o700)
        elif stat.S_ISREG(mode):
            _grant(entry, 0o600)


def drop_special(root: Path) -> None:
    """Unlink sockets, pipes and devices."""
    for entry in walk(root):
        mode = entry.status.st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            os.unlink(entry.name, dir_fd=entry.dir_fd)


def _grant(entry: Entry, bits: int) -> None:
    mode = stat.S_IMODE(entry.status.st_mode)
    if mode & bits != bits:
        # The caller has just seen that this is no link, and nothing of the agent lives.
        os.chmod(entry.name, mode | bits, dir_fd=entry.dir_fd)


def remove_tree(path: Path) -> None:
    """Remove a folder, file or link with all below it; absent is fine. Follows no link and needs no rights left."""
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _remove(os.fsencode(path.name), parent)
    finally:
        os.close(parent)


def empty_folder(path: Path) -> Path:
    """An empty folder of mode 0700 at `path`, whatever was there before."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    remove_tree(path)
    path.mkdir(mode=0o700)
    return path


def is_folder(path: Path) -> bool:
    """Whether `path` itself is a folder, not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _remove(name: bytes, parent: int) -> None:
    """Depth first with an explicit stack of names, so that a deep tree exhausts neither descriptors nor recursion."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=parent)
        return
    top = _open_for_removal(name, parent)
    try:
        _empty(top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _open_for_removal(name: bytes, parent: int) -> int:
    with contextlib.suppress(PermissionError):
        folder = os.open(name, _DIRECTORY, dir_fd=parent)
        if os.fstat(folder).st_mode & 0o700 != 0o700:
            os.fchmod(folder, 0o700)
        return folder
    os.chmod(name, 0o700, dir_fd=parent)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def _empty(top: int) -> None:
    """Empty the folder behind `top`. Goes down one open folder at a time and comes back by `..`."""
    here = os.dup(top)
    pending = [_unlink_files(here)]
    trail: list[bytes] = []
    try:
        while True:
            if pending[-1]:
                trail.append(pending[-1].pop())
                here = _replace(here, _open_for_removal(trail[-1], here))
                pending.append(_unlink_files(here))
            elif trail:
                here = _replace(here, os.open("..", _DIRECTORY, dir_fd=here))
                pending.pop()
                os.rmdir(trail.pop(), dir_fd=here)
            else:
                return
    finally:
        os.close(here)


def _replace(old: int, new: int) -> int:
    os.close(old)
    return new


def _unlink_files(folder: int) -> list[bytes]:
    """Unlink all but folders; answer the names of those."""
    folders: list[bytes] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = os.fsencode(entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            else:
                os.unlink(name, dir_fd=folder)
    return folders
