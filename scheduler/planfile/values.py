"""Rules for single values that reach a shell or an environment: commands and variable names.

Must not know which task they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from scheduler.planfile.report import Report, clip
from scheduler.planfile.source import Path

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TEMPLATE = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_PARAM = re.compile(r"params\.([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_OUTPUT = re.compile(r"outputs(?:\.([A-Za-z0-9_]+)|\[['\"]([A-Za-z0-9_-]+)['\"]\])", re.ASCII)


def check_run(text: object, path: Path, report: Report) -> None:
    """A shell text must not carry a template: a value put into it would be read as code."""
    if not isinstance(text, str):
        return
    found = _TEMPLATE.search(text)
    if found is not None:
        message = f"{{{{ {clip(found[1])} }}}} is not replaced in a command"
        report.error(path, message, _instead(found[1]))


def _instead(inner: str) -> str:
    param, output = _PARAM.match(inner), _OUTPUT.match(inner)
    if param is not None:
        return f'write "$DAGWARD_PARAM_{param[1].upper()}"'
    if output is not None:
        return f'read "$DAGWARD_INPUTS/{output[1] or output[2]}/outputs.json"'
    if inner == "item":
        return 'write "$DAGWARD_ITEM"'
    return 'write "$DAGWARD_PARAM_NAME" for a parameter; put a text that needs braces into a script'


def check_names(names: Iterable[str], path: Path, report: Report, *, listed: bool = False) -> None:
    """Names of environment variables; as keys of a mapping, or (`listed`) one that stands at `path` itself."""
    for name in names:
        where = path if listed else (*path, name)
        if not _NAME.fullmatch(name):
            message = f'"{clip(name)}" is not a name of a variable'
            report.error(where, message, "write letters, digits and _, not beginning with a digit", key=not listed)
        elif name.startswith("DAGWARD_"):
            report.error(where, f"{name} is set by dagward", "choose another name", key=not listed)
