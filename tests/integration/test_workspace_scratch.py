from __future__ import annotations

import concurrent.futures
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.errors import Infrastructure
from scheduler.model import Ancestor
from workers.workspace import (
    BadOutputs,
    Slot,
    Snapshots,
    Unsafe,
    empty_folder,
    open_beneath,
    read_beneath,
    read_outputs,
    remove_tree,
    write_inputs,
)
from workers.workspace.beneath import DEEPEST


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def store(state: Path) -> Snapshots:
    return Snapshots(state)


@pytest.fixture
def slot(state: Path) -> Iterator[Slot]:
    with Slot(state, "w1") as made:
        yield made


def fill(folder: Path) -> Path:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "ünï\ncode").write_bytes(bytes(range(256)))
    (folder / "run me").write_text("#!/bin/sh\n")
    (folder / "run me").chmod(0o755)
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "empty").mkdir()
    return folder


def test_a_snapshot_is_named_by_its_content_and_comes_back_whole(store: Snapshots, slot: Slot, tmp_path: Path) -> None:
    work = fill(slot.scratch_work())
    digest = store.store(work)
    other = fill(empty_folder(tmp_path / "other"))
    os.utime(other / "run me", (1, 1))
    assert store.store(other) == digest
    tree = slot.scratch_check(store, digest)
    assert store.store(tree.path) == digest
    assert (tree.path / "deep" / "er" / "ünï\ncode").read_bytes() == bytes(range(256))
    assert (tree.path / "run me").stat().st_mode & 0o777 == 0o755
    assert (tree.path / "link").readlink() == Path("/etc/passwd")
    assert (tree.path / "empty").is_dir()
    before = tree.digest()
    (tree.path / "cache").write_text("x")
    assert tree.digest() == before
    (tree.path / "run me").chmod(0o644)
    assert tree.digest() != before
    assert store.store(tree.path) != digest


def test_a_copy_that_is_changed_leaves_the_store_alone(store: Snapshots, slot: Slot, tmp_path: Path) -> None:
    digest = store.store(fill(slot.scratch_work()))
    tree = slot.scratch_check(store, digest)
    (tree.path / "run me").write_text("changed")
    store.checkout(digest, empty_folder(tmp_path / "again"))
    assert (tmp_path / "again" / "run me").read_text() == "#!/bin/sh\n"


def test_scratch_work_is_empty_for_each_attempt(slot: Slot) -> None:
    work = slot.scratch_work()
    (work / "x").write_text("x")
    assert list(slot.scratch_work().iterdir()) == []


def test_changes_of_snapshots(store: Snapshots, slot: Slot) -> None:
    work = slot.scratch_work()
    empty = store.store(work)
    (work / "a").write_text("1")
    (work / "b").write_text("1")
    (work / "folder").mkdir()
    first = store.store(work)
    (work / "a").write_text("2")
    (work / "b").unlink()
    (work / "c").symlink_to("a")
    second = store.store(work)
    assert store.changes(None, empty) == []
    assert [(one.path, one.kind, one.mode) for one in store.changes(None, first)] == [
        ("a", "added", "100644"),
        ("b", "added", "100644"),
    ]
    assert [(one.path, one.kind) for one in store.changes(first, second)] == [
        ("a", "modified"),
        ("b", "deleted"),
        ("c", "added"),
    ]


def test_special_files_and_names_that_are_not_utf8_are_refused(store: Snapshots, slot: Slot) -> None:
    work = slot.scratch_work()
    os.mkfifo(work / "pipe")
    with pytest.raises(Unsafe, match="pipe is a socket, pipe or device"):
        store.store(work)
    (work / "pipe").unlink()
    bad = os.fsencode(work) + b"/bad-\xff"
    Path(os.fsdecode(bad)).write_text("x")
    with pytest.raises(Unsafe, match=r"bad-\\xff: its name or target is not UTF-8"):
        store.store(work)


def test_rights_that_the_agent_took_away_are_taken_back(store: Snapshots, slot: Slot) -> None:
    work = fill(slot.scratch_work())
    digest = store.store(work)
    (work / "deep" / "er" / "ünï\ncode").chmod(0o000)
    (work / "deep").chmod(0o000)
    (work / "run me").chmod(0o111)
    assert store.store(work) == digest


def test_a_link_in_the_place_of_the_work_folder_is_not_followed(store: Snapshots, slot: Slot, tmp_path: Path) -> None:
    work = slot.scratch_work()
    remove_tree(work)
    work.symlink_to(tmp_path)
    with pytest.raises(Unsafe, match="work is no folder any more"):
        store.store(work)


def test_damage_in_the_store_is_noticed(store: Snapshots, slot: Slot, state: Path, tmp_path: Path) -> None:
    (slot.scratch_work() / "a").write_text("content")
    digest = store.store(slot.work_path)
    with pytest.raises(Infrastructure, match="snapshot eeeeeeeeeeee is not on this host"):
        store.items("e" * 64)
    (held,) = [path for path in (state / "snapshots" / "objects").rglob("*") if path.is_file()]
    held.chmod(0o600)
    held.write_text("forged!")
    with pytest.raises(Infrastructure, match="is damaged on this host's disk"):
        store.checkout(digest, empty_folder(tmp_path / "out"))
    held.unlink()
    with pytest.raises(Infrastructure, match="is not on this host's disk"):
        store.checkout(digest, empty_folder(tmp_path / "out"))


