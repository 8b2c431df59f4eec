"""Reads why the last attempt was refused: which functions its failed tests point at.

The input is dagward's evidence file (`$DAGWARD_EVIDENCE`): `{"failure": {...}, "checks": [{"accepted", "attempt",
"output", ...}, ...]}`, where `output` is what pytest printed. Must not know how code is changed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .idioms import Care

# pytest's short summary, and the frames of `--tb=short`.
_FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<file>[^\s:]+\.py)(?:::(?P<test>\S+))?", re.MULTILINE)
_FRAME = re.compile(r"^(?P<file>\S+\.py):\d+: in (?P<function>\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rejection:
    """The refused checks of one attempt: its number, and all that they printed."""

    attempt: int
    output: str

    def tests(self) -> Iterator[tuple[str, str]]:
        """(file, test function) of each failed test; the function is "" when the whole file failed."""
        for found in _FAILED.finditer(self.output):
            yield found["file"], (found["test"] or "").partition("[")[0].rpartition("::")[2]

    def frames(self) -> Iterator[tuple[str, str]]:
        """(file, function) of each frame in a traceback."""
        for found in _FRAME.finditer(self.output):
            yield found["file"], found["function"]


def read(file: Path) -> Rejection | None:
    """The last rejection, or None when no check was refused (the attempt ended before its checks)."""
    found = json.loads(file.read_text(encoding="utf-8"))
    refused = [check for check in found.get("checks", ()) if not check["accepted"]]
    if not refused:
        return None
    return Rejection(
        attempt=max(check["attempt"] for check in refused),
        output="\n".join(check.get("output", "") for check in refused),
    )


def care(rejection: Rejection | None, module: Path, top: Path) -> Care:
    """Where to be careful in `module` (relative to `top`, the repository) after a rejection.

    First the functions that a failed test calls itself or that stand in its traceback. When they cannot be told, or
    when that was not enough and a second attempt was refused, everywhere.
    """
    if rejection is None:
        return Care()
    tests = sorted(set(rejection.tests()))
    reason = f"refused by {tests[0][1] or tests[0][0]}" if tests else "the last attempt was refused"
    known = functions(top / module)
    named = {function for file, function in rejection.frames() if Path(file) == module}
    for file, test in tests:
        named |= called_by(top / file, test)
    suspects = frozenset(named & known)
    return Care(functions=suspects, everywhere=not suspects or rejection.attempt > 1, reason=reason)


def functions(module: Path) -> set[str]:
    """Names of all functions and methods of a module."""
    return {node.name for node in ast.walk(_parsed(module)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def called_by(file: Path, test: str) -> set[str]:
    """Names that a test calls itself, as `f()` or `x.f()`."""
    if not file.is_file():
        return set()
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.FunctionDef) and node.name == test:
            calls = [call.func for call in ast.walk(node) if isinstance(call, ast.Call)]
            names = {func.id for func in calls if isinstance(func, ast.Name)}
            return names | {func.attr for func in calls if isinstance(func, ast.Attribute)}
    return set()


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes(), str(file))
