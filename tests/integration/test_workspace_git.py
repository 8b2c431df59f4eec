from __future__ import annotations

import concurrent.futures
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scheduler.errors import Infrastructure, Refusal
from scheduler.git import Git
from scheduler.model import Scope
from tests.workspace_kit import WHEN, Repo, ancestor, make_repo, result_of
from workers.scope import violations
from workers.workspace import (
    Integrated,
    MergeConflict,
    Mirror,
    ResultRefused,
    Slot,
    base_for,
    commit_result,
    integrate,
    publish,
    remove_tree,
)

LINES = "".join(f"line {n}\n" for n in range(20))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(
        tmp_path / "user",
        {"a.txt": "a\n", "src/b.py": LINES, ".gitignore": "*.log\nbuild/\n", "tests/t.py": "ok\n"},
    )


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def mirror(repo: Repo, state: Path) -> Mirror:
    made = Mirror(state, str(repo.path))
    made.ensure(repo.head())
    return made


@pytest.fixture
def slot(state: Path) -> Iterator[Slot]:
    with Slot(state, "w1") as made:
        yield made


def files_of(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if (path.is_file() or path.is_symlink()) and ".git" not in path.relative_to(folder).parts[:1]
    }


BASE_FILES = {"a.txt", "src/b.py", ".gitignore", "tests/t.py"}


def test_a_mirror_fetches_once_and_needs_the_repository_no_more(repo: Repo, mirror: Mirror) -> None:
    head = repo.head()
    repo.path.rename(repo.path.with_name("moved"))
    mirror.ensure(head)
    assert mirror.has(head)


def test_a_commit_that_no_branch_reaches_can_be_a_base(repo: Repo, mirror: Mirror) -> None:
    lost = repo.commit({"x": "1"})
    repo.git("reset", "-q", "--hard", "HEAD~1")
    mirror.ensure(lost)
    assert mirror.has(lost)


def test_a_missing_commit_and_a_missing_repository_are_infrastructure(tmp_path: Path, mirror: Mirror) -> None:
    with pytest.raises(Infrastructure, match="has no commit ffffffffffff"):
        mirror.ensure("f" * 40)
    with pytest.raises(Infrastructure, match=r"does not appear to be a git repository|not exist"):
        Mirror(tmp_path / "other", str(tmp_path / "nowhere")).ensure("f" * 40)


def test_many_workers_make_the_mirror_at_once(repo: Repo, tmp_path: Path) -> None:
    commits = [repo.commit({"n": str(n)}) for n in range(6)]
    script = (
        "import sys; from pathlib import Path; from workers.workspace import Mirror;"
        "m = Mirror(Path(sys.argv[1]), sys.argv[2]); [m.ensure(c) for c in sys.argv[3:]]"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "fresh"), str(repo.path)]
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root}
    running = [subprocess.Popen([*argv, *commits[n:], *commits[:n]], env=env) for n in range(4)]
    assert [process.wait(60) for process in running] == [0, 0, 0, 0]
    made = Mirror(tmp_path / "fresh", str(repo.path))
    assert all(made.has(commit) for commit in commits)


