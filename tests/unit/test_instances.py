"""Instances: ids, the item as a text, and scopes that an item can never leave."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import Refusal
from scheduler.instances import BadItem, instance_id, instance_spec, item_text, plain_pattern, split_instance
from scheduler.model.agents import CommandAgent
from scheduler.model.plan import Edge, Scope, TaskSpec
from scheduler.plans import pattern_covers


def template(*write: str, protect: tuple[str, ...] = ()) -> TaskSpec:
    return TaskSpec(
        id="migrate",
        title="Migrate",
        prompt="Migrate {{ item }}.",
        blocked_by=(Edge(task="survey"),),
        agent=CommandAgent(use="command", run="x"),
        scope=Scope(write=write, protect=protect),
        for_each="survey.modules",
        if_="outputs.survey.changed",
        on_failure="continue",
    )


def test_ids() -> None:
    assert instance_id("migrate", 12) == "migrate.12"
    assert split_instance("migrate.12") == ("migrate", 12)
    assert split_instance("a-b_c.0") == ("a-b_c", 0)
    for name in ("migrate", "migrate.", ".1", "migrate.01", "migrate.-1", "a.b.1", "migrate.1 ", "migrate.1\n",
                 "_resolve-migrate.1", "_integrate", "migrate.\u0663", ""):  # fmt: skip
        assert split_instance(name) is None, name


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True), st.integers(0, 10**9 - 1))
def test_an_id_comes_apart_as_it_was_put_together(task: str, number: int) -> None:
    assert split_instance(instance_id(task, number)) == (task, number)


def test_item_text() -> None:
    assert [item_text(each) for each in ("a b", "", 3, 1.5, True, None)] == ["a b", "", "3", "1.5", "true", "null"]
    assert item_text({"b": [1, "\u00fc"], "a": None}) == '{"a": null, "b": [1, "\u00fc"]}'


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("a\0b", "the item holds a NUL character, which no environment can carry"),
        ("\ud800", "the item holds half of a surrogate pair, which no environment can carry"),
        (["\ud800"], "the item holds half of a surrogate pair, which no environment can carry"),
        ("\u00fc" * 50_001, "the item has 100,002 bytes, and an environment carries 100,000"),
    ],
    ids=["nul", "surrogate", "inner surrogate", "long"],
)
def test_items_that_no_environment_carries(item: Any, message: str) -> None:
    with pytest.raises(BadItem) as caught:
        item_text(item)
    assert caught.value.message == message
    with pytest.raises(BadItem, match=r"^migrate\.4: "):
        instance_spec(template("**"), 4, item)


def test_instance() -> None:
    made = instance_spec(
        template("src/{{ item }}/**", "docs/{{ item }}.md", "README.md", protect=("src/{{ item }}/api",)), 2, "core"
    )
    assert made.scope == Scope(write=("README.md", "docs/core.md", "src/core/**"), protect=("src/core/api",))
    assert (made.id, made.for_each, made.if_) == ("migrate.2", None, None)
    assert made.prompt == "Migrate {{ item }}."
    assert made.blocked_by == (Edge(task="survey"),)
    assert made.on_failure == "continue"
    assert TaskSpec.model_validate_json(made.model_dump_json(by_alias=True)) == made


def test_a_scope_without_the_item_takes_any_item() -> None:
    task = template("src/**")
    for item in ("../x", "", None, [1], {"a": "/"}):
        assert instance_spec(task, 0, item).scope == task.scope


def test_parts_of_an_item() -> None:
    item: Any = {"name": "core", "at": {"n": 7}, "bad": "a/b"}
    task = template("src/{{ item.name }}/{{ item.at.n }}.py")
    assert instance_spec(task, 0, item).scope.write == ("src/core/7.py",)
    for pattern, message in [
        ("{{ item.nam }}", "migrate.0: the scope names item.nam, which the item does not have"),
        ("{{ item.name.x }}", "migrate.0: the scope names item.name.x, which the item does not have"),
        ("{{ item.at }}", "migrate.0: the scope names item.at, which is neither a text nor a number"),
        ("{{ item.bad }}", 'migrate.0: the scope names item.bad, and "a/b" is not one part of a path'),
    ]:
        with pytest.raises(Refusal) as caught:
            instance_spec(template(pattern), 0, item)
        assert caught.value.message == message


@pytest.mark.parametrize(
    "item", ["..", ".", "", "a/b", "/", "../../etc", "a\\b", "**", "*", "a*", "a\nb", "\x1b[2J", "\u2028"]
)
def test_an_item_is_one_part_of_a_path(item: str) -> None:
    with pytest.raises(BadItem) as caught:
        instance_spec(template("src/{{ item }}/**"), 3, item)
    assert caught.value.message == f"migrate.3: the scope names item, and {json.dumps(item)} is not one part of a path"


@pytest.mark.parametrize("item", [None, True, [], ["a"], {}, {"a": 1}])
def test_an_item_of_another_shape(item: Any) -> None:
    with pytest.raises(BadItem) as caught:
        instance_spec(template("src/{{ item }}/**"), 0, item)
    assert caught.value.message == "migrate.0: the scope names item, which is neither a text nor a number"


def test_an_item_does_not_complete_a_way_out() -> None:
    with pytest.raises(BadItem, match=r"is not one part of a path"):
        instance_spec(template("src/.{{ item }}/x"), 0, ".")
    with pytest.raises(BadItem, match=r"is not one part of a path"):
        instance_spec(template("src/{{ item }}{{ item }}/x"), 0, ".")
    with pytest.raises(BadItem, match=r"is not one part of a path"):
        instance_spec(template("src/..{{ item }}/x"), 0, "")


PATTERNS = [
    "src/{{ item }}/**",
    "src/{{ item }}",
    "src/x{{ item }}.py",
    "src/.{{ item }}/**",
    "src/{{ item }}/{{ item }}/y",
]
nasty = st.text(st.sampled_from("./\\*ab {}\0\n~"), max_size=5) | st.text(max_size=5)
items = nasty | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.lists(nasty, max_size=2)


@given(st.sampled_from(PATTERNS), items)
def test_no_item_leaves_the_scope_of_its_template(pattern: str, item: Any) -> None:
    try:
        (made,) = instance_spec(template(pattern), 0, item).scope.write
    except BadItem:
        return
    parts, wanted = made.split("/"), pattern.split("/")
    assert pattern_covers("src/**", made)
    assert len(parts) == len(wanted)
    assert not {"", ".", ".."} & set(parts)
    for part, want in zip(parts, wanted, strict=True):
        assert part == want or ("{{" in want and "*" not in part)


def test_marks_have_one_spelling() -> None:
    assert plain_pattern("a/{{item}}/{{   item.x }}.py") == "a/{{ item }}/{{ item.x }}.py"
    assert plain_pattern("a/**") == "a/**"
