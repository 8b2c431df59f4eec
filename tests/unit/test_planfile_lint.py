"""`validate --lint`: what is warned of, with its exact message; and what is left in peace."""

from __future__ import annotations

import pytest

from scheduler.planfile.shelltext import cannot_fail, programs, unchecked_lines, writes
from tests.planfile_kit import loaded

HERE = {"pytest", "python", "ruff", "sh", "x"}
CHECKED = "verify: [{run: x}]"


def lint(text: str) -> list[str]:
    found = loaded(text, lint=lambda name: name if name in HERE else None)
    return [warning.render("p") for warning in found.warnings]


def one_check(check: str, head: str = "") -> list[str]:
    agent = "agent: {use: command, run: x}"
    return lint(f"name: p\ngoal: g\n{head}\ntasks:\n- {{id: a, {agent}, verify: [{check}]}}\n")


@pytest.mark.parametrize(
    ("check", "warning"),
    [
        ('{run: "nosuch --all"}', '"nosuch" is not on PATH here; install it where the workers run'),
        ('{run: "A=1 nosuch"}', '"nosuch" is not on PATH here; install it where the workers run'),
        ('{junit: r.xml, run: "nosuch"}', '"nosuch" is not on PATH here; install it where the workers run'),
        ('{run: "pytest || true"}', 'this check cannot fail: it ends with "|| true"; let the exit code say what was found'),
        ('{run: "true"}', "this check cannot fail: nothing in it can fail; let the exit code say what was found"),
        ('{run: "exit 0"}', "this check cannot fail: nothing in it can fail; let the exit code say what was found"),
        ('{run: "pytest; exit 0"}', 'this check cannot fail: it ends with "; exit 0"; let the exit code say what was found'),
        (
            '{run: "pytest -q | tail -5"}',
            'this check cannot fail: the exit code of a pipe is that of its last command, tail; let the exit code say what was found',
        ),
        (
            '{run: "ruff check --fix ."}',
            "`ruff check --fix` may change tracked files, and a check that does fails its task; only look; let the agent change files",
        ),
        ('{run: "x > out/log.txt"}', "`> out/log.txt` may change tracked files, and a check that does fails its task; only look; let the agent change files"),
        ('{run: "x\\npytest"}', "only the exit code of the last line counts; begin with `set -e`, or join with &&"),
    ],
)  # fmt: skip
def test_warns_of_a_check(check: str, warning: str) -> None:
    found = [line for line in one_check(check) if '"tail" is not on PATH' not in line]
    assert [line.partition("verify[0].run: ")[2] for line in found] == [warning]
    assert found[0].startswith("p:5:")


@pytest.mark.parametrize(
    "check",
    [
        '{run: "pytest -q"}',
        '{run: "ruff check . && ruff format --check ."}',
        '{run: "test -s out.txt"}',
        '{run: "./tools/check.sh"}',
        '{run: "x 2>&1 >/dev/null"}',
        '{run: "x > $TMPDIR/log"}',
        '{run: "set -e\\nx\\npytest"}',
        '{junit: r.xml, run: "pytest --junitxml=r.xml || true"}',
        '{run: "x | python check.py"}',
        '{run: "nosuch", env: {PATH: /opt/bin}}',
        '{run: "! x"}',
        '{run: "exit 1"}',
    ],
)
def test_leaves_a_sound_check_in_peace(check: str) -> None:
    assert one_check(check) == []


def test_nothing_is_looked_for_without_lint() -> None:
    text = "name: p\ngoal: g\ntasks:\n- {id: a, agent: {use: command, run: nosuch}, verify: [{run: 'true'}]}\n"
    assert loaded(text).warnings == ()


def test_warns_of_the_program_of_an_agent_and_of_defaults() -> None:
    text = """
    name: p
    goal: g
    defaults: {agent: {use: command, run: "nosuch x"}, verify: [{run: x}]}
    tasks:
    - {id: a, agent: {use: command, run: "cd src && other"}}
    - {id: b}
    - {id: c, agent: {use: command, run: hidden}, env: {set: {PATH: /opt/bin}}}
    """
    assert lint(text) == [
        'p:4:39: defaults.agent.run: "nosuch" is not on PATH here; install it where the workers run',
        'p:6:38: tasks.a.agent.run: "other" is not on PATH here; install it where the workers run',
    ]