def test_a_work_tree_is_exactly_the_base_and_git_works_in_it(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    work = slot.work(mirror, repo.head())
    assert files_of(work) == BASE_FILES
    agent = Repo(work)
    assert agent.git("status", "--porcelain") == ""
    assert agent.git("log", "--format=%s") == "first"
    (work / "a.txt").write_text("changed\n")
    assert agent.git("diff", "--name-only") == "a.txt"
    agent.git("commit", "-qam", "by the agent")
    assert repo.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_nothing_of_an_attempt_is_left_for_the_next(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    work = slot.work(mirror, repo.head())
    (work / "a.txt").unlink()
    (work / "src" / "b.py").chmod(0o755)
    (work / "ignored.log").write_text("x")
    (work / "build").mkdir()
    (work / "build" / "o").write_text("x")
    (work / "empty").mkdir()
    subprocess.run(["git", "init", "-q", str(work / "nested")], check=True)
    (work / "nested" / "f").write_text("x")
    remove_tree(work / "tests")
    (work / "tests").symlink_to("/")
    again = slot.work(mirror, repo.head())
    assert again == work
    assert files_of(work) == BASE_FILES
    assert not (work / "empty").exists()
    assert not (work / "nested").exists()
    assert not (work / "src" / "b.py").stat().st_mode & 0o111


@pytest.mark.parametrize("damage", ["removed", "link", "file", "index", "lock", "note"])
def test_a_damaged_tree_is_made_anew(repo: Repo, mirror: Mirror, slot: Slot, tmp_path: Path, damage: str) -> None:
    work = slot.work(mirror, repo.head())
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    if damage in ("removed", "link", "file"):
        remove_tree(work)
    if damage == "link":
        work.symlink_to(outside)
    elif damage == "file":
        work.write_text("x")
    elif damage == "index":
        (slot.folder / "work.index").write_bytes(b"nonsense")
    elif damage == "lock":
        (slot.folder / "work.index.lock").write_bytes(b"")
    elif damage == "note":
        (slot.folder / "work.json").write_text("{")
    assert files_of(slot.work(mirror, repo.head())) == BASE_FILES
    assert (outside / "precious").read_text() == "x"


def test_one_slot_serves_two_repositories(tmp_path: Path, repo: Repo, mirror: Mirror, slot: Slot, state: Path) -> None:
    other = make_repo(tmp_path / "other", {"o.txt": "o\n", "a.txt": "another\n"})
    second = Mirror(state, str(other.path))
    second.ensure(other.head())
    slot.work(mirror, repo.head())
    assert files_of(slot.work(second, other.head())) == {"o.txt", "a.txt"}
    assert (slot.work_path / "a.txt").read_text() == "another\n"
    assert files_of(slot.work(mirror, repo.head())) == BASE_FILES


def test_a_slot_belongs_to_one_process(state: Path, slot: Slot) -> None:
    with pytest.raises(Infrastructure, match="the worker slot w1 is in use by another process"):
        Slot(state, "w1", patience=0)
    other = Slot(state, "w2", patience=0)
    other.close()
    Slot(state, "w2", patience=0).close()


def test_a_killed_owner_gives_its_slot_free(state: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from workers.workspace import Slot;"
        "own = Slot(Path(sys.argv[1]), 'w9'); print('held', flush=True); time.sleep(60)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    argv = [sys.executable, "-c", script, str(state)]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(Infrastructure):
            Slot(state, "w9", patience=0)
        owner.kill()
        Slot(state, "w9", patience=20).close()


def test_a_result_is_one_commit_on_its_base(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    base = repo.head()
    done = result_of(slot, mirror, base, "t", {"a.txt": "new\n", "n/new file\n.txt": "x", "tests/t.py": None})
    assert [(one.path, one.kind, one.mode) for one in done.changes] == [
        ("a.txt", "modified", "100644"),
        ("n/new file\n.txt", "added", "100644"),
        ("tests/t.py", "deleted", "000000"),
    ]
    shown = mirror.git.text("show", "-s", "--format=%P|%an <%ae>|%cn|%at|%B", done.commit)
    assert shown.rstrip() == (
        f"{base}|dagward <dagward@localhost>|dagward|1700000000|t\n\n"
        "Dagward-Plan: p-abcde\nDagward-Task: t\nDagward-Attempt: 1"
    )
    assert result_of(slot, mirror, base, "t", {"a.txt": "new\n", "n/new file\n.txt": "x", "tests/t.py": None}) == done
    ref = mirror.keep("p-abcde", "t", 1, done.commit)
    assert ref == "refs/dagward/p-abcde/t/1"
    assert mirror.git.text("rev-parse", ref) == done.commit


def test_no_change_is_the_base_itself(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    slot.work(mirror, repo.head())
    (slot.work_path / "ignored.log").write_text("x")
    os.utime(slot.work_path / "a.txt")
    done = commit_result(slot, mirror, repo.head(), "m", WHEN)
    assert (done.commit, done.changes, done.submodules) == (repo.head(), (), ())


def test_odd_files_are_kept_as_they_are(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    work = slot.work(mirror, repo.head())
    (work / "bin").write_bytes(bytes(range(256)) + b"\r\n")
    (work / "ünï codé").write_text("x")
    (work / "back\\slash").write_text("x")
    (work / ":(top)*").write_text("x")
    Path(os.fsdecode(os.fsencode(work) + b"/not-utf8-\xff")).write_text("x")
    (work / "link").symlink_to("/etc/passwd")
    (work / "src" / "b.py").chmod(0o755)
    (work / "a.txt").rename(work / "c.txt")
    (work / "nothing").mkdir()
    done = commit_result(slot, mirror, repo.head(), "m", WHEN)
    assert {one.path: one.mode for one in done.changes} == {
        ":(top)*": "100644",
        "a.txt": "000000",
        "back\\slash": "100644",
        "bin": "100644",
        "c.txt": "100644",
        "link": "120000",
        "not-utf8-\\xff": "100644",
        "src/b.py": "100755",
        "ünï codé": "100644",
    }
    check = slot.check(mirror, done.commit)
    assert (check.path / "bin").read_bytes() == bytes(range(256)) + b"\r\n"
    assert (check.path / "link").readlink() == Path("/etc/passwd")
    assert "not-utf8-\udcff" in {path.name for path in check.path.iterdir()}


def test_a_folder_replaced_by_a_file_and_back(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    work = slot.work(mirror, repo.head())
    remove_tree(work / "src")
    (work / "src").write_text("a file now\n")
    done = commit_result(slot, mirror, repo.head(), "m", WHEN)
    assert {one.path: one.kind for one in done.changes} == {"src": "added", "src/b.py": "deleted"}
    assert files_of(slot.work(mirror, repo.head())) == BASE_FILES


def test_line_ends_that_git_would_change_are_no_change_of_the_agent(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    repo.commit({"dos.txt": "x\r\ny\r\n", "dos2.txt": "x\r\n"})
    repo.write({".gitattributes": "*.txt text\n"})
    repo.git("add", ".gitattributes")
    repo.git("commit", "-q", "-m", "attributes")
    base = repo.head()
    mirror.ensure(base)
    assert repo.git("diff", "--name-only", "HEAD~1", "HEAD") == ".gitattributes"
    for text in ("1\r\n", "2\r\n"):
        work = slot.work(mirror, base)
        assert (work / "dos.txt").read_bytes() == b"x\r\ny\r\n"
        os.utime(work / "dos.txt")
        (work / "dos2.txt").write_bytes(text.encode())
        done = commit_result(slot, mirror, base, "m", WHEN)
        assert done.paths == ("dos2.txt",)
        assert slot.check(mirror, done.commit).digest() == slot.check(mirror, done.commit).digest()


def test_a_protected_folder_replaced_by_a_file_comes_back(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    base = repo.head()
    work = slot.work(mirror, base)
    remove_tree(work / "tests")
    (work / "tests").write_text("a file now")
    done = commit_result(slot, mirror, base, "m", WHEN)
    tree = slot.check(mirror, done.commit, ["tests/**"], base)
    assert (tree.path / "tests" / "t.py").read_text() == "ok\n"


def test_what_the_agent_did_to_its_git_has_no_effect(repo: Repo, mirror: Mirror, slot: Slot, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    work = slot.work(mirror, repo.head())
    agent = Repo(work)
    evil = work / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    evil.chmod(0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "diff.x.textconv", "core.sshCommand"):
        agent.git("config", key, str(evil))
    agent.git("config", "filter.x.required", "true")
    agent.git("config", "core.worktree", str(tmp_path))
    hooks = work / ".git" / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "post-index-change", "reference-transaction", "post-checkout"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / name).chmod(0o755)
    (work / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (work / ".git" / "info" / "exclude").write_text("*\n")
    (work / "a.txt").write_text("changed\n")
    done = commit_result(slot, mirror, repo.head(), "m", WHEN)
    assert set(done.paths) == {".gitattributes", "a.txt", "evil.sh"}
    slot.check(mirror, done.commit)
    slot.work(mirror, done.commit)
    assert base_for(mirror, repo.head(), [ancestor("t", repo.head(), done)]) == done.commit
    assert not ran.exists()


def test_index_flags_and_a_stolen_git_folder_hide_no_change(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    work = slot.work(mirror, repo.head())
    agent = Repo(work)
    agent.git("update-index", "--assume-unchanged", "a.txt")
    agent.git("update-index", "--skip-worktree", "src/b.py")
    before = (work / "a.txt").stat()
    (work / "a.txt").write_text("b\n")  # same size, same time
    os.utime(work / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    (work / "src" / "b.py").write_text("x")
    remove_tree(work / ".git")
    (work / ".git").write_text("gitdir: /nowhere\n")
    assert commit_result(slot, mirror, repo.head(), "m", WHEN).paths == ("a.txt", "src/b.py")


def test_a_lost_index_loses_no_file(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    base = repo.commit({"kept.log": "tracked although ignored\n"})
    mirror.ensure(base)
    slot.work(mirror, base)
    (slot.work_path / "a.txt").write_text("new\n")
    (slot.folder / "work.index").unlink()
    assert commit_result(slot, mirror, base, "m", WHEN).paths == ("a.txt",)


def test_nested_repositories_are_named_and_left_out(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    work = slot.work(mirror, repo.head())
    make_repo(work / "vendor" / "li*b", {"x": "1"})
    subprocess.run(["git", "init", "-q", str(work / "unborn")], check=True)
    subprocess.run(["git", "init", "-q", str(work / "build" / "ignored")], check=True)
    (work / "unborn" / "f").write_text("x")
    (work / "a.txt").write_text("new\n")
    done = commit_result(slot, mirror, repo.head(), "m", WHEN)
    assert done.submodules == ("unborn", "vendor/li*b")
    assert done.paths == ("a.txt",)
    assert [one.rule for one in violations(done.paths, Scope(), done.submodules)] == ["submodule", "submodule"]


def test_a_submodule_of_the_base_stays_and_moving_it_is_named(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    linked = repo.head()
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{linked},sub")
    repo.git("commit", "-qm", "submodule")
    base = repo.head()
    mirror.ensure(base)
    work = slot.work(mirror, base)
    assert list((work / "sub").iterdir()) == []
    (work / "a.txt").write_text("new\n")
    (work / "sub" / "junk").write_text("x")
    done = commit_result(slot, mirror, base, "m", WHEN)
    assert (done.paths, done.submodules) == (("a.txt",), ())
    work = slot.work(mirror, base)
    assert list((work / "sub").iterdir()) == []
    (work / "sub").rmdir()
    make_repo(work / "sub", {"x": "1"})
    assert commit_result(slot, mirror, base, "m", WHEN).submodules == ("sub",)


def test_pipes_sockets_and_missing_rights(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    work = slot.work(mirror, repo.head())
    (work / "a.txt").unlink()
    os.mkfifo(work / "a.txt")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(work)
        server.bind("sock")
        os.chdir(here)
        (work / "new.txt").write_text("x")
        (work / "src").chmod(0o000)
        done = commit_result(slot, mirror, repo.head(), "m", WHEN)
    assert done.paths == ("a.txt", "new.txt")
    assert done.changes[0].kind == "deleted"
    assert files_of(slot.work(mirror, repo.head())) == BASE_FILES


def test_a_removed_work_tree_is_refused(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    slot.work(mirror, repo.head())
    remove_tree(slot.work_path)
    with pytest.raises(ResultRefused, match="the agent removed its work tree"):
        commit_result(slot, mirror, repo.head(), "m", WHEN)


def test_everything_deleted_is_a_result_too(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    work = slot.work(mirror, repo.head())
    for child in list(work.iterdir()):
        remove_tree(child)
    done = commit_result(slot, mirror, repo.head(), "m", WHEN)
    assert set(done.paths) == BASE_FILES
    empty = slot.check(mirror, done.commit)
    assert empty.tracked == ()
    assert files_of(slot.work(mirror, done.commit)) == set()
    again = commit_result(slot, mirror, done.commit, "m", WHEN)
    assert again.commit == done.commit


def test_the_check_tree_is_clean_and_has_the_protected_files_of_the_base(
    repo: Repo, mirror: Mirror, slot: Slot
) -> None:
    base = repo.head()
    done = result_of(
        slot, mirror, base, "t", {"tests/t.py": "cheat\n", "tests/extra.py": "x", "a.txt": "new\n", "src/b.py": None}
    )
    tree = slot.check(mirror, done.commit, ["tests/**"], base)
    assert files_of(tree.path) == {"a.txt", ".gitignore", "tests/t.py"}
    assert (tree.path / "tests" / "t.py").read_text() == "ok\n"
    assert (tree.path / "a.txt").read_text() == "new\n"
    plain = slot.check(mirror, done.commit)
    assert (plain.path / "tests" / "t.py").read_text() == "cheat\n"
    assert set(plain.tracked) == {b"a.txt", b".gitignore", b"tests/t.py", b"tests/extra.py"}


def test_the_digest_sees_tracked_paths_only(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    tree = slot.check(mirror, repo.head())
    before = tree.digest()
    (tree.path / "__pycache__").mkdir()
    (tree.path / "__pycache__" / "x.pyc").write_text("x")
    assert tree.digest() == before
    seen = {before}
    a, src = tree.path / "a.txt", tree.path / "src"

    def moved_behind_a_link() -> None:
        src.rename(tree.path / "moved")
        src.symlink_to("moved")

    steps: list[Callable[[], object]] = [
        lambda: a.write_text("b\n"),
        lambda: a.chmod(0o755),
        a.unlink,
        lambda: a.symlink_to("src/b.py"),
        moved_behind_a_link,
    ]
    for step in steps:
        step()
        digest = tree.digest()
        assert digest not in seen
        seen.add(digest)
    assert slot.check(mirror, repo.head()).digest() == before


def test_bases_fast_forward_pick_and_are_the_same_everywhere(
    repo: Repo, mirror: Mirror, slot: Slot, tmp_path: Path
) -> None:
    base = repo.head()
    one = result_of(slot, mirror, base, "one", {"one": "1\n", "src/b.py": LINES.replace("line 0\n", "first\n")})
    two = result_of(slot, mirror, base, "two", {"two": "2\n", "src/b.py": LINES.replace("line 19\n", "last\n")})
    same = result_of(slot, mirror, base, "same", {})
    ancestors = [ancestor("one", base, one), ancestor("two", base, two), ancestor("same", base, same)]
    assert base_for(mirror, base, []) == base
    assert base_for(mirror, base, ancestors[2:]) == base
    assert base_for(mirror, base, ancestors[:1]) == one.commit
    joined = base_for(mirror, base, ancestors)
    assert isinstance(joined, str)
    assert base_for(mirror, base, ancestors) == joined
    merged = mirror.git.text("show", f"{joined}:src/b.py") + "\n"
    assert merged == LINES.replace("line 0\n", "first\n").replace("line 19\n", "last\n")
    assert mirror.git.text("log", "--format=%s", f"{base}..{joined}").splitlines() == ["two", "one"]
    three = result_of(slot, mirror, joined, "three", {"three": "3\n"})
    assert base_for(mirror, base, [*ancestors, ancestor("three", joined, three)]) == three.commit
    elsewhere = Mirror(tmp_path / "elsewhere", str(mirror.path))
    for commit in (one.commit, two.commit):
        elsewhere.ensure(commit)
    assert base_for(elsewhere, base, ancestors[:2]) == joined


def test_a_conflict_names_the_task_and_the_paths(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    base = repo.head()
    one = result_of(slot, mirror, base, "one", {"a.txt": "one\n", "src/b.py": "one\n"})
    two = result_of(slot, mirror, base, "two", {"a.txt": "two\n", "src/b.py": None})
    ancestors = [ancestor("one", base, one), ancestor("two", base, two)]
    conflict = MergeConflict("two", ("a.txt", "src/b.py"))
    assert base_for(mirror, base, ancestors) == conflict
    assert integrate(mirror, base, ancestors) == conflict
    assert conflict.render() == "the result of two conflicts in a.txt, src/b.py"


def test_the_same_change_twice_is_one_commit(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    base = repo.head()
    one = result_of(slot, mirror, base, "one", {"a.txt": "new\n"})
    two = result_of(slot, mirror, base, "two", {"a.txt": "new\n"})
    assert base_for(mirror, base, [ancestor("one", base, one), ancestor("two", base, two)]) == one.commit


def test_a_result_of_another_host_is_infrastructure(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    done = result_of(slot, mirror, repo.head(), "one", {"a.txt": "new\n"})
    missing = ancestor("one", repo.head(), done).model_copy(update={"digest": "e" * 40})
    with pytest.raises(Infrastructure, match="is not in this host's mirror"):
        base_for(mirror, repo.head(), [missing])


def integrated(repo: Repo, mirror: Mirror, slot: Slot) -> tuple[str, Integrated]:
    base = repo.head()
    one = result_of(slot, mirror, base, "one", {"one": "1\n"})
    two = result_of(slot, mirror, base, "two", {"two": "2\n"})
    same = result_of(slot, mirror, base, "same", {})
    results = [ancestor("one", base, one), ancestor("two", base, two), ancestor("same", base, same)]
    found = integrate(mirror, base, results, {"one": ["Dagward-Evidence: 2 checks\naccepted"]})
    assert isinstance(found, Integrated)
    assert integrate(mirror, base, results, {"one": ["Dagward-Evidence: 2 checks\naccepted"]}) == found
    return base, found


def test_the_branch_has_one_commit_per_task_with_its_evidence(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    base, found = integrated(repo, mirror, slot)
    assert mirror.git.text("log", "--format=%s", f"{base}..{found.commit}").splitlines() == ["two", "one"]
    assert list(found.commits) == ["one", "two"]
    assert mirror.git.text("show", "-s", "--format=%(trailers)", found.commits["one"]).strip().splitlines() == [
        "Dagward-Plan: p-abcde",
        "Dagward-Task: one",
        "Dagward-Attempt: 1",
        "Dagward-Evidence: 2 checks accepted",
    ]


def listing(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "objects" not in path.parts
    }


def test_publishing_writes_one_ref_and_nothing_else(repo: Repo, mirror: Mirror, slot: Slot, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (repo.path / ".git" / "hooks").mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-update", "update"):
        hook = repo.path / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    repo.git("config", "gc.auto", "1")
    ran.unlink(missing_ok=True)
    (repo.path / "a.txt").write_text("uncommitted\n")
    _, found = integrated(repo, mirror, slot)
    before = listing(repo.path)
    publish(mirror, "dagward/p-abcde", found.commit)
    after = listing(repo.path)
    new = {name: data for name, data in after.items() if before.get(name) != data}
    assert set(new) - {".git/logs/refs/heads/dagward/p-abcde"} == {".git/refs/heads/dagward/p-abcde"}
    assert not ran.exists()
    assert repo.git("log", "--format=%s", "dagward/p-abcde").splitlines() == ["two", "one", "first"]
    publish(mirror, "dagward/p-abcde", found.commit)
    publish(mirror, "dagward/p-abcde", found.commits["one"], [found.commit])
    assert repo.git("rev-parse", "dagward/p-abcde") == found.commits["one"]


def test_publishing_never_takes_a_branch_that_moved(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    base, found = integrated(repo, mirror, slot)
    repo.git("branch", "dagward/p-abcde", base)
    with pytest.raises(Refusal, match="which dagward did not write; it was not touched"):
        publish(mirror, "dagward/p-abcde", found.commit, [found.commits["one"]])
    assert repo.git("rev-parse", "dagward/p-abcde") == base
    repo.git("switch", "-q", "dagward/p-abcde")
    with pytest.raises(Refusal, match="dagward/p-abcde is checked out in"):
        publish(mirror, "dagward/p-abcde", found.commit, [base])
    assert repo.head() == base
    repo.git("switch", "-q", "main")
    repo.git("worktree", "add", "-q", str(repo.path.with_name("linked")), "dagward/p-abcde")
    with pytest.raises(Refusal, match="dagward/p-abcde is checked out in"):
        publish(mirror, "dagward/p-abcde", found.commit, [base])
    with pytest.raises(Refusal, match="main is not a branch of dagward"):
        publish(mirror, "main", found.commit, [base])


def test_a_branch_called_dagward_stands_in_the_way(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    _, found = integrated(repo, mirror, slot)
    repo.git("branch", "dagward")
    with pytest.raises(Infrastructure, match="could not be written") as caught:
        publish(mirror, "dagward/p-abcde", found.commit)
    assert "rename it" in caught.value.hint


def test_publishing_to_an_address_pushes(repo: Repo, state: Path, slot: Slot, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    repo.git("clone", "-q", "--bare", str(repo.path), str(bare))
    mirror = Mirror(state, f"file://{bare}")
    mirror.ensure(repo.head())
    base, found = integrated(repo, mirror, slot)
    publish(mirror, "dagward/p-abcde", found.commit)
    assert Repo(bare).git("rev-parse", "dagward/p-abcde") == found.commit
    assert mirror.keep("p-abcde", "_integrate", 1, found.commit) == "refs/dagward/p-abcde/_integrate/1"
    publish(mirror, "dagward/p-abcde", base, mirror.kept("p-abcde", "_integrate"))
    with pytest.raises(Refusal, match="it was not touched"):
        publish(mirror, "dagward/p-abcde", found.commit, mirror.kept("p-abcde", "_integrate"))


def test_many_slots_commit_into_one_mirror_at_once(repo: Repo, mirror: Mirror, state: Path) -> None:
    base = repo.head()

    def work(number: int) -> str:
        with Slot(state, f"s{number}") as own:
            done = result_of(own, mirror, base, f"t{number}", {f"f{number}": "x\n", "a.txt": f"{number}\n"})
            mirror.keep("p-abcde", f"t{number}", 1, done.commit)
            return done.commit

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        commits = list(pool.map(work, range(8)))
    assert len(set(commits)) == 8
    refs = mirror.git.text("for-each-ref", "--format=%(objectname)", "refs/dagward/p-abcde").splitlines()
    assert sorted(refs) == sorted(commits)
    Git(git_dir=mirror.path).run("fsck", "--strict")


def test_sha256_repositories_work(tmp_path: Path, state: Path, slot: Slot) -> None:
    path = tmp_path / "long"
    path.mkdir()
    repo = Repo(path)
    repo.git("init", "-q", "--object-format=sha256")
    base = repo.commit({"a": "1\n"})
    mirror = Mirror(state, str(path))
    mirror.ensure(base)
    done = result_of(slot, mirror, base, "t", {"a": "2\n"})
    assert len(done.commit) == 64
    assert Repo(slot.work(mirror, done.commit)).git("status", "--porcelain") == ""


def test_what_a_killed_fetch_leaves_is_no_obstacle(repo: Repo, state: Path) -> None:
    head = repo.head()
    made = Mirror(state, str(repo.path))
    half = made.path.with_suffix(".new")
    half.mkdir(parents=True)
    (half / "HEAD").write_text("ref: refs/heads/ma")
    made.ensure(head)
    second = repo.commit({"a.txt": "2\n"})
    (made.path / "refs" / "bases" / f"{second}.lock").write_text("")
    made.ensure(second)
    assert made.has(second)
    assert not half.exists()


def test_a_reset_that_was_killed_half_way_is_done_again(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    second = repo.commit({"a.txt": "2\n", "new.txt": "x\n"})
    mirror.ensure(second)
    first = repo.git("rev-parse", "HEAD~1")
    work = slot.work(mirror, first)
    # The files and the index of the next base are there; the note and the rest of the work are not.
    slot.git(mirror, work).run("read-tree", "--reset", "-u", second)
    (slot.folder / "work.json").unlink()
    (slot.folder / "work.index.lock").write_text("")
    assert files_of(slot.work(mirror, first)) == BASE_FILES
    assert commit_result(slot, mirror, first, "m", WHEN).paths == ()


def test_a_result_is_found_again_by_another_process(repo: Repo, mirror: Mirror, slot: Slot, state: Path) -> None:
    done = result_of(slot, mirror, repo.head(), "t", {"a.txt": "new\n"})
    again = Mirror(state, str(repo.path))
    with Slot(state, "w2") as other:
        assert (other.check(again, done.commit).path / "a.txt").read_text() == "new\n"
    assert [one.path for one in again.changes(repo.head(), done.commit)] == ["a.txt"]


def test_tasks_that_edit_one_line_one_after_the_other_do_not_conflict(repo: Repo, mirror: Mirror, slot: Slot) -> None:
    base = repo.head()
    one = result_of(slot, mirror, base, "one", {"a.txt": "1\n"})
    two = result_of(slot, mirror, base, "two", {"two": "2\n"})
    three = result_of(slot, mirror, one.commit, "three", {"a.txt": "3\n"})
    results = [ancestor("one", base, one), ancestor("two", base, two), ancestor("three", one.commit, three)]
    found = integrate(mirror, base, results, {"one": ["Dagward-Evidence: x"]})
    assert isinstance(found, Integrated)
    assert list(found.commits) == ["one", "two", "three"]
    assert mirror.git.text("show", f"{found.commit}:a.txt") == "3"
    joined = base_for(mirror, base, results)
    assert isinstance(joined, str)
    assert mirror.git.text("rev-parse", f"{joined}^{{tree}}") == mirror.git.text(
        "rev-parse", f"{found.commit}^{{tree}}"
    )
