"""Every error of a plan file, with its exact message and place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scheduler.errors import InvalidPlan
from scheduler.planfile import load, load_text
from tests.planfile_kit import errors, loaded, plan

WORD = "write letters, digits, - and _ (at most 64), beginning with a letter or digit"

# What is added to the header of a plan (line 3), and the one error that it makes where ^ stands.
HEADS = [
    ("format: ^true", "format: unknown format true; write format: 1"),
    (
        "^colour: red",
        'colour: unknown field "colour"; known fields: format, name, goal, params, repo, base, concurrency, approval, scope, defaults, acceptance, fail_fast, tasks',
    ),
    (
        "^concurency: 3",
        'concurency: unknown field "concurency"; did you mean "concurrency"? known fields: format, name, goal, params, repo, base, concurrency, approval, scope, defaults, acceptance, fail_fast, tasks',
    ),
    ("fail_fast: ^yes", 'fail_fast: must be true or false, not "yes"'),
    ("fail_fast: ^1", "fail_fast: must be true or false, not the number 1"),
    (
        "^budget: {tokens: 1}",
        'budget: "budget" is not in this version; remove it; limit retries.max and timeout instead',
    ),
    (
        "^replan: {}",
        'replan: "replan" is not in this version; remove it; a failed plan is gone on with by `dagward run --resume`',
    ),
    (
        "^on_conflict: fail",
        'on_conflict: "on_conflict" is not in this version; remove it; a merge conflict fails the task',
    ),
    ("^assumptions: []", 'assumptions: "assumptions" is not in this version; remove it'),
    ("^risks: []", 'risks: "risks" is not in this version; remove it'),
    ("^facts: []", 'facts: "facts" is not in this version; remove it'),
    ("approval: ^lenient", 'approval: the approval policy "lenient" is not in this version; write auto or required'),
    ("approval: ^3", "approval: must be auto or required, not the number 3; write auto or required"),
    ("format: ^2", "format: unknown format the number 2; write format: 1"),
    ("format: ^true", "format: unknown format true; write format: 1"),
    ("concurrency: ^'4'", 'concurrency: must be a whole number, not "4"'),
    ("concurrency: ^1.5", "concurrency: must be a whole number, not the number 1.5"),
    ("concurrency: ^0", "concurrency: must be at least 1, not the number 0; write at least 1"),
    ("concurrency: ^2000", "concurrency: must be at most 1000, not the number 2000; write at most 1000"),
    ("^base: main", "base: base needs a repo; add repo, or remove base"),
    ("repo:^", "repo: has no value; give one, or remove the field"),
    (
        "repo: ^--upload-pack=x",
        'repo: "--upload-pack=x" is not a valid repo; git would read it as an option or not at all',
    ),
    ("repo: ^''", "repo: must not be empty; write something"),
    ("params: ^[a]", "params: must be a mapping, not a list"),
    ("params: {a: ^3}", 'params.a: must be a text, not the number 3; put it in quotes: "3"'),
    ("params: {a: ^null}", 'params.a: parameter "a" has no value; pass --param a=VALUE'),
    (
        "params: {^1a: x}",
        'params.1a: "1a" is not a valid parameter name; write letters, digits and _, not beginning with a digit',
    ),
    ("params: {aB: x, ^Ab: y}", 'params.Ab: the parameters "aB" and "Ab" are both $DAGWARD_PARAM_AB; rename one'),
    (
        "scope: {^network: none}",
        'scope.network: "network" is not in this version; remove it; the network is not limited',
    ),
    ("scope: {^wirte: []}", 'scope.wirte: unknown field "wirte"; did you mean "write"? known fields: write, protect'),
    ("scope: {write: [^/etc/**]}", 'scope.write[0]: "/etc/**" is an absolute path; write it relative to the workspace'),
    ("scope: {protect: [^../x]}", 'scope.protect[0]: "../x" leaves the workspace; write it without ".."'),
    (
        "scope: {write: [^'a/*.py']}",
        'scope.write[0]: "a/*.py" is not a scope pattern; write a path, "dir/**" for all below a folder, or "**" for everything',
    ),
    ("scope: {write: [^./a/**]}", 'scope.write[0]: "./a/**" is not a plain path; write "a/**"'),
    (
        "scope: {write: [^'a\\b']}",
        'scope.write[0]: "a\\b" is not a path; write it with "/", without control characters',
    ),
    (
        "scope: {write: [^'{{ item }}/**']}",
        "scope.write[0]: only the scope of a task with for_each may hold {{ item }}; write the path out",
    ),
    ("scope: {write: ^src}", 'scope.write: must be a list, not "src"; write ["src"]'),
    ("defaults: {timeout: ^20}", "defaults.timeout: 20 has no unit; write 20s, or 20m, 2h"),
    ("defaults: {pool: ^gpu}", 'defaults.pool: unknown pool "gpu"; known pools: default, llm'),
    (
        "defaults: {retries: {^on: [lost]}}",
        'defaults.retries.on: "on" is not in this version; remove it; the kind of failure decides',
    ),
    (
        "defaults: {^id: a}",
        'defaults.id: unknown field "id"; known fields: agent, timeout, stall, retries, env, pool, verify',
    ),
    (
        "acceptance: [{run: ^'x {{ y }}'}]",
        'acceptance[0].run: {{ y }} is not replaced in a command; write "$DAGWARD_PARAM_NAME" for a parameter; put a text that needs braces into a script',
    ),
]

# What is added to the one task of a plan (line 5).
TASKS = [
    (
        "^tiemout: 5m",
        'tasks.a.tiemout: unknown field "tiemout"; did you mean "timeout"? known fields: id, title, prompt, blocked_by, blockedBy, blocks, for_each, if, agent, timeout, stall, retries, env, pool, priority, scope, verify, on_failure',
    ),
    ("for_each: ^b.x", 'tasks.a.for_each: unknown task "b"; known tasks: a'),
    ("for_each: ^a.x", 'tasks.a.for_each: task "a" cannot take its items from itself; name a task before it'),
    ("for_each: ^b", 'tasks.a.for_each: "b" is not a valid for_each; write TASK.OUTPUT, such as survey.modules'),
    (
        "for_each: ^b.c.d",
        'tasks.a.for_each: "b.c.d" is not a valid for_each; write TASK.OUTPUT, such as survey.modules',
    ),
    ("for_each: ^[1, 2]", "tasks.a.for_each: must be a text, not a list"),
    ("for_each: ^", "tasks.a.for_each: has no value; give one, or remove the field"),
    ("if: ^", "tasks.a.if: has no value; give one, or remove the field"),
    ("if: ^''", "tasks.a.if: must not be empty; write something"),
    ("if: ^' '", "tasks.a.if: an empty condition; write an expression, or remove the field"),
    ("if: ^true", 'tasks.a.if: must be a text, not true; put it in quotes: "true"'),
    ("if: ^x", 'tasks.a.if: "x" is undefined; write params.NAME, outputs.TASK.NAME or outputs["a-task"].NAME'),
    (
        "if: ^item == 1",
        'tasks.a.if: "item" is undefined here; only the prompt and scope of a task with for_each have it',
    ),
    ("if: ^params.x == 'y'", 'tasks.a.if: unknown parameter "x"; known parameters: none'),
    ("if: ^outputs.b.x", 'tasks.a.if: unknown task "b" in outputs; write the id of a task before this one'),
    (
        "if: ^outputs.a.x",
        'tasks.a.if: outputs of "a" do not exist yet: it does not come before this task; add blocked_by: [a]',
    ),
    (
        "if: ^'{{ outputs.b.x }}'",
        "tasks.a.if: {{ }} is not needed in a condition; write the expression without the braces",
    ),
    (
        "if: ^1 && 2",
        "tasks.a.if: not a valid expression; use params, outputs, texts, numbers, true, false, null, == != < > in, and or not, + - * / %, len any all",
    ),
    ("^account: x", 'tasks.a.account: "account" is not in this version; remove it'),
    ("^locks: [x]", 'tasks.a.locks: "locks" is not in this version; remove it; order the tasks with blocked_by'),
    ("^assumes: [x]", 'tasks.a.assumes: "assumes" is not in this version; remove it'),
    (
        "^budget: {}",
        'tasks.a.budget: "budget" is not in this version; remove it; limit retries.max and timeout instead',
    ),
    (
        "^approve: true",
        'tasks.a.approve: "approve" is not in this version; remove it; use `approval: required` of the plan',
    ),
    (
        "on_failure: ^replan",
        'tasks.a.on_failure: "replan" is not in this version; write fail, continue or {fallback: ID}',
    ),
    (
        "on_failure: ^stop",
        'tasks.a.on_failure: "stop" is no answer to a failure; write fail, continue or {fallback: ID}',
    ),
    ("on_failure: ^", "tasks.a.on_failure: nothing is no answer to a failure; write fail, continue or {fallback: ID}"),
    (
        "on_failure: ^[fail]",
        "tasks.a.on_failure: a list is no answer to a failure; write fail, continue or {fallback: ID}",
    ),
    ("on_failure: {fallback: ^b}", 'tasks.a.on_failure.fallback: unknown task "b"; known tasks: a'),
    (
        "on_failure: {fallback: ^a}",
        'tasks.a.on_failure.fallback: task "a" cannot be its own fallback; name another task',
    ),
    ("on_failure: {fallback: ^[a]}", "tasks.a.on_failure.fallback: must be a text, not a list"),
    (
        "on_failure: ^{}",
        'tasks.a.on_failure.fallback: required field "fallback" is missing; add fallback: the id of a task',
    ),
    (
        "on_failure: {fallback: ^null}",
        "tasks.a.on_failure.fallback: must be a text, not nothing",
    ),
    ("title: ^12", 'tasks.a.title: must be a text, not the number 12; put it in quotes: "12"'),
    ("title: ^true", 'tasks.a.title: must be a text, not true; put it in quotes: "true"'),
    ("timeout: ^20", "tasks.a.timeout: 20 has no unit; write 20s, or 20m, 2h"),
    ("timeout: ^5 minutes", 'tasks.a.timeout: "5 minutes" is not a duration; write 90s, 20m or 2h'),
    ("timeout: ^0s", 'tasks.a.timeout: "0s" is no time at all; write at least 1ms'),
    ("timeout: ^400d", 'tasks.a.timeout: "400d" is longer than 365d; write at most 365d'),
    ("timeout: ^[1h]", "tasks.a.timeout: must be a duration, not a list; write 90s, 20m or 2h"),
    ("timeout: ^", "tasks.a.timeout: must be a duration, not nothing; write 90s, 20m or 2h"),
    ("verify: ^[]", "tasks.a.verify: an empty list checks nothing; leave verify out, or write a check"),
    ("verify: ^", "tasks.a.verify: has no value; give one, or remove the field"),
    ("retries: {max: ^101}", "tasks.a.retries.max: must be at most 100, not the number 101; write at most 100"),
    (
        "retries: {backoff: 2m, max_backoff: ^1m}",
        "tasks.a.retries.max_backoff: 1m is shorter than backoff, 2m; write at least as much",
    ),
    ("pool: ^llmm", 'tasks.a.pool: unknown pool "llmm"; did you mean "llm"? known pools: default, llm'),
    ("pool: ^system", 'tasks.a.pool: the pool "system" is for dagward\'s own work; known pools: default, llm'),
    ("priority: ^5000", "tasks.a.priority: must be at most 1000, not the number 5000; write at most 1000"),
    (
        "env: {pass: [^1b]}",
        'tasks.a.env.pass[0]: "1b" is not a name of a variable; write letters, digits and _, not beginning with a digit',
    ),
    ("env: {set: {^DAGWARD_X: y}}", "tasks.a.env.set.DAGWARD_X: DAGWARD_X is set by dagward; choose another name"),
    (
        "env: {set: {A: y}, pass: [^A]}",
        'tasks.a.env.pass[0]: "A" stands in env.set and in env.pass; keep one of the two',
    ),
    (
        "env: {pass: [A], secrets: [^A]}",
        'tasks.a.env.secrets[0]: "A" stands in env.pass and in env.secrets; keep one of the two',
    ),
    (
        "env: {^pass_: [A]}",
        'tasks.a.env.pass_: unknown field "pass_"; did you mean "pass"? known fields: pass, set, secrets',
    ),
    ("blocked_by: ^b", 'tasks.a.blocked_by: must be a list, not "b"; write ["b"]'),
    ("blocked_by: [^b]", 'tasks.a.blocked_by[0]: unknown task "b"; known tasks: a'),
    ("blocks: [^b]", 'tasks.a.blocks[0]: unknown task "b"; known tasks: a'),
    ("blocked_by: [^5]", "tasks.a.blocked_by[0]: must be a task, not the number 5; write its id, or {task: ID}"),
    ("blocked_by: [^a]", 'tasks.a.blocked_by[0]: task "a" blocks itself; remove this edge'),
    (
        "scope: {write: [^lib/**]}",
        'tasks.a.scope.write[0]: "lib/**" is wider than the scope of the plan; stay within src/**',
    ),
    (
        "prompt: ^'say {{ x }}'",
        'tasks.a.prompt: "x" is undefined; write params.NAME, outputs.TASK.NAME or outputs["a-task"].NAME',
    ),
    ("prompt: ^'{{ params.x }}'", 'tasks.a.prompt: unknown parameter "x"; known parameters: none'),
    (
        "prompt: ^'{{ outputs.z.x }}'",
        'tasks.a.prompt: unknown task "z" in outputs; write the id of a task before this one',
    ),
    (
        "prompt: ^'{{ outputs.a.x }}'",
        'tasks.a.prompt: outputs of "a" do not exist yet: it does not come before this task; add blocked_by: [a]',
    ),
    (
        "prompt: ^'{{ x'",
        "tasks.a.prompt: not a valid template: unexpected end of template, expected 'end of print statement'.; correct it",
    ),
]

# One check of that task.
VERIFY = [
    (
        "^{}",
        "verify[0]: a check has one kind, this one has none; write one of run, exit, outputs, file, diff, junit, weakening, python",
    ),
    ("^{run: x, exit: true}", "verify[0]: a check has one kind, this one has 2: run, exit; make one entry of each"),
    ("^foo", 'verify[0]: must be a check, not "foo"; write {run: "..."} or exit'),
    (
        "{^runn: x}",
        'verify[0].runn: unknown check "runn"; did you mean "run"? known checks: run, exit, outputs, file, diff, junit, weakening, python',
    ),
    ("^{junit: x}", 'verify[0].run: required field "run" is missing; add run: "a shell command"'),
    (
        "{run: x, junit: ^{path: y}}",
        'verify[0].junit: must be a text, not a mapping; write the path of the report, and its command beside it: junit: report.xml, run: "..."',
    ),
    ("{run: x, junit: ^../r.xml}", 'verify[0].junit: "../r.xml" leaves the workspace; write it without ".."'),
    ("{run: x, junit: y, min: ^0}", "verify[0].min: must be at least 1, not the number 0; write at least 1"),
    (
        "{run: x, junit: y, ^max: 1}",
        'verify[0].max: unknown field "max"; known fields: junit, run, min, timeout, env, prove',
    ),
    (
        "{run: ^'x {{ item }}', junit: y}",
        'verify[0].run: {{ item }} is not replaced in a command; write "$DAGWARD_ITEM"',
    ),
    (
        "^{run: x, junit: y, exit: true}",
        "verify[0]: a check has one kind, this one has 3: run, exit, junit; make one entry of each",
    ),
    (
        "{weakening: ^true}",
        "verify[0].weakening: weakening compares with the base, and this plan has no repo; add repo, or remove it",
    ),
    (
        "{python: ^'a b'}",
        'verify[0].python: "a b" is not a valid python; write "package.module:function", or the name of an entry point of dagward.verifiers',
    ),
    ("{python: 'a:b', with: ^[1]}", "verify[0].with: must be a mapping, not a list"),
    (
        "{python: 'a:b', ^call: c}",
        'verify[0].call: unknown field "call"; known fields: python, with, timeout, env, prove',
    ),
    ("{diff: {nonempty: true}, ^prove: true}", 'verify[0].prove: unknown field "prove"; known fields: diff'),
    ("{run: x, prove: ^'yes'}", 'verify[0].prove: must be true or false, not "yes"'),
    (
        "{^judge: x}",
        'verify[0].judge: the check "judge" is not in this version; use one of run, exit, outputs, file, diff, junit, weakening, python',
    ),
    ("{run: x, ^shell: y}", 'verify[0].shell: unknown field "shell"; known fields: run, timeout, env, prove'),
    ("{run: ^''}", "verify[0].run: must not be empty; write something"),
    ("{run: x, timeout: ^10}", "verify[0].timeout: 10 has no unit; write 10s, or 20m, 2h"),
    ("{run: x, env: {^DAGWARD_A: b}}", "verify[0].env.DAGWARD_A: DAGWARD_A is set by dagward; choose another name"),
    (
        "{run: ^'x {{ params.k }}'}",
        'verify[0].run: {{ params.k }} is not replaced in a command; write "$DAGWARD_PARAM_K"',
    ),
    ("{run: ^'x {{item}}'}", 'verify[0].run: {{ item }} is not replaced in a command; write "$DAGWARD_ITEM"'),
    (
        "{run: ^'x {{ outputs.b.c }}'}",
        'verify[0].run: {{ outputs.b.c }} is not replaced in a command; read "$DAGWARD_INPUTS/b/outputs.json"',
    ),
    ("{exit: ^false}", "verify[0].exit: must be true, not false; write exit: true"),
    ("{file: ^{}}", 'verify[0].file.path: required field "path" is missing; add path: a file'),
    (
        "{file: {path: ^/etc/x}}",
        'verify[0].file.path: "/etc/x" is an absolute path; write it relative to the workspace',
    ),
    (
        "{file: {path: x, sha256: ^abc}}",
        'verify[0].file.sha256: "abc" is not a valid sha256; write 64 lower-case hexadecimal digits',
    ),
    ("{file: {path: x, nonempty: ^yes}}", 'verify[0].file.nonempty: must be true or false, not "yes"'),
    ("{diff: ^{}}", "verify[0].diff: this diff check accepts everything; write nonempty: true, or only: [...]"),
    (
        "{diff: {only: [^'*.py']}}",
        'verify[0].diff.only[0]: "*.py" is not a scope pattern; write a path, "dir/**" for all below a folder, or "**" for everything',
    ),
    ("{outputs: ^{}}", 'verify[0].outputs.schema: required field "schema" is missing; add schema: {type: object}'),
    (
        "{outputs: {schema: {type: ^objct}}}",
        "verify[0].outputs.schema.type: not a JSON Schema: 'objct' is not valid under any of the given schemas; correct the schema",
    ),
    (
        "{outputs: {schema: {$ref: ^'http://x/y'}}}",
        'verify[0].outputs.schema.$ref: the schema has nothing at $ref "http://x/y"; refer to a part of the same schema, "#/$defs/NAME"',
    ),
    (
        "{outputs: {schema: ^{const: 9007199254740993}}}",
        "verify[0].outputs.schema: cannot be kept as JSON: 9007199254740993 exceeds safe integer domain for JSON floats; use whole numbers up to 2^53 and valid text",
    ),
]

# The agent of a task on line 4.
AGENTS = [
    ("{use: ^codex}", 'agent.use: the agent "codex" is not in this version; use command or python'),
    (
        "{use: ^comand, run: x}",
        'agent.use: unknown agent "comand"; did you mean "command"? known agents: command, python',
    ),
    ("{use: ^system, work: accept}", 'agent.use: the agent "system" is dagward\'s own; use command or python'),
    ("^{run: x}", 'agent.use: required field "use" is missing; add use: command or python'),
    ("^{use: command}", 'agent.run: required field "run" is missing; add run: "a shell command"'),
    ("{use: command, run: x, ^checklist: false}", 'agent.checklist: "checklist" is not in this version; remove it'),
    ("{use: command, run: x, ^cwd: y}", 'agent.cwd: unknown field "cwd"; known fields: use, run'),
    (
        "{use: command, run: ^'x {{ y }}'}",
        'agent.run: {{ y }} is not replaced in a command; write "$DAGWARD_PARAM_NAME" for a parameter; put a text that needs braces into a script',
    ),
    ("{use: python, call: ^foo}", 'agent.call: "foo" is not a valid call; write "package.module:function"'),
    ("^command", 'agent: must be a mapping, not "command"; write {use: command, run: "..."}'),
    ("^", "agent: has no value; give one, or remove the field"),
]


def places(marked: str, build: Callable[[str], str], line: int) -> tuple[str, str]:
    """The text without its mark, and the place of the mark as `plan.yaml:LINE:COLUMN`."""
    before = build(marked).split("\n")[line - 1].index("^")
    return build(marked.replace("^", "")), f"plan.yaml:{line}:{before + 1}"


@pytest.mark.parametrize(("head", "expected"), HEADS, ids=[head for head, _ in HEADS])
def test_error_in_the_header(head: str, expected: str) -> None:
    text, place = places(head, lambda part: plan(head=part), 3)
    assert errors(text) == [f"{place}: {expected}"]


@pytest.mark.parametrize(("task", "expected"), TASKS, ids=[task for task, _ in TASKS])
def test_error_in_a_task(task: str, expected: str) -> None:
    head = "scope: {write: [src/**]}" if task.startswith("scope") else ""
    text, place = places(task, lambda part: plan(part, head), 5)
    assert errors(text) == [f"{place}: {expected}"]


@pytest.mark.parametrize(("check", "expected"), VERIFY, ids=[check for check, _ in VERIFY])
def test_error_in_a_check(check: str, expected: str) -> None:
    text, place = places(check, lambda part: plan(f"verify: [{part}]"), 5)
    assert errors(text) == [f"{place}: tasks.a.{expected}"]


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("{weakening: ^false}", "weakening: must be true, not false; write weakening: true, or {paths: [...]}"),
        ("{weakening: {^path: x}}", 'weakening.path: unknown field "path"; did you mean "paths"? known fields: paths'),
        ("{weakening: {paths: ^[]}}", "weakening.paths: an empty list looks at nothing; leave paths out, or write a pattern"),
        ("{weakening: {paths: [^'*.py']}}", 'weakening.paths[0]: "*.py" is not a scope pattern; write a path, "dir/**" for all below a folder, or "**" for everything'),
        ("{weakening: {paths: ^null}}", "weakening.paths: has no value; give one, or remove the field"),
    ],
)  # fmt: skip
def test_error_in_a_weakening_check(check: str, expected: str) -> None:
    text, place = places(check, lambda part: plan(f"verify: [{part}]", "repo: ."), 5)
    assert errors(text) == [f"{place}: tasks.a.verify[0].{expected}"]


@pytest.mark.parametrize(("agent", "expected"), AGENTS, ids=[agent for agent, _ in AGENTS])
def test_error_in_an_agent(agent: str, expected: str) -> None:
    text, place = places(agent, lambda part: f"name: p\ngoal: g\ntasks:\n- {{id: a, agent: {part}}}\n", 4)
    assert errors(text) == [f"{place}: tasks.a.{expected}"]


def test_missing_fields_are_shown_where_they_belong() -> None:
    assert errors("tasks: [{title: x}]") == [
        'plan.yaml:1:1: goal: required field "goal" is missing; add goal: what the plan is for',
        'plan.yaml:1:1: name: required field "name" is missing; add name: my-plan',
        (
            'plan.yaml:1:9: tasks[0].agent: required field "agent" is missing; '
            'add agent: {use: command, run: "..."}, here or in defaults'
        ),
        'plan.yaml:1:9: tasks[0].id: required field "id" is missing; add id: my-task',
    ]
    assert errors("name: p\ngoal: g\ntasks: []") == [
        "plan.yaml:3:8: tasks: a plan needs at least one task; write a task"
    ]


def test_ids() -> None:
    more = "- {id: b, agent: {use: command, run: x}}\n- {id: a, agent: {use: command, run: x}}\n"
    assert errors(plan(more=more)) == [
        'plan.yaml:7:8: tasks.a.id: duplicate id "a", first on line 5; give each task its own id'
    ]
    assert errors(plan(more="- {id: _b, agent: {use: command, run: x}}")) == [
        'plan.yaml:6:8: tasks[1].id: the id "_b" is reserved; ids that begin with "_" belong to dagward'
    ]
    assert errors(plan(more="- {id: a b, agent: {use: command, run: x}}")) == [
        f'plan.yaml:6:8: tasks[1].id: "a b" is not a valid id; {WORD}'
    ]
    assert errors(plan().replace("name: p", "name: p!")) == [f'plan.yaml:1:7: name: "p!" is not a valid name; {WORD}']


def tasks_of(*lines: str) -> str:
    made = [f"- {{{line}, agent: {{use: command, run: x}}, verify: [{{run: x}}]}}" for line in lines]
    return "\n".join(["name: p", "goal: g", "tasks:", *made, ""])


def test_unknown_task_is_named_with_the_nearest_one() -> None:
    text = tasks_of("id: survey", "id: b, blocked_by: [survy]", "id: c, blocks: [surve]")
    assert errors(text) == [
        'plan.yaml:5:24: tasks.b.blocked_by[0]: unknown task "survy"; did you mean "survey"? known tasks: survey, b, c',
        'plan.yaml:6:20: tasks.c.blocks[0]: unknown task "surve"; did you mean "survey"? known tasks: survey, b, c',
    ]


def test_cycle_is_named_in_order_from_its_first_task() -> None:
    text = tasks_of("id: z", "id: a, blocked_by: [c, z]", "id: b, blocked_by: [a]", "id: c, blocked_by: [b]")
    assert errors(text) == ["plan.yaml:5:24: tasks.a.blocked_by[0]: cycle: a -> b -> c -> a; remove one of these edges"]


def test_cycle_written_from_the_other_end_is_shown_there() -> None:
    text = tasks_of("id: a, blocks: [b]", "id: b, blocks: [a]")
    assert errors(text) == ["plan.yaml:5:20: tasks.b.blocks[0]: cycle: a -> b -> a; remove one of these edges"]


def test_each_knot_of_tasks_is_one_error() -> None:
    text = tasks_of(
        "id: a, blocked_by: [b]", "id: b, blocked_by: [a]", "id: c, blocked_by: [d, a]", "id: d, blocked_by: [c]"
    )
    assert errors(text) == [
        "plan.yaml:4:24: tasks.a.blocked_by[0]: cycle: a -> b -> a; remove one of these edges",
        "plan.yaml:6:24: tasks.c.blocked_by[0]: cycle: c -> d -> c; remove one of these edges",
    ]


def test_two_ends_that_disagree() -> None:
    text = tasks_of("id: a, blocks: [{task: b, when: settled}]", "id: b, blocked_by: [a]")
    assert errors(text) == [
        (
            "plan.yaml:5:24: tasks.b.blocked_by[0]: the two ends of a -> b disagree: verified here, settled on line 4; "
            "write the edge once"
        ),
    ]


def test_an_edge_may_be_written_from_both_ends() -> None:
    spec = loaded(tasks_of("id: a, blocks: [b]", "id: b, blockedBy: [{task: a}]")).spec
    assert [edge.task for edge in spec.tasks[1].blocked_by] == ["a"]


def test_an_edge_with_a_wrong_key() -> None:
    assert errors(plan("blocked_by: [{tsk: a}]")) == [
        'plan.yaml:5:55: tasks.a.blocked_by[0].task: required field "task" is missing; add task: the id of a task',
        'plan.yaml:5:56: tasks.a.blocked_by[0].tsk: unknown field "tsk"; did you mean "task"? known fields: task, when',
    ]


def test_duplicate_edge() -> None:
    assert errors(tasks_of("id: a", "id: b, blocked_by: [a, {task: a}]")) == [
        'plan.yaml:5:27: tasks.b.blocked_by[1]: duplicate edge to "a"; keep one of the two'
    ]


def test_both_spellings_in_one_task() -> None:
    assert errors(tasks_of("id: a", "id: b, blocked_by: [a], blockedBy: []")) == [
        "plan.yaml:5:28: tasks.b.blockedBy: blocked_by and blockedBy are the same field, and they disagree; keep blocked_by"
    ]
    spec = loaded(tasks_of("id: a", "id: b, blocked_by: [a], blockedBy: [a]")).spec
    assert [edge.task for edge in spec.tasks[1].blocked_by] == ["a"]


def test_parameters_of_the_command() -> None:
    text = plan(head="params: {depth: null}")
    assert loaded(text, params={"depth": "3"}).spec.params == {"depth": "3"}
    assert errors(text, params={"depth": "3", "dept": "4"}) == [
        'plan.yaml: --param dept: unknown parameter "dept"; did you mean "depth"? known parameters: depth'
    ]
    assert errors(text, params={"depth": "\0"}) == ["plan.yaml: --param depth: holds a NUL character; remove it"]


def test_six_errors_are_six_lines_in_order() -> None:
    text = """\
        name: p
        goal: g
        tasks:
          - id: a
            agent: {use: command, run: "echo {{ params.x }}"}
            blocked_by: [c]
          - id: b
            blocked_by: [a, nowhere]
            agent: {use: command, run: x}
            timeout: 20
          - id: b
            agent: {use: codex}
          - id: c
            blocked_by: [a]
            agent: {use: command, run: x}
            pool: gpu
    """
    assert [line.split(": ")[0:2] for line in errors(text)] == [
        ["plan.yaml:5:32", "tasks.a.agent.run"],
        ["plan.yaml:6:18", "tasks.a.blocked_by[0]"],
        ["plan.yaml:8:21", "tasks.b.blocked_by[1]"],
        ["plan.yaml:10:14", "tasks.b.timeout"],
        ["plan.yaml:11:9", "tasks.b.id"],
        ["plan.yaml:12:18", "tasks.b.agent.use"],
        ["plan.yaml:16:11", "tasks.c.pool"],
    ]


def test_task_without_a_check_is_a_warning() -> None:
    done = loaded(plan(more="- {id: b, agent: {use: command, run: x}, verify: [exit]}"))
    assert [warning.render("plan.yaml") for warning in done.warnings] == [
        'plan.yaml:5:3: tasks.a: nothing but the exit code is checked; add verify: [{run: "..."}]',
        'plan.yaml:6:3: tasks.b: nothing but the exit code is checked; add verify: [{run: "..."}]',
    ]
    assert not loaded(plan("verify: [{run: x}]")).warnings
    assert not loaded(plan(head="defaults: {verify: [{run: x}]}")).warnings


def test_many_tasks_without_a_check_are_one_warning() -> None:
    more = "\n".join(f"- {{id: b{n}, agent: {{use: command, run: x}}}}" for n in range(30))
    assert [warning.message for warning in loaded(plan(more=more)).warnings] == [
        "nothing but the exit code is checked, of 31 tasks"
    ]


def test_ids_that_differ_only_in_case_are_a_warning() -> None:
    done = loaded(tasks_of("id: ab", "id: aB"))
    assert [warning.render("plan.yaml") for warning in done.warnings] == [
        (
            'plan.yaml:5:8: tasks.aB.id: the ids "ab" and "aB" differ only in case; '
            "rename one; some file systems cannot tell them apart"
        )
    ]


def read_error(path: Path) -> list[str]:
    with pytest.raises(InvalidPlan) as caught:
        load(path)
    return [problem.render("F") for problem in caught.value.problems.errors]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert read_error(tmp_path / "no.yaml") == [
        "F: there is no such file; check the name; `dagward init` makes an example"
    ]
    assert read_error(tmp_path) == ["F: is a folder, not a plan file; name the file in it"]
    for data, message in [
        (b"", "F: the file is empty; write a plan; `dagward init` makes an example"),
        (b" \n# only a comment\n", "F: the file is empty; write a plan; `dagward init` makes an example"),
        (b"name: x\ngoal: \xff\n", "F: the file is not UTF-8 (byte 0xff on line 2); save it as UTF-8"),
        ("name: x".encode("utf-16"), "F: the file is UTF-16, not UTF-8; save it as UTF-8"),
        (b"x" * (64 * 1024 * 1024 + 1), "F: the file is larger than 64 MiB; split the plan"),
    ]:
        (tmp_path / "f.yaml").write_bytes(data)
        assert read_error(tmp_path / "f.yaml") == [message]


def test_count_is_in_the_message_of_the_exception() -> None:
    with pytest.raises(InvalidPlan, match=r"^plan\.yaml: 2 errors$"):
        loaded(plan("pool: x, title: 3"))


SIX = """\
name: p
goal: "no, on and 12:30 are texts"
params: {a: no, b: on, c: 12:30}
defaults: &shared
  agent: &agent {use: command, run: x}
tasks:
  - id: a
    agent: {use: command, run: "echo {{ params.a }}"}
  - {id: b, agent: *agent, blocked_by: [nowhere]}
  - {id: c, agent: *agent, timeout: 20}
  - {id: c, agent: *agent}
  - {id: d, agent: *agent, pool: gpu}
  - {id: e, agent: *agent, blocks: [e]}
"""
SIX_PLACES = ["8:32", "9:41", "10:37", "11:10", "12:34", "13:37"]  # counted in the text itself


@pytest.mark.parametrize(
    "written",
    [
        SIX.encode(),
        SIX.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + SIX.encode(),
        b"\xef\xbb\xbf" + SIX.replace("\n", "\r\n").encode(),
        SIX.replace("name: p", "name: p\t# a tab before a comment").replace("use: command", "use:\tcommand").encode(),
    ],
    ids=["lf", "crlf", "bom", "bom+crlf", "tabs"],
)
def test_six_errors_are_six_with_the_right_lines_however_the_file_is_written(written: bytes) -> None:
    with pytest.raises(InvalidPlan) as caught:
        load_text(written, "plan.yaml")
    assert [f"{each.line}:{each.column}" for each in caught.value.problems.errors] == SIX_PLACES
