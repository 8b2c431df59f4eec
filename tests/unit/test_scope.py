from __future__ import annotations

import pytest

from scheduler.model import Scope
from workers.scope import Violation, is_protected, matches, violations


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("**", "a/b.py", True),
        ("src/**", "src/a.py", True),
        ("src/**", "src/deep/a.py", True),
        ("src/**", "src", False),
        ("src/**", "srcs/a.py", False),
        ("src/**", "other/src/a.py", False),
        ("src/a.py", "src/a.py", True),
        ("./src/a.py", "src/a.py", True),
        ("src/a.py", "src/a.pyc", False),
        ("src", "src/a.py", False),
        ("src/*", "src/a.py", False),  # no other wildcard
        ("SRC/**", "src/a.py", False),
        ("a b/\n/**", "a b/\n/x", True),
    ],
)
def test_a_pattern_is_a_path_a_folder_or_everything(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@pytest.mark.parametrize("pattern", ["tests/contract", "tests/contract/", "tests/contract/**", "**"])
@pytest.mark.parametrize("path", ["tests/contract", "tests/contract/a.py", "tests/contract/deep/a.py"])
def test_protect_holds_for_the_folder_and_what_is_in_it(pattern: str, path: str) -> None:
    assert is_protected(path, [pattern])


def test_protect_does_not_reach_neighbours() -> None:
    assert not is_protected("tests/contracts.py", ["tests/contract/**", "tests/contract"])


def test_all_violations_are_named_once_and_sorted() -> None:
    scope = Scope(write=("src/**",), protect=("src/generated/**",))
    found = violations(["z.py", "src/ok.py", "src/generated/x.py", "vendor/lib"], scope, ["vendor/lib"])
    assert found == [
        Violation("src/generated/x.py", "protect"),
        Violation("vendor/lib", "submodule"),
        Violation("z.py", "write"),
    ]
    assert [one.render() for one in found] == [
        "src/generated/x.py is in scope.protect",
        "vendor/lib is a repository of its own (a submodule)",
        "z.py is outside scope.write",
    ]


def test_the_default_scope_allows_everything_but_submodules() -> None:
    assert violations(["a", "b/c"], Scope()) == []
    assert violations([], Scope(), ["sub"]) == [Violation("sub", "submodule")]
