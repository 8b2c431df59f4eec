"""Tests that say less than before are found, each with its line; honest changes are left in peace."""

from __future__ import annotations

import textwrap

import pytest

from workers.testfiles import is_runner, is_test_file
from workers.weakness import Texts, compare

OLD = """\
import pytest
from pkg import add

@pytest.mark.parametrize("a", [1, 2, 3])
def test_many(a):
    assert add(a, 1) == a + 1

def test_one():
    assert add(1, 2) == 3
    assert add(0, 0) == 0

def test_error():
    with pytest.raises(TypeError, match="str"):
        add(1, "x")

class TestMore:
    def test_in_class(self):
        self.check(add(2, 2), 4)
"""


def found(old: str | None, new: str | None, path: str = "tests/test_a.py") -> list[str]:
    return [each.render().removeprefix(f"{path}:").strip() for each in compare({path: Texts(old, new)})]


def changed(before: str, after: str) -> list[str]:
    assert before in OLD
    return found(OLD, OLD.replace(before, after, 1))


def function(body: str) -> str:
    return "def test_x():\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("def test_one", "def check_one", ["8: deleted: test_one"]),
        ("    assert add(0, 0) == 0\n", "", ["8: removed from test_one: assert add(0, 0) == 0"]),
        ("assert add(1, 2) == 3", "assert True", ["9: checks nothing: assert True", "8: removed from test_one: assert add(1, 2) == 3"]),
        ("assert add(1, 2) == 3", "assert add(1, 2)", ["9: loosened: assert add(1, 2) == 3 became assert add(1, 2)"]),
        ("assert add(1, 2) == 3", "assert add(1, 2) > 0", ["9: loosened: assert add(1, 2) == 3 became assert add(1, 2) > 0"]),
        ("assert add(1, 2) == 3", "assert add(1, 2) == 3 or True", ["9: checks nothing: assert add(1, 2) == 3 or True", "8: removed from test_one: assert add(1, 2) == 3"]),
        ("assert add(1, 2) == 3", "assert add(1, 2) == 4", ["9: expects 4 where it was 3: add(1, 2)"]),
        ("assert add(1, 2) == 3", "assert add(1, 2) == pytest.approx(3, abs=2)", ["9: loosened: assert add(1, 2) == 3 became assert add(1, 2) == pytest.approx(3, abs=2)"]),
        ("[1, 2, 3]", "[1, 2]", ["5: 2 cases of test_many, 3 before"]),
        ('@pytest.mark.parametrize("a", [1, 2, 3])\ndef test_many(a):', "def test_many(a=1):", ["4: 1 cases of test_many, 3 before"]),
        ("[1, 2, 3]", "[1, 2, pytest.param(3, marks=pytest.mark.xfail)]", ['4: skipped: test_many: pytest.mark.parametrize(\'a\', [1, 2, pytest.param(3, marks=pytest.mark.xfail)])']),
        ("def test_one", "@pytest.mark.skip\ndef test_one", ["8: skipped: test_one: pytest.mark.skip"]),
        ("def test_one", "@pytest.mark.xfail(reason='later')\ndef test_one", ["8: skipped: test_one: pytest.mark.xfail(reason='later')"]),
        ("class TestMore", "@unittest.skipIf(True, 'x')\nclass TestMore", ["16: skipped: TestMore: unittest.skipIf(True, 'x')"]),
        ("    assert add(1, 2) == 3", "    pytest.skip('no')\n    assert add(1, 2) == 3", ["8: removed from test_one: assert add(0, 0) == 0", "8: removed from test_one: assert add(1, 2) == 3", "9: skipped: test_one: pytest.skip('no')"]),
        ("    assert add(0, 0) == 0", "    return\n    assert add(0, 0) == 0", ["8: removed from test_one: assert add(0, 0) == 0", "10: test_one may return before its end"]),
        ("    assert add(0, 0) == 0", "    if False:\n        assert add(0, 0) == 0", ["8: removed from test_one: assert add(0, 0) == 0"]),
        ("    assert add(0, 0) == 0", "    try:\n        assert add(0, 0) == 0\n    except Exception:\n        pass", ["8: removed from test_one: assert add(0, 0) == 0"]),
        ("    assert add(0, 0) == 0", "    with contextlib.suppress(AssertionError):\n        assert add(0, 0) == 0", ["8: removed from test_one: assert add(0, 0) == 0"]),
        ("raises(TypeError, match=\"str\")", "raises(Exception)", ["13: widened: pytest.raises(TypeError, match='str') became pytest.raises(Exception)"]),
        ("raises(TypeError, match=\"str\")", "raises((TypeError, ValueError), match=\"str\")", ["13: widened: pytest.raises(TypeError, match='str') became pytest.raises((TypeError, ValueError), match='str')"]),
        ("raises(TypeError, match=\"str\")", "raises(TypeError)", ["13: widened: pytest.raises(TypeError, match='str') became pytest.raises(TypeError)"]),
        ("    with pytest.raises(TypeError, match=\"str\"):\n        add(1, \"x\")", "    add(1, 1)", ["12: removed from test_error: pytest.raises(TypeError, match='str')"]),
        ("class TestMore", "class More", ["17: deleted: TestMore.test_in_class"]),
        ("        self.check(add(2, 2), 4)", "        pass", ["17: removed from TestMore.test_in_class: self.check(add(2, 2), 4)"]),
        ("import pytest\n", "import pytest\npytestmark = pytest.mark.skip\n", ["2: skipped: pytest.mark.skip"]),
        ("import pytest\n", "import pytest\n__test__ = False\n", ["2: skipped: __test__ = False"]),
        ("class TestMore:", "def test_one():\n    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n\nclass TestMore:", ["16: test_one is defined again and hides the test on line 8"]),
        ("def test_one():\n    assert add(1, 2) == 3", "# def test_one():\n#     assert add(1, 2) == 3\ndef test_two():", ["8: commented out: # def test_one():", "8: deleted: test_one", "9: commented out: # assert add(1, 2) == 3"]),
        ("    assert add(1, 2) == 3", "    if not FULL:\n        return\n    assert add(1, 2) == 3", ["10: test_one may return before its end"]),
        ("    assert add(0, 0) == 0", "    if FULL:\n        assert add(0, 0) == 0", ["11: only under a condition now: assert add(0, 0) == 0"]),
        ("    assert add(0, 0) == 0", "    if TYPE_CHECKING:\n        assert add(0, 0) == 0", ["8: removed from test_one: assert add(0, 0) == 0"]),
        ("    assert add(0, 0) == 0", "    def inner():\n        assert add(0, 0) == 0", ["8: removed from test_one: assert add(0, 0) == 0"]),
        ("    assert add(0, 0) == 0", "    yield\n    assert add(0, 0) == 0", ["8: not collected any more: test_one"]),
        ("def test_one", "@pytest.fixture\ndef test_one", ["9: not collected any more: test_one"]),
        ("class TestMore", "del test_one\n\nclass TestMore", ["8: deleted: test_one"]),
        ("class TestMore", "test_one = None\n\nclass TestMore", ["8: deleted: test_one"]),
        ("assert add(1, 2) == 3", "assert len(add(1, 2)) == 1", ["9: loosened: assert add(1, 2) == 3 became assert len(add(1, 2)) == 1"]),
        ("def test_one():", "def test_one(:", ["8: cannot be parsed any more: invalid syntax"]),
    ],
)  # fmt: skip
def test_t25_a_weaker_test_is_found(before: str, after: str, expected: list[str]) -> None:
    assert sorted(changed(before, after)) == sorted(expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("assert add(0, 0) == 0", "assert 0 == add(0, 0), 'why'"),
        (
            "    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n",
            "    assert add(0, 0) == 0\n    assert add(1, 2) == 3\n",
        ),
        ("assert add(1, 2) == 3", "self.assertEqual(3, add(1, 2))"),
        ("assert add(1, 2) == 3", "assert plus(1, 2) == 3"),
        ("[1, 2, 3]", "[1, 2, 3, 4]"),
        ("[1, 2, 3]", "cases()"),
        ("def test_one", "def test_new():\n    assert add(5, 5) == 10\n\ndef test_one"),
        ("raises(TypeError,", "raises(MyTypeError,"),
        ("    assert add(0, 0) == 0", "    for _ in range(3):\n        assert add(0, 0) == 0"),
        ("    assert add(0, 0) == 0", "    try:\n        assert add(0, 0) == 0\n    except Exception:\n        raise"),
        ("import pytest\n", "# a comment about tests\nimport pytest\n"),
        ("    assert add(0, 0) == 0", "    def inner():\n        assert add(0, 0) == 0\n    inner()"),
        ("    assert add(0, 0) == 0", "    if True:\n        assert add(0, 0) == 0"),
        ("    assert add(0, 0) == 0", "    assert add(0, 0) == 0\n    return"),
    ],
)
def test_an_honest_change_is_left_in_peace(before: str, after: str) -> None:
    assert changed(before, after) == []


