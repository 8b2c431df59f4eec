"""The digest over the tracked paths of a check tree: equal before and after the checks, or the evidence is void.

Untracked files (caches, build folders) are not looked at. Must not know git.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

_BLOCK = 1 << 20


def tree_digest(root: Path, tracked: Iterable[bytes]) -> str:
    """sha256 over mode, path and content of each tracked path, sorted. A missing path counts as missing; a path
    behind a link counts as a link."""
    digest = hashlib.sha256()
    top = os.fsencode(root)
    plain: dict[bytes, bool] = {b"": True}
    for path in sorted(set(tracked)):
        mode, content = _look(top, path, plain)
        digest.update(mode + b"\0" + path + b"\0" + content + b"\n")
    return digest.hexdigest()


def _look(top: bytes, path: bytes, plain: dict[bytes, bool]) -> tuple[bytes, bytes]:
    if not _plain_folder(top, path.rpartition(b"/")[0], plain):
        return b"absent", b""
    whole = top + b"/" + path
    try:
        status = os.lstat(whole)
    except (FileNotFoundError, NotADirectoryError):
        return b"absent", b""
    if stat.S_ISLNK(status.st_mode):
        return b"120000", hashlib.sha256(os.readlink(whole)).hexdigest().encode()  # noqa: PTH115
    if stat.S_ISREG(status.st_mode):
        mode = b"100755" if status.st_mode & stat.S_IXUSR else b"100644"
        return mode, file_digest(whole).encode()
    return (b"folder", b"") if stat.S_ISDIR(status.st_mode) else (b"special", b"")


def _plain_folder(top: bytes, folder: bytes, plain: dict[bytes, bool]) -> bool:
    """Whether no component of the folder is a link; each is looked at once."""
    if folder not in plain:
        above = _plain_folder(top, folder.rpartition(b"/")[0], plain)
        plain[folder] = above and _is_folder(top + b"/" + folder)
    return plain[folder]


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def file_digest(path: bytes | int) -> str:
    """sha256 of a regular file, given by path (its last part is not followed) or by an open descriptor."""
    handle = path if isinstance(path, int) else os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb", buffering=0) as file:
        digest = hashlib.sha256()
        while block := file.read(_BLOCK):
            digest.update(block)
        return digest.hexdigest()
