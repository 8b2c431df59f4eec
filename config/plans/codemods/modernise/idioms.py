"""The transformer: walks a module and modernises each idiom, boldly or, in named functions, carefully.

Bold is what a person would write today and is right nearly always. Careful changes only what means the same in every
program; what it leaves is marked for the linter, with the reason. Must not know where the names come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

import libcst as cst
import libcst.matchers as m
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor

from . import paths, percent

_NONE = m.Name("None")


@dataclass(frozen=True, slots=True)
class Care:
    """Where to be careful: in these functions (`save` means every function and method of that name), or everywhere."""

    functions: Collection[str] = ()
    everywhere: bool = False
    reason: str = "a test needs it"

    def covers(self, function: str) -> bool:
        """Whether a function is among them; "" is the module itself."""
        return self.everywhere or function in self.functions


@dataclass(slots=True)
class Done:
    """What a run did: how often each idiom was modernised and left alone, and in which functions it was careful."""

    changed: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    careful: set[str] = field(default_factory=set)


def modernise(source: bytes, care: Care | None = None) -> tuple[bytes, Done]:
    """The modern form of a module, in the encoding and with the line ends of the old one.

    Raises libcst.ParserSyntaxError for what is no Python.

    Running it on its own output changes nothing.
    """
    context = CodemodContext()
    transformer = _Modernise(context, care or Care())
    module = cst.parse_module(source).visit(transformer)
    return AddImportsVisitor(context).transform_module(module).bytes, transformer.done


class _Modernise(cst.CSTTransformer):
    def __init__(self, context: CodemodContext, care: Care) -> None:
        super().__init__()
        self.done = Done()
        self._context = context
        self._care = care
        self._functions: list[str] = []
        self._left: list[str] = []  # rules that the current line breaks on purpose
        self._headers: list[list[str]] = []  # the same, of the headers of the blocks around it

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._functions.append(node.name.value)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.BaseStatement:
        self._functions.pop()
        return updated_node

    def leave_ExceptHandler(
        self, original_node: cst.ExceptHandler, updated_node: cst.ExceptHandler
    ) -> cst.ExceptHandler:
        if updated_node.type is not None:
            return updated_node
        # Bare `except` is `except BaseException`; what people mean by it is nearly always `except Exception`.
        name = "BaseException" if self._careful() else "Exception"
        self.done.changed["bare except"] += 1
        return updated_node.with_changes(type=cst.Name(name), whitespace_after_except=cst.SimpleWhitespace(" "))

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        if len(updated_node.comparisons) != 1:
            return updated_node
        target = updated_node.comparisons[0]
        is_none = m.matches(target.comparator, _NONE) or m.matches(updated_node.left, _NONE)
        if not is_none or not isinstance(target.operator, cst.Equal | cst.NotEqual):
            return updated_node
        # A class may have an own idea of what equals None.
        if self._careful():
            return self._leave(updated_node, "comparison with None", "E711")
        modern = cst.Is() if isinstance(target.operator, cst.Equal) else cst.IsNot()
        self.done.changed["comparison with None"] += 1
        if m.matches(updated_node.left, _NONE):
            updated_node = updated_node.with_changes(left=target.comparator)
            target = target.with_changes(comparator=cst.Name("None"))
        return updated_node.with_changes(comparisons=[target.with_changes(operator=modern)])

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        modern = percent.translate(updated_node, careful=self._careful())
        if modern is not None:
            self.done.changed["%-format"] += 1
            return modern
        if isinstance(updated_node.operator, cst.Modulo) and isinstance(updated_node.left, cst.SimpleString):
            return self._leave(updated_node, "%-format", "UP031")
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = paths.name_of(updated_node)
        if name is None:
            return updated_node
        modern = None if self._careful() else paths.translate(updated_node)
        if modern is None:
            return self._leave(updated_node, "os.path", paths.RULES[name])
        AddImportsVisitor.add_needed_import(self._context, "pathlib", "Path")
        self.done.changed["os.path"] += 1
        return modern

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement:
        rules, self._left = self._left, []
        return updated_node.with_changes(trailing_whitespace=self._marked(updated_node.trailing_whitespace, rules))

    def leave_SimpleStatementSuite(
        self, original_node: cst.SimpleStatementSuite, updated_node: cst.SimpleStatementSuite
    ) -> cst.BaseSuite:
        rules, self._left = self._left, []
        return updated_node.with_changes(trailing_whitespace=self._marked(updated_node.trailing_whitespace, rules))

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._headers.append(self._left)
        self._left = []

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        return updated_node.with_changes(header=self._marked(updated_node.header, self._headers.pop()))

    def _careful(self) -> bool:
        # A function inside a careful function is careful too.
        found = [name for name in self._functions or [""] if self._care.covers(name)]
        if found:
            self.done.careful.update(name for name in found if name)
        return bool(found)

    def _leave(self, node: cst.BaseExpression, idiom: str, rule: str) -> cst.BaseExpression:
        self.done.kept[idiom] += 1
        if self._careful():
            self._left.append(rule)
        return node

    def _marked(self, end: cst.TrailingWhitespace, rules: list[str]) -> cst.TrailingWhitespace:
        there = end.comment.value if end.comment is not None else ""
        if not rules or "noqa" in there:
            return end
        mark = f"# noqa: {', '.join(sorted(set(rules)))} -- {self._care.reason}"
        text = f"{there}  {mark}" if there else mark
        return end.with_changes(whitespace=cst.SimpleWhitespace("  "), comment=cst.Comment(text))