def test_a_deleted_file_names_its_tests_and_a_moved_one_is_no_loss() -> None:
    assert found(OLD, None) == [
        "5: deleted: test_many",
        "8: deleted: test_one",
        "12: deleted: test_error",
        "17: deleted: TestMore.test_in_class",
    ]
    assert compare({"tests/test_a.py": Texts(OLD, None), "tests/b/test_b.py": Texts(None, OLD)}) == []
    weaker = OLD.replace("assert add(0, 0) == 0", "assert add(0, 0) is not None")
    moved = compare({"tests/test_a.py": Texts(OLD, None), "tests/b/test_b.py": Texts(None, weaker)})
    assert [each.render() for each in moved] == [
        "tests/b/test_b.py:10: loosened: assert add(0, 0) == 0 became assert add(0, 0) is not None"
    ]


def test_unittest_and_mocks() -> None:
    old = function("self.assertEqual(f(), {'a': 1})\nself.assertIn(1, g())\nm.assert_called_once_with(1)")
    new = function("self.assertTrue(f())\nself.assertIn(1, g())\nm.assert_called()")
    assert found(old, new) == [
        "2: loosened: self.assertEqual(f(), {'a': 1}) became self.assertTrue(f())",
        "4: loosened: m.assert_called_once_with(1) became m.assert_called()",
    ]
    assert found(old, function("assert f() == {'a': 1}\nself.assertIn(1, g())\nm.assert_called_once_with(1)")) == []


