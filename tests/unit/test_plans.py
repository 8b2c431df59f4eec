"""Canonical form and hash of plan versions, system tasks, containment of scope patterns."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.plan import Env, ExitCheck, PlanSpec, TaskSpec
from scheduler.plans import (
    canonical,
    first_uncovered,
    pattern_covers,
    task_canonical,
    task_hash,
    version_hash,
    with_system_tasks,
)
from tests.planfile_kit import loaded, plan

PLAN: dict[str, Any] = {
    "name": "golden",
    "goal": "gr\u00fc\u00dfe \U0001f600",
    "params": {"who": "world", "B": "2"},
    "scope": {"write": ["src/**", "README.md"], "protect": ["src/api/**"]},
    "defaults": {"agent": {"use": "command", "run": 'echo "\t\u0001\u2028"'}, "timeout": "90s"},
    "acceptance": [{"run": "true", "timeout": "5m"}],
    "tasks": [
        {"id": "a", "title": "\u00e9", "env": {"set": {"Z": "1", "A": "\u007f"}, "pass": ["P", "HOME"]}},
        {
            "id": "b",
            "blocked_by": ["a"],
            "verify": [
                {"outputs": {"schema": {"type": "object", "properties": {"\ue000": {"const": 1.0}, "\U0001f600": {"const": 1e21}}}}},
                {"diff": {"nonempty": True, "only": ["src/x", "src/**"]}},
                "exit",
            ],
        },
        {"id": "c", "blocked_by": ["b", "a"], "agent": {"use": "python", "call": "m:f"}, "stall": "1m", "retries": {"max": 0}},
    ],
}  # fmt: skip
GOLDEN_VERSION = "1e249952e6830d147b18056b4da5274812e1d1079ec403662c29120a4fdbda3f"
GOLDEN_TASK = "f8a9a7eeb819351c3d10e1708a4bd451bbfb62b8b886bb210261d2c4542887b1"


def spec_of(value: dict[str, Any]) -> PlanSpec:
    return loaded(json.dumps(value)).spec


def test_golden_hashes() -> None:
    """Whoever changes these hashes takes the approval from every stored plan."""
    spec = spec_of(PLAN)
    assert task_canonical(spec.tasks[0]).decode() == (
        '{"agent":{"run":"echo \\"\\t\\u0001\u2028\\"","use":"command"},"env":{"pass":["HOME","P"],'
        '"set":{"A":"\u007f","Z":"1"}},"id":"a","scope":{"protect":["src/api/**"],"write":["README.md","src/**"]},'
        '"timeout":90000,"title":"\u00e9"}'
    )
    assert task_hash(spec.tasks[0]) == GOLDEN_TASK
    assert version_hash(spec) == GOLDEN_VERSION


FLOW: dict[str, Any] = {
    "name": "flow",
    "goal": "g",
    "fail_fast": True,
    "scope": {"write": ["src/**"]},
    "defaults": {"agent": {"use": "command", "run": "x"}},
    "tasks": [
        {"id": "s"},
        {"id": "m", "for_each": "s.modules", "scope": {"write": ["src/{{item}}/**"]}, "on_failure": "continue"},
        {"id": "n", "blocked_by": [{"task": "m", "when": "settled"}], "if": "outputs.s.\u00fc or len(outputs.m) > 1"},
        {"id": "o", "on_failure": {"fallback": "f"}},
        {"id": "f"},
    ],
}  # fmt: skip
FLOW_VERSION = "7e0f39361f5c0f9d6b12e6413364f72559c36b2523c9c1eed6f9ffb1d410ade6"


def test_golden_hash_of_flow() -> None:
    spec = spec_of(FLOW)
    assert [task_canonical(task).decode() for task in spec.tasks[1:4]] == [
        '{"agent":{"run":"x","use":"command"},"blocked_by":[{"task":"s"}],"for_each":"s.modules","id":"m",'
        '"on_failure":"continue","scope":{"write":["src/{{ item }}/**"]}}',
        '{"agent":{"run":"x","use":"command"},"blocked_by":[{"task":"m","when":"settled"}],"id":"n",'
        '"if":"outputs.s.\u00fc or len(outputs.m) > 1","scope":{"write":["src/**"]}}',
        '{"agent":{"run":"x","use":"command"},"fallback":"f","id":"o","scope":{"write":["src/**"]}}',
    ]
    assert version_hash(spec) == FLOW_VERSION


def flow(at: int | None, **fields: Any) -> str:
    made = json.loads(json.dumps(FLOW))
    (made if at is None else made["tasks"][at]).update(fields)
    return version_hash(spec_of(made))


def test_every_change_of_the_way_changes_the_hash() -> None:
    others = [
        flow(None, fail_fast=False),
        flow(1, for_each="s.others"),
        flow(1, on_failure="fail"),
        flow(2, blocked_by=["m"]),
        flow(2, **{"if": "outputs.s.x"}),
        flow(3, on_failure="fail"),
        flow(3, on_failure="continue"),
    ]
    assert len({FLOW_VERSION, *others}) == 1 + len(others)
    assert flow(1, blocked_by=[{"task": "s", "when": "verified"}]) == FLOW_VERSION, "for_each implies this edge"
    assert flow(1, scope={"write": ["src/{{ item }}/**"]}) == FLOW_VERSION
    assert flow(0, on_failure="fail") == FLOW_VERSION


@pytest.mark.parametrize("seed", ["0", "1", "4242", "random"])
def test_hash_is_the_same_in_every_process(seed: str) -> None:
    code = (
        "import json,sys; from scheduler.planfile import load_text; from scheduler.plans import version_hash;"
        "print(version_hash(load_text(sys.stdin.buffer.read(), 'p.json').spec))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(PLAN).encode(), capture_output=True, env=environment, check=True
    )
    assert done.stdout.decode().strip() == GOLDEN_VERSION


def shuffled(value: Any, dice: random.Random, *, keep: bool = False) -> Any:
    """The same plan with its keys, tasks and edges in another order; the order of checks is kept."""
    if isinstance(value, dict):
        items = list(value.items())
        dice.shuffle(items)
        return {key: shuffled(item, dice, keep=key in ("verify", "acceptance")) for key, item in items}
    if isinstance(value, list):
        made = [shuffled(item, dice) for item in value]
        if not keep:
            dice.shuffle(made)
        return made
    return value


@given(st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_order_does_not_matter(dice: random.Random) -> None:
    assert version_hash(spec_of(shuffled(PLAN, dice))) == GOLDEN_VERSION


def changed(path: list[str | int], value: Any) -> dict[str, Any]:
    made: Any = json.loads(json.dumps(PLAN))
    at = made
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["goal"], "other"),
        (["params", "who"], "you"),
        (["approval"], "required"),
        (["concurrency"], 5),
        (["acceptance"], []),
        (["acceptance", 0, "timeout"], "6m"),
        (["scope", "protect"], []),
        (["tasks", 0, "timeout"], "91s"),
        (["tasks", 1, "blocked_by"], []),
        (["tasks", 1, "verify", 1, "diff", "nonempty"], False),
        (["tasks", 2, "retries"], {"max": 1}),
        (["tasks", 2, "id"], "d"),
    ],
    ids=lambda each: ".".join(map(str, each)) if isinstance(each, list) else None,
)
def test_every_change_of_meaning_changes_the_hash(path: list[str | int], value: Any) -> None:
    assert version_hash(spec_of(changed(path, value))) != GOLDEN_VERSION


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["tasks", 0, "timeout"], "90000ms"),
        (["tasks", 0, "pool"], "default"),
        (["base"], "HEAD"),
        (["tasks", 0, "blocks"], ["b"]),
        (["tasks", 1, "blocked_by"], [{"task": "a", "when": "verified"}]),
    ],
    ids=lambda each: ".".join(map(str, each)) if isinstance(each, list) else None,
)
def test_the_same_meaning_has_the_same_hash(path: list[str | int], value: Any) -> None:
    made = changed(path, value)
    if path == ["base"]:
        made["repo"] = "."
        base = version_hash(spec_of(changed(["repo"], ".")))
        assert version_hash(spec_of(made)) == base
    else:
        assert version_hash(spec_of(made)) == GOLDEN_VERSION


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,6}", fullmatch=True)
durations = st.integers(1, 10**10)
checks = st.one_of(
    st.builds(dict, run=texts.filter(bool), env=st.dictionaries(ids, texts, max_size=2)),
    st.just({"exit": True}),
    st.builds(dict, file=st.builds(dict, path=texts.filter(bool), nonempty=st.booleans())),
    st.builds(dict, outputs=st.builds(dict, schema=st.dictionaries(texts, st.floats(-1e9, 1e9) | texts, max_size=3))),
)
tasks = st.builds(
    dict,
    id=ids,
    title=texts,
    prompt=texts,
    agent=st.builds(dict, use=st.just("command"), run=texts.filter(bool)),
    blocked_by=st.lists(st.builds(dict, task=ids, when=st.sampled_from(["verified", "settled"])), max_size=3),
    timeout=durations,
    stall=st.none() | durations,
    retries=st.builds(dict, max=st.integers(0, 100)),
    env=st.builds(dict, set=st.dictionaries(ids, texts, max_size=3)),
    priority=st.integers(-1000, 1000),
    verify=st.lists(checks, max_size=3),
    for_each=st.none() | texts,
    if_=st.none() | texts,
    on_failure=st.sampled_from(["fail", "continue"]),
    fallback=st.none() | ids,
)


@given(tasks)
@settings(max_examples=80, deadline=None)
def test_the_fast_way_writes_what_rfc_8785_says(value: dict[str, Any]) -> None:
    task = TaskSpec.model_validate(value)
    whole = task.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    assert task_canonical(task) == rfc8785.dumps(whole)
    assert TaskSpec.model_validate_json(task_canonical(task)) == task
    assert task_hash(task) == hashlib.sha256(rfc8785.dumps(whole)).hexdigest()


def test_canonical_refuses_what_json_cannot_hold() -> None:
    assert (
        canonical({"b": 1.0, "a": [None, True], "\u20ac": "\u20ac"})
        == '{"a":[null,true],"b":1,"\u20ac":"\u20ac"}'.encode()
    )
    for value in (2**53, float("nan"), "\ud800"):
        with pytest.raises(ValueError):
            canonical(value)


def test_system_task_of_a_repository_plan_waits_for_all_ends() -> None:
    spec = spec_of({**PLAN, "repo": "."})
    tasks = with_system_tasks(spec)
    assert tasks[:-1] == spec.tasks
    last = tasks[-1]
    assert (last.id, last.pool, last.timeout, last.retries.max) == ("_integrate", "system", 3_600_000, 1)
    assert [edge.task for edge in last.blocked_by] == ["c"]
    assert last.verify == spec.acceptance
    assert last.agent.model_dump() == {"use": "system", "work": "integrate"}


def test_system_task_of_a_scratch_plan() -> None:
    spec = spec_of(PLAN)
    assert with_system_tasks(spec)[-1].agent.model_dump() == {"use": "system", "work": "accept"}
    assert with_system_tasks(spec)[-1].id == "_acceptance"
    assert with_system_tasks(loaded(plan()).spec) == loaded(plan()).spec.tasks


def ends(*tasks: dict[str, Any]) -> dict[str, str]:
    """Task -> when, of the edges of the system task."""
    common = {"agent": {"use": "command", "run": "x"}}
    value = {"name": "p", "goal": "g", "repo": ".", "defaults": common, "tasks": list(tasks)}
    return {edge.task: edge.when.value for edge in with_system_tasks(spec_of(value))[-1].blocked_by}


SETTLED = [{"task": "a", "when": "settled"}]


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([{"id": "a"}, {"id": "b", "blocked_by": ["a"]}], {"b": "verified"}),
        ([{"id": "a"}, {"id": "b", "blocked_by": SETTLED}], {"a": "verified", "b": "verified"}),
        ([{"id": "a", "on_failure": "continue"}, {"id": "b", "blocked_by": SETTLED}], {"a": "settled", "b": "verified"}),
        ([{"id": "a", "on_failure": "continue"}, {"id": "b", "blocked_by": ["a"]}], {"b": "settled"}),
        ([{"id": "a"}, {"id": "b", "blocked_by": ["a"], "if": "outputs.a.x"}, {"id": "c"}], {"b": "settled", "c": "verified"}),
        ([{"id": "a", "on_failure": {"fallback": "f"}}, {"id": "f"}, {"id": "g", "blocked_by": ["f"]}], {"a": "verified", "g": "settled"}),
        ([{"id": "a", "on_failure": {"fallback": "f"}}, {"id": "f", "on_failure": "continue"}], {"a": "settled", "f": "settled"}),
        ([{"id": "a", "on_failure": {"fallback": "f"}}, {"id": "f", "on_failure": {"fallback": "g"}}, {"id": "g"}], {"a": "verified", "f": "settled", "g": "settled"}),
    ],
)  # fmt: skip
def test_system_task_waits_for_acceptance_only_where_a_plan_needs_it(
    tasks: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    assert ends(*tasks) == expected


def test_integration_without_acceptance_checks_its_exit() -> None:
    last = with_system_tasks(loaded(plan(head="repo: .")).spec)[-1]
    assert last.verify == (ExitCheck(exit=True),)
    assert last.env == Env()


@pytest.mark.parametrize(
    ("outer", "inner", "covers"),
    [
        ("**", "src/**", True), ("**", "**", True), ("src/**", "**", False), ("src/**", "src/a", True),
        ("src/**", "src/a/**", True), ("src/**", "src/**", True), ("src/**", "src", False), ("src/**", "srcs/a", False),
        ("src", "src", True), ("src", "src/**", False), ("a/b", "a", False),
    ],
)  # fmt: skip
def test_pattern_covers(outer: str, inner: str, covers: bool) -> None:
    assert pattern_covers(outer, inner) is covers


def test_first_uncovered() -> None:
    assert first_uncovered(["src/**", "x"], ["src/a", "x"]) is None
    assert first_uncovered(["src/**", "x"], ["src/a", "y", "z"]) == "y"
    assert first_uncovered([], ["y"]) == "y"
