"""Content-addressed snapshots of folders, for plans without a repository.

Objects lie under `<state>/snapshots/objects/`, manifests under `manifests/`, both named by the sha256 of what is in
them. Links are stored as links and never followed. Must not know tasks.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Protocol

from scheduler.errors import Infrastructure
from workers.workspace.beneath import Entry, Unsafe, is_folder, restore_rights, text, walk
from workers.workspace.changes import ABSENT, SYMLINK, Change

FILE = "100644"
PROGRAM = "100755"
FOLDER = "040000"  # only an empty one has an entry of its own
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a manifest: mode as git writes it, and the sha256 of the content or the target of a link."""

    mode: str
    content: str


class Snapshots:
    """The store of one host. Several processes may use it at once."""

    def __init__(self, state: Path) -> None:
        self._objects = state / "snapshots" / "objects"
        self._manifests = state / "snapshots" / "manifests"

    def store(self, folder: Path) -> str:
        """Keep a copy of the folder; answers its digest. Raises `Unsafe` for sockets, pipes and devices, and for
        names that are not UTF-8."""
        for place in (self._objects, self._manifests):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not is_folder(folder):
            raise Unsafe(f"{folder.name} is no folder any more", hint="Leave the work folder itself where it is.")
        try:
            items = self._gather(folder)
        except PermissionError:
            restore_rights(folder)
            items = self._gather(folder)
        data = _encode(items)
        digest = hashlib.sha256(data).hexdigest()
        self._put(self._manifests / digest, data)
        return digest

    def items(self, digest: str) -> Mapping[str, Item]:
        """The manifest: path -> item, sorted by path."""
        try:
            data = (self._manifests / digest).read_bytes()
        except FileNotFoundError:
            hint = "Run all workers of this plan on one host and with one state folder."
            raise Infrastructure(f"snapshot {digest[:12]} is not on this host", hint=hint) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise Infrastructure(f"snapshot {digest[:12]} is damaged on this host's disk")
        return {path: Item(mode, content) for path, mode, content in json.loads(data)}

    def tracked(self, digest: str) -> tuple[bytes, ...]:
        """The paths of a snapshot."""
        return tuple(path.encode() for path in self.items(digest))

    def checkout(self, digest: str, into: Path) -> None:
        """Write a fresh copy into the empty folder `into`; every content is compared with its hash."""
        for path, item in self.items(digest).items():
            place = into / path
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if item.mode == FOLDER:
                place.mkdir(mode=0o700)
            elif item.mode == SYMLINK:
                place.symlink_to(item.content)
            else:
                self._write(item, place)

    def changes(self, base: str | None, digest: str) -> list[Change]:
        """Every file or link in which a snapshot differs from another, or from nothing; sorted by path."""
        old = self._files(base) if base is not None else {}
        new = self._files(digest)
        absent = Item(ABSENT, "")
        paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
        pairs = [(path, old.get(path, absent), new.get(path, absent)) for path in paths]
        return [Change(path.encode(), before.mode, after.mode, before.content) for path, before, after in pairs]

    def _gather(self, folder: Path) -> dict[str, Item]:
        items: dict[str, Item] = {}
        for entry in walk(folder):
            path = _name(entry)
            items.pop(path.rpartition("/")[0], None)  # its folder is not empty
            items[path] = self._item(entry, path)
        return items

    def _files(self, digest: str) -> dict[str, Item]:
        return {path: item for path, item in self.items(digest).items() if item.mode != FOLDER}

    def _item(self, entry: Entry, path: str) -> Item:
        mode = entry.status.st_mode
        if stat.S_ISDIR(mode):
            return Item(FOLDER, "")
        if stat.S_ISLNK(mode):
            return Item(SYMLINK, _utf8(os.readlink(entry.name, dir_fd=entry.dir_fd), path))
        if stat.S_ISREG(mode):
            return Item(PROGRAM if mode & stat.S_IXUSR else FILE, self._keep(entry))
        raise Unsafe(f"{path} is a socket, pipe or device", hint="Remove it before the task ends.")

    def _keep(self, entry: Entry) -> str:
        """Have the file in the store. One that is there already is read once and not written."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with os.fdopen(os.open(entry.name, flags, dir_fd=entry.dir_fd), "rb", buffering=0) as source:
            known = _pour(source)
            if self._object(known).exists():
                return known
            source.seek(0)
            with tempfile.NamedTemporaryFile(dir=self._objects, delete=False) as copy:
                content = _pour(source, copy)  # named by what was copied, whatever was read before
        return self._settle(Path(copy.name), self._object(content))

    def _settle(self, copy: Path, place: Path) -> str:
        if place.exists():
            copy.unlink()
        else:
            place.parent.mkdir(exist_ok=True, mode=0o700)
            copy.chmod(0o400)
            copy.replace(place)
        return place.name

    def _put(self, place: Path, data: bytes) -> None:
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as copy:
            copy.write(data)
        self._settle(Path(copy.name), place)

    def _object(self, content: str) -> Path:
        return self._objects / content[:2] / content

    def _write(self, item: Item, place: Path) -> None:
        try:
            with self._object(item.content).open("rb", buffering=0) as source, place.open("xb") as copy:
                content = _pour(source, copy)
        except FileNotFoundError:
            raise Infrastructure(f"a file of the snapshot, {place.name}, is not on this host's disk") from None
        if content != item.content:
            raise Infrastructure(f"a file of the snapshot, {place.name}, is damaged on this host's disk")
        place.chmod(0o755 if item.mode == PROGRAM else 0o644)


class _Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


def _pour(source: FileIO, into: _Sink | None = None) -> str:
    """Read to the end, write it when asked, and answer the sha256 of what went through."""
    digest = hashlib.sha256()
    while block := source.read(_BLOCK):
        digest.update(block)
        if into is not None:
            into.write(block)
    return digest.hexdigest()


def _encode(items: Mapping[str, Item]) -> bytes:
    rows = [[path, items[path].mode, items[path].content] for path in sorted(items)]
    return json.dumps(rows, ensure_ascii=True, separators=(",", ":")).encode()


def _name(entry: Entry) -> str:
    return _utf8(entry.path, text(entry.path))


def _utf8(raw: bytes, shown: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        hint = "Give it a name in UTF-8."
        raise Unsafe(f"{shown}: its name or target is not UTF-8", hint=hint) from None
