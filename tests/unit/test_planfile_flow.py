"""What decides about the way through a plan: `for_each`, `if`, `settled` edges, fallbacks, with exact messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import InvalidPlan
from scheduler.graph import find_cycles, from_blockers, of_work, with_stand_ins
from scheduler.model.plan import PlanSpec, When
from scheduler.planfile import load_text
from scheduler.plans import canonical
from tests.planfile_kit import errors, loaded


def tasks_of(*lines: str, head: str = "") -> str:
    """A plan whose first task is on line 4; each line holds the fields of a task after `id`."""
    made = [f"- {{id: {line}, agent: {{use: command, run: x}}, verify: [{{run: x}}]}}" for line in lines]
    return "\n".join([f"name: p{head}", "goal: g", "tasks:", *made, ""])


def edges(spec: PlanSpec) -> dict[str, list[tuple[str, str]]]:
    return {task.id: [(edge.task, edge.when.value) for edge in task.blocked_by] for task in spec.tasks}


def test_everything_is_in_the_normal_form() -> None:
    spec = loaded(
        tasks_of(
            "s",
            "m, for_each: s.modules, scope: {write: ['src/{{item}}/**', 'doc/{{  item.name }}.md'], protect: ['src/{{ item }}/api']}",
            'n, blocked_by: [{task: m, when: settled}], if: "outputs.s.changed and len(outputs.m) > 1"',
            "f, blocked_by: [{task: s, when: settled}], on_failure: continue",
            "g, blocks: [{task: n, when: settled}], on_failure: {fallback: h}",
            "h",
            head="\nfail_fast: true\nscope: {write: [src/**, doc/**]}",
        )
    ).spec
    assert spec.fail_fast is True
    assert edges(spec) == {
        "s": [], "m": [("s", "verified")], "n": [("g", "settled"), ("m", "settled")], "f": [("s", "settled")], "g": [], "h": [],
    }  # fmt: skip
    by_id = {task.id: task for task in spec.tasks}
    assert by_id["m"].for_each == "s.modules"
    assert by_id["m"].scope.write == ("doc/{{ item.name }}.md", "src/{{ item }}/**")
    assert by_id["m"].scope.protect == ("src/{{ item }}/api",)
    assert by_id["n"].if_ == "outputs.s.changed and len(outputs.m) > 1"
    assert [by_id[name].on_failure for name in "fgh"] == ["continue", "fail", "fail"]
    assert [by_id[name].fallback for name in "fgh"] == [None, "h", None]
    assert PlanSpec.model_validate_json(spec.model_dump_json(by_alias=True)) == spec


def test_for_each_implies_its_edge_unless_it_is_written() -> None:
    plain = edges(loaded(tasks_of("s", "m, for_each: s.x")).spec)
    assert plain["m"] == [("s", "verified")]
    for written in ("m, for_each: s.x, blocked_by: [s]", "m, for_each: s.x, blockedBy: [{task: s, when: verified}]"):
        assert edges(loaded(tasks_of("s", written)).spec) == plain
    assert edges(loaded(tasks_of("s, blocks: [m]", "m, for_each: s.x")).spec) == plain


SETTLED = 'the edge to "s" waits for settled, but for_each needs its outputs; remove this edge; for_each implies one'


def test_a_settled_edge_to_the_source_of_the_items() -> None:
    assert errors(tasks_of("s", "m, for_each: s.x, blocked_by: [{task: s, when: settled}]")) == [
        f"plan.yaml:5:39: tasks.m.blocked_by[0]: {SETTLED}"
    ]
    assert errors(tasks_of("s, blocks: [{task: m, when: settled}]", "m, for_each: s.x")) == [
        f"plan.yaml:4:20: tasks.s.blocks[0]: {SETTLED}"
    ]


def test_for_each_closes_a_cycle() -> None:
    assert errors(tasks_of("s, blocked_by: [m]", "m, for_each: s.x")) == [
        "plan.yaml:4:24: tasks.s.blocked_by[0]: cycle: s -> m -> s; remove one of these edges"
    ]
    assert errors(tasks_of("s, for_each: m.x", "m, blocked_by: [s]"))[0] == (
        "plan.yaml:4:21: tasks.s.for_each: cycle: s -> m -> s; remove one of these edges"
    )


def test_for_each_of_an_unknown_task() -> None:
    assert errors(tasks_of("survey", "m, for_each: survy.x")) == [
        'plan.yaml:5:21: tasks.m.for_each: unknown task "survy"; did you mean "survey"? known tasks: survey, m'
    ]


LIST = 'outputs of "m" are a list, one for each of its items'


def test_outputs_of_a_for_each_task_are_a_list() -> None:
    assert errors(tasks_of("s", "m, for_each: s.x", "n, for_each: m.y")) == [
        f"plan.yaml:6:21: tasks.n.for_each: {LIST}; let a task between the two write one array"
    ]
    text = tasks_of(
        "s",
        "m, for_each: s.x",
        "n, blocked_by: [m], if: outputs.m.y, prompt: '{{ outputs.m.y }}'",
        "o, blocked_by: [m], prompt: '{{ outputs.m.y + 1 }}'",
    )
    remedy = "write outputs.m[0].y, or go through outputs.m"
    assert errors(text) == [
        f"plan.yaml:6:32: tasks.n.if: {LIST}; {remedy}",
        f"plan.yaml:6:53: tasks.n.prompt: {LIST}; {remedy}",
        f"plan.yaml:7:36: tasks.o.prompt: {LIST}; {remedy}",
    ]
    sound = "n, blocked_by: [m], if: 'outputs.m[0].y', prompt: '{% for each in outputs.m %}{{ each.y }}{% endfor %}{{ outputs.m }}'"
    assert loaded(tasks_of("s", "m, for_each: s.x", sound)).spec


def test_item_belongs_to_tasks_with_for_each() -> None:
    good = "m, for_each: s.x, prompt: 'do {{ item }} and {{ item.name | upper }}', scope: {write: ['a/{{ item }}']}"
    assert loaded(tasks_of("s", good)).spec.tasks[1].prompt == "do {{ item }} and {{ item.name | upper }}"
    remedy = "only the prompt and scope of a task with for_each have it"
    assert errors(tasks_of("s, prompt: 'do {{ item }}'", "n, prompt: 'do {{ item | upper }}', if: item")) == [
        f'plan.yaml:4:19: tasks.s.prompt: "item" is undefined here; {remedy}',
        f'plan.yaml:5:19: tasks.n.prompt: "item" is undefined here; {remedy}',
        f'plan.yaml:5:48: tasks.n.if: "item" is undefined here; {remedy}',
    ]
    assert errors(tasks_of("s", "m, for_each: s.x, if: item")) == [
        f'plan.yaml:5:30: tasks.m.if: "item" is undefined here; {remedy}'
    ], "a condition is asked once, before there are items"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("lib/{{ item }}", '"lib/{{ item }}" is wider than the scope of the plan; stay within src/**'),
        ("{{ item }}/**", '"{{ item }}/**" is wider than the scope of the plan; stay within src/**'),
        ("src/{{ items }}", '"src/{{ items }}" holds more than the item; write {{ item }} or {{ item.NAME }}, and the rest out'),
        ("src/{{ item }}/{{ params.x }}", '"src/{{ item }}/{{ params.x }}" holds more than the item; write {{ item }} or {{ item.NAME }}, and the rest out'),
        ("src/{{ item }}/*.py", '"src/{{ item }}/*.py" is not a scope pattern; write a path, "dir/**" for all below a folder, or "**" for everything'),
        ("src/../{{ item }}", '"src/../{{ item }}" leaves the workspace; write it without ".."'),
        ("src/./{{ item }}/**", '"src/./{{ item }}/**" is not a plain path; write "src/{{ item }}/**"'),
    ],
)  # fmt: skip
def test_scope_with_an_item(pattern: str, message: str) -> None:
    text = tasks_of("s", f"m, for_each: s.x, scope: {{write: ['{pattern}']}}", head="\nscope: {write: [src/**]}")
    assert errors(text) == [f"plan.yaml:6:42: tasks.m.scope.write[0]: {message}"]


def test_an_item_stands_nowhere_else() -> None:
    only = "only the scope of a task with for_each may hold {{ item }}; write the path out"
    assert errors(tasks_of("s", "m, scope: {write: ['a/{{ item }}']}")) == [
        f"plan.yaml:5:27: tasks.m.scope.write[0]: {only}"
    ]
    text = tasks_of("s", "m, for_each: s.x, env: {set: {A: b}}").replace(
        "verify: [{run: x}]", "verify: [{run: 'x {{ item }}'}, {diff: {only: ['{{ item }}']}}]"
    )
    assert [line.partition(": ")[2] for line in errors(text) if "tasks.m" in line] == [
        'tasks.m.verify[0].run: {{ item }} is not replaced in a command; write "$DAGWARD_ITEM"',
        f"tasks.m.verify[1].diff.only[0]: {only}",
    ]


def test_when() -> None:
    assert errors(tasks_of("s", "m, blocked_by: [{task: s, when: integrated}]")) == [
        'plan.yaml:5:40: tasks.m.blocked_by[0].when: "integrated" is not in this version; write verified or settled'
    ]
    assert errors(tasks_of("s", "m, blocked_by: [{task: s, when: later}]")) == [
        'plan.yaml:5:40: tasks.m.blocked_by[0].when: must be verified or settled, not "later"; write verified or settled'
    ]


def test_conditions_read_what_comes_before_over_any_edge() -> None:
    near = "n, blocked_by: [{task: s, when: settled}], if: outputs.s.ok == null"
    far = "o, blocked_by: [n], if: 'outputs.s.ok or outputs[\"n\"].x'"
    assert loaded(tasks_of("s", near, far)).spec.tasks[2].if_ == 'outputs.s.ok or outputs["n"].x'
    assert errors(tasks_of("s, blocked_by: [n]", "n, if: outputs.s.ok")) == [
        (
            'plan.yaml:5:15: tasks.n.if: outputs of "s" do not exist yet: it does not come before this task; '
            "add blocked_by: [s]"
        )
    ]


def test_a_condition_over_several_lines() -> None:
    text = """\
        name: p
        goal: g
        params: {mode: full}
        tasks:
          - id: a
            agent: {use: command, run: x}
            verify: [{run: x}]
            if: |
              params.mode == "full"   # the long way
              or params.mode == "half"
    """
    assert loaded(text).spec.tasks[0].if_ == 'params.mode == "full"   # the long way\nor params.mode == "half"\n'


FALLBACKS: list[tuple[list[str], list[str]]] = [
    (["s, on_failure: {fallback: srvey}", "survey"],
     ['4:34: tasks.s.on_failure.fallback: unknown task "srvey"; did you mean "survey"? known tasks: s, survey']),
    (["s, on_failure: {fallback: f}", "t, on_failure: {fallback: f}", "f"],
     ['5:34: tasks.t.on_failure.fallback: "f" is already the fallback of "s" on line 4; give each task its own fallback']),
    (["s", "f, for_each: s.x", "t, on_failure: {fallback: f}"],
     ['6:34: tasks.t.on_failure.fallback: a fallback with for_each, such as "f", is not in this version; name a task without it']),
    (["s", "m, for_each: s.x, on_failure: {fallback: f}", "f"],
     ["5:49: tasks.m.on_failure.fallback: a fallback of a task with for_each is not in this version; write on_failure: fail or continue"]),
    (["s, on_failure: {fallback: f}", "f, blocked_by: [s]"],
     ['4:34: tasks.s.on_failure.fallback: the fallback "f" waits for "s", which it replaces; remove the edge; it is called when the task fails']),
    (["s, on_failure: {fallback: f}", "f, blocked_by: [{task: s, when: settled}]"],
     ['4:34: tasks.s.on_failure.fallback: the fallback "f" waits for "s", which it replaces; remove the edge; it is called when the task fails']),
    (["s, on_failure: {fallback: f}, blocked_by: [f]", "f"],
     ['4:34: tasks.s.on_failure.fallback: task "s" waits for its own fallback "f"; remove the edge; it is called when the task fails']),
    (["s, on_failure: {fallback: f}", "d, blocked_by: [s]", "f, blocked_by: [d]"],
     ['4:34: tasks.s.on_failure.fallback: the fallback "f" of "s" closes a cycle: d -> f -> d; what waits for a task waits for its fallback too; remove one of these edges']),
    (["s, on_failure: {fallback: f}, blocked_by: [d]", "d, blocked_by: [f]", "f"],
     ['4:34: tasks.s.on_failure.fallback: the fallback "f" of "s" closes a cycle: s -> f -> d -> s; what waits for a task waits for its fallback too; remove one of these edges']),
    (["a, on_failure: {fallback: b}", "b, on_failure: {fallback: c}", "c, blocked_by: [a]"],
     ['5:34: tasks.b.on_failure.fallback: the fallback "c" waits for "a", which it replaces; remove the edge; it is called when the task fails']),
    (["a, on_failure: {fallback: b}", "b, on_failure: {fallback: a}"],
     ["4:34: tasks.a.on_failure.fallback: the fallbacks form a cycle: a -> b -> a; remove one of them"]),
    (["t, on_failure: {fallback: f}", "f, on_failure: {fallback: g}", "d, blocked_by: [t]", "g, blocked_by: [d]"],
     ['5:34: tasks.f.on_failure.fallback: the fallback "g" of "f" closes a cycle: d -> g -> d; what waits for a task waits for its fallback too; remove one of these edges']),
    (["t, on_failure: {fallback: f}", "u, on_failure: {fallback: g}", "d, blocked_by: [t]", "e, blocked_by: [u]", "f, blocked_by: [e]", "g, blocked_by: [d]"],
     ['5:34: tasks.u.on_failure.fallback: the fallback "g" of "u" closes a cycle: d -> g -> e -> f -> d; what waits for a task waits for its fallback too; remove one of these edges']),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), FALLBACKS, ids=["; ".join(lines) for lines, _ in FALLBACKS])
def test_fallbacks(lines: list[str], expected: list[str]) -> None:
    assert errors(tasks_of(*lines)) == [f"plan.yaml:{line}" for line in expected]


def test_fallbacks_may_form_a_chain_and_have_edges_of_their_own() -> None:
    lines = [
        "s",
        "a, on_failure: {fallback: b}",
        "b, on_failure: {fallback: c}, blocked_by: [s]",
        "c",
        "d, blocked_by: [a]",
    ]
    spec = loaded(tasks_of(*lines)).spec
    assert of_work(spec.tasks).ancestors("d") == ["s", "a", "b", "c"]
    assert of_work(spec.tasks).order() == ["s", "a", "b", "c", "d"]


def test_stand_ins_come_between_a_task_and_what_waits_for_it() -> None:
    made = with_stand_ins({"t": [], "f": ["x"], "g": [], "d": ["t"], "e": ["d"], "x": []}, {"t": "f", "f": "g"})
    assert made == {"t": [], "f": ["x", "t"], "g": ["f"], "d": ["t", "f", "g"], "e": ["d"], "x": []}


NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def flows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Five tasks, mostly with blockers before them and fallbacks after them, so that many of the plans are sound."""
    made: list[dict[str, Any]] = []
    for at, name in enumerate(NAMES):
        anyone = draw(st.integers(0, 9)) == 0
        before = st.sampled_from(NAMES if anyone or at == 0 else NAMES[:at])
        after = st.sampled_from(NAMES if anyone or at == 4 else NAMES[at + 1 :])
        edge = st.fixed_dictionaries({"task": before}, optional={"when": st.sampled_from(["verified", "settled"])})
        fields: dict[str, Any] = {"id": name}
        if at and draw(st.booleans()):
            fields["blocked_by"] = draw(st.lists(edge, max_size=2, unique_by=lambda each: str(each["task"])))
        kind = draw(st.sampled_from(["", "", "for_each", "fallback", "fallback", "continue"]))
        if kind == "for_each" and at:
            fields["for_each"] = f"{draw(before)}.x"
        elif kind == "fallback" and at < 4:
            fields["on_failure"] = {"fallback": draw(after)}
        elif kind == "continue":
            fields |= {"on_failure": "continue", "if": "1 == 1"}
        made.append(fields)
    return made


