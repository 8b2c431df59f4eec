"""The entry point: a plan file -> a plan in normal form, or all that is wrong with it at once.

Must not know the store, git or the command line.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import MappingProxyType

from scheduler.errors import InvalidPlan, Problem, Problems
from scheduler.model.plan import PlanSpec
from scheduler.planfile.fallbacks import check_fallbacks
from scheduler.planfile.lint import Lint, Which
from scheduler.planfile.normal import normal_form
from scheduler.planfile.params import resolve_params
from scheduler.planfile.references import check_edges, check_ids, find_tasks
from scheduler.planfile.report import Report, describe, printable, sort
from scheduler.planfile.rules import Rules
from scheduler.planfile.shape import check_shape
from scheduler.planfile.source import MAX_BYTES, Defect, Path, Source, Unreadable, read
from scheduler.planfile.templates import check_texts

POOLS = ("default", "llm", "system")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_ODD = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid plan file: its plan in normal form, and what its author should know all the same."""

    spec: PlanSpec
    warnings: tuple[Problem, ...]
    file: str


def load(
    path: FilePath, *, params: Mapping[str, str] = _NOTHING, pools: Collection[str] = POOLS, lint: Which | None = None
) -> Loaded:
    """Read and check a plan file. Raises InvalidPlan with every error, in the order of their lines.

    params: values of `--param name=value`; pools: the names that this installation has; lint: with a way to find
    programs, such as `shutil.which`, also warn of what will most likely go wrong.
    """
    file = str(path)
    try:
        with path.open("rb") as opened:
            text = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refused(file, "there is no such file", "check the name; `dagward init` makes an example") from None
    except IsADirectoryError:
        raise _refused(file, "is a folder, not a plan file", "name the file in it") from None
    except OSError as error:
        raise _refused(file, f"cannot be read: {error.strerror}", "check the file and its permissions") from None
    return load_text(text, file, params=params, pools=pools, lint=lint)


def load_text(
    text: bytes,
    file: str,
    *,
    params: Mapping[str, str] = _NOTHING,
    pools: Collection[str] = POOLS,
    lint: Which | None = None,
) -> Loaded:
    """As `load`, for a text that is already here. `file` is only its name; one that ends in .json must be JSON."""
    with _without_gc():
        try:
            source = read(text, is_json=file.lower().endswith(".json"))
        except Unreadable as error:
            raise InvalidPlan(Problems(file, (_unread(error.defect, text),))) from None
        report = Report(source)
        try:
            spec = _check(source, report, params, pools)
            if spec is not None and lint is not None and isinstance(source.value, dict):
                Lint(report, lint).check(source.value, spec)
        except RecursionError:
            raise _refused(file, "the file is nested too deeply", "make it flatter") from None
    warnings = sort(report.warnings)
    if spec is None:
        raise InvalidPlan(Problems(file, sort(report.errors), warnings))
    return Loaded(spec, warnings, file)


def _check(source: Source, report: Report, params: Mapping[str, str], pools: Collection[str]) -> PlanSpec | None:
    for defect in source.defects:
        report.at_index(defect.index, defect.path, defect.message, defect.remedy)
    value = source.value
    if not isinstance(value, dict):
        report.error((), f"a plan file is a mapping, not {describe(value)}", "begin with `name: ...`")
        return None
    plan = check_shape(value, report)
    _check_characters(source, report)
    tasks = find_tasks(value)
    check_ids(tasks, report)
    blockers = check_edges(tasks, report)
    check_fallbacks(tasks, blockers, report)
    values = resolve_params(value.get("params"), params, report)
    Rules(report, pools).check_plan(value, tasks)
    written = value.get("params")
    check_texts(tasks, blockers, written if isinstance(written, dict) else (), report)
    if report.errors or plan is None:
        return None
    return normal_form(plan, blockers, values)


def _check_characters(source: Source, report: Report) -> None:
    # Both can only come from an escape, and only few files hold any.
    if "\\" not in source.text:
        return
    stack: list[tuple[Path, object]] = [((), source.value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str):
            found = _ODD.search(value)
            if found is not None:
                what = "a NUL character" if found[0] == "\0" else "half of a surrogate pair"
                report.error(path, f"holds {what}", "remove it")
        elif isinstance(value, dict):
            stack += [((*path, key), item) for key, item in value.items()]
            stack += [((*path, key), key) for key in value if _ODD.search(key)]
        elif isinstance(value, list):
            stack += [((*path, place), item) for place, item in enumerate(value)]


def _unread(defect: Defect, text: bytes) -> Problem:
    line = column = 0
    if defect.index is not None:
        before = text.decode("utf-8-sig")[: defect.index]
        breaks = list(re.finditer(r"\r\n|\r|\n", before))
        line = len(breaks) + 1
        column = len(before) - (breaks[-1].end() if breaks else 0) + 1
    return Problem(printable(defect.message), line=line, column=column, remedy=printable(defect.remedy))


def _refused(file: str, message: str, remedy: str) -> InvalidPlan:
    return InvalidPlan(Problems(file, (Problem(message, remedy=remedy),)))


@contextmanager
def _without_gc() -> Iterator[None]:
    """Building a million small values makes the collector walk them all again and again: half of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
