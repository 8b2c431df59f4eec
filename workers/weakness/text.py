"""Tests in languages other than Python, and files that decide how tests are started: by patterns on added lines.

Patterns miss what is written in an unusual way; they are there for the usual ways of cheating. Pure.
"""

from __future__ import annotations

import re

from workers.weakness.words import Weakness, added_lines, commented_out, short

_SKIPS = re.compile(
    r"\b(?:it|test|describe|context|suite|specify)\.(?:skip|todo|fixme|fails|failing)\b"
    r"|\bx(?:it|describe|test|context|specify)\s*[('\"]"
    r"|\bt\.Skip(?:f|Now)?\(|#\[ignore\b|@(?:Disabled|Ignore)\b|\[(?:Ignore|Fact\(Skip|Theory\(Skip)"
    r"|\b(?:markTestSkipped|markTestIncomplete|XCTSkip\w*)\b|^\s*(?:skip|pending)\b|@tag\s+:skip|\bGTEST_SKIP\b"
)
_ONLY = re.compile(r"\b(?:it|test|describe|context|suite)\.only\b|\bf(?:it|describe)\s*[('\"]")
_EMPTY = re.compile(
    r"\bexpect\(\s*(?:true|1)\s*\)\s*\.\s*(?:to(?:Be|Equal)?\b|toBeTruthy)|\bassert(?:True|\.ok|\.isTrue|!)?\s*\(\s*true\s*\)"
)
_TEST = re.compile(
    r"\b(?:it|test|specify)\s*(?:\.each\b.*)?[('\"`]|^\s*func\s+Test\w+\(|@(?:Parameterized)?Test\b|#\[(?:\w+::)?test\]"
    r"|\[(?:Fact|Theory|Test|TestMethod)\b|^\s*(?:public\s+)?function\s+test\w+|^\s*@test\s|^\s*TEST(?:_F|_P)?\("
)
_ASSERT = re.compile(
    r"\bexpect\s*\(|\bassert\w*\s*[!(.\s]|\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail)\b|\b(?:require|should)\s*\.\s*\w+"
    r"|\bXCTAssert\w*|\b(?:EXPECT|ASSERT)_\w+|\bverify\s*\("
)
_SWALLOWED = re.compile(r"\|\|\s*(?:true|:|exit\s+0|echo\b[^|&;]*)\s*(?:$|[;\"')\]#&|}])")
_RUNNER = (
    (_SWALLOWED, "a failure is swallowed"),
    (re.compile(r"\bset\s+\+e\b"), "failures are ignored from here on"),
    (re.compile(r"^\s*exit\s+0\b|;\s*exit\s+0\s*$"), "ends with success whatever happened"),
    (re.compile(r"\bcontinue-on-error:\s*true|\ballow_failure:\s*true|\bignore_errors\b"), "a failure is ignored"),
    (
        re.compile(r"--passWithNoTests|--no-error-on-unmatched-pattern|suppress-no-test-exit-code"),
        "no tests is a success",
    ),
    (
        re.compile(
            r"--(?:ignore(?:-glob)?|deselect)\b|(?:^|\s)-k\s*['\"=]?\s*['\"]?not\b|--testPathIgnorePatterns|norecursedirs"
        ),
        "tests are left out",
    ),
    (re.compile(r"--(?:exitfirst-ok|suppress-tests-failed-exit-code|exit-zero|no-fail)\b"), "failures do not fail"),
    (re.compile(r"xfail_strict\s*=\s*(?:false|0)", re.IGNORECASE), "an expected failure that passes is ignored"),
)


def compare_tests(path: str, old: str | None, new: str | None) -> list[Weakness]:
    """A file of tests that is not Python."""
    before, after = old or "", new or ""
    if old is not None and new is None:
        count = _count(_TEST, before)
        return [Weakness(path, 0, f"deleted, with {count} tests")] if count or _count(_ASSERT, before) else []
    found = commented_out(path, before, after)
    for number, line in added_lines(before, after):
        for pattern, what in ((_SKIPS, "skipped"), (_ONLY, "all other tests are left out"), (_EMPTY, "checks nothing")):
            if pattern.search(line) and not line.lstrip().startswith(("//", "#  ", "/*")):
                found.append(Weakness(path, number, f"{what}: {short(line)}"))
        if _SWALLOWED.search(line):
            found.append(Weakness(path, number, f"a failure is swallowed: {short(line)}"))
    for pattern, what in ((_TEST, "tests"), (_ASSERT, "assertions")):
        had, has = _count(pattern, before), _count(pattern, after)
        if has < had:
            found.append(Weakness(path, 0, f"{has} {what}, {had} before"))
    return found


def compare_runner(path: str, old: str, new: str) -> list[Weakness]:
    """A file that decides how tests are started: what it says new and should not."""
    return [
        Weakness(path, number, f"{what}: {short(line)}")
        for number, line in added_lines(old, new)
        for pattern, what in _RUNNER
        if pattern.search(line) and not line.lstrip().startswith("#")
    ]


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for line in text.splitlines() if pattern.search(line) and not _is_comment(line))


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(("//", "/*", "* ", "# "))
