"""Reads a Python file into its functions: what each asserts on lines that can be reached, what skips it, how many
cases it has. Pure; must not compare.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from workers.weakness.assertions import Assertion, Raises, called, is_constant, last_name, of_assert, of_call, of_raises

_SKIPS = frozenset(
    {"skip", "skipif", "xfail", "skipIf", "skipUnless", "expectedFailure", "SkipTest", "skipTest", "importorskip"}
)
_SWALLOW = frozenset({"", "Exception", "BaseException", "AssertionError"})
_COLLECTION = frozenset(
    {
        "collect_ignore",
        "collect_ignore_glob",
        "__test__",
        "pytestmark",
        "pytest_ignore_collect",
        "pytest_collection_modifyitems",
    }
)


@dataclass
class Unit:
    """One function, or the body of a class or module (`name` empty for the module)."""

    name: str
    line: int
    is_test: bool
    asserts: list[Assertion] = field(default_factory=list)
    raises: list[Raises] = field(default_factory=list)
    skips: list[tuple[int, str]] = field(default_factory=list)
    cases: int | None = 1  # None: not known before it runs
    again: int = 0  # line of an earlier definition that this one hides
    exits: list[int] = field(default_factory=list)  # lines of returns that leave before the end
    named: frozenset[str] = frozenset()  # names that its code uses: a function inside that nobody names never runs


def units(tree: ast.Module) -> dict[str, Unit]:
    """Every function, class and the module itself, by qualified name; a later definition replaces an earlier one."""
    found: dict[str, Unit] = {"": Unit("", 0, is_test=False)}
    _gather(tree.body, "", found, in_tests=True)
    return found


def _gather(body: Sequence[ast.stmt], prefix: str, found: dict[str, Unit], *, in_tests: bool) -> None:
    owner = found[prefix.removesuffix(".")]
    for node in _flat(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _put(found, _function(node, prefix, in_tests=in_tests))
            if node.name in _COLLECTION:
                owner.skips.append((node.lineno, f"def {node.name}"))
        elif isinstance(node, ast.ClassDef):
            unit = Unit(f"{prefix}{node.name}", node.lineno, is_test=False)
            _read_decorators(node.decorator_list, unit)
            _put(found, unit)
            collected = node.name.startswith("Test") or any("TestCase" in last_name(base) for base in node.bases)
            _gather(node.body, f"{unit.name}.", found, in_tests=in_tests and collected)
        elif isinstance(node, ast.Delete | ast.Assign | ast.AnnAssign):
            _read_setting(node, owner)
            for target in _targets(node):  # a name that means something else now is no test any more
                found.pop(f"{prefix}{last_name(target)}", None)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            _read_call(node.value, owner)


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at this level, also those below `if`, `try` and `with`: definitions there are collected as well."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _flat(_taken(node))
        elif isinstance(node, ast.Try):
            yield from _flat([*node.body, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.With):
            yield from _flat(node.body)
        else:
            yield node


def _put(found: dict[str, Unit], unit: Unit) -> None:
    if unit.name in found and unit.is_test:
        unit.again = found[unit.name].line
    found[unit.name] = unit


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str, *, in_tests: bool) -> Unit:
    collected = in_tests and node.name.startswith("test") and not _is_no_test(node)
    named = frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    unit = Unit(f"{prefix}{node.name}", node.lineno, is_test=collected, named=named)
    _read_decorators(node.decorator_list, unit)
    _read(node.body, unit)
    unit.exits = [each.lineno for each in _returns(node.body) if each is not node.body[-1]]
    return unit


def _is_no_test(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Named like a test, and not run as one: a fixture, or a generator."""
    marks = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    yields = (ast.Yield, ast.YieldFrom)
    return any(last_name(mark) == "fixture" for mark in marks) or any(
        isinstance(each, yields) for each in _own(node.body)
    )


def _returns(body: Sequence[ast.stmt]) -> Iterator[ast.Return]:
    for each in _own(body):
        if isinstance(each, ast.Return):
            yield each


