"""Translates calls of `os.path` into pathlib. The results stay of the type that they were: text and truth values.

`translate` returns None for what it leaves. Not one of these means the same for every text (`""` is no path, but
`Path("")` is the working folder), so careful mode does not come here. Must not know about files or evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import libcst as cst
import libcst.matchers as m

_CALL = m.Call(func=m.Attribute(value=m.Attribute(value=m.Name("os"), attr=m.Name("path")), attr=m.Name()))
_TEXT_OF_PATH = m.Call(func=m.Name("str"), args=[m.Arg(keyword=None, star="")])
_TIGHT = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.SimpleString, cst.FormattedString)


def name_of(node: cst.Call) -> str | None:
    """`join` for `os.path.join(...)`, if it is one that has a modern form; else None."""
    if not m.matches(node, _CALL):
        return None
    name = cst.ensure_type(cst.ensure_type(node.func, cst.Attribute).attr, cst.Name).value
    return name if name in _FORMS else None


def translate(node: cst.Call) -> cst.BaseExpression | None:
    """The modern form of a call of `os.path`, or None to leave it. It needs `from pathlib import Path`."""
    name = name_of(node)
    plain = all(not arg.star and arg.keyword is None for arg in node.args)
    if name is None or not plain or not node.args or (name != "join" and len(node.args) != 1):
        return None
    return _FORMS[name]([arg.value for arg in node.args])


def _path(value: cst.BaseExpression) -> cst.BaseExpression:
    """`Path(value)`; the inner path when the value is the text of one."""
    inner = _inner(value)
    return inner if inner is not None else cst.Call(cst.Name("Path"), [cst.Arg(value)])


def _inner(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """P of `str(P)`, where P is built by `Path(...)`."""
    if not m.matches(value, _TEXT_OF_PATH):
        return None
    inner = cst.ensure_type(value, cst.Call).args[0].value
    root: cst.BaseExpression = inner
    while True:
        if isinstance(root, cst.BinaryOperation) and isinstance(root.operator, cst.Divide):
            root = root.left
        elif isinstance(root, cst.Attribute):
            root = root.value
        else:
            return inner if m.matches(root, m.Call(func=m.Name("Path"))) else None


def _join(values: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    joined = _path(values[0])
    for value in values[1:]:
        inner = _inner(value)
        joined = cst.BinaryOperation(joined, cst.Divide(), _bracketed(value if inner is None else inner))
    return _text(joined)


def _text(path: cst.BaseExpression) -> cst.BaseExpression:
    return cst.Call(cst.Name("str"), [cst.Arg(path)])


def _bracketed(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, _TIGHT) or value.lpar:
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _attribute(value: cst.BaseExpression, name: str) -> cst.BaseExpression:
    path = _path(value)
    return cst.Attribute(_bracketed(path), cst.Name(name))


def _asks(name: str) -> Callable[[Sequence[cst.BaseExpression]], cst.BaseExpression]:
    return lambda values: cst.Call(cst.ensure_type(_attribute(values[0], name), cst.Attribute))


_FORMS: Mapping[str, Callable[[Sequence[cst.BaseExpression]], cst.BaseExpression]] = {
    "join": _join,
    "exists": _asks("exists"),
    "isdir": _asks("is_dir"),
    "isfile": _asks("is_file"),
    "basename": lambda values: _attribute(values[0], "name"),
    "dirname": lambda values: _text(_attribute(values[0], "parent")),
}

RULES: Mapping[str, str] = {
    "join": "PTH118",
    "exists": "PTH110",
    "isdir": "PTH112",
    "isfile": "PTH113",
    "basename": "PTH119",
    "dirname": "PTH120",
}
"""The linter's rule against each call."""
