"""The demo's codemod: each idiom boldly and carefully, what it leaves, and what it makes of evidence."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests import demo_kit  # noqa: F401 -- puts the codemod on the path

from modernise import evidence  # isort: skip
from modernise.idioms import Care, modernise  # isort: skip


def bold(source: str) -> str:
    return modernise(source.encode())[0].decode()


def careful(source: str) -> str:
    return modernise(source.encode(), Care(everywhere=True, reason="why"))[0].decode()


EXPRESSIONS = [
    # old, bold, careful (None: left and marked)
    ('"%s" % a', 'f"{a}"', None),
    ('"%s" % (a,)', 'f"{a}"', 'f"{a!s}"'),
    ('"%s" % str(a)', 'f"{str(a)}"', 'f"{str(a)!s}"'),
    ("'%r and %s' % (a, b.c[0])", "f'{a!r} and {b.c[0]}'", "f'{a!r} and {b.c[0]!s}'"),
    ('"%d%%" % n', 'f"{n:d}%"', None),
    ('"%5d|%-5d|%05d|%+d" % (n, n, n, n)', 'f"{n:5d}|{n:<5d}|{n:05d}|{n:+d}"', None),
    ('"%-8s|%8s|%.2s" % (a, a, a)', 'f"{a!s:<8}|{a!s:>8}|{a!s:.2}"', 'f"{a!s:<8}|{a!s:>8}|{a!s:.2}"'),
    ('"%.2f %x" % (n, n)', 'f"{n:.2f} {n:x}"', None),
    ('"{%s}" % a', 'f"{{{a}}}"', None),
    ('u"%s" % a', 'f"{a}"', None),
    ('"%s-%s" % pair', '"{}-{}".format(*pair)', '"{!s}-{!s}".format(*pair)'),
    ('"%(x)s" % d', '"{x}".format_map(d)', '"{x!s}".format_map(d)'),
    ('"%(x)s %(y)r" % {"x": a, "y": b}', 'f"{a} {b!r}"', 'f"{a!s} {b!r}"'),
    ('"%(x)s %(x)s" % {"x": f()}', '"{x} {x}".format_map({"x": f()})', '"{x!s} {x!s}".format_map({"x": f()})'),
    ('"%s" % f("a")', '"{}".format(f("a"))', None),
    ("a == None", "a is None", None),
    ("a != None", "a is not None", None),
    ("None == a", "a is None", None),
    ("os.path.join(a, b, c + d)", "str(Path(a) / b / (c + d))", None),
    ("os.path.join(os.path.dirname(a), b)", "str(Path(a).parent / b)", None),
    ("os.path.exists(os.path.join(a, b))", "(Path(a) / b).exists()", None),
    ("os.path.isdir(a)", "Path(a).is_dir()", None),
    ("os.path.isfile(a)", "Path(a).is_file()", None),
    ("os.path.basename(a)", "Path(a).name", None),
]


@pytest.mark.parametrize(("old", "new", "kept"), EXPRESSIONS, ids=[old for old, *_ in EXPRESSIONS])
def test_expressions(old: str, new: str, kept: str | None) -> None:
    lines = bold(f"import os\nx = {old}\n").splitlines()
    assert lines[-1] == f"x = {new}"
    assert ("from pathlib import Path" in lines) == ("Path" in new)
    left = careful(f"import os\nx = {old}\n").splitlines()[-1]
    assert left == f"x = {kept}" if kept is not None else left.startswith(f"x = {old}  # noqa: ")


@pytest.mark.parametrize(
    "text",
    [
        '"%s %s" % (a,)',  # wrong in itself
        '"%*d" % (w, n)',
        '"%c" % n',
        'b"%s" % a',
        'r"\\%s" % a',
        '"%s" % {"a": 1}',
        '"\\x7b%s" % a',
        '"\\N{BULLET}%s" % a',
        '"%(a b)s" % d',
        '"%" % ()',
        "n % m",
        "a == b == None",
        "a < None",
        "os.path.join(*parts)",
        "os.path.getsize(a)",
        "path.join(a, b)",
    ],
)
def test_leaves_what_it_cannot_translate(text: str) -> None:
    assert bold(f"x = {text}\n") == f"x = {text}\n"


@pytest.mark.parametrize("value", ["text", "", 5, -3, 10**20, None, ["a"], Decimal("2.50")])
@pytest.mark.parametrize(
    "text", ['"<%s>" % (v,)', '"%r|%9s|%-9s|%.1s" % (v, v, v, v)', '"%(a)s{}" % {"a": v}', '"%s%s" % t']
)
def test_careful_means_the_same_for_every_value(text: str, value: object) -> None:
    names = {"v": value, "t": (value, value)}
    assert eval(careful(f"({text})\n"), dict(names)) == eval(text, dict(names))


@pytest.mark.parametrize("value", [0, 7, -7, 123456])
@pytest.mark.parametrize(
    "spec", ["%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%x", "%#x", "%#o", "%08.2f", "%.0e", "%g"]
)
def test_bold_numbers_mean_the_same_for_numbers(spec: str, value: int) -> None:
    text = f"'{spec}' % v"
    assert bold(text + "\n") != text + "\n"
    assert eval(bold(text + "\n"), {"v": value}) == spec % value


HANDLER = "def save():\n    try:\n        f()\n    except:\n        raise\n"


def test_bare_except() -> None:
    assert "    except Exception:\n" in bold(HANDLER)
    assert "    except BaseException:\n" in careful(HANDLER)
    assert "noqa" not in careful(HANDLER)
    typed = HANDLER.replace("except:", "except (OSError, ValueError):")
    assert bold(typed) == typed


def test_careful_only_in_the_functions_that_are_named() -> None:
    source = "".join(f"def {name}(a):\n    def inner():\n        return a == None\n    return inner\n" for name in "fg")
    new, done = modernise(source.encode(), Care(functions=("f",), reason="refused by test_f"))
    assert new.decode().count("a == None  # noqa: E711 -- refused by test_f\n") == 1
    assert new.decode().index("==") < new.decode().index("is None")
    assert (dict(done.changed), dict(done.kept), done.careful) == (
        {"comparison with None": 1},
        {"comparison with None": 1},
        {"f"},
    )


def test_marks_stand_on_the_line_that_needs_them() -> None:
    source = 'if a == None:  # old\n    b = "%d" % a\nwhile c != None: f()\nx = 1\n'
    assert careful(source) == (
        "if a == None:  # old  # noqa: E711 -- why\n"
        '    b = "%d" % a  # noqa: UP031 -- why\n'
        "while c != None: f()  # noqa: E711 -- why\n"
        "x = 1\n"
    )


SAMPLE = '# head\nimport os\n\n\ndef f(a,b):\n  """Doc."""\n  return   os.path.join(a,b), "%s" % a, a==None # end\n'


@pytest.mark.parametrize("mode", [bold, careful])
def test_a_second_time_changes_nothing(mode: object) -> None:
    assert callable(mode)
    once = mode(SAMPLE + HANDLER)
    assert mode(once) == once != SAMPLE + HANDLER


def test_encoding_and_line_ends_stay() -> None:
    source = '# -*- coding: latin-1 -*-\r\nx = "\xe9%s" % a\r\ny  =  2\r\n'.encode("latin-1")
    assert modernise(source)[0] == '# -*- coding: latin-1 -*-\r\nx = f"\xe9{a}"\r\ny  =  2\r\n'.encode("latin-1")


OUTPUT = """\
_________ test_b[1-x] _________
tests/test_m.py:9: in test_b
    helper(2)