def tasks(*lines: str) -> str:
    head = "name: p\ngoal: g\nrepo: .\nacceptance: [{run: x}]\ndefaults: {agent: {use: command, run: x}, verify: [{run: x}]}\n"
    return head + "tasks:\n" + "".join(f"- {{{line}}}\n" for line in lines)


def test_warns_of_scopes_that_meet_without_an_edge() -> None:
    text = tasks(
        "id: a, scope: {write: [src/**]}",
        "id: b, scope: {write: [src/b/x.py]}",
        "id: c, scope: {write: [src/b/**]}, blocked_by: [a, b]",
        "id: d, scope: {write: [docs/**]}",
    )
    assert lint(text) == [
        "p:8:26: tasks.b.scope.write: no edge orders a and b, and both may write src/b/x.py; "
        "narrow one of them, or order them with blocked_by"
    ]


def test_warns_once_of_tasks_without_a_scope_of_their_own() -> None:
    assert lint(tasks("id: a", "id: b", "id: c")) == [
        "p:8:3: tasks.b: no edge orders a and b, and neither has a scope.write of its own; "
        "add scope: {write: [...]} to tasks without an edge"
    ]
    assert lint(tasks("id: a", "id: b, blocked_by: [a]")) == []


def test_many_overlaps_end_in_one_line() -> None:
    found = lint(tasks(*(f"id: t{n}, scope: {{write: [x]}}" for n in range(100))))
    assert len(found) == 21
    assert "p:7:1: tasks: more than 20 pairs of tasks may write the same files; narrow scope.write" in found


def test_warns_of_a_missing_acceptance_and_of_outputs_that_nobody_checks() -> None:
    text = """
    name: p
    goal: g
    repo: .
    tasks:
    - {id: a, agent: {use: command, run: x}, verify: [{run: x}]}
    - {id: b, agent: {use: command, run: x}, verify: [{outputs: {schema: {}}}], blocked_by: [a]}
    - id: c
      agent: {use: command, run: x}
      verify: [{run: x}]
      blocked_by: [b]
      prompt: "{{ outputs.a.x }} {{ outputs['b'].y }}"
    """
    assert lint(text) == [
        'p:6:1: tasks: no acceptance: nothing is checked on the results put together; add acceptance: [{run: "..."}]',
        'p:12:11: tasks.c.prompt: this reads outputs of "a", which no check looks at; add an outputs check to a',
    ]


def test_programs_are_plain_names_at_the_head_of_commands() -> None:
    assert programs("set -e\nA=1 B=2 pytest -q && npx jest | grep x") == ["pytest", "npx", "grep"]
    assert programs("if test -e x; then make; fi") == ["make"]
    assert programs('"$TOOL" x') == []
    assert programs("echo 'unfinished\n quotation'") == []


def test_cannot_fail() -> None:
    assert cannot_fail("pytest || echo failed") == 'it ends with "|| echo failed"'
    assert cannot_fail("set -o pipefail; pytest | tee log") is None
    assert cannot_fail("pytest || exit 1") is None
    assert cannot_fail("true && pytest") is None


def test_unchecked_lines() -> None:
    assert unchecked_lines("a\nb")
    assert not unchecked_lines("a &&\nb")
    assert not unchecked_lines("set -eu\na\nb")
    assert not unchecked_lines("cat <<E\nx\nE\nb")
    assert not unchecked_lines("cd x\nb")


def test_writes() -> None:
    assert list(writes("black .; python -m isort . && git commit -m x")) == ["black", "isort", "git commit"]
    assert list(writes("black --check .; sed -n 1p x; git diff --exit-code")) == []
    assert list(writes("sed -i.bak s/a/b/ x")) == ["sed -i.bak"]


def test_lint_knows_instances_conditions_and_fallbacks() -> None:
    text = tasks(
        "id: list",
        "id: each, for_each: list.names, scope: {write: ['src/{{ item }}/**', log.txt]}",
        "id: last, blocked_by: [list], if: outputs.list.ready, scope: {write: [docs/**]}, on_failure: {fallback: other}",
        "id: other, blocked_by: [list], scope: {write: [docs/**]}",
    )
    assert [line.partition(": ")[2] for line in lint(text)] == [
        'tasks.each.for_each: this reads outputs of "list", which no check looks at; add an outputs check to list',
        "tasks.each.scope.write: all instances of each may write log.txt; name {{ item }} in it",
        'tasks.last.if: this reads outputs of "list", which no check looks at; add an outputs check to list',
    ]
