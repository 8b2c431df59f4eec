"""What a condition says once its values are known: one walk over its syntax tree.

Must not know where the values come from.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from scheduler.conditions.syntax import WORDS, ConditionError, reference_of, segment, sound
from scheduler.model.base import Json


def evaluate(text: str, *, params: Mapping[str, str | None], outputs: Mapping[str, Json]) -> bool:
    """Whether the condition holds, by the truth of its value as in Python: false, null, 0, "" and empty are false.

    outputs: task -> its mapping, or for a `for_each` task the list of its instances' mappings. A task that is
    missing has ended without a result (its edge is `settled`): all that is read from it is null. Raises
    ConditionError, with the reason, for a name that does not exist and for values of the wrong type.
    """
    tree = sound(text)
    try:
        return bool(_Evaluation(text, {"params": {**params}, "outputs": outputs}).value(tree))
    except ZeroDivisionError:
        raise _undecided("division by zero") from None
    except OverflowError:
        raise _undecided("a number is too large") from None
    except RecursionError:
        raise _undecided("a value is nested too deeply") from None


class _Absent:
    """What is read from a task that ended without a result: null, and so is everything in it."""


_ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One walk over a sound tree with its values. `text` is there for the messages."""

    text: str
    roots: Mapping[str, Mapping[str, Json]]

    def value(self, node: ast.expr) -> Json:
        """The value of a node; what is absent is null."""
        found = self._read(node)
        return None if isinstance(found, _Absent) else found

    def _read(self, node: ast.expr) -> Json | _Absent:  # noqa: PLR0911 - one for each kind of node
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as found):
                return found
            case ast.Name(id=word):
                return WORDS[word]
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(each) for each in items]
            case ast.BoolOp():
                return self._joined(node)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return not self.value(inner)
            case ast.UnaryOp(operand=inner):
                return -self._number(inner)
            case ast.BinOp(left=left, op=sign, right=right):
                return _ARITHMETIC[type(sign)](self._number(left), self._number(right))
            case ast.Compare():
                return self._compared(node)
            case ast.Call(func=ast.Name(id=name), args=[inner]):
                return self._called(name, inner)
            case ast.Attribute() | ast.Subscript():
                return self._member(node)
        raise AssertionError(f"a node that the check lets through: {ast.dump(node)}")

    def _joined(self, node: ast.BoolOp) -> Json:
        found: Json = None
        for each in node.values:
            found = self.value(each)
            if bool(found) is isinstance(node.op, ast.Or):
                break
        return found

    def _compared(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for sign, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other)
            if not self._holds(left, sign, right, node):
                return False
            left = right
        return True

    def _holds(self, left: Json, sign: ast.cmpop, right: Json, node: ast.expr) -> bool:
        if isinstance(sign, (ast.Eq, ast.NotEq)):
            return _same(left, right) is isinstance(sign, ast.Eq)
        if isinstance(sign, (ast.In, ast.NotIn)):
            return self._contains(right, left, node) is isinstance(sign, ast.In)
        if _is_number(left) and _is_number(right):
            return _ordered(sign, (left > right) - (left < right))
        if isinstance(left, str) and isinstance(right, str):
            return _ordered(sign, (left > right) - (left < right))
        raise _undecided(f"{_kind(left)} and {_kind(right)} have no order in {segment(node, self.text)}")

    def _contains(self, outer: Json, inner: Json, node: ast.expr) -> bool:
        if isinstance(outer, list):
            return any(_same(inner, each) for each in outer)
        if isinstance(outer, (str, dict)) and isinstance(inner, str):
            return inner in outer
        raise _undecided(f"{_kind(inner)} cannot be in {_kind(outer)}, in {segment(node, self.text)}")

    def _called(self, name: str, node: ast.expr) -> Json:
        inner = self.value(node)
        if name == "len" and isinstance(inner, (str, list, dict)):
            return len(inner)
        if name != "len" and isinstance(inner, list):
            return any(inner) if name == "any" else all(inner)
        wanted = "a text, a list or a mapping" if name == "len" else "a list"
        raise _undecided(f"{name}() needs {wanted}, and {segment(node, self.text)} is {_kind(inner)}")

    def _number(self, node: ast.expr) -> _Number:
        found = self.value(node)
        if _is_number(found):
            return found
        raise _undecided(f"{segment(node, self.text)} is {_kind(found)}, not a number")

    def _member(self, node: ast.Attribute | ast.Subscript) -> Json | _Absent:
        if isinstance(node.value, ast.Name) and node.value.id in self.roots:
            return self._root(node, node.value.id)
        outer = self._read(node.value)
        if isinstance(outer, _Absent):
            return _ABSENT
        key = node.attr if isinstance(node, ast.Attribute) else self.value(node.slice)
        if isinstance(outer, dict) and isinstance(key, str):
            if key in outer:
                return outer[key]
            raise _undecided(f"{segment(node, self.text)} does not exist")
        if isinstance(outer, list) and isinstance(key, int) and not isinstance(key, bool):
            if -len(outer) <= key < len(outer):
                return outer[key]
            raise _undecided(f"{segment(node, self.text)} does not exist: the list has {len(outer)}")
        inside = (
            "its parts are read with [0], [1]"
            if isinstance(outer, list)
            else f"{segment(node, self.text)} is not in it"
        )
        raise _undecided(f"{segment(node.value, self.text)} is {_kind(outer)}: {inside}")

    def _root(self, node: ast.Attribute | ast.Subscript, root: str) -> Json | _Absent:
        reference = reference_of(node)
        if reference is None:
            raise _undecided(f"{segment(node, self.text)} needs the name itself")
        values = self.roots[root]
        if reference.name in values:
            return values[reference.name]
        if root == "outputs":
            return _ABSENT
        raise _undecided(f"{segment(node, self.text)} does not exist")


def _undecided(why: str) -> ConditionError:
    return ConditionError(f"the condition cannot be decided: {why}")


_Number = int | float
_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[_Number, _Number], _Number]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}


def _ordered(sign: ast.cmpop, order: int) -> bool:
    """Whether the sign fits an order that is negative, zero or positive."""
    match sign:
        case ast.Lt():
            return order < 0
        case ast.LtE():
            return order <= 0
        case ast.Gt():
            return order > 0
        case _:
            return order >= 0


def _is_number(value: Json) -> TypeGuard[_Number]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(one: Json, other: Json) -> bool:
    """Equality of JSON: true is not 1, as it is in Python; 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return one == other


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "a mapping"
