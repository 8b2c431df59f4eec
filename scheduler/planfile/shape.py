"""Checks the shape of a file against the models in `raw`.

Must not know how values relate to each other; that is `references` and `rules`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from scheduler.planfile.explain import Misfit, explain
from scheduler.planfile.kinds import file_path
from scheduler.planfile.raw import FilePlan
from scheduler.planfile.report import Report, value_at
from scheduler.planfile.source import Path

_NEVER_NULL = {
    "plan": ("repo",),
    "defaults": ("agent", "env", "verify"),
    "task": ("agent", "blocked_by", "blockedBy", "blocks", "for_each", "if", "env", "verify"),
    "retries": ("max_backoff",),
    "scope": ("write", "protect"),
    "check run": ("timeout",),
    "file": ("sha256",),
    "diff": ("only",),
    "weakening": ("paths",),
}


def check_shape(value: object, report: Report) -> FilePlan | None:
    """The file as a model; None when something was reported."""
    try:
        return FilePlan.model_validate(value)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            path = file_path(detail["loc"])
            found = value_at(value, path)
            explain(Misfit(detail["type"], detail.get("ctx", {}), detail["msg"], path, found, value, report))
        return None


def check_nulls(mapping: Mapping[str, object], path: Path, kind: str, report: Report) -> None:
    """A key with nothing behind it is a forgotten value, not a choice (but for `stall`, where it means none)."""
    if None not in mapping.values():
        return
    for name in _NEVER_NULL.get(kind, ()):
        if name in mapping and mapping[name] is None:
            report.error((*path, name), "has no value", "give one, or remove the field")
