"""Conditions: what they say, what they cannot say, and that nothing in them is ever executed."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.conditions import ConditionError, ConditionProblem, Reference, check, evaluate, names
from scheduler.prompts import Names

PARAMS: dict[str, str | None] = {"mode": "full", "empty": ""}
OUTPUTS: dict[str, Any] = {
    "survey": {"changed": True, "modules": ["a", "b"], "none": None, "deep": {"x": [{"y": 2}]}, "class": 1, "n": 2.5},
    "a-b": {"count": 3},
    "each": [{"ok": True, "n": 1}, {"ok": False, "n": 2}],
}


def holds(text: str) -> bool:
    return evaluate(text, params=PARAMS, outputs=OUTPUTS)


@pytest.mark.parametrize(
    "text",
    [
        "outputs.survey.changed",
        "outputs.survey.modules",
        'params.mode == "full"',
        "params['mode'] == 'full' and not params.empty",
        "outputs['a-b'].count * 2 - 1 == 5",
        'outputs["survey"]["class"] == 1',
        "outputs.survey.deep.x[0].y == 2",
        "outputs.survey.deep['x'][-1]['y'] == 4 / 2",
        "len(outputs.survey.modules) > 1",
        "'a' in outputs.survey.modules and 'z' not in outputs.survey.modules",
        "'cha' in 'changed' and 'changed' in outputs.survey",
        "len(outputs.each) == 2 and outputs.each[0].ok and not outputs.each[1].ok",
        "any([false, outputs.each[0].ok]) and not all([true, outputs.each[1].ok])",
        "outputs.survey.none == null and outputs.survey.none == None",
        "true and True and not false and not False",
        "1 < 2 <= 2 < 3 and not 1 < 3 < 2",
        "'a' < 'b' and 'b' >= 'b'",
        "-1 < 0 and 7 % 4 == 3 and outputs.survey.n + 0.5 == 3",
        "outputs.survey.changed == true and outputs.survey.changed != 1 and 1 == 1.0",
        "[1, [true]] == [1, [true]] and [1] != [true]",
        'params.mode in ("full", "half")',
        "false or outputs.survey.changed",
        "\n  outputs.survey.changed   # why\n  and true\n",
    ],
)
def test_holds(text: str) -> None:
    assert holds(text) is True
    assert holds(f"not ({text}\n)") is False


def test_truth_is_that_of_the_value() -> None:
    assert [holds(each) for each in ("null", "0", "''", "[]", "0.0", "false", "outputs.survey.none")] == [False] * 7
    assert [holds(each) for each in ("'0'", "[0]", "1", "-1", "outputs.survey")] == [True] * 5


def test_a_task_without_a_result_is_null_all_the_way_down() -> None:
    for text in ("outputs.gone", "outputs.gone.x", "outputs.gone.x.y[3]['z']", "outputs['gone'].x"):
        assert holds(text) is False
        assert holds(f"{text} == null") is True


def test_what_is_not_needed_is_not_asked() -> None:
    assert holds("true or outputs.survey.nothing") is True
    assert holds("false and outputs.survey.nothing") is False
    assert holds("1 > 2 > outputs.survey.nothing") is False


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("outputs.survey.typo", "outputs.survey.typo does not exist"),
        ("outputs.survey.deep.z == 1", "outputs.survey.deep.z does not exist"),
        ("params.nobody", "params.nobody does not exist"),
        ("outputs.survey.modules[2]", "outputs.survey.modules[2] does not exist: the list has 2"),
        ("outputs.each.ok", "outputs.each is a list: its parts are read with [0], [1]"),
        ("outputs.survey.changed.x", "outputs.survey.changed is true: outputs.survey.changed.x is not in it"),
        ("params.mode.x", "params.mode is a text: params.mode.x is not in it"),
        ("outputs.survey.modules['a']", "outputs.survey.modules is a list: its parts are read with [0], [1]"),
        ("outputs.survey.modules[true]", "outputs.survey.modules is a list: its parts are read with [0], [1]"),
        ("params.mode > 3", "a text and a number have no order in params.mode > 3"),
        ("null < 1", "null and a number have no order in null < 1"),
        ("true < 2", "true and a number have no order in true < 2"),
        ("1 in 2", "a number cannot be in a number, in 1 in 2"),
        ("1 in 'a1'", "a number cannot be in a text, in 1 in 'a1'"),
        ("'a' in null", "a text cannot be in null, in 'a' in null"),
        ("params.mode + 1", "params.mode is a text, not a number"),
        ("true + 1", "true is true, not a number"),
        ("-params.mode", "params.mode is a text, not a number"),
        ("'a' * 1000000", "'a' is a text, not a number"),
        ("'%s' % 1", "'%s' is a text, not a number"),
        ("len(3)", "len() needs a text, a list or a mapping, and 3 is a number"),
        ("any('ab')", "any() needs a list, and 'ab' is a text"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("9" * 400 + " / 3", "a number is too large"),
    ],
)
def test_what_cannot_be_decided_says_why(text: str, why: str) -> None:
    with pytest.raises(ConditionError) as caught:
        holds(text)
    assert caught.value.message == f"the condition cannot be decided: {why}"
    assert caught.value.hint.startswith("Correct the task's `if`")


FORMS = "use params, outputs, texts, numbers, true, false, null, == != < > in, and or not, + - * / %, len any all"
UNDEFINED = 'write params.NAME, outputs.TASK.NAME or outputs["a-task"].NAME'


def problems(text: str) -> list[tuple[str, str]]:
    known = Names(PARAMS, ["survey", "a-b", "each", "later"], lambda: ["survey", "a-b", "each"], lists=["each"])
    return [(problem.message, problem.remedy) for problem in check(text, known)]


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("", "an empty condition", "write an expression, or remove the field"),
        (" \n", "an empty condition", "write an expression, or remove the field"),
        ("1 +" + " 1" * 500, "longer than 1,000 characters", "let a task write the answer as an output"),
        ("{{ params.mode }}", "{{ }} is not needed in a condition", "write the expression without the braces"),
        ("params.mode = 1", "not a valid expression", FORMS),
        ("a && b", "not a valid expression", FORMS),
        ("outputs.survey.class", "not a valid expression", FORMS),
        ("(" * 300 + ")" * 300, "not a valid expression", FORMS),
        ("\0", "not a valid expression", FORMS),
        ("-" * 900 + "1", "nested deeper than 40 levels", "let a task write the answer as an output"),
        ("params.mode, 1", "a list of values is always true", "join the parts with and, or"),
        ("changed", '"changed" is undefined', UNDEFINED),
        ("item.x", '"item" is undefined here', "only the prompt and scope of a task with for_each have it"),
        ("outputs", '"outputs" alone is not a value', "write outputs.TASK.NAME, with the name itself"),
        ("len(params)", '"params" alone is not a value', "write params.NAME, with the name itself"),
        ("outputs[params.mode]", '"outputs" alone is not a value', "write outputs.TASK.NAME, with the name itself"),
        ("outputs[0]", '"outputs" alone is not a value', "write outputs.TASK.NAME, with the name itself"),
        ("params.nobody", 'unknown parameter "nobody"', "known parameters: empty, mode"),
        ("outputs.nobody.x", 'unknown task "nobody" in outputs', "write the id of a task before this one"),
        ("outputs.later.x", 'outputs of "later" do not exist yet: it does not come before this task', "add blocked_by: [later]"),
        ("outputs.each.ok", 'outputs of "each" are a list, one for each of its items', "write outputs.each[0].ok, or go through outputs.each"),
        ("outputs.a-b.count", '"b" is undefined', UNDEFINED),
        ("params.mode is null", '"is" cannot stand in a condition', "write == or !="),
        ("2 ** 9", '"2 ** 9" cannot stand in a condition', FORMS),
        ("9 // 2", '"9 // 2" cannot stand in a condition', FORMS),
        ("1 | 2", '"1 | 2" cannot stand in a condition', FORMS),
        ("~1", '"~1" cannot stand in a condition', FORMS),
        ("1 if 2 else 3", '"1 if 2 else 3" cannot stand in a condition', FORMS),
        ("(x := 1)", '"x := 1" cannot stand in a condition', FORMS),
        ("{'a': 1}", "\"{'a': 1}\" cannot stand in a condition", FORMS),
        ("{1}", '"{1}" cannot stand in a condition', FORMS),
        ("[e for e in outputs.survey.modules]", '"[e for e in outputs.survey.modules]" cannot stand in a condition', FORMS),
        ("lambda: 1", '"lambda: 1" cannot stand in a condition', FORMS),
        ("f'{params.mode}'", "\"f'{params.mode}'\" cannot stand in a condition", FORMS),
        ("outputs.survey.modules[0:1]", '"0:1" cannot stand in a condition', FORMS),
        ("b'x'", "b'x' is not a value of JSON", FORMS),
        ("1j", "1j is not a value of JSON", FORMS),
        ("...", "... is not a value of JSON", FORMS),
        ("open('/etc/passwd')", '"open" cannot be called', "only len(), any() and all() can"),
        ("params.mode.upper()", '"params.mode.upper" cannot be called', "only len(), any() and all() can"),
        ("(len)(1)(2)", '"(len)(1)" cannot be called', "only len(), any() and all() can"),
        ("len", '"len" is undefined', UNDEFINED),
        ("len()", "len() takes one value", "write len(outputs.TASK.NAME)"),
        ("len(1, 2)", "len() takes one value", "write len(outputs.TASK.NAME)"),
        ("len(*[1])", "len() takes one value", "write len(outputs.TASK.NAME)"),
        ("any(x=[1])", "any() takes one value", "write any(outputs.TASK.NAME)"),
        ("__import__", '"__import__" is undefined', UNDEFINED),
    ],
)  # fmt: skip
def test_check(text: str, message: str, remedy: str) -> None:
    assert problems(text)[0] == (message, remedy)


def test_check_gives_every_problem_once() -> None:
    assert [message for message, _ in problems("x and y or x and params.z and outputs.later.a and 2 ** 2")] == [
        '"x" is undefined',
        '"y" is undefined',
        '"2 ** 2" cannot stand in a condition',
        'unknown parameter "z"',
        'outputs of "later" do not exist yet: it does not come before this task',
    ]


def test_what_cannot_stand_is_not_evaluated_either() -> None:
    with pytest.raises(ConditionError, match=r'^the condition is not valid: "open" cannot be called$') as caught:
        holds("open('/etc/passwd')")
    assert caught.value.hint == "only len(), any() and all() can"
    with pytest.raises(ConditionError, match="undefined"):
        names("x")


def test_attributes_are_keys_and_never_those_of_python() -> None:
    for text in ("params.__class__", "outputs.survey.__class__", "outputs.survey.modules.append", "params.mode.upper"):
        with pytest.raises(ConditionError):
            holds(text)
    assert evaluate("outputs.a.__class__ == 'text'", params={}, outputs={"a": {"__class__": "text"}})


def test_names() -> None:
    text = "outputs.survey.changed and params['mode'] == 'x' and outputs['a-b'] and outputs.each[0].ok or outputs.survey.changed"
    assert names(text) == (
        Reference("outputs", "survey", "changed"),
        Reference("params", "mode"),
        Reference("outputs", "a-b"),
        Reference("outputs", "each"),
    )
    assert names("outputs.survey.deep[params.mode]") == (
        Reference("outputs", "survey", "deep"),
        Reference("params", "mode"),
    )


atoms = st.sampled_from(
    ["true", "null", "0", "2.5", "'a'", "params.mode", "outputs.survey.n", "outputs.survey.modules", "outputs.gone.x", "[1, 'a']", "x", "lambda: 0", "outputs", "item"]
)  # fmt: skip
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(
            "({} {} {})".format,
            inner,
            st.sampled_from(
                ["==", "!=", "<", ">=", "in", "not in", "and", "or", "+", "-", "*", "/", "%", "**", "is", ","]
            ),
            inner,
        ),
        st.builds("{}({})".format, st.sampled_from(["len", "any", "all", "not ", "-", "print"]), inner),
        st.builds("{}[{}]".format, inner, inner),
    ),
    max_leaves=8,
)


@given(expressions | st.text(max_size=30))
@settings(max_examples=400, deadline=None)
def test_any_text_is_decided_or_explained(text: str) -> None:
    known = Names(PARAMS, OUTPUTS, lambda: [*OUTPUTS, "gone"])
    found = check(text, known)
    assert all(isinstance(each, ConditionProblem) and each.message and each.remedy for each in found)
    try:
        answer = holds(text)
    except ConditionError as error:
        told = error.message
    else:
        assert isinstance(answer, bool)
        return
    assert told.startswith("the condition ")


plain = st.recursive(
    st.sampled_from(["True", "False", "0", "1", "2"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("(not {})".format, inner),
        st.builds("(len([{0}]) {1} len([{2}, 1]))".format, inner, st.sampled_from(["<", "<=", "==", "!="]), inner),
    ),
    max_leaves=12,
)


@given(plain)
@settings(max_examples=100, deadline=None)
def test_agrees_with_python_where_both_know_the_answer(text: str) -> None:
    if len(text) <= 1_000:
        assert holds(text) is bool(eval(text))  # made above, of nothing but literals


def test_no_expression_takes_long() -> None:
    started = time.monotonic()
    holds("*".join(["9" * 60] * 16) + " > 1")
    assert evaluate("outputs.a.x * 9 > 1", params={}, outputs={"a": {"x": 1e308}}) is True
    assert time.monotonic() - started < 1
