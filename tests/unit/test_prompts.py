"""Prompts: what they may read, how values are written, and what is refused before anything runs."""

from __future__ import annotations

import pytest

from scheduler.model.base import Json
from scheduler.prompts import MAX_LENGTH, Names, PromptProblem, PromptRefused, check, is_template, render

PARAMS: dict[str, str | None] = {"who": "Ada"}
OUTPUTS = {
    "survey": {"items": ["a", "b"], "count": 2, "ok": True, "none": None, "keys": "k", "text": "\u00fc <b>"},
    "a-b": {"x": 1},
}


def written(template: str) -> str:
    return render(template, params=PARAMS, outputs=OUTPUTS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain { text } with 100 %\n", "plain { text } with 100 %\n"),
        ("Hello {{ params.who }}!\n", "Hello Ada!\n"),
        ("{{ outputs.survey.items }}", '["a", "b"]'),
        ("{{ outputs.survey.count + 1 }}", "3"),
        ("{{ outputs.survey.ok }} {{ outputs.survey.none }}", "true null"),
        ("{{ outputs.survey.keys }}", "k"),
        ("{{ outputs['a-b'].x }}", "1"),
        ("{{ outputs.survey.text }}", "\u00fc <b>"),
        ("{% for each in outputs.survey['items'] %}{{ loop.index }}{{ each }} {% endfor %}", "1a 2b "),
        ("{% for name, value in outputs['a-b'].items() %}{{ name }}={{ value }}{% endfor %}", "x=1"),
        ("{% if outputs.survey.ok %}yes{% endif %}{# a comment #}", "yes"),
        ("{{ params.other | default('nobody') }}", "nobody"),
    ],
)
def test_render(template: str, text: str) -> None:
    assert written(template) == text


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ params.nobody }}", "the prompt cannot be written: 'dict object' has no attribute 'nobody'"),
        ("{{ outputs.other.x }}", "the prompt cannot be written: 'dict object' has no attribute 'other'"),
        ("{{ undefined }}", "the prompt cannot be written: 'undefined' is undefined"),
        ("a\n{{ params.who", "the prompt's line 2: "),
        ("{{ outputs['a-b'].items }}", "the prompt cannot be written: a function is not a value; call it or read a field"),
        ("{{ 1 / 0 }}", "the prompt cannot be written: division by zero"),
        ("{{ params.who.x.y }}", "the prompt cannot be written: 'str object' has no attribute 'x'"),
        ("{{ ''.__class__.__mro__ }}", "the prompt cannot be written: access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ params.__class__ }}", "the prompt cannot be written: access to attribute '__class__' of 'dict' object is unsafe."),
        ("{{ outputs.survey['items'].append(1) }}", "the prompt cannot be written: "),
        ("{% include '/etc/passwd' %}", "the prompt cannot be written: no loader for this environment specified"),
        ("{% for i in range(10 ** 9) %}x{% endfor %}", "the prompt cannot be written: "),
        ("{% for i in range(90000) %}{{ 'x' * 100 }}{% endfor %}", f"the prompt grows beyond {MAX_LENGTH:,} characters"),
    ],
)  # fmt: skip
def test_render_refuses(template: str, message: str) -> None:
    with pytest.raises(PromptRefused) as caught:
        written(template)
    assert caught.value.message.startswith(message)
    assert OUTPUTS["survey"]["items"] == ["a", "b"]


def found(template: str) -> list[PromptProblem]:
    return check(
        template, Names(params=["who"], tasks=["me", "before", "a-b", "later"], ancestors=lambda: ["before", "a-b"])
    )


def test_check_accepts_what_exists() -> None:
    template = """{{ params.who }} {{ outputs.before.anything.at.all }} {{ outputs["a-b"].x }}
    {% set mine = 1 %}{% for each in range(3) %}{{ each + mine + loop.index }}{% endfor %}{{ outputs[params.who] }}"""
    assert found(template) == []
    assert found("no template at all") == []


