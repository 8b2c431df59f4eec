"""Which mapping of a plan file stands at a path, and where unions of the models hide in pydantic's paths.

Must not know what is wrong with a value.
"""

from __future__ import annotations

from scheduler.model.checks import check_kind
from scheduler.planfile.report import value_at
from scheduler.planfile.source import Path

CHECK_LISTS = ("verify", "acceptance")
EDGE_LISTS = ("blocked_by", "blockedBy", "blocks")


def kind_of(path: Path, root: object) -> str:
    """A key of `raw.FIELDS`, or another word for a mapping whose fields are free."""
    if not path:
        return "plan"
    last = path[-1]
    if len(path) == 2 and path[0] == "tasks":
        return "task"
    if isinstance(last, int) and len(path) > 1:
        if path[-2] in CHECK_LISTS:
            return _check_kind(value_at(root, path))
        return "edge" if path[-2] in EDGE_LISTS else ""
    if last == "agent":
        agent = value_at(root, path)
        return f"agent {agent.get('use')}" if isinstance(agent, dict) else "agent"
    return str(last)


def file_path(loc: tuple[int | str, ...]) -> Path:
    """pydantic names the member of a union in its path; the file has no such step."""
    path: list[int | str] = []
    union = False
    for step in loc:
        if union:
            union = False
            continue
        path.append(step)
        union = _is_union(path)
    return tuple(path)


def _check_kind(check: object) -> str:
    kind = check_kind(check) if isinstance(check, dict) else None
    return f"check {kind}" if kind else "check"


def _is_union(path: list[int | str]) -> bool:
    if path[0] not in ("tasks", "defaults", "acceptance") or "schema" in path:
        return False
    if isinstance(path[-1], int):
        return len(path) > 1 and path[-2] in CHECK_LISTS + EDGE_LISTS
    if path[-1] == "on_failure":
        return len(path) == 3
    return path[-1] == "agent" and len(path) in (2, 3)
