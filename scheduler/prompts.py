"""Prompts: sandboxed templates over `params`, `item` and `outputs.<task>.<name>`, strict about names that do not exist.

Must not know where a prompt comes from or which agent reads it. The only import of jinja2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from scheduler.errors import Refusal
from scheduler.model.base import Json

if TYPE_CHECKING:
    from jinja2 import Environment, nodes

MAX_LENGTH = 1_000_000
"""Characters of a rendered prompt. More is a loop gone wrong, and no agent reads it."""

ROOTS = ("outputs", "params")
_MARKS = ("{{", "{%", "{#")
_PLAIN_READ = re.compile(
    r"\{\{-?\s*(?:(params|outputs)\.([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z_][A-Za-z0-9_]*))?|item)"
    r"(?:\.[A-Za-z_][A-Za-z0-9_]*)*\s*-?\}\}",
    re.ASCII,
)


class NoItem:
    """The item of a task that has none: null is an item like any other."""


NO_ITEM: Final = NoItem()


class PromptRefused(Refusal):
    """Correct the prompt in the plan file, or let the task before it write what the prompt reads."""

    code = "prompt"


@dataclass(frozen=True, slots=True)
class PromptProblem:
    """What is wrong with a template. `line` counts from 1 within the prompt."""

    line: int
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Names:
    """What a prompt or condition may use: the plan's parameters, and the outputs of the tasks before its task."""

    params: Collection[str]
    tasks: Collection[str]  # all ids of the plan
    ancestors: Callable[[], Collection[str]]  # asked only when outputs are read
    item: bool = False  # whether the task has an item: it is made with `for_each`
    lists: Collection[str] = ()  # tasks with `for_each`: their outputs are a list, one mapping for each item


def is_template(text: str) -> bool:
    """Whether a prompt holds any template mark; plain text is given to the agent as it is."""
    return any(mark in text for mark in _MARKS)


def render(
    template: str,
    *,
    params: Mapping[str, str | None],
    outputs: Mapping[str, Json],
    item: Json | NoItem = NO_ITEM,
) -> str:
    """The prompt with its values. Lists, mappings, true and null are written as JSON.

    outputs: task -> its mapping, or for a `for_each` task a list of mappings in the order of its items.
    Raises PromptRefused, which names the line, for an undefined name, an error in the template or an endless text.
    """
    if not is_template(template):
        return template
    import jinja2

    values: dict[str, object] = {"params": dict(params), "outputs": dict(outputs)}
    if not isinstance(item, NoItem):
        values["item"] = item
    parts: list[str] = []
    length = 0
    try:
        for part in _environment().from_string(template).generate(values):
            parts.append(part)
            length += len(part)
            if length > MAX_LENGTH:
                raise PromptRefused(f"the prompt grows beyond {MAX_LENGTH:,} characters")
    except jinja2.TemplateSyntaxError as error:
        raise PromptRefused(f"the prompt's line {error.lineno}: {error.message}") from None
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise PromptRefused(f"the prompt cannot be written: {error}") from None
    return "".join(parts)


def check(template: str, names: Names) -> list[PromptProblem]:
    """What can be known before anything runs: syntax, names, and outputs of tasks that do not come before."""
    if not is_template(template):
        return []
    if not is_template(_PLAIN_READ.sub(" ", template)):  # no need to load a template language for these
        reads = [(found, template.count("\n", 0, found.start()) + 1) for found in _PLAIN_READ.finditer(template)]
        problems = [_read(found[1] or "item", found[2], found[3], line, names) for found, line in reads]
        return [problem for problem in dict.fromkeys(problems) if problem is not None]
    return _check_tree(template, names)