@pytest.mark.parametrize(
    ("template", "line", "message", "remedy"),
    [
        ("a\n{{ itm }}", 2, '"itm" is undefined', 'write params.NAME, outputs.TASK.NAME or outputs["a-task"].NAME'),
        ("{{ item }}", 1, '"item" is undefined here', "only the prompt and scope of a task with for_each have it"),
        ("{{ params.whom }}", 1, 'unknown parameter "whom"', "known parameters: who"),
        ("{{ params['whom'] }}", 1, 'unknown parameter "whom"', "known parameters: who"),
        ("{{ outputs.x.y }}", 1, 'unknown task "x" in outputs', "write the id of a task before this one"),
        ("\n\n{{ outputs.later.y }}", 3, 'outputs of "later" do not exist yet: it does not come before this task', "add blocked_by: [later]"),
        ("{{ x | nofilter }}", 1, "not a valid template: No filter named 'nofilter'.", "correct it"),
        ("{% if %}", 1, "not a valid template: Expected an expression, got 'end of statement block'", "correct it"),
        ("{% include 'x' %}", 1, "a prompt cannot read other files", "write the text into the prompt"),
    ],
)  # fmt: skip
def test_check(template: str, line: int, message: str, remedy: str) -> None:
    assert found(template) == [PromptProblem(line, message, remedy)]


def test_check_gives_all_problems_in_order() -> None:
    template = "{{ outputs.later.x }}\n{{ a }}\n{{ params.b }} {{ a }}"
    assert [(problem.line, problem.message.split('"')[1]) for problem in found(template)] == [
        (1, "later"),
        (2, "a"),
        (3, "a"),
        (3, "b"),
    ]


def test_is_template() -> None:
    assert is_template("{{ x }}")
    assert is_template("{# x #}")
    assert not is_template("{ x } %}")


def test_item_and_lists_of_outputs() -> None:
    def made(template: str, item: Json = None) -> str:
        return render(template, params={}, outputs={"each": [{"n": 1}, {"n": 2}]}, item=item)

    assert made("do {{ item }}", "core") == "do core"
    assert made("do {{ item.name }} {{ item }}", {"name": "x"}) == 'do x {"name": "x"}'
    assert made("{{ item }} is an item too") == "null is an item too"
    assert made("{{ outputs.each }} {{ outputs.each[1].n }}") == '[{"n": 1}, {"n": 2}] 2'
    assert made("{% for each in outputs.each %}{{ each.n }};{% endfor %}") == "1;2;"
    with pytest.raises(PromptRefused, match="'item' is undefined"):
        render("{{ item }}", params={}, outputs={})


def with_item(template: str, *, item: bool = True) -> list[PromptProblem]:
    names = Names(["p"], ["me", "each", "one"], lambda: ["each", "one"], item=item, lists=["each"])
    return check(template, names)


def test_check_knows_the_item() -> None:
    for sound in (
        "{{ item }}",
        "{{item.a.b}} {{ params.p }}",
        "{{ item | upper }}",
        "{{ outputs.each }}",
        "{{ outputs.each[0].x + 1 }}",
    ):
        assert with_item(sound) == []
    undefined = '"item" is undefined here'
    assert [each.message for each in with_item("{{ item.a }}", item=False)] == [undefined]
    assert [each.message for each in with_item("{{ item.a | upper }}", item=False)] == [undefined]


@pytest.mark.parametrize(
    "template",
    ["{{ outputs.each.x }}", "{{ outputs.each.x.y }}", "{{ outputs['each'].x }}", "{{ outputs.each['x'] + 1 }}"],
)
def test_check_knows_that_outputs_are_a_list(template: str) -> None:
    assert with_item(template) == [
        PromptProblem(
            1,
            'outputs of "each" are a list, one for each of its items',
            "write outputs.each[0].x, or go through outputs.each",
        )
    ]