def test_several_processes_store_at_once(store: Snapshots, tmp_path: Path) -> None:
    folders = []
    for number in range(6):
        folder = fill(empty_folder(tmp_path / f"f{number}"))
        (folder / "own").write_text(str(number % 2))
        folders.append(folder)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        digests = list(pool.map(store.store, folders))
    assert digests[0::2] == [digests[0]] * 3
    assert digests[1::2] == [digests[1]] * 3
    assert digests[0] != digests[1]


def test_inputs_hold_the_direct_blockers_read_only(store: Snapshots, slot: Slot, tmp_path: Path) -> None:
    digest = store.store(fill(slot.scratch_work()))
    ancestors = [
        Ancestor(task="far", digest=digest, outputs={"n": 1}),
        Ancestor(task="near", digest=digest, outputs={"text": "ü"}, direct=True),
        Ancestor(task="each.0", digest=digest, direct=True),
    ]
    into = write_inputs(tmp_path / "inputs", ancestors, store)
    assert sorted(path.name for path in into.iterdir()) == ["each.0", "near"]
    assert json.loads((into / "near" / "outputs.json").read_text()) == {"text": "ü"}
    assert (into / "near" / "files" / "run me").read_text() == "#!/bin/sh\n"
    paths = [into, *(path for path in into.rglob("*") if not path.is_symlink())]
    assert [path for path in paths if path.stat().st_mode & 0o222] == []
    plain = write_inputs(into, ancestors)  # again, over the read-only folder
    assert [path.name for path in (plain / "near").iterdir()] == ["outputs.json"]
    remove_tree(into)
    assert not into.exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[1]", "the outputs are not a JSON object"),
        (b"{", "the outputs are not JSON"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": 1e999}', "1e999 is not a JSON number"),
        (b'{"a": "\\ud800"}', "the outputs are not JSON"),
        (b'{"a": "\xff"}', "the outputs are not JSON"),
        (b"[" * 100_000, "the outputs are nested deeper than 100 levels"),
        (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", "the outputs are nested deeper than 100 levels"),
        (b'{"a": ' + b"9" * 401 + b"}", "a number of 401 digits; write it as a string"),
        (b'{"a": "' + b"x" * 1_000_000 + b'"}', "out.json is larger than 1000000 bytes"),
    ],
)
def test_bad_outputs_are_refused(tmp_path: Path, text: bytes, reason: str) -> None:
    (tmp_path / "out.json").write_bytes(text)
    with pytest.raises(Unsafe) as caught:
        read_outputs(tmp_path, "out.json")
    assert reason in caught.value.message


def test_outputs_may_be_absent_or_empty_but_not_a_link(tmp_path: Path) -> None:
    assert read_outputs(tmp_path, "out.json") == {}
    (tmp_path / "out.json").write_text("\n")
    assert read_outputs(tmp_path, "out.json") == {}
    (tmp_path / "out.json").write_text('{"a": [1, "b"]}')
    assert read_outputs(tmp_path, "out.json") == {"a": [1, "b"]}
    (tmp_path / "linked.json").symlink_to(tmp_path / "out.json")
    with pytest.raises(Unsafe, match=r"linked.json is a symbolic link"):
        read_outputs(tmp_path, "linked.json")
    assert issubclass(BadOutputs, Unsafe)


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "", ".", "a\0b"])
def test_paths_that_leave_the_folder_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(Unsafe, match="is not a path inside the workspace"):
        open_beneath(tmp_path, path)


def test_links_folders_and_special_files_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "real" / "f").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (root / "out").symlink_to(tmp_path)
    (root / "in").symlink_to("real")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "sock"))
        for path in ("out/secret", "in/f", "pipe", "sock", "real"):
            with pytest.raises(Unsafe):
                open_beneath(root, path)
    with pytest.raises(FileNotFoundError):
        open_beneath(root, "real/f/below")
    with pytest.raises(FileNotFoundError):
        open_beneath(root, "nowhere/f")
    assert read_beneath(root, "./real//f", 10) == b"inside"


def test_removing_follows_no_link_and_needs_no_rights(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    tree = tmp_path / "tree"
    (tree / "locked" / "in").mkdir(parents=True)
    (tree / "locked" / "in" / "f").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "locked" / "in").chmod(0o000)
    (tree / "locked").chmod(0o555)
    os.mkfifo(tree / "pipe")
    here = os.open(tree, os.O_RDONLY)
    for _ in range(3 * DEEPEST):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    (tmp_path / "store").mkdir()
    with pytest.raises(Unsafe, match=f"nested more than {DEEPEST} deep"):
        Snapshots(tmp_path / "store").store(tree)
    remove_tree(tree)
    remove_tree(tree)
    assert not tree.exists()
    (tmp_path / "one").symlink_to(outside)
    remove_tree(tmp_path / "one")
    assert (outside / "precious").read_text() == "x"
