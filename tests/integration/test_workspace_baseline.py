"""The spare tree and single files of a base."""

from __future__ import annotations

from pathlib import Path

from tests.workspace_kit import make_repo, result_of
from workers.workspace import Mirror, Slot


def test_the_spare_tree_stands_beside_the_check_tree(tmp_path: Path, state: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a": "1\n", "p": "kept\n", "d/ b\n": "2\n"})
    base = repo.head()
    mirror = Mirror(state, str(repo.path))
    mirror.ensure(base)
    with Slot(state, "slot-1") as slot:
        done = result_of(slot, mirror, base, "t", {"a": "3\n", "p": "changed\n", "d/ b\n": None})
        check = slot.check(mirror, done.commit)
        spare = slot.spare(mirror, base)
        assert ((check.path / "a").read_text(), (spare / "a").read_text()) == ("3\n", "1\n")
        assert (spare / "d/ b\n").read_text() == "2\n"
        (spare / "left").write_text("over")
        again = slot.spare(mirror, done.commit, ["p"], base)
        assert again == spare
        assert sorted(each.name for each in spare.iterdir()) == [".git", "a", "p"]
        assert ((spare / "a").read_text(), (spare / "p").read_text()) == ("3\n", "kept\n")
        assert (check.path / "p").read_text() == "changed\n"


def test_files_of_a_base_are_read_from_the_mirror(tmp_path: Path, state: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a": "1\n", "d/ü *": "2\n"})
    (repo.path / "link").symlink_to("a")
    base = repo.commit({}, "link")
    mirror = Mirror(state, str(repo.path))
    mirror.ensure(base)
    assert mirror.read(base, "a") == b"1\n"
    assert mirror.read(base, "d/ü *") == b"2\n"
    for path in ("d", "link", "gone", "*", "a/b"):
        assert mirror.read(base, path) is None
