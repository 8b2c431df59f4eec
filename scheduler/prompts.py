"""Prompts: sandboxed templates over `params` and `outputs.<task>.<name>`, strict about names that do not exist.

Must not know where a prompt comes from or which agent reads it. The only import of jinja2.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from scheduler.errors import Refusal
from scheduler.model.base import Json

if TYPE_CHECKING:
    from jinja2 import Environment, nodes

MAX_LENGTH = 1_000_000
"""Characters of a rendered prompt. More is a loop gone wrong, and no agent reads it."""

ROOTS = ("outputs", "params")
_MARKS = ("{{", "{%", "{#")


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
    """What a task's prompt may use: the plan's parameters, and the outputs of the tasks before it."""

    params: Collection[str]
    tasks: Collection[str]  # all ids of the plan
    ancestors: Callable[[], Collection[str]]  # asked only when the prompt reads outputs


def is_template(text: str) -> bool:
    """Whether a prompt holds any template mark; plain text is given to the agent as it is."""
    return any(mark in text for mark in _MARKS)


def render(template: str, *, params: Mapping[str, str | None], outputs: Mapping[str, Mapping[str, Json]]) -> str:
    """The prompt with its values. Lists, mappings, true and null are written as JSON.

    Raises PromptRefused, which names the line, for an undefined name, an error in the template or an endless text.
    """
    if not is_template(template):
        return template
    import jinja2

    parts: list[str] = []
    length = 0
    try:
        for part in _environment().from_string(template).generate(params=dict(params), outputs=dict(outputs)):
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
    import jinja2
    from jinja2 import meta, nodes

    environment = _environment()
    try:
        tree = environment.parse(template)
        environment.compile(tree)  # finds unknown filters and tests
        tree = environment.parse(template)
    except jinja2.TemplateSyntaxError as error:
        return [PromptProblem(error.lineno, f"not a valid template: {error.message}", "correct it")]
    undeclared = meta.find_undeclared_variables(tree) - set(ROOTS) - environment.globals.keys()
    problems = [
        _unknown_root(name) for name in tree.find_all(nodes.Name) if name.ctx == "load" and name.name in undeclared
    ]
    problems += [
        PromptProblem(node.lineno, "a prompt cannot read other files", "write the text into the prompt")
        for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends))
    ]
    reads: list[nodes.Getattr | nodes.Getitem] = [*tree.find_all(nodes.Getattr), *tree.find_all(nodes.Getitem)]
    problems += [problem for node in reads for problem in _access(node, names)]
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line)


def _unknown_root(name: nodes.Name) -> PromptProblem:
    if name.name == "item":
        return PromptProblem(name.lineno, '"item" is not in this version', "write one task for each item")
    remedy = 'write params.NAME, outputs.TASK.NAME or outputs["a-task"].NAME'
    return PromptProblem(name.lineno, f'"{name.name}" is undefined', remedy)


def _access(node: nodes.Getattr | nodes.Getitem, names: Names) -> Iterator[PromptProblem]:
    from jinja2 import nodes

    if not isinstance(node.node, nodes.Name) or node.node.name not in ROOTS:
        return
    name = _constant(node)
    if name is None:
        return
    if node.node.name == "params":
        if name not in names.params:
            known = ", ".join(sorted(names.params)) or "none"
            yield PromptProblem(node.lineno, f'unknown parameter "{name}"', f"known parameters: {known}")
    elif name not in names.tasks:
        yield PromptProblem(node.lineno, f'unknown task "{name}" in outputs', "write the id of a task before this one")
    elif name not in names.ancestors():
        message = f'outputs of "{name}" do not exist yet: it does not come before this task'
        yield PromptProblem(node.lineno, message, f"add blocked_by: [{name}]")


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