@given(flows())
@settings(max_examples=300, deadline=None)
def test_what_is_accepted_can_always_be_ordered(tasks: list[dict[str, Any]]) -> None:
    """Whatever the edges and fallbacks: an accepted plan has an order in which each fallback comes after its task and
    before all that waits for the task; a refused plan says why."""
    agent = {"use": "command", "run": "x"}
    value = {
        "name": "p",
        "goal": "g",
        "defaults": {"agent": agent},
        "tasks": tasks,
    }
    try:
        spec = load_text(canonical(value), "plan.json").spec  # type: ignore[arg-type]
    except InvalidPlan as error:
        refused = error.problems.errors
    else:
        order_holds(spec)
        return
    assert refused
    assert all(problem.message and problem.remedy for problem in refused)


def order_holds(spec: PlanSpec) -> None:
    rank = {name: at for at, name in enumerate(of_work(spec.tasks).order())}
    assert not find_cycles({each.id: [edge.task for edge in each.blocked_by] for each in spec.tasks})
    called = [each.fallback for each in spec.tasks if each.fallback]
    assert len(called) == len(set(called))
    plain = from_blockers({each.id: [edge.task for edge in each.blocked_by] for each in spec.tasks})
    for each in spec.tasks:
        assert all(rank[edge.task] < rank[each.id] for edge in each.blocked_by)
        if each.for_each:
            assert (each.for_each[0], When.VERIFIED) in [(edge.task, edge.when) for edge in each.blocked_by]
            assert each.fallback is None
        if each.fallback:
            assert rank[each.id] < rank[each.fallback]
            assert all(rank[each.fallback] < rank[below] for below in plain.descendants(each.id))
