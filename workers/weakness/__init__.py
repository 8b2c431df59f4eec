"""Finds tests and assertions that a change deleted, skipped or loosened, by comparing the old and new text of files.

Python by its syntax tree, everything else by patterns. Pure: must not know where the texts come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workers.testfiles import is_runner, is_test_file
from workers.weakness.python import Module, Unparsable, compare_modules, read_module
from workers.weakness.text import compare_runner, compare_tests
from workers.weakness.words import Weakness, commented_out

__all__ = ["Texts", "Weakness", "compare"]


@dataclass(frozen=True, slots=True)
class Texts:
    """A file before and after; None where it does not exist."""

    old: str | None
    new: str | None


def compare(files: Mapping[str, Texts], *, everything: bool = False) -> list[Weakness]:
    """All weaknesses of these changed files, sorted by path and line.

    `everything`: the caller chose the files, so each counts as a file of tests; else their names decide.
    """
    found: list[Weakness] = []
    modules: dict[str, tuple[Module, Module]] = {}
    for path, texts in files.items():
        is_test = everything or is_test_file(path)
        if is_test and path.endswith((".py", ".pyi")):
            found += _python(path, texts, modules)
        elif is_test:
            found += compare_tests(path, texts.old, texts.new)
        if is_runner(path):
            found += compare_runner(path, texts.old or "", texts.new or "")
    found += compare_modules(modules)
    return sorted(set(found), key=lambda each: (each.path, each.line, each.what))


def _python(path: str, texts: Texts, modules: dict[str, tuple[Module, Module]]) -> list[Weakness]:
    old = texts.old or ""
    try:
        new = read_module(texts.new or "")
    except Unparsable as error:
        return [Weakness(path, error.line, f"cannot be parsed any more: {error}")]
    try:
        modules[path] = (read_module(old), new)
    except Unparsable:
        modules[path] = (read_module(""), new)  # what cannot be parsed ran no test
    return commented_out(path, old, texts.new or "")
