"""Instances of a `for_each` task: their ids, what each of them is, and the item as a text.

Pure. Must not know where the items come from, nor when a task is expanded.
"""

from __future__ import annotations

import json
import re
from typing import Final

from scheduler.errors import Refusal
from scheduler.model.base import Json
from scheduler.model.plan import Scope, TaskSpec

MAX_ITEM = 100_000
"""Bytes of an item as a text. Linux gives a process no single variable beyond 128 KiB."""

MARK: Final = re.compile(r"\{\{\s*item((?:\.[A-Za-z_][A-Za-z0-9_]*)*)\s*\}\}", re.ASCII)
"""`{{ item }}` or a part of it, `{{ item.name }}`, in a scope pattern; the group holds `.name`."""

_INSTANCE = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.(0|[1-9][0-9]{0,8})", re.ASCII)


class BadItem(Refusal):
    """Correct the task that writes the items; the prompt, the environment and the scope are made from each of them."""

    code = "item"


def instance_id(task: str, number: int) -> str:
    """The id of the instance for an item; numbers count from 0 in the order of the items."""
    return f"{task}.{number}"


def split_instance(name: str) -> tuple[str, int] | None:
    """The task and the number of an instance's id; None for the id of anything else. Task ids hold no dots."""
    found = _INSTANCE.fullmatch(name)
    return (found[1], int(found[2])) if found else None


def item_text(item: Json) -> str:
    """The item as `DAGWARD_ITEM` holds it: a text as it is, anything else as JSON. Raises BadItem when it cannot."""
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, sort_keys=True)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadItem("the item holds half of a surrogate pair, which no environment can carry") from None
    if "\0" in text:
        raise BadItem("the item holds a NUL character, which no environment can carry")
    if size > MAX_ITEM:
        raise BadItem(f"the item has {size:,} bytes, and an environment carries {MAX_ITEM:,}")
    return text


def instance_spec(template: TaskSpec, number: int, item: Json) -> TaskSpec:
    """The task for one item: an id of its own, and the item in the scope's patterns.

    Edges, prompt, agent and checks are the template's. `for_each` and `if` are gone: both were asked of the template.
    A rendered pattern stays within the one it was made from, because the item fills one part of a path and never
    becomes a wildcard. Raises BadItem, which names the instance, when it would be anything else.
    """
    name = instance_id(template.id, number)
    try:
        item_text(item)
        scope = Scope(write=_rendered(template.scope.write, item), protect=_rendered(template.scope.protect, item))
    except BadItem as refused:
        raise BadItem(f"{name}: {refused.message}") from None
    return template.model_copy(update={"id": name, "scope": scope, "for_each": None, "if_": None})


def plain_pattern(pattern: str) -> str:
    """A scope pattern with its marks in one spelling, so that white space does not make another plan."""
    return MARK.sub(r"{{ item\1 }}", pattern) if "{{" in pattern else pattern


def _rendered(patterns: tuple[str, ...], item: Json) -> tuple[str, ...]:
    if not any("{{" in pattern for pattern in patterns):
        return patterns
    return tuple(sorted({MARK.sub(lambda found: _component(item, found[1]), pattern) for pattern in patterns}))


def _component(item: Json, path: str) -> str:
    """One part of a path, for `{{ item }}` or `{{ item.a.b }}`."""
    at: Json = item
    for name in path.split(".")[1:]:
        if not isinstance(at, dict) or name not in at:
            raise BadItem(f"the scope names item{path}, which the item does not have")
        at = at[name]
    if isinstance(at, bool) or not isinstance(at, (str, int, float)):
        raise BadItem(f"the scope names item{path}, which is neither a text nor a number")
    text = item_text(at)
    if not text.isprintable() or text in ("", ".", "..") or any(each in text for each in "/\\*"):
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        raise BadItem(f"the scope names item{path}, and {json.dumps(shown)} is not one part of a path")
    return text