pack/m.py:3: in deep
    return 1 / 0
pack/other.py:3: in elsewhere
=========================== short test summary info ============================
FAILED tests/test_m.py::test_a - AssertionError: x
FAILED tests/test_m.py::TestC::test_b[1-x]
"""


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "pack").mkdir()
    (tmp_path / "tests").mkdir()
    names = ("load", "save", "deep", "other", "elsewhere")
    (tmp_path / "pack" / "m.py").write_text("".join(f"def {name}(): pass\n" for name in names))
    tests = "def test_a(s):\n    s.save(load())\n    assert x\n\n\ndef test_z():\n    other()\n"
    (tmp_path / "tests" / "test_m.py").write_text(tests)
    return tmp_path


def rejection(top: Path, *checks: dict[str, object]) -> evidence.Rejection | None:
    (top / "evidence.json").write_text(json.dumps({"failure": {"kind": "rejected"}, "checks": checks}))
    return evidence.read(top / "evidence.json")


def test_evidence_names_what_failed_tests_call_and_what_stands_in_tracebacks(top: Path) -> None:
    found = rejection(
        top,
        {"accepted": True, "attempt": 1, "output": "FAILED tests/test_m.py::test_z\n"},
        {"accepted": False, "attempt": 1, "output": OUTPUT},
    )
    care = evidence.care(found, Path("pack/m.py"), top)
    assert care == Care(functions=frozenset({"save", "load", "deep"}), reason="refused by test_a")
    assert not care.covers("other")
    assert not care.covers("")


@pytest.mark.parametrize(
    ("attempt", "output"),
    [(2, OUTPUT), (1, "ERROR tests/test_m.py - SyntaxError\n"), (1, ""), (1, "FAILED gone.py::t\n")],
)
def test_evidence_that_names_nothing_or_was_not_enough_means_careful_everywhere(
    top: Path, attempt: int, output: str
) -> None:
    found = rejection(top, {"accepted": False, "attempt": attempt, "output": output})
    assert evidence.care(found, Path("pack/m.py"), top).everywhere


def test_an_attempt_that_no_check_refused_teaches_nothing(top: Path) -> None:
    assert rejection(top) is None
    assert evidence.care(None, Path("pack/m.py"), top) == Care()
