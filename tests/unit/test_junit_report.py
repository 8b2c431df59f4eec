"""Reports of tests as they are read: hostile ones are refused, none is believed beyond what it says."""

from __future__ import annotations

import pytest

from workers.verifiers import report
from workers.verifiers.report import BadReport, Case, parse

PYTEST = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4">
<testcase classname="tests.test_a" name="test_ok" time="0.001" />
<testcase classname="tests.test_a" name="test_bad"><failure message="assert 1 == 2">def test_bad():
&gt;   assert 1 == 2</failure></testcase>
<testcase classname="tests.test_a" name="test_later"><skipped type="pytest.skip" message="later">a.py:1</skipped></testcase>
<testcase classname="tests.test_a" name="test_down"><error message="boom"><![CDATA[in <teardown>]]></error></testcase>
</testsuite></testsuites>"""


def test_a_report_of_pytest() -> None:
    assert parse(PYTEST) == [
        Case("tests.test_a::test_ok", "passed"),
        Case("tests.test_a::test_bad", "failed", "assert 1 == 2\ndef test_bad():\n>   assert 1 == 2"),
        Case("tests.test_a::test_later", "skipped"),
        Case("tests.test_a::test_down", "error", "boom\nin <teardown>"),
    ]


def test_nested_suites_without_classes_and_graver_ends() -> None:
    text = b"""<testsuite><testsuite><testcase name="a"><skipped/><failure/></testcase></testsuite>
    <testcase name="b"><failure/><skipped/></testcase><testcase/></testsuite>"""
    assert [(case.id, case.outcome) for case in parse(text)] == [("a", "failed"), ("b", "failed"), ("?", "passed")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "it is not XML: no element found: line 1, column 0"),
        (PYTEST[:-20], "it is not XML: "),
        (b"<html><testcase name='a'/></html>", "it has no testsuite"),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><testsuite><testcase name='&a;'/></testsuite>", "it declares a document type"),
        (b'<!DOCTYPE testsuite SYSTEM "file:///etc/passwd"><testsuite/>', "it declares a document type"),
        (b"<testsuite>\xff</testsuite>", "it is not XML: "),
    ],
)
def test_what_is_no_report_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(BadReport) as caught:
        parse(text)
    assert str(caught.value).startswith(reason)


def test_a_report_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"<testsuite>" + b"<testcase name='a'/>" * 11 + b"</testsuite>"
    monkeypatch.setattr(report, "MOST", 10)
    with pytest.raises(BadReport, match="more than 10 tests"):
        parse(text)
    monkeypatch.setattr(report, "CAP", 100)
    with pytest.raises(BadReport, match="larger than 100 bytes"):
        parse(text)


def test_a_long_message_is_cut() -> None:
    text = b"<testsuite><testcase name='a'><failure>" + b"x" * 100_000 + b"</failure></testcase></testsuite>"
    assert len(parse(text)[0].message) < 5_000