def _check_tree(template: str, names: Names) -> list[PromptProblem]:
    import jinja2
    from jinja2 import meta, nodes

    environment = _environment()
    try:
        tree = environment.parse(template)
        undeclared = meta.find_undeclared_variables(tree) - _roots(names) - environment.globals.keys()
    except jinja2.TemplateSyntaxError as error:
        return [PromptProblem(error.lineno, f"not a valid template: {error.message}", "correct it")]
    roots = [each for each in tree.find_all(nodes.Name) if each.ctx == "load" and each.name in undeclared]
    problems: list[PromptProblem | None] = [PromptProblem(each.lineno, *undefined(each.name)) for each in roots]
    problems += [
        PromptProblem(each.lineno, "a prompt cannot read other files", "write the text into the prompt")
        for each in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends))
    ]
    reads: list[nodes.Getattr | nodes.Getitem] = [*tree.find_all(nodes.Getattr), *tree.find_all(nodes.Getitem)]
    fields = {id(node.node): _constant(node) for node in reads}
    for node in reads:
        name = _constant(node)
        if isinstance(node.node, nodes.Name) and node.node.name in ROOTS and name is not None:
            problems.append(_read(node.node.name, name, fields.get(id(node)), node.lineno, names))
    return sorted((problem for problem in dict.fromkeys(problems) if problem), key=lambda problem: problem.line)


def _roots(names: Names) -> set[str]:
    return {*ROOTS, "item"} if names.item else set(ROOTS)


def _read(root: str, name: str, field: str | None, line: int, names: Names) -> PromptProblem | None:
    if root == "item":
        return None if names.item else PromptProblem(line, *undefined(root))
    found = unreadable(root, name, field, names)
    return PromptProblem(line, *found) if found else None


def undefined(name: str) -> tuple[str, str]:
    """Message and remedy for a name that no prompt and no condition has."""
    if name == "item":
        return '"item" is undefined here', "only the prompt and scope of a task with for_each have it"
    return f'"{name}" is undefined', 'write params.NAME, outputs.TASK.NAME or outputs["a-task"].NAME'


def unreadable(root: str, name: str, field: str | None, names: Names) -> tuple[str, str] | None:
    """Message and remedy when `params.name` or `outputs.name.field` cannot be read; None when it can.

    `field` is None when all outputs of a task are meant, or one of them that is not known before."""
    if root == "params" and name not in names.params:
        known = ", ".join(sorted(names.params)) or "none"
        return f'unknown parameter "{name}"', f"known parameters: {known}"
    if root != "outputs":
        return None
    if name not in names.tasks:
        return f'unknown task "{name}" in outputs', "write the id of a task before this one"
    if name not in names.ancestors():
        message = f'outputs of "{name}" do not exist yet: it does not come before this task'
        return message, f"add blocked_by: [{name}]"
    if field is not None and name in names.lists:
        one = f"outputs.{name}" if name.isidentifier() else f'outputs["{name}"]'
        return (
            f'outputs of "{name}" are a list, one for each of its items',
            f"write {one}[0].{field}, or go through {one}",
        )
    return None


def _constant(node: nodes.Getattr | nodes.Getitem) -> str | None:
    from jinja2 import nodes

    if isinstance(node, nodes.Getattr):
        return node.attr
    return node.arg.value if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str) else None


@cache
def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Sandbox(ImmutableSandboxedEnvironment):
        """A key of a mapping goes before the mapping's methods: outputs may have a field called `items`."""

        def getattr(self, obj: object, attribute: str) -> object:
            if isinstance(obj, Mapping) and attribute in obj:
                value: object = obj[attribute]
                return value
            return super().getattr(obj, attribute)

    return Sandbox(
        undefined=StrictUndefined,
        finalize=_as_text,
        keep_trailing_newline=True,
        autoescape=False,  # the reader is an agent, not a browser
    )


def _as_text(value: object) -> object:
    if isinstance(value, (dict, list, tuple, bool)) or value is None:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    if callable(value) and not hasattr(value, "_undefined_name"):
        raise TypeError("a function is not a value; call it or read a field")
    return value
