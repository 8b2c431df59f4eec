"""What one assertion of Python says, and how much: in the form `subject op expected`, with a strength from 0 to 4.

`assert a == b` and `self.assertEqual(b, a)` come out equal, so a test may change its style. Pure.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

EXACT, CLOSE, SOME, TRUTH, NOTHING = 4, 3, 2, 1, 0
"""How much an assertion says: this value; nearly this value; a range or a member; something true; nothing at all."""

_EQUAL = re.compile(r"assert(?:Equals?|Is|\w+Equal)$")
_TRUTHS = ("assertTrue", "assertFalse", "assertIsNotNone", "assertIsInstance", "assert_called", "assert_any_call")
_MOCKS = {"assert_called_once_with": EXACT, "assert_has_calls": EXACT, "assert_called_with": CLOSE}
_HELPER = re.compile(r"_?(?:assert|check|verify|expect|ensure)(?:_\w+|[A-Z]\w*)?$")
_BROAD = frozenset({"Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Assertion:
    """One assertion. `subject` is what is looked at, `expected` what it has to be (empty when there is none);
    `literal`: it has to be a value that stands there."""

    subject: str
    op: str
    expected: str
    strength: int
    line: int
    text: str
    literal: bool = False
    guarded: bool = False  # only under a condition

    @property
    def key(self) -> tuple[str, str, str]:
        """Equal for assertions that say the same."""
        return self.subject, self.op, self.expected


@dataclass(frozen=True, slots=True)
class Raises:
    """One `pytest.raises` or `assertRaises`: the names of the exceptions, and whether the message matters."""

    names: frozenset[str]
    match: bool
    line: int
    text: str

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for those that expect the same."""
        return (*sorted(self.names), str(self.match))

    def is_wider_than(self, other: Raises) -> bool:
        """Whether this one lets pass what the other one did not."""
        if self.names & _BROAD and not other.names & _BROAD:
            return True
        return other.names < self.names or (other.match and not self.match)


def of_assert(node: ast.Assert) -> Assertion:
    """An `assert` statement."""
    return _of_test(node.test, node)


def of_call(node: ast.Call) -> Assertion | None:
    """A call that asserts: of unittest, of a mock, of a helper named so; None for every other call."""
    name = called(node)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    if name in ("assertTrue", "assertFalse") and arguments:
        test = arguments[0]
        return _of_test(ast.UnaryOp(ast.Not(), test) if name == "assertFalse" else test, node)
    if _EQUAL.match(name) and "Not" not in name and len(arguments) > 1:
        op, exact = ("~", CLOSE) if "Almost" in name else ("==", EXACT)
        return _equal(arguments[0], arguments[1], op, exact, node)
    if name == "assertIsNone" and arguments:
        return _equal(arguments[0], ast.Constant(None), "==", EXACT, node)
    strength = _MOCKS.get(name, TRUTH if name in _TRUTHS else SOME)
    return _plain(node, strength) if name.startswith("assert") or _HELPER.fullmatch(name) else None


def of_raises(node: ast.Call) -> Raises | None:
    """`pytest.raises(...)`, `assertRaises(...)`, `pytest.warns(...)`; None for every other call."""
    name = called(node)
    if name not in ("raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns") or not node.args:
        return None
    if name in ("raises", "warns") and not _is_pytest(node.func):
        return None
    first = node.args[0]
    listed = first.elts if isinstance(first, ast.Tuple) else [first]
    match = name.endswith("Regex") or any(keyword.arg == "match" for keyword in node.keywords)
    return Raises(frozenset(map(ast.unparse, listed)), match, node.lineno, ast.unparse(node))


def called(node: ast.Call) -> str:
    """The last part of a called name."""
    return last_name(node.func)


def last_name(node: ast.AST) -> str:
    """`skip` of `pytest.mark.skip`; empty for what has no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_constant(node: ast.expr, truth: bool) -> bool:
    """Whether an expression is true (or false) whatever happens."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_constant(node.operand, not truth)
    if isinstance(node, ast.Constant):
        return bool(node.value) is truth
    if last_name(node) == "TYPE_CHECKING":
        return not truth
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts) is truth
    if isinstance(node, ast.BoolOp):
        either = isinstance(node.op, ast.Or) is truth
        return (any if either else all)(is_constant(each, truth) for each in node.values)
    return isinstance(node, ast.JoinedStr | ast.Lambda) and truth


def _is_pytest(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) or (
        isinstance(function, ast.Attribute) and last_name(function.value) == "pytest"
    )


def _plain(node: ast.expr, strength: int) -> Assertion:
    text = ast.unparse(node)
    return Assertion(text, "", "", strength, node.lineno, text)


def _of_test(test: ast.expr, node: ast.Assert | ast.Call) -> Assertion:
    text = ast.unparse(node)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _of_compare(test, node)
    return Assertion(ast.unparse(test), "", "", _strength(test), node.lineno, text)


def _of_compare(test: ast.Compare, node: ast.Assert | ast.Call) -> Assertion:
    op, left, right = test.ops[0], test.left, test.comparators[0]
    if isinstance(op, ast.Eq | ast.Is):
        close = "approx" in ast.unparse(test)
        return _equal(left, right, "~" if close else "==", _strength(test), node)
    return Assertion(
        ast.unparse(left), type(op).__name__, ast.unparse(right), _strength(test), node.lineno, ast.unparse(node)
    )


def _equal(left: ast.expr, right: ast.expr, op: str, strength: int, node: ast.Assert | ast.Call) -> Assertion:
    if _is_literal(left) and not _is_literal(right):
        left, right = right, left
    subject, expected = ast.unparse(left), ast.unparse(right)
    strength = NOTHING if subject == expected else strength
    return Assertion(subject, op, expected, strength, node.lineno, ast.unparse(node), _is_literal(right))


def _strength(test: ast.expr) -> int:
    if is_constant(test, truth=True):
        return NOTHING
    if isinstance(test, ast.BoolOp):
        parts = [_strength(each) for each in test.values]
        return min(SOME, *parts) if isinstance(test.op, ast.Or) else max(parts)
    if isinstance(test, ast.Compare):
        return min(map(_of_op, test.ops, test.comparators))
    if isinstance(test, ast.Call) and last_name(test.func) == "all":
        return SOME
    return TRUTH


def _of_op(op: ast.cmpop, right: ast.expr) -> int:
    if isinstance(op, ast.Eq | ast.Is):
        return CLOSE if "approx" in ast.unparse(right) else EXACT
    if isinstance(op, ast.IsNot):
        return TRUTH
    return SOME


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and last_name(node.func) == "approx" and node.args:
        return _is_literal(node.args[0])
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
