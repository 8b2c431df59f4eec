"""Translates `"..." % values` into an f-string or a `format` call.

`translate` returns None for what it cannot, or in careful mode does not dare to, translate. Must not know about modes
of other idioms, files or evidence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

_CONVERSION = re.compile(r"%(?:\((?P<key>\w*)\))?(?P<flags>[#0\- +]*)(?P<width>\d*)(?:\.(?P<prec>\d*))?(?P<kind>.)")
_NUMBERS = "dfFeEgGxXo"
_TEXT = {"s": "!s", "r": "!r", "a": "!a"}

# What can stand in an f-string without brackets and is no tuple, whatever the program does.
_SURE = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString, cst.Integer, cst.Float, cst.Comparison)
_SURE_CALLS = ("str", "repr", "len", "int", "float", "round", "sorted", "list", "type")
_PLAIN = (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.BinaryOperation, cst.UnaryOperation, *_SURE)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Literal text (braces doubled), or one conversion: its key, and the part after the value, such as `!s:>10`."""

    text: str
    key: str | None = None
    tail: str | None = None

    @property
    def is_value(self) -> bool:
        return self.tail is not None


def translate(node: cst.BinaryOperation, *, careful: bool) -> cst.BaseExpression | None:
    """The modern form of a %-format, or None to leave it.

    Not careful: a value that is no literal is taken for one value (not a tuple), and a number for a number of the
    kind that its conversion names. Careful: only what means the same for every value.
    """
    if not isinstance(node.operator, cst.Modulo) or not isinstance(node.left, cst.SimpleString):
        return None
    literal = node.left
    if set(literal.prefix.lower()) - {"u"} or "\\N" in literal.raw_value:
        return None
    value = literal.evaluated_value
    if not isinstance(value, str) or any(value.count(sign) != literal.raw_value.count(sign) for sign in "{}%"):
        return None  # written as an escape, such as \\x7b
    pieces = _parse(literal.raw_value, careful=careful)
    if pieces is None or not any(piece.is_value for piece in pieces):
        return None
    if any(piece.key is not None for piece in pieces if piece.is_value):
        return _by_name(literal, pieces, node.right)
    return _by_position(literal, pieces, node.right, careful=careful)


def _parse(text: str, *, careful: bool) -> list[_Piece] | None:
    pieces: list[_Piece] = []
    place = 0
    for found in _CONVERSION.finditer(text):
        pieces.append(_Piece(_doubled(text[place : found.start()])))
        place = found.end()
        if found[0] == "%%":
            pieces.append(_Piece("%"))
            continue
        tail = _tail(found, careful=careful)
        if tail is None:
            return None
        pieces.append(_Piece("", key=found["key"], tail=tail))
    rest = text[place:]
    return None if "%" in rest else [*pieces, _Piece(_doubled(rest))]


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _tail(found: re.Match[str], *, careful: bool) -> str | None:
    kind, flags, width, prec = found["kind"], found["flags"], found["width"], found["prec"]
    kind = "d" if kind in "iu" else kind
    precision = "" if prec is None else f".{prec or 0}"
    if kind in _TEXT:
        align = "" if not width else "<" if "-" in flags else ">"
        spec = f"{align}{width}{precision}"
        # An empty `!s` is left out where that reads better: only a type with an own __format__ sees the difference.
        convert = "" if kind == "s" and not spec and not careful else _TEXT[kind]
        return convert + (f":{spec}" if spec else "")
    # `%d` cuts off what follows the point and `%x` refuses it, `:d` refuses both: not the same for every value.
    if kind not in _NUMBERS or careful or (kind == "d" and prec is not None):
        return None
    align = "<" if "-" in flags and width else ""
    sign = "+" if "+" in flags else " " if " " in flags else ""
    zero = "0" if "0" in flags and not align else ""
    return f":{align}{sign}{'#' if '#' in flags else ''}{zero}{width}{precision}{kind}"


def _by_position(
    literal: cst.SimpleString, pieces: Sequence[_Piece], right: cst.BaseExpression, *, careful: bool
) -> cst.BaseExpression | None:
    wanted = sum(piece.is_value for piece in pieces)
    if isinstance(right, cst.Tuple):
        values = [element.value for element in right.elements if isinstance(element, cst.Element)]
        return _join(literal, pieces, values) if len(values) == len(right.elements) == wanted else None
    if wanted > 1:
        return _format_call(literal, pieces, [cst.Arg(right, star="*")])
    if isinstance(right, cst.Dict | cst.DictComp) or (careful and not _is_no_tuple(right)):
        return None
    return _join(literal, pieces, [right])


def _by_name(
    literal: cst.SimpleString, pieces: Sequence[_Piece], right: cst.BaseExpression
) -> cst.BaseExpression | None:
    keys = [piece.key for piece in pieces if piece.is_value]
    if not all(key and not key[0].isdigit() for key in keys):
        return None
    named = _literal_keys(right)
    if named is None:
        return _format_call(literal, pieces, [cst.Arg(right)], method="format_map")
    # Each value exactly once, in the order of the text: then nothing is evaluated twice, left out or out of turn.
    if list(named) != keys:
        return _format_call(literal, pieces, [cst.Arg(right)], method="format_map") if set(keys) <= set(named) else None
    bare = [_Piece(piece.text, tail=piece.tail) for piece in pieces]
    return _join(literal, bare, list(named.values()))


def _literal_keys(right: cst.BaseExpression) -> dict[str, cst.BaseExpression] | None:
    if not isinstance(right, cst.Dict):
        return None
    named: dict[str, cst.BaseExpression] = {}
    for element in right.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return None
        key = element.key.evaluated_value
        if not isinstance(key, str) or key in named:
            return None
        named[key] = element.value
    return named


def _is_no_tuple(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Name):
        return value.func.value in _SURE_CALLS
    return isinstance(value, _SURE)


def _join(
    literal: cst.SimpleString, pieces: Sequence[_Piece], values: Sequence[cst.BaseExpression]
) -> cst.BaseExpression:
    codes = [_code(value) for value in values]
    if all(_fits(value, code, literal.quote) for value, code in zip(values, codes, strict=True)):
        return _f_string(literal, pieces, codes)
    return _format_call(literal, pieces, [cst.Arg(value) for value in values])


def _code(node: cst.BaseExpression) -> str:
    return cst.Module(body=[]).code_for_node(node)


def _fits(value: cst.BaseExpression, code: str, quote: str) -> bool:
    """Whether an f-string of Python 3.11 can hold it: no backslash, line end, comment, own quote or leading brace."""
    held = isinstance(value, _PLAIN) and not code.startswith("{")
    return held and not any(sign in code for sign in ("\\", "\n", "#", quote[0]))


def _f_string(literal: cst.SimpleString, pieces: Sequence[_Piece], codes: Sequence[str]) -> cst.BaseExpression:
    left = iter(codes)
    body = "".join(f"{{{next(left)}{piece.tail}}}" if piece.is_value else piece.text for piece in pieces)
    return cst.parse_expression(f"f{literal.quote}{body}{literal.quote}")


def _format_call(
    literal: cst.SimpleString, pieces: Sequence[_Piece], args: Sequence[cst.Arg], *, method: str = "format"
) -> cst.BaseExpression:
    body = "".join(f"{{{piece.key or ''}{piece.tail}}}" if piece.is_value else piece.text for piece in pieces)
    text = cst.SimpleString(f"{literal.quote}{body}{literal.quote}")
    clean = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in args]
    return cst.Call(cst.Attribute(text, cst.Name(method)), clean)
