"""From the file as written to the normal form; the schema for editors; durations."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from scheduler.model.checks import (
    DiffCheck,
    ExitCheck,
    JunitCheck,
    PythonCheck,
    RunCheck,
    WeakeningCheck,
    WeakeningRule,
)
from scheduler.model.plan import Approval, Edge, PlanSpec, Scope, When
from scheduler.planfile import BadDuration, format_duration, json_schema, load, parse_duration
from scheduler.planfile.durations import LONGEST
from scheduler.planfile.source import read
from scheduler.plans import version_hash
from tests.planfile_kit import loaded, plan

EXAMPLES = sorted((Path(__file__).parents[2] / "config" / "plans").glob("*.yaml"))

FULL = """\
    format: 1
    name: full
    goal: Everything that a file may say.
    repo: ..
    base: main
    params: {one: "1", two: zwei}
    concurrency: 7
    approval: required
    scope: {write: ["src/**", README.md, "src/**"], protect: ["tests/**"]}
    defaults:
      agent: {use: command, run: default}
      timeout: 20m
      stall: 5m
      retries: {max: 1, backoff: 10m}
      env: {pass: [HOME], set: {A: b}}
      verify: [{run: check}]
      pool: llm
    fail_fast: true
    acceptance: [{run: all, timeout: 2m, env: {CI: "1"}}]
    tasks:
      - id: c
        blocked_by: [b, {task: a, when: verified}]
        timeout: 1h
        stall:
        retries: {max: 0}
        env: {secrets: [TOKEN]}
        verify: [exit, {diff: {only: [src/b, src/a], nonempty: true}}]
        scope: {write: ["src/x/**"], protect: [src/x/y]}
        if: outputs.a.x == 1
        on_failure: {fallback: d}
      - {id: a, title: First, prompt: "Do {{ params.one }}.", priority: 5, blocks: [b]}
      - {id: b, agent: {use: python, call: "pack.age:function"}, pool: default}
      - {id: d, on_failure: continue, blocked_by: [{task: a, when: settled}]}
      - {id: e, for_each: a.list, prompt: "{{ item }}", scope: {write: ["src/{{ item }}/**"]}}
