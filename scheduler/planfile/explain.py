"""Says in plain words what pydantic found wrong with the shape of a file, and what to write instead.

Must not check anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scheduler.model.checks import CHECK_KINDS
from scheduler.planfile.kinds import EDGE_LISTS, kind_of
from scheduler.planfile.later import LATER_AGENTS, LATER_CHECKS, LATER_ON_FAILURE, LATER_WHEN, later_remedy
from scheduler.planfile.raw import AGENT_KINDS, FIELDS
from scheduler.planfile.report import Report, clip, describe, near
from scheduler.planfile.source import Path

_EXAMPLES = {
    "name": "name: my-plan",
    "goal": "goal: what the plan is for",
    "tasks": "tasks: [...]",
    "id": "id: my-task",
    "task": "task: the id of a task",
    "run": 'run: "a shell command"',
    "call": 'call: "package.module:function"',
    "schema": "schema: {type: object}",
    "path": "path: a file",
    "fallback": "fallback: the id of a task",
    "junit": "junit: report.xml",
}
_WORD = "write letters, digits, - and _ (at most 64), beginning with a letter or digit"
_PATTERNS = {
    "id": _WORD,
    "name": _WORD,
    "call": 'write "package.module:function"',
    "python": 'write "package.module:function", or the name of an entry point of dagward.verifiers',
    "sha256": "write 64 lower-case hexadecimal digits",
    "for_each": "write TASK.OUTPUT, such as survey.modules",
}


@dataclass(frozen=True, slots=True)
class Misfit:
    """One value that does not fit its model: pydantic's type of error with its facts, and where the value is."""

    type: str
    facts: Mapping[str, object]
    text: str  # pydantic's own words
    path: Path
    found: object
    root: object
    report: Report

    @property
    def name(self) -> str:
        """The field, as it is called in the file."""
        return str(self.path[-1]) if self.path else ""

    def error(self, message: str, remedy: str = "", *, below: str = "", key: bool = False) -> None:
        """Report the value, or the field `below` of it."""
        self.report.error((*self.path, below) if below else self.path, message, remedy, key=key)


def explain(misfit: Misfit) -> None:
    """Report one misfit."""
    told = _EXPLAIN.get(misfit.type)
    if told is None:
        misfit.error(clip(misfit.text, 200))
    else:
        told(misfit)


def _missing(misfit: Misfit) -> None:
    example = _EXAMPLES.get(misfit.name)
    misfit.error(f'required field "{misfit.name}" is missing', f"add {example}" if example else "add it")


def _extra(misfit: Misfit) -> None:
    kind = kind_of(misfit.path[:-1], misfit.root)
    remedy = later_remedy(kind, misfit.name)
    if remedy is not None:
        misfit.error(f'"{misfit.name}" is not in this version', remedy, key=True)
    else:
        misfit.error(f'unknown field "{misfit.name}"', near(misfit.name, FIELDS.get(kind, ()), "fields"), key=True)


def _wanted(what: str) -> Callable[[Misfit], None]:
    def told(misfit: Misfit) -> None:
        found = misfit.found
        if len(misfit.path) > 1 and misfit.path[-2] in EDGE_LISTS:
            if not isinstance(found, dict):  # for a mapping its own errors say more
                misfit.error(f"must be a task, not {describe(found)}", "write its id, or {task: ID}")
            return
        if misfit.name == "weakening":
            misfit.error(f"must be true, not {describe(found)}", "write weakening: true, or {paths: [...]}")
            return
        remedy = ""
        if what == "a text" and isinstance(found, (bool, int, float)):
            remedy = f'put it in quotes: "{str(found).lower() if isinstance(found, bool) else found}"'
        elif misfit.name == "junit":
            remedy = 'write the path of the report, and its command beside it: junit: report.xml, run: "..."'
        elif what == "a list" and isinstance(found, str):
            remedy = f'write ["{clip(found)}"]'
        misfit.error(f"must be {what}, not {describe(found)}", remedy)

    return told


def _literal(misfit: Misfit) -> None:
    found, name = misfit.found, misfit.name
    if name == "approval" and isinstance(found, str):
        misfit.error(f'the approval policy "{clip(found)}" is not in this version', "write auto or required")
    elif name == "when" and found in LATER_WHEN:
        misfit.error(f'"{found}" is not in this version', "write verified or settled")
    elif name == "on_failure":
        told = "is not in this version" if found in LATER_ON_FAILURE else "is no answer to a failure"
        misfit.error(f"{describe(found)} {told}", "write fail, continue or {fallback: ID}")
    elif name == "format":
        misfit.error(f"unknown format {describe(found)}", "write format: 1")
    elif name == "exit":
        misfit.error(f"must be true, not {describe(found)}", "write exit: true")
    else:
        allowed = str(misfit.facts.get("expected", "")).replace("'", "")
        misfit.error(f"must be {allowed}, not {describe(found)}", f"write {allowed}")