def _own(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Everything in a body but what belongs to functions and classes inside it."""
    stack: list[ast.AST] = list(body)
    while stack:
        each = stack.pop()
        yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(each))


def _read_decorators(decorators: Sequence[ast.expr], unit: Unit) -> None:
    for decorator in decorators:
        unit.skips += _skips_in(decorator)
        if isinstance(decorator, ast.Call) and called(decorator) == "parametrize":
            count = _cases(decorator)
            unit.cases = None if count is None or unit.cases is None else unit.cases * count


def _skips_in(node: ast.AST) -> list[tuple[int, str]]:
    """Marks in an expression, each as it stands there: a mark whose condition changed is a new one."""
    for each in ast.walk(node):
        if last_name(each) in _SKIPS:
            whole = node if isinstance(node, ast.expr) else each
            return [(getattr(each, "lineno", 0), ast.unparse(whole))]
    return []


def _cases(decorator: ast.Call) -> int | None:
    values = decorator.args[1] if len(decorator.args) > 1 else None
    for keyword in decorator.keywords:
        values = keyword.value if keyword.arg == "argvalues" else values
    if not isinstance(values, ast.List | ast.Tuple | ast.Set):
        return None
    return None if any(isinstance(each, ast.Starred) for each in values.elts) else len(values.elts)


def _targets(node: ast.Delete | ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return [node.target] if isinstance(node, ast.AnnAssign) else node.targets


def _read_setting(node: ast.Delete | ast.Assign | ast.AnnAssign, owner: Unit) -> None:
    names = {last_name(target) for target in _targets(node)}
    value = None if isinstance(node, ast.Delete) else node.value
    if value is None or names.isdisjoint(_COLLECTION):
        return
    if "pytestmark" in names:
        owner.skips += _skips_in(value)
    elif "__test__" not in names or is_constant(value, truth=False):
        owner.skips.append((node.lineno, ast.unparse(node)))


def _read(body: Sequence[ast.stmt], unit: Unit) -> None:
    """Statements up to the first that always leaves; what comes behind it is dead."""
    for node in body:
        _read_one(node, unit)
        if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break) or _leaves(node):
            return


def _read_one(node: ast.stmt, unit: Unit) -> None:
    if isinstance(node, ast.Assert):
        unit.asserts.append(of_assert(node))
    elif isinstance(node, ast.If):
        _read_if(node, unit)
    elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
        _read_loop(node, unit)
    elif isinstance(node, ast.With | ast.AsyncWith):
        _read_with(node, unit)
    elif isinstance(node, ast.Try):
        _read_try(node, unit)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if node.decorator_list or node.name in unit.named:
            _read(node.body, unit)
    elif isinstance(node, ast.Match):
        for case in node.cases:
            _read_guarded(case.body, unit)
    else:
        _read_expressions(node, unit)


def _read_if(node: ast.If, unit: Unit) -> None:
    if is_constant(node.test, truth=True) or is_constant(node.test, truth=False):
        _read(_taken(node), unit)
    else:
        _read_guarded(node.body, unit)
        _read_guarded(node.orelse, unit)


def _read_guarded(body: Sequence[ast.stmt], unit: Unit) -> None:
    """Statements that run only under a condition."""
    before = len(unit.asserts)
    _read(body, unit)
    unit.asserts[before:] = [replace(each, guarded=True) for each in unit.asserts[before:]]


def _taken(node: ast.If) -> list[ast.stmt]:
    return node.orelse if is_constant(node.test, truth=False) else node.body


def _read_loop(node: ast.For | ast.AsyncFor | ast.While, unit: Unit) -> None:
    never = is_constant(node.test if isinstance(node, ast.While) else node.iter, truth=False)
    if not never:
        _read(node.body, unit)
    _read(node.orelse, unit)


def _read_with(node: ast.With | ast.AsyncWith, unit: Unit) -> None:
    swallows = False
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call):
            swallows |= called(call) == "suppress" and any(last_name(each) in _SWALLOW for each in call.args)
            _read_call(call, unit)
    if not swallows:
        _read(node.body, unit)


def _read_try(node: ast.Try, unit: Unit) -> None:
    if not any(_swallows(handler) for handler in node.handlers):
        _read(node.body, unit)
    for handler in node.handlers:
        _read_guarded(handler.body, unit)
    _read(node.orelse, unit)
    _read(node.finalbody, unit)


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes a failed assertion and goes on."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not any(kind is None or last_name(kind) in _SWALLOW for kind in kinds):
        return False
    speaks = [each for part in handler.body for each in ast.walk(part)]
    return not any(
        isinstance(each, ast.Raise | ast.Assert) or (isinstance(each, ast.Call) and called(each) == "fail")
        for each in speaks
    )


def _leaves(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    function = node.value.func
    owner = last_name(function.value) if isinstance(function, ast.Attribute) else ""
    name = last_name(function)
    return name == "skipTest" or (name in ("skip", "xfail", "exit") and owner in ("pytest", "sys", ""))


def _read_expressions(node: ast.AST, unit: Unit) -> None:
    if isinstance(node, ast.Raise) and node.exc is not None:
        unit.skips += _skips_in(node.exc) if "Skip" in ast.unparse(node.exc) else []
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            _read_call(each, unit)


def _read_call(call: ast.Call, unit: Unit) -> None:
    name = called(call)
    owner = last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if name in ("skipTest", "importorskip") or (name in ("skip", "xfail") and owner in ("pytest", "")):
        unit.skips.append((call.lineno, ast.unparse(call)))
    raised = of_raises(call)
    if raised is not None:
        unit.raises.append(raised)
        return
    assertion = of_call(call)
    if assertion is not None:
        unit.asserts.append(assertion)
