"""Compares Python files of tests by their syntax trees. Pure.

A test that moved to another changed file, or that only changed its style, is not reported.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from workers.weakness.assertions import CLOSE, NOTHING, Assertion, Raises
from workers.weakness.units import Unit, units
from workers.weakness.words import Weakness, short

Module = dict[str, Unit]
"""Every unit of a file by its qualified name."""


T = TypeVar("T", Assertion, Raises)


class Unparsable(ValueError):
    """The text is no Python; `line` counts from 1, 0 when it is not known."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class _Pair:
    """The same unit before and after, and the file that it is in now."""

    path: str
    old: Unit
    new: Unit


def read_module(text: str) -> Module:
    """The units of a file. Raises Unparsable."""
    try:
        return units(ast.parse(text))
    except SyntaxError as error:
        raise Unparsable(error.msg, error.lineno or 0) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unparsable(str(error) or type(error).__name__, 0) from None


def compare_modules(modules: Mapping[str, tuple[Module, Module]]) -> list[Weakness]:
    """All weaknesses between the old and new units of these files."""
    found: list[Weakness] = []
    for path, (old, new) in modules.items():
        for name, unit in old.items():
            if name in new:
                found += _compare(_Pair(path, unit, new[name]))
            elif unit.is_test:
                found += _gone(path, unit, modules)
        found += _only_new(path, old, new)
    return found


def _gone(path: str, unit: Unit, modules: Mapping[str, tuple[Module, Module]]) -> Iterator[Weakness]:
    for other, (old, new) in modules.items():
        moved = new.get(unit.name)
        if other != path and moved is not None and moved.is_test and unit.name not in old:
            yield from _compare(_Pair(other, unit, moved))
            return
    yield Weakness(path, unit.line, f"deleted: {unit.name}")


def _only_new(path: str, old: Module, new: Module) -> Iterator[Weakness]:
    """What needs no counterpart: marks on files and classes that are new, definitions that hide others."""
    for name, unit in new.items():
        if unit.again and not (name in old and old[name].again):
            yield Weakness(path, unit.line, f"{name} is defined again and hides the test on line {unit.again}")
        if name not in old and not unit.is_test and any(each.is_test for each in old.values()):
            yield from (Weakness(path, line, f"skipped: {short(text)}") for line, text in unit.skips)
    added = [unit for name, unit in new.items() if unit.is_test and name not in old]
    for unit in added:
        for each in unit.asserts:
            if each.strength == NOTHING:
                yield Weakness(path, each.line, f"checks nothing: {short(each.text)}")


def _compare(pair: _Pair) -> Iterator[Weakness]:
    old, new, path = pair.old, pair.new, pair.path
    if old.is_test and not new.is_test:
        yield Weakness(path, new.line, f"not collected any more: {new.name}")
    known = Counter(text for _, text in old.skips)
    for line, text in new.skips:
        if known[text] > 0:
            known[text] -= 1
        else:
            yield Weakness(path, line, f"skipped: {_named(new)}{short(text)}")
    if old.cases is not None and new.cases is not None and new.cases < old.cases:
        yield Weakness(path, new.line, f"{new.cases} cases of {new.name}, {old.cases} before")
    if new.is_test and len(new.exits) > len(old.exits):
        yield Weakness(path, min(new.exits), f"{new.name} may return before its end")
    yield from _compare_raises(pair)
    yield from _compare_asserts(pair)
    yield from _compare_guards(pair)


def _named(unit: Unit) -> str:
    return f"{unit.name}: " if unit.name else ""


def _compare_raises(pair: _Pair) -> Iterator[Weakness]:
    gone, added = _difference(pair.old.raises, pair.new.raises)
    for before in gone:
        after = added.pop(0) if added else None
        if after is None:
            yield Weakness(pair.path, pair.new.line, f"removed from {pair.new.name}: {short(before.text)}")
        elif after.is_wider_than(before):
            yield Weakness(pair.path, after.line, f"widened: {short(before.text)} became {short(after.text)}")


def _compare_asserts(pair: _Pair) -> Iterator[Weakness]:
    gone, added = _difference(pair.old.asserts, pair.new.asserts)
    added_nothing = [each for each in added if each.strength == NOTHING]
    for each in added_nothing:
        yield Weakness(pair.path, each.line, f"checks nothing: {short(each.text)}")
    gone = [each for each in gone if each.strength > NOTHING]
    added = [each for each in added if each.strength > NOTHING]
    for before, after in _paired(gone, added):
        if after is None:
            yield Weakness(pair.path, pair.new.line, f"removed from {_owner(pair.new)}: {short(before.text)}")
        elif after.strength < before.strength or after.subject in _smaller(before.subject):
            yield Weakness(pair.path, after.line, f"loosened: {short(before.text)} became {short(after.text)}")
        elif _expects_another(before, after):
            what = f"expects {short(after.expected)} where it was {short(before.expected)}: {short(after.subject)}"
            yield Weakness(pair.path, after.line, what)


def _compare_guards(pair: _Pair) -> Iterator[Weakness]:
    """Assertions that are still there, and run only under a condition now."""
    free = Counter(each.key for each in pair.new.asserts if not each.guarded)
    missing = Counter(each.key for each in pair.old.asserts if not each.guarded) - free
    for each in pair.new.asserts:
        if each.guarded and missing[each.key] > 0:
            missing[each.key] -= 1
            yield Weakness(pair.path, each.line, f"only under a condition now: {short(each.text)}")


def _smaller(subject: str) -> tuple[str, ...]:
    """What says less about a thing than the thing itself."""
    return tuple(f"{function}({subject})" for function in ("len", "bool", "type"))


def _owner(unit: Unit) -> str:
    return unit.name or "the module"


def _expects_another(before: Assertion, after: Assertion) -> bool:
    """The same thing is looked at, and another value is right now."""
    return (
        before.subject == after.subject
        and before.expected != after.expected
        and before.literal
        and after.literal
        and before.strength >= CLOSE
    )


def _paired(gone: list[Assertion], added: list[Assertion]) -> Iterator[tuple[Assertion, Assertion | None]]:
    """Each assertion that is gone with the one that took its place: first those that look at the same thing."""
    left = list(added)
    rest: list[Assertion] = []
    for before in gone:
        same = next((each for each in left if each.subject == before.subject), None)
        same = same or next((each for each in left if before.subject in each.text or each.subject in before.text), None)
        if same is None:
            rest.append(before)
        else:
            left.remove(same)
            yield before, same
    # The strongest first, so that a weak newcomer does not stand in for a strong one while a better one is left.
    left.sort(key=lambda each: -each.strength)
    for before in sorted(rest, key=lambda each: -each.strength):
        yield before, left.pop(0) if left else None


def _difference(old: list[T], new: list[T]) -> tuple[list[T], list[T]]:
    """What only the old and only the new side has, each as often as it is more."""
    have: Counter[tuple[str, ...]] = Counter(each.key for each in new)
    had: Counter[tuple[str, ...]] = Counter(each.key for each in old)
    gone = _surplus(old, had - have)
    return gone, _surplus(new, have - had)


def _surplus(items: list[T], counts: Counter[tuple[str, ...]]) -> list[T]:
    left = Counter(counts)
    found = []
    for each in items:
        if left[each.key] > 0:
            left[each.key] -= 1
            found.append(each)
    return found
