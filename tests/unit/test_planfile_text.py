"""YAML and JSON texts: what values mean, and that every place is right whatever the text looks like."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.planfile.source import Unreadable, read
from tests.planfile_kit import errors, loaded, plan

BAD = "name: p\ngoal: g\ntasks:\n  - id: a\n    agent: {use: command, run: x}\n    pool: gpu\n    tiemout: 3\n"
PLACES = ["plan.yaml:6:11", "plan.yaml:7:5"]


def value_of(text: str) -> object:
    return read(text.encode(), is_json=False).value


def places(text: str | bytes, file: str = "plan.yaml") -> list[str]:
    return [line.split(": ")[0] for line in errors(text, file)]


@pytest.mark.parametrize(
    "data",
    [
        BAD.encode(),
        BAD.replace("\n", "\r\n").encode(),
        BAD.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + BAD.encode(),
        b"\xef\xbb\xbf" + BAD.replace("\n", "\r\n").encode(),
        BAD.replace("goal: g", "goal: gr\u00fc\u00dfe \U0001f600").encode(),
        BAD.replace("goal: g", "goal: a\u2028b\u0085c").encode(),
        BAD.replace("run: x}", "run: x}\t# a tab before a comment").encode(),
        ("%YAML 1.2\n---\n" + BAD.removeprefix("name: p\n").replace("tasks", "name: p\ntasks", 1)).encode(),
    ],
    ids=["lf", "crlf", "cr", "bom", "bom+crlf", "wide", "odd breaks", "tab", "directive"],
)
def test_lines_and_columns(data: bytes) -> None:
    shift = 2 if data.startswith(b"%YAML") else 0
    assert places(data) == [f"plan.yaml:{6 + shift}:11", f"plan.yaml:{7 + shift}:5"]


def test_column_after_wide_characters_counts_characters() -> None:
    text = plan("pool: gpu").replace("{id: a,", "{title: '\U0001f600\u00e9', id: a,")
    column = text.split("\n")[4].index("gpu") + 1
    assert places(text) == [f"plan.yaml:5:{column}"]


def test_texts_that_other_readers_take_for_something_else() -> None:
    spec = loaded(
        """\
        name: no
        goal: 12:30
        params: {on: yes, off: off, date: 2026-01-02, version: 1.2.3, y: y}
        tasks:
          - {id: on, agent: {use: command, run: y}, verify: [{run: no}]}
        """
    ).spec
    assert (spec.name, spec.goal, spec.tasks[0].id) == ("no", "12:30", "on")
    assert spec.params == {"on": "yes", "off": "off", "date": "2026-01-02", "version": "1.2.3", "y": "y"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("~", None), ("null", None), ("", None), ("NULL", None), ("nUll", "nUll"),
        ("true", True), ("False", False), ("yes", "yes"), ("tRUE", "tRUE"),
        ("12", 12), ("-3", -3), ("+3", 3), ("012", 12), ("0o14", 12), ("0x1F", 31), ("1_000", "1_000"),
        ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("1.", 1.0), (".", "."), ("-", "-"), ("+", "+"), ("1:30", "1:30"),
        ("\u0663", "\u0663"), ("'12'", "12"), ('"null"', "null"), ("!!str 12", "12"), ("<<", "<<"),
    ],
)  # fmt: skip
def test_core_schema(text: str, value: object) -> None:
    if text == "-":
        text = "'-'"
    found = value_of(f"[{text}, x]" if text else "- \n- x")
    assert isinstance(found, list)
    assert found[0] == value
    assert type(found[0]) is type(value)


def test_anchors_are_reported_where_they_are_written_and_once() -> None:
    text = (
        "name: p\ngoal: g\ndefaults:\n  agent: &run {use: command, run: x}\n  retries: &more {max: 200}\ntasks:\n"
        "  - {id: a, agent: *run, retries: *more}\n  - {id: b, retries: {<<: *more, backoff: 1}}\n"
    )
    assert places(text) == ["plan.yaml:5:24", "plan.yaml:8:43"]


def test_merge_keys() -> None:
    text = """\
        name: p
        goal: g
        params: {}
        defaults: &base
          agent: &agent {use: command, run: x}
          timeout: 5m
        tasks:
          - &first {id: a, <<: *base, verify: [{run: y}]}
          - {<<: [*first, *base], id: b, timeout: 7m}
    """
    first, second = loaded(text).spec.tasks
    assert (first.timeout, second.timeout) == (300_000, 420_000)
    assert second.verify == first.verify


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: p\nname: q\ngoal: g\ntasks: [{id: a, agent: {use: command, run: x}}]",
         ['plan.yaml:2:1: name: duplicate key "name"; keep one of the two']),
        ("name: p\ngoal: g\ntasks:\n- {id: a, agent: {use: command, run: x, run: y}, id: b}",
         ['plan.yaml:4:41: tasks.a.agent.run: duplicate key "run"; keep one of the two',
          'plan.yaml:4:50: tasks.a.id: duplicate key "id"; keep one of the two']),
        ("name: p\ngoal: g\nparams: {1: a}\ntasks: [{id: a, agent: {use: command, run: x}}]",
         ['plan.yaml:3:10: params: the key 1 is not a text; write "1"']),
        ("name: p\ngoal: g\nparams: {[a]: b}\ntasks: [{id: a, agent: {use: command, run: x}}]",
         ["plan.yaml:3:10: params: a key must be a text; write a plain word"]),
        ("name: !env HOME\ngoal: g\ntasks: [{id: a, agent: {use: command, run: x}}]",
         ["plan.yaml:1:7: name: the tag !env is not used in plan files; remove it"]),
        ("name: p\ngoal: !!python/object:os.system x\ntasks: [{id: a, agent: {use: command, run: x}}]",
         ["plan.yaml:2:7: goal: the tag !!python/object:os.system is not used in plan files; remove it"]),
        (plan(head="params: {x: .inf}"), ["plan.yaml:3:13: params.x: the number .inf is not finite; write a finite number, or a text in quotes",
                                          'plan.yaml:3:13: params.x: parameter "x" has no value; pass --param x=VALUE']),
        ("name: p\n\tgoal: g\n", ["plan.yaml:2:1: a tab stands where YAML wants spaces; indent with spaces"]),
        ("name: p\ntasks:\n\t- id: a\n", ["plan.yaml:3:1: a tab stands where YAML wants spaces; indent with spaces"]),
        ("name: p\n---\nname: q\n", ['plan.yaml:2:1: the file holds more than one YAML document; keep one plan in a file; remove "---"']),
        ("name: *x\n", ["plan.yaml:1:7: not valid YAML: found undefined alias; correct the anchor's name"]),
        ("name: 'x\n", ["plan.yaml:2:1: not valid YAML: found unexpected end of stream (while scanning a quoted scalar); correct the YAML; quote texts with : # { or *"]),
        ("name: a: b\n", ["plan.yaml:1:8: not valid YAML: mapping values are not allowed in this context; correct the YAML; quote texts with : # { or *"]),
        ("- a\n- b\n", ["plan.yaml:1:1: a plan file is a mapping, not a list; begin with `name: ...`"]),
        ("just words\n", ['plan.yaml:1:1: a plan file is a mapping, not "just words"; begin with `name: ...`']),
        ("name: a\x07b\n", ['plan.yaml:1:8: the control character U+0007 may not stand in YAML; remove it, or write it as "\\x.." in double quotes']),
    ],
)  # fmt: skip
def test_broken_yaml(text: str, expected: list[str]) -> None:
    assert errors(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": NaN}', "plan.json: not valid JSON: NaN is not a JSON number; correct the JSON"),
        ('{\n "a" 1}', "plan.json:2:6: not valid JSON: expecting ':' delimiter; correct the JSON"),
        ('{"a": ' + "[" * 100_000, "plan.json: the file is nested too deeply; make it flatter"),
    ],
    ids=["nan", "colon", "deep"],
)  # fmt: skip
def test_broken_json(text: str, expected: str) -> None:
    assert errors(text, "plan.json") == [expected]


def test_places_in_json() -> None:
    text = """{
      "name": "p", "goal": "g",
      "tasks": [
        {"id": "a", "agent": {"use": "command", "run": "x"}, "pool": "gpu"},
        {"id": "b", "agent": {"use": "command", "run": "x", "run": "y"},
         "tiemout": [1, {"x": "}]"}], "blocked_by": ["nope"]}
      ]
    }"""
    assert [line.split("; ")[0] for line in errors(text, "plan.json")] == [
        'plan.json:4:70: tasks.a.pool: unknown pool "gpu"',
        'plan.json:5:61: tasks.b.agent.run: duplicate key "run"',
        'plan.json:6:10: tasks.b.tiemout: unknown field "tiemout"',
        'plan.json:6:54: tasks.b.blocked_by[0]: unknown task "nope"',
    ]


def test_json_and_yaml_of_the_same_plan_are_the_same_plan() -> None:
    text = plan("verify: [{run: x}], timeout: 5m")
    as_json = json.dumps(value_of(text))
    assert loaded(as_json).spec == loaded(as_json, "plan.json").spec == loaded(text).spec


def test_a_yaml_flow_mapping_is_not_taken_for_json() -> None:
    assert loaded("{name: p, goal: g, tasks: [{id: a, agent: {use: command, run: x}}]}").spec.name == "p"


@pytest.mark.parametrize(
    ("escape", "what"),
    [("\\u0000", "a NUL character"), ("\\ud800", "half of a surrogate pair")],
    ids=["nul", "surrogate"],
)
def test_characters_that_no_command_can_hold(escape: str, what: str) -> None:
    text = json.dumps(value_of(plan())).replace('"x"', f'"x{escape}"')
    column = text.index('"x') + 1
    assert errors(text, "plan.json") == [f"plan.json:1:{column}: tasks.a.agent.run: holds {what}; remove it"]


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    started = time.monotonic()
    assert errors("\n".join(lines))[0].endswith(
        "aliases blow this file up to more than 100,000 copied values; write the values out, or use defaults"
    )
    assert time.monotonic() - started < 5


def test_an_anchor_that_holds_itself() -> None:
    assert errors("name: &a [*a]") == ["plan.yaml:1:7: an anchor contains itself; remove the alias"]
    assert errors("a: &a {b: *a}") == ["plan.yaml:1:4: an anchor contains itself; remove the alias"]


def test_a_checks_list_shared_by_many_tasks_is_no_bomb() -> None:
    more = "\n".join(f"- {{id: b{n}, agent: {{use: command, run: x}}, verify: *v}}" for n in range(300))
    assert len(loaded(plan("verify: &v [{run: x}, {run: y}, {diff: {nonempty: true}}]", more=more)).spec.tasks) == 301


def test_deep_yaml_is_refused() -> None:
    (found,) = errors("a: " + "[" * 20_000 + "]" * 20_000)
    assert found.endswith("the file is nested too deeply; make it flatter")


scalars = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(values, st.sampled_from([None, 1]))
@settings(max_examples=60, deadline=None)
def test_every_place_in_json_is_the_value(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    source = read(text.encode(), is_json=True)
    for path, found in walk(value, ()):
        at = source.places.find(path, key=False)
        assert json.JSONDecoder().raw_decode(source.text, at)[0] == found


def walk(value: object, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], object]]:
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [(path, value), *(each for step, item in items for each in walk(item, (*path, step)))]


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=120, deadline=None)
def test_no_text_breaks_the_reader(data: bytes) -> None:
    for is_json in (True, False):
        with contextlib.suppress(Unreadable):
            assert read(data, is_json=is_json).locate(()) >= (1, 1)


def test_line_separators_of_other_standards_are_text() -> None:
    assert value_of("a: x\u2028y\u0085z\u2029w\nb: '\ue000\u2028'") == {
        "a": "x\u2028y\u0085z\u2029w",
        "b": "\ue000\u2028",
    }
