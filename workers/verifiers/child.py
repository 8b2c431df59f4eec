"""The child process of a `python` check: `python -P child.py MODULE:FUNCTION|ENTRY-POINT QUESTION ANSWER`.

Standard library only, and started by its path, so that nothing of the check tree is imported before the function is.
QUESTION is a JSON file with the fields of `Context`; ANSWER is the file that this process writes. The folder of the
check tree is last on the path: what is installed beside dagward goes before what a result brings.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "dagward.verifiers"
CANNOT_RUN = 127
Answer = bool | tuple[bool, str] | Mapping[str, object]


@dataclass(frozen=True)
class Context:
    """What a check function is given. `changed` are the paths in which the result differs from its base;
    `options` is the check's `with`, `outputs` what the task wrote to $DAGWARD_OUTPUTS."""

    tree: Path
    plan: str
    task: str
    attempt: int
    digest: str
    base: str | None = None
    changed: tuple[str, ...] = ()
    outputs: Mapping[str, object] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)


class BadFunction(Exception):
    """The plan names something that cannot be called, or that does not answer."""


def find(name: str) -> Callable[[Context], object]:
    """The function behind `module:function` or the name of an entry point. Raises BadFunction."""
    module, colon, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute) if colon else _entry_point(name)
    except BadFunction:
        raise
    except Exception as error:
        raise BadFunction(f"{name}: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise BadFunction(f"{name} is not a function")
    found: Callable[[Context], object] = function
    return found


def _entry_point(name: str) -> object:
    group = entry_points(group=GROUP)
    found = [each for each in group if each.name == name]
    if not found:
        known = ", ".join(sorted(each.name for each in group)) or "none"
        raise BadFunction(f"no entry point {name} in the group {GROUP}; installed: {known}")
    return found[0].load()


def verdict(answer: object) -> tuple[bool, str]:
    """Accepted and why: from True or False, (accepted, reason), or {"accepted": ..., "reason": ...}."""
    if isinstance(answer, bool):
        return answer, ""
    if isinstance(answer, Mapping) and isinstance(answer.get("accepted"), bool):
        return bool(answer["accepted"]), str(answer.get("reason", ""))
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], bool):
        return answer[0], str(answer[1])
    raise BadFunction(f"it returned {answer!r:.100}, which is no verdict: return True, False or (False, REASON)")


def main() -> int:
    """Ask the function and write its verdict. 127: there is no such function, or no verdict."""
    name, question, answer = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    given = json.loads(question.read_text(encoding="utf-8"))
    context = Context(**{**given, "tree": Path(given["tree"]), "changed": tuple(given["changed"])})
    sys.path.append(str(context.tree))
    try:
        function = find(name)
        try:
            accepted, reason = verdict(function(context))
        except AssertionError as error:
            accepted, reason = False, str(error) or "an assertion of the check failed"
    except BadFunction as error:
        sys.stderr.write(f"{error}\n")
        return CANNOT_RUN
    except Exception as error:  # noqa: BLE001 -- the function may raise anything; it does not accept then
        traceback.print_exc()
        accepted, reason = False, f"{type(error).__name__}: {error}"
    answer.write_text(json.dumps({"accepted": accepted, "reason": reason}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
