"""Loads the Lua scripts and calls them by name with named inputs; turns their answers into values or refusals.

Together with `store` the only room that speaks Redis. Must not know what a script is for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NoReturn, cast

import redis
from pydantic import TypeAdapter

from scheduler import errors, lifecycle
from scheduler.model import Json

Reply = dict[str, Json]

_REPLY = TypeAdapter(Reply)
_HEADER = re.compile(r"^-- ARGV:(.*)$", re.MULTILINE)
_REFUSALS: Mapping[str, type[errors.DagwardError]] = {
    kind.code: kind
    for kind in (
        errors.Conflict,
        errors.Fenced,
        errors.NoEvidence,
        errors.NotApproved,
        errors.NotFound,
        errors.StoreCorrupt,
    )
}


class Script:
    """One atomic operation. `inputs` are its named arguments in the order of its header line."""

    def __init__(self, name: str, source: str, inputs: tuple[str, ...]) -> None:
        self.name = name
        self.source = source
        self.inputs = inputs
        self.sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()

    def call(self, client: redis.Redis, root: str, values: Mapping[str, str | int | float]) -> Reply:
        """Run it. Wrong or missing names raise TypeError before anything is sent; refusals raise their class."""
        if set(values) != set(self.inputs):
            wrong = sorted(set(values) ^ set(self.inputs))
            raise TypeError(f"script {self.name} takes {', '.join(self.inputs)}; wrong or missing: {', '.join(wrong)}")
        args = [values[name] for name in self.inputs]
        try:
            raw = client.evalsha(self.sha, 1, root, *args)
        except redis.exceptions.NoScriptError:
            raw = client.eval(self.source, 1, root, *args)
        reply = _REPLY.validate_json(cast("str | bytes", raw))
        if "refusal" in reply:
            refuse(reply)
        return reply


def refuse(reply: Reply) -> NoReturn:
    """Raise the refusal that a script answered with; its facts stay readable as `.facts`."""
    kind = _REFUSALS.get(str(reply["refusal"]), errors.StoreCorrupt)
    error = kind(str(reply["message"]))
    error.facts = {k: v for k, v in reply.items() if k not in {"refusal", "message"}}
    raise error


def _table(name: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    events = ", ".join(
        f"{event} = {{{', '.join(f'[{source!r}] = {target!r}' for source, target in moves.items())}}}"
        for event, moves in rows.items()
    )
    return f"local {name} = {{{events}}}\n"


def _read(name: str) -> str:
    return resources.files("scheduler").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")


@cache
def prelude() -> str:
    """What every script begins with: the transition tables and the shared functions."""
    tasks = {str(event): {str(s): str(t) for s, t in moves.items()} for event, moves in lifecycle.task_table().items()}
    plans = {str(event): {str(s): str(t) for s, t in moves.items()} for event, moves in lifecycle.plan_table().items()}
    return _table("TASKS", tasks) + _table("PLANS", plans) + _read("_lib")


@cache
def load(name: str) -> Script:
    """The script in `lua/NAME.lua`; a missing or unreadable header is a defect of the file and raises ValueError."""
    body = _read(name)
    header = _HEADER.search(body)
    if header is None or "-- KEYS: root" not in body:
        raise ValueError(f"lua/{name}.lua lacks its KEYS or ARGV header line")
    inputs = tuple(header.group(1).split())
    names = ", ".join(inputs)
    values = ", ".join(f"ARGV[{i}]" for i in range(1, len(inputs) + 1))
    local = f"local {names} = {values}\n" if inputs else ""
    return Script(name, prelude() + local + body, inputs)


def names() -> list[str]:
    """Every script there is, by file."""
    folder = resources.files("scheduler").joinpath("lua")
    return sorted(f.name[:-4] for f in folder.iterdir() if f.name.endswith(".lua") and not f.name.startswith("_"))
