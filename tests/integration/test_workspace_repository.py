from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from scheduler.errors import Infrastructure, Refusal
from scheduler.git import Git, require_git, without_password
from scheduler.repository import is_url, resolve
from tests.workspace_kit import Repo, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "user", {"a.txt": "a\n", "src/b.py": "b\n", ".gitignore": "*.log\n"})


def test_a_path_relative_to_the_plan_file_and_a_base(repo: Repo) -> None:
    first = repo.head()
    repo.git("tag", "-a", "-m", "tag", "v1")
    second = repo.commit({"a.txt": "2\n"})
    assert resolve("user", "HEAD", repo.path.parent).commit == second
    found = resolve(".", "v1", repo.path / "src")  # below the top folder
    assert (found.repo, found.commit, found.warnings) == (str(repo.path), first, ())
    assert resolve(f"file://{repo.path}", "main~1", Path("/")).commit == first
    assert resolve(str(repo.path), second[:10], Path("/")).commit == second


def test_a_linked_work_tree_and_a_bare_repository(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    assert resolve("linked", "HEAD", tmp_path).repo == str(tmp_path / "linked")
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "bare.git"))
    assert resolve("bare.git", "main", tmp_path).repo == str(tmp_path / "bare.git")


def refused(repo: str, base: str, folder: Path) -> tuple[str, str]:
    with pytest.raises(Refusal) as caught:
        resolve(repo, base, folder)
    return caught.value.message, caught.value.hint


def test_what_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert refused("plain", "HEAD", tmp_path) == (
        f"{tmp_path}/plain is not a git repository",
        "Correct `repo`, or make it one: `git init`, then a first commit.",
    )
    assert refused("nowhere", "HEAD", tmp_path)[0] == f"repo: {tmp_path}/nowhere is not a folder"


def test_a_repository_without_commits(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    Repo(tmp_path / "new").git("init", "-q")
    assert refused("new", "HEAD", tmp_path) == (
        f"{tmp_path}/new has no commits",
        "Make a first commit: `git add -A && git commit -m 'first commit'`.",
    )


def test_a_branch_without_commits_beside_others(repo: Repo) -> None:
    repo.git("switch", "-q", "--orphan", "fresh")
    message, hint = refused(".", "HEAD", repo.path)
    assert message == f"the branch fresh of {repo.path} has no commits"
    assert "Make a first commit there" in hint


@pytest.mark.parametrize("base", ["relase", "--all", "main:a.txt"])
def test_a_missing_base_lists_near_names(repo: Repo, base: str) -> None:
    repo.git("branch", "release")
    message, hint = refused(".", base, repo.path)
    assert message == f"{repo.path} has no commit called {base!r}"
    assert "release" in hint


def test_a_shallow_clone(repo: Repo, tmp_path: Path) -> None:
    repo.commit({"a.txt": "2\n"})
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.path}", str(tmp_path / "shallow"))
    message, hint = refused("shallow", "HEAD", tmp_path)
    assert message == f"{tmp_path}/shallow is a shallow clone; results could not be based on it"
    assert hint == "Run `git fetch --unshallow` there, then go on."


def test_a_branch_in_the_way(repo: Repo) -> None:
    repo.git("branch", "dagward")
    message, hint = refused(".", "HEAD", repo.path)
    assert message.endswith("has a branch `dagward`, so git allows no branches `dagward/...`")
    assert "git branch -m dagward" in hint


def test_uncommitted_changes_are_counted_and_nothing_is_touched(repo: Repo, tmp_path: Path) -> None:
    (repo.path / "x.log").write_text("ignored")
    assert resolve(".", "HEAD", repo.path).warnings == ()
    (repo.path / "new file").write_text("x")
    assert resolve(".", "HEAD", repo.path).warnings == ("uncommitted changes in 1 file are not part of this run",)
    (repo.path / "a.txt").write_text("changed\n")
    repo.git("mv", "src/b.py", "src/c.py")
    ran = tmp_path / "ran"
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {ran}\n")
    monitor.chmod(0o755)
    repo.git("config", "core.fsmonitor", str(monitor))
    before = {path: path.stat().st_mtime_ns for path in repo.path.rglob("*")}
    found = resolve(".", "HEAD", repo.path)
    assert found.warnings == ("uncommitted changes in 4 files are not part of this run",)
    assert {path: path.stat().st_mtime_ns for path in repo.path.rglob("*")} == before
    assert not ran.exists()


def test_git_of_the_outside_has_no_say(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[core]\n\tbare = nonsense\n")
    assert resolve(".", "HEAD", repo.path).commit == Git(cwd=repo.path).text("rev-parse", "HEAD")


# Another user cannot be had otherwise: chown to one needs root, and everyone else meets the refusal by hand.
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user(repo: Repo) -> None:
    for path in (repo.path, repo.path / ".git"):
        os.chown(path, 65534, 65534)
    message, hint = refused(".", "HEAD", repo.path)
    assert message == f"{repo.path} belongs to another user"
    assert "Clone it" in hint


def test_no_password_in_a_message() -> None:
    assert without_password("a https://user:pw@host/x ssh://u@h b@c") == "a https://***@host/x ssh://***@h b@c"


def fake_git(folder: Path, says: str) -> None:
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / "git").chmod(stat.S_IRWXU)


def test_git_missing_or_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_git()
    fake_git(tmp_path / "old", "git version 2.37.9 (Vendor)")
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}{os.pathsep}/usr/bin:/bin")
    with pytest.raises(Infrastructure, match=r"git 2\.37\.9 is too old") as caught:
        resolve(".", "HEAD", tmp_path)
    assert caught.value.hint == "Install git 2.38 or newer."
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    with pytest.raises(Infrastructure, match="git is not on PATH"):
        require_git()


def test_addresses() -> None:
    assert is_url("https://example.org/x.git")
    assert is_url("git@example.org:x/y.git")
    assert is_url("example.org:x/y.git")
    assert not is_url("/a/b:c")
    assert not is_url("../x")
    assert not is_url(".")


def test_an_address_that_runs_a_program_or_does_not_answer(tmp_path: Path) -> None:
    for address in (f"ext::sh -c 'touch {tmp_path}/ran'", "ssh://127.0.0.1:1/x"):
        with pytest.raises((Infrastructure, Refusal)):
            resolve(address, "main", tmp_path)
    assert not (tmp_path / "ran").exists()