def test_helpers_count_and_a_file_that_was_no_python_before() -> None:
    old = "def same(a):\n    assert a == 1\n\ndef test_a():\n    same(1)\n"
    assert found(old, old.replace("assert a == 1", "pass")) == ["1: removed from same: assert a == 1"]
    assert found("def broken(:\n", OLD) == []


@pytest.mark.parametrize(
    ("path", "old", "new", "expected"),
    [
        ("src/a.test.ts", "it('adds', () => {\n  expect(add(1)).toBe(2)\n})", "it.skip('adds', () => {\n  expect(add(1)).toBe(2)\n})", ["1: skipped: it.skip('adds', () => {", "0 tests, 1 before"]),
        ("a.spec.js", "test('x', f)\ntest('y', g)", "test('x', f)", ["1 tests, 2 before"]),
        ("a.spec.js", "test('x', f)", "test.only('x', f)\ntest('y', f)", ["1: all other tests are left out: test.only('x', f)"]),
        ("a.spec.js", "test('x', () => {\nexpect(a).toBe(1)\n})", "test('x', () => {\nexpect(true).toBe(true)\n})", ["2: checks nothing: expect(true).toBe(true)"]),
        ("a_test.go", "func TestA(t *testing.T) {\n\tf()\n}", "func TestA(t *testing.T) {\n\tt.Skip()\n\tf()\n}", ["2: skipped: t.Skip()"]),
        ("FooTest.java", "@Test\nvoid a() { assertEquals(1, f()); }", "@Disabled\n@Test\nvoid a() { }", ["1: skipped: @Disabled", "0 assertions, 1 before"]),
        ("tests/a.rs", "#[test]\nfn a() { assert!(f()); }", "#[test]\n#[ignore]\nfn a() { assert!(f()); }", ["2: skipped: #[ignore]"]),
        ("tests/run.sh", "pytest -q", "pytest -q || true", ["1: a failure is swallowed: pytest -q || true"]),
        (".github/workflows/ci.yml", "run: pytest", "run: pytest\ncontinue-on-error: true", ["2: a failure is ignored: continue-on-error: true"]),
        ("pyproject.toml", "", 'addopts = "--ignore=tests/slow"', ['1: tests are left out: addopts = "--ignore=tests/slow"']),
        ("Makefile", "test:\n\tpytest", "test:\n\tpytest || exit 0", ["2: a failure is swallowed: pytest || exit 0"]),
        ("package.json", '"test": "jest"', '"test": "jest --passWithNoTests"', ['1: no tests is a success: "test": "jest --passWithNoTests"']),
        ("conftest.py", "", "collect_ignore = ['test_a.py']\n", ["1: skipped: collect_ignore = ['test_a.py']"]),
        ("conftest.py", "x = 1\n", "x = 1\ncollect_ignore = ['test_a.py']\n", ["2: skipped: collect_ignore = ['test_a.py']"]),
        ("a.spec.js", "test('x', f)", None, ["deleted, with 1 tests"]),
        ("a.spec.js", "test('x', f)", "// test('x', f)\ntest('z', f)", ["1: commented out: // test('x', f)"]),
    ],
)  # fmt: skip
def test_other_languages_and_runners_by_patterns(path: str, old: str, new: str | None, expected: list[str]) -> None:
    assert sorted(found(old, new, path)) == sorted(expected)


def test_files_are_told_by_their_names() -> None:
    tests = (
        "test_a.py a_test.py tests/helper.py src/conftest.py a.test.tsx x/__tests__/b.js a_test.go FooTest.kt a_spec.rb"
    )
    assert [path for path in tests.split() if not is_test_file(path)] == []
    others = "src/a.py latest.py testing.md tests/data/a.json src/contest.py attest.go README.md"
    assert [path for path in others.split() if is_test_file(path)] == []
    runners = (
        "pyproject.toml sub/tox.ini Makefile .github/workflows/ci.yml scripts/test .ci/run ci/test.sh package.json"
    )
    assert [path for path in runners.split() if not is_runner(path)] == []
    assert [path for path in ["src/a.py", "README.md", "docs/make.md"] if is_runner(path)] == []


def test_chosen_files_count_as_tests_whatever_their_name() -> None:
    files = {"checks/a.py": Texts("def test_a():\n    assert f() == 1\n", "def test_a():\n    pass\n")}
    assert compare(files) == []
    assert [each.render() for each in compare(files, everything=True)] == [
        "checks/a.py:1: removed from test_a: assert f() == 1"
    ]
