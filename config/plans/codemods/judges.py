"""An example of a `python` check: `{python: "tools.judges:same_interface"}`.

A refactor may change how a module works, not what others can call. The check runs in a clean copy of the result, in a
process of its own; the plan protects `tools/**`, so no agent can change its judge.
"""

from __future__ import annotations

import ast
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workers.verifiers.child import Context


def same_interface(context: Context) -> tuple[bool, str]:
    """Accept when every changed module still has the public functions and classes of the base, with their arguments."""
    lost: list[str] = []
    modules = [path for path in context.changed if path.endswith(".py")]
    for path in modules:
        file = context.tree / path
        now = interface(file.read_text(encoding="utf-8")) if file.is_file() else {}
        lost += [
            f"{path}: {name}" for name, shape in interface(_at_base(context, path)).items() if now.get(name) != shape
        ]
    if lost:
        return False, f"gone or changed: {', '.join(lost)}"
    return True, f"{len(modules)} changed modules have the interface of their base"


def interface(text: str) -> dict[str, str]:
    """Public names of a module, methods as `Class.method`, each with its arguments as they are written."""
    found: dict[str, str] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = "class"
            found |= {f"{node.name}.{each.name}": ast.unparse(each.args) for each in node.body if _is_function(each)}
        elif _is_function(node):
            found[node.name] = ast.unparse(node.args)
    return {name: shape for name, shape in found.items() if not any(part.startswith("_") for part in name.split("."))}


def _is_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _at_base(context: Context, path: str) -> str:
    """The file as it is in the base; empty for a new one. A check tree has a git that knows both commits."""
    done = subprocess.run(
        ["git", "show", f"{context.base}:{path}"], cwd=context.tree, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""