"""


def test_everything_is_in_the_normal_form() -> None:
    spec = loaded(FULL).spec
    c, a, b, d, e = spec.tasks
    assert (spec.repo, spec.base, spec.concurrency, spec.approval) == ("..", "main", 7, Approval.REQUIRED)
    assert spec.params == {"one": "1", "two": "zwei"}
    assert spec.scope == Scope(write=("README.md", "src/**"), protect=("tests/**",))
    assert spec.acceptance == (RunCheck(run="all", timeout=120_000, env={"CI": "1"}),)
    assert [edge.task for edge in c.blocked_by] == ["a", "b"]
    assert [edge.task for edge in b.blocked_by] == ["a"]
    assert (c.timeout, c.stall, a.timeout, a.stall) == (3_600_000, None, 1_200_000, 300_000)
    assert (a.retries.max, a.retries.backoff, a.retries.max_backoff) == (1, 600_000, 600_000)
    assert (c.retries.max, c.retries.backoff, c.retries.max_backoff) == (0, 5_000, 300_000)
    assert (c.env.pass_, c.env.set, c.env.secrets) == ((), {}, ("TOKEN",)), "a key replaces a default whole"
    assert (a.env.pass_, a.env.set) == (("HOME",), {"A": "b"})
    assert isinstance(c.verify[0], ExitCheck)
    assert isinstance(c.verify[1], DiffCheck)
    assert c.verify[1].diff.only == ("src/a", "src/b")
    assert a.verify == (RunCheck(run="check"),)
    assert c.scope == Scope(write=("src/x/**",), protect=("src/x/y", "tests/**"))
    assert a.scope == spec.scope
    assert (a.pool, b.pool, a.priority, a.title, a.prompt) == ("llm", "default", 5, "First", "Do {{ params.one }}.")
    assert a.agent.model_dump() == {"use": "command", "run": "default"}
    assert b.agent.model_dump() == {"use": "python", "call": "pack.age:function"}
    assert (spec.fail_fast, c.if_, c.on_failure, c.fallback, d.on_failure) == (
        True,
        "outputs.a.x == 1",
        "fail",
        "d",
        "continue",
    )
    assert d.blocked_by == (Edge(task="a", when=When.SETTLED),)
    assert (e.for_each, e.blocked_by, e.scope.write) == ("a.list", (Edge(task="a"),), ("src/{{ item }}/**",))


def test_the_shortest_plan_has_the_documented_defaults() -> None:
    spec = loaded(plan()).spec
    task = spec.tasks[0]
    assert (spec.format, spec.repo, spec.base, spec.concurrency, spec.approval) == (1, None, "HEAD", 4, Approval.AUTO)
    assert (task.timeout, task.stall, task.pool, task.priority) == (3_600_000, None, "default", 0)
    assert (task.retries.max, task.retries.backoff, task.retries.max_backoff) == (2, 5_000, 300_000)
    assert task.scope == Scope(write=("**",), protect=())
    assert task.verify == (ExitCheck(exit=True),)


def test_an_empty_write_scope_means_nothing_may_be_written() -> None:
    assert loaded(plan("scope: {write: []}")).spec.tasks[0].scope.write == ()


def test_a_stored_plan_comes_back_as_it_was() -> None:
    spec = loaded(FULL).spec
    again = PlanSpec.model_validate_json(spec.model_dump_json(by_alias=True))
    assert again == spec
    assert again.model_dump() == spec.model_dump()
    assert version_hash(again) == version_hash(spec)


def test_pools_of_the_installation() -> None:
    assert loaded(plan("pool: gpu"), pools=("default", "gpu")).spec.tasks[0].pool == "gpu"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_valid_and_fits_the_schema(path: Path) -> None:
    assert load(path).warnings == ()
    value = read(path.read_bytes(), is_json=False).value
    assert list(Draft202012Validator(json_schema()).iter_errors(value)) == []


def test_there_is_an_example() -> None:
    assert "hello.yaml" in [path.name for path in EXAMPLES]


def test_schema_accepts_all_forms_and_refuses_what_the_loader_refuses() -> None:
    Draft202012Validator.check_schema(json_schema())
    validator = Draft202012Validator(json_schema())
    assert list(validator.iter_errors(read(textwrap.dedent(FULL).encode(), is_json=False).value)) == []
    for bad in (
        "timeout: 20",
        "tiemout: 1m",
        "verify: []",
        "for_each: x",
        "agent: {use: codex}",
        "blockedBy: a",
        "pool: ",
        "if: ''",
        "on_failure: stop",
        "on_failure: {}",
        "on_failure: {fallback: a, x: b}",
        "blocked_by: [{task: a, when: integrated}]",
        "for_each: a.b.c",
    ):
        value = read(plan(bad.replace("agent", "agent2")).encode(), is_json=False).value
        assert list(validator.iter_errors(value)), bad


def test_schema_describes_the_file_and_not_the_normal_form() -> None:
    task = json_schema()["$defs"]["FileTask"]["properties"]  # type: ignore[index,call-overload]
    assert {"blocked_by", "blockedBy", "blocks"} <= set(task)  # type: ignore[arg-type]
    assert task["timeout"]["default"] == "1h"  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("text", "millis"), [("500ms", 500), ("90s", 90_000), ("20m", 1_200_000), ("2h", 7_200_000), ("1d", 86_400_000)]
)
def test_durations(text: str, millis: int) -> None:
    assert parse_duration(text) == millis


@pytest.mark.parametrize(
    "value", ["", "20", "1.5h", "-1s", "1 h", "1H", "h", "1h30m", "\u0663s", 20, 1.5, None, True, "0s", "366d", "1s\n"]
)
def test_bad_durations(value: object) -> None:
    with pytest.raises(BadDuration):
        parse_duration(value)


@given(st.integers(1, LONGEST))
def test_a_duration_is_written_exactly(millis: int) -> None:
    assert parse_duration(format_duration(millis)) == millis


def test_zero_where_it_is_allowed() -> None:
    assert parse_duration("0s", zero=True) == 0
    assert format_duration(0) == "0ms"
    assert loaded(plan("retries: {backoff: 0s}")).spec.tasks[0].retries.backoff == 0


def test_checks_that_can_fail_in_normal_form() -> None:
    checks = """
    - {run: x, prove: true}
    - {junit: report.xml, run: pytest, timeout: 2m}
    - {weakening: true}
    - {weakening: {paths: [b/**, a]}}
    - {python: no-prints, with: {depth: 2.5}, prove: true}
    """
    text = f"name: p\ngoal: g\nrepo: .\ntasks:\n- id: a\n  agent: {{use: command, run: x}}\n  verify:{checks}"
    spec = loaded(text).spec
    assert spec.tasks[0].verify == (
        RunCheck(run="x", prove=True),
        JunitCheck(junit="report.xml", run="pytest", timeout=120_000),
        WeakeningCheck(weakening=WeakeningRule()),
        WeakeningCheck(weakening=WeakeningRule(paths=("a", "b/**"))),
        PythonCheck.model_validate({"python": "no-prints", "with": {"depth": 2.5}, "prove": True}),
    )
    assert PlanSpec.model_validate_json(spec.model_dump_json(by_alias=True)) == spec