def _union(misfit: Misfit) -> None:
    if misfit.name == "agent":
        _explain_agent(misfit)
    else:
        _explain_check(misfit)


def _explain_agent(misfit: Misfit) -> None:
    found = misfit.found
    kinds = " or ".join(AGENT_KINDS)
    if not isinstance(found, dict):
        misfit.error(f"must be a mapping, not {describe(found)}", 'write {use: command, run: "..."}')
    elif "use" not in found:
        misfit.error('required field "use" is missing', f"add use: {kinds}", below="use")
    elif found["use"] in LATER_AGENTS:
        misfit.error(f'the agent "{found["use"]}" is not in this version', f"use {kinds}", below="use")
    elif found["use"] == "system":
        misfit.error('the agent "system" is dagward\'s own', f"use {kinds}", below="use")
    else:
        use = found["use"]
        misfit.error(f"unknown agent {describe(use)}", near(str(use), AGENT_KINDS, "agents"), below="use")


def _explain_check(misfit: Misfit) -> None:
    found, listing = misfit.found, ", ".join(CHECK_KINDS)
    if not isinstance(found, dict):
        misfit.error(f"must be a check, not {describe(found)}", 'write {run: "..."} or exit')
        return
    kinds = [kind for kind in CHECK_KINDS if kind in found]
    later = [kind for kind in LATER_CHECKS if kind in found]
    if len(kinds) > 1:
        message = f"a check has one kind, this one has {len(kinds)}: {', '.join(kinds)}"
        misfit.error(message, "make one entry of each")
    elif later:
        message = f'the check "{later[0]}" is not in this version'
        misfit.error(message, f"use one of {listing}", below=later[0], key=True)
    elif found:
        name = str(next(iter(found)))
        misfit.error(f'unknown check "{name}"', near(name, CHECK_KINDS, "checks"), below=name, key=True)
    else:
        misfit.error("a check has one kind, this one has none", f"write one of {listing}")


def _duration(misfit: Misfit) -> None:
    message = str(misfit.facts["text"])
    if message == "must be a duration":
        message = f"must be a duration, not {describe(misfit.found)}"
    misfit.error(message, str(misfit.facts["remedy"]))


def _pattern(misfit: Misfit) -> None:
    found = clip(str(misfit.found))
    if misfit.name == "id" and found.startswith("_"):
        misfit.error(f'the id "{found}" is reserved', 'ids that begin with "_" belong to dagward')
    else:
        misfit.error(f'"{found}" is not a valid {misfit.name}', _PATTERNS.get(misfit.name, ""))


def _bound(word: str, fact: str) -> Callable[[Misfit], None]:
    def told(misfit: Misfit) -> None:
        limit = misfit.facts.get(fact)
        misfit.error(f"must be {word} {limit}, not {describe(misfit.found)}", f"write {word} {limit}")

    return told


def _empty(misfit: Misfit) -> None:
    if misfit.name == "verify":
        misfit.error("an empty list checks nothing", "leave verify out, or write a check")
    elif misfit.name == "tasks":
        misfit.error("a plan needs at least one task", "write a task")
    else:
        misfit.error("must not be empty", "write something")


def _surrogate(misfit: Misfit) -> None:
    misfit.error("holds half of a surrogate pair", "remove it")


_EXPLAIN: dict[str, Callable[[Misfit], None]] = {
    "missing": _missing,
    "extra_forbidden": _extra,
    "literal_error": _literal,
    "union_tag_invalid": _union,
    "union_tag_not_found": _union,
    "model_attributes_type": _union,
    "duration": _duration,
    "string_type": _wanted("a text"),
    "int_type": _wanted("a whole number"),
    "int_from_float": _wanted("a whole number"),
    "bool_type": _wanted("true or false"),
    "list_type": _wanted("a list"),
    "tuple_type": _wanted("a list"),
    "dict_type": _wanted("a mapping"),
    "model_type": _wanted("a mapping"),
    "string_pattern_mismatch": _pattern,
    "greater_than_equal": _bound("at least", "ge"),
    "less_than_equal": _bound("at most", "le"),
    "string_too_short": _empty,
    "string_unicode": _surrogate,
    "too_short": _empty,
}
