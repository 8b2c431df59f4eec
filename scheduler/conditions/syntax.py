"""What a condition may say: from a text to a syntax tree in which every node is on a list, and the names it reads.

Nothing is ever compiled or executed. Must not know any value.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from scheduler.errors import Refusal
from scheduler.prompts import ROOTS, Names, undefined, unreadable

MAX_LENGTH = 1_000
"""Characters of a condition. A longer one belongs into a task that writes its answer as an output."""
MAX_DEPTH = 40
"""Nested expressions, so that neither the check nor the evaluation can run out of stack."""

WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}
"""The words of YAML and JSON; those of Python are constants already."""
_CALLS = ("len", "any", "all")
_NODES = (
    *(ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Call, ast.Name, ast.Constant),
    *(ast.Attribute, ast.Subscript, ast.List, ast.Tuple),
)
_OPERATORS = (
    *(ast.And, ast.Or, ast.Not, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
)
_FORMS = "use params, outputs, texts, numbers, true, false, null, == != < > in, and or not, + - * / %, len any all"


class ConditionError(Refusal):
    """Correct the task's `if` in the plan file, or let the task before it write what the condition reads."""

    code = "condition"


@dataclass(frozen=True, slots=True)
class ConditionProblem:
    """What is wrong with a condition, and what to write instead."""

    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that a condition reads: `params.NAME`, or `outputs.NAME` with the output's own name in `field`."""

    root: str
    name: str
    field: str | None = None


def names(text: str) -> tuple[Reference, ...]:
    """What a condition reads, in the order of the text, each once. Raises ConditionError for an unsound one."""
    found: dict[Reference, None] = {}
    for node in _walk(sound(text)):
        reference = reference_of(node)
        if reference is not None:
            found.setdefault(reference)
    return tuple(found)


def check(text: str, known: Names) -> list[ConditionProblem]:
    """What can be known before anything runs: syntax, names, and outputs of tasks that do not come before."""
    made = _parse(text)
    if isinstance(made, ConditionProblem):
        return [made]
    problems = _faults(made, text)
    for node in _walk(made):
        reference = reference_of(node)
        if reference is not None:
            found = unreadable(reference.root, reference.name, reference.field, known)
            problems += [ConditionProblem(*found)] if found else []
    return list(dict.fromkeys(problems))


def sound(text: str) -> ast.expr:
    """The tree of a condition. Raises ConditionError when it is not one."""
    made = _parse(text)
    problems = [made] if isinstance(made, ConditionProblem) else _faults(made, text)
    if problems or isinstance(made, ConditionProblem):
        raise ConditionError(f"the condition is not valid: {problems[0].message}", hint=problems[0].remedy)
    return made


@lru_cache(maxsize=1_024)
def _parse(text: str) -> ast.expr | ConditionProblem:
    if not text.strip():
        return ConditionProblem("an empty condition", "write an expression, or remove the field")
    if len(text) > MAX_LENGTH:
        return ConditionProblem(f"longer than {MAX_LENGTH:,} characters", "let a task write the answer as an output")
    if "{{" in text:
        return ConditionProblem("{{ }} is not needed in a condition", "write the expression without the braces")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the author's text, meant for programmers
            tree = ast.parse(_wrapped(text), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ConditionProblem("not a valid expression", _FORMS)
    if _depth(tree) > MAX_DEPTH:
        return ConditionProblem(f"nested deeper than {MAX_DEPTH} levels", "let a task write the answer as an output")
    return tree


def _wrapped(text: str) -> str:
    # In parentheses a condition may go over several lines; the break ends a comment.
    return f"({text}\n)"


def _depth(tree: ast.expr) -> int:
    deepest, stack = 0, [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack += [(each, depth + 1) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    return deepest


def _walk(node: ast.expr) -> Iterator[ast.expr]:
    """A node and all below it in the order of the text, but for the inner parts of a reference and what is called."""
    yield node
    if reference_of(node) is not None or not isinstance(node, _NODES):
        return
    below = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    for each in below:
        if isinstance(each, ast.expr):
            yield from _walk(each)


def _step(node: ast.expr) -> tuple[ast.expr, str | None] | None:
    """For `x.name` and `x["name"]` x and the name; for any other `x[...]` x and None."""
    if isinstance(node, ast.Attribute):
        return node.value, node.attr
    if isinstance(node, ast.Subscript):
        key = node.slice
        return node.value, key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    return None


def reference_of(node: ast.expr) -> Reference | None:
    """What a node reads when it is `params.NAME`, `outputs.TASK` or `outputs.TASK.NAME`, in dots or in brackets."""
    step = _step(node)
    if step is None:
        return None
    inner, name = step
    if name is None:
        return None
    if isinstance(inner, ast.Name):
        return Reference(inner.id, name) if inner.id in ROOTS else None
    outer = reference_of(inner)
    if outer is None or outer.field is not None:
        return None
    return Reference(outer.root, outer.name, name)


def _faults(tree: ast.expr, text: str) -> list[ConditionProblem]:
    if isinstance(tree, ast.Tuple):
        return [ConditionProblem("a list of values is always true", "join the parts with and, or")]
    return [fault for node in _walk(tree) if (fault := _fault(node, text)) is not None]


def _fault(node: ast.expr, text: str) -> ConditionProblem | None:
    if isinstance(node, ast.Name):
        return _name_fault(node.id)
    if isinstance(node, ast.Call):
        return _call_fault(node, text)
    if isinstance(node, ast.Constant) and not isinstance(node.value, (str, int, float, type(None))):
        return ConditionProblem(f"{segment(node, text)} is not a value of JSON", _FORMS)
    if isinstance(node, ast.Compare) and any(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
        return ConditionProblem('"is" cannot stand in a condition', "write == or !=")
    if not isinstance(node, _NODES) or not all(isinstance(each, _OPERATORS) for each in _operators(node)):
        return ConditionProblem(f'"{segment(node, text)}" cannot stand in a condition', _FORMS)
    return None


def _name_fault(name: str) -> ConditionProblem | None:
    if name in WORDS:
        return None
    if name in ROOTS:
        example = "params.NAME" if name == "params" else "outputs.TASK.NAME"
        return ConditionProblem(f'"{name}" alone is not a value', f"write {example}, with the name itself")
    return ConditionProblem(*undefined(name))


def _call_fault(node: ast.Call, text: str) -> ConditionProblem | None:
    if not isinstance(node.func, ast.Name) or node.func.id not in _CALLS:
        return ConditionProblem(f'"{segment(node.func, text)}" cannot be called', "only len(), any() and all() can")
    if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
        return ConditionProblem(f"{node.func.id}() takes one value", f"write {node.func.id}(outputs.TASK.NAME)")
    return None


def _operators(node: ast.expr) -> list[ast.AST]:
    if isinstance(node, ast.Compare):
        return [*node.ops]
    return [node.op] if isinstance(node, (ast.UnaryOp, ast.BinOp, ast.BoolOp)) else []


def segment(node: ast.expr, text: str) -> str:
    """The part of the condition that a node was made from, on one line and not too long; for messages."""
    flat = " ".join((ast.get_source_segment(_wrapped(text), node) or "").split())
    return flat if len(flat) <= 60 else f"{flat[:57]}..."
