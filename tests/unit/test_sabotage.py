"""What is broken on purpose: the work of the result, not its tests; nothing outside the tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from workers.facts import Facts
from workers.sabotage import sabotage, victims


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        place = root / name.replace("__", "/").replace("_py", ".py")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def test_the_work_is_broken_before_the_tests_and_the_tests_before_the_rest(tmp_path: Path) -> None:
    root = tree(tmp_path, src__a_py="a", tests__b_py="b", src__c_py="c", keep__d_py="d")
    assert victims(root, ["src/a.py", "tests/b.py", "gone.py"], ["**"], []) == ["src/a.py"]
    assert victims(root, ["tests/b.py"], ["**"], []) == ["tests/b.py"]
    assert victims(root, [], ["src/**", "keep/**"], ["keep/**"]) == ["src/a.py", "src/c.py"]
    assert victims(root, [], ["none/**"], []) == []


def test_broken_text_is_no_python_and_links_are_left_alone(tmp_path: Path) -> None:
    root = tree(tmp_path / "tree", a_py="x = 1\n", d__e_py="x = 1\n")
    outside = tmp_path / "outside.py"
    outside.write_text("x = 1\n")
    (root / "link.py").symlink_to(outside)
    (root / "folder").symlink_to(root / "d")
    (root / "b.bin").write_bytes(b"\0\1")
    (root / "hard.py").hardlink_to(outside)
    (root / "run.sh").write_text("true\n")
    (root / "run.sh").chmod(0o755)
    changed = ["a.py", "link.py", "folder/e.py", "b.bin", "hard.py", "run.sh"]
    assert victims(root, changed, ["**"], []) == ["a.py", "b.bin", "hard.py", "run.sh"]
    sabotage(root, ["a.py", "b.bin", "hard.py", "run.sh"])
    with pytest.raises(SyntaxError):
        ast.parse((root / "a.py").read_text())
    assert (root / "b.bin").read_bytes() == b""
    assert outside.read_text() == "x = 1\n"
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o755


def test_facts_are_kept_per_plan_and_a_damaged_one_counts_as_none(tmp_path: Path) -> None:
    facts = Facts.of(tmp_path, "p-abcde")
    assert facts.recall("a") is None
    facts.keep("a", {"ran": ["x"]})
    assert Facts.of(tmp_path, "p-abcde").recall("a") == {"ran": ["x"]}
    assert Facts.of(tmp_path, "p-other").recall("a") is None
    assert facts.recall("b") is None
    for file in facts.folder.iterdir():
        file.write_text("{")
    assert facts.recall("a") is None
