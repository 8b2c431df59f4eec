"""Whatever a file says, it is a plan or it is refused with at least one problem; never another exception."""

from __future__ import annotations

import copy
import json
import textwrap
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import InvalidPlan
from scheduler.planfile import load_text
from scheduler.planfile.report import value_at
from scheduler.planfile.source import read
from tests.unit.test_planfile_normal import FULL

SOUND: Any = read(textwrap.dedent(FULL).encode(), is_json=False).value
WORDS = [
    "task",
    "when",
    "run",
    "exit",
    "diff",
    "file",
    "outputs",
    "schema",
    "agent",
    "use",
    "verify",
    "blocks",
    "a",
    "b",
    "c",
    "for_each",
    "if",
    "on_failure",
    "fallback",
    "settled",
    "a.x",
]
words = st.sampled_from(WORDS) | st.text(max_size=3)
texts = st.sampled_from(["{{ x }}", "1h", "**", "../x", "\0"])
junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | words
    | st.sampled_from(["{{ x }}", "{{ item }}", "outputs.a.x", "1h", "**", "../x", "\0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for step, item in items for each in paths(item, (*path, step)))]


PATHS = paths(SOUND)[1:]


@given(st.lists(st.tuples(st.sampled_from(PATHS), junk), min_size=1, max_size=3), st.booleans())
@settings(max_examples=250, deadline=None)
def test_any_change_is_accepted_or_explained(changes: list[tuple[tuple[Any, ...], Any]], add: bool) -> None:
    value = copy.deepcopy(SOUND)
    for path, replacement in changes:
        at = value_at(value, path[:-1])
        if isinstance(at, dict) or (isinstance(at, list) and isinstance(path[-1], int) and path[-1] < len(at)):
            at[path[-1]] = replacement
        if add and isinstance(at, dict):
            at[str(replacement)[:8]] = replacement
    try:
        load_text(json.dumps(value).encode(), "plan.json")
    except InvalidPlan as refused:
        problems = refused.problems.errors
        assert problems
        assert all(problem.message and problem.render("f").isprintable() for problem in problems)
        assert list(problems) == sorted(problems, key=lambda each: (each.line, each.column, each.field))
