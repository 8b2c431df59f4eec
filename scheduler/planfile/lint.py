"""`validate --lint`: what is allowed, and will most likely go wrong or prove nothing. Warnings only.

Runs on files without errors. Looks for programs on PATH and at nothing else outside the file. Must not refuse.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.graph import from_spec
from scheduler.model.checks import Check, OutputsCheck, PythonCheck
from scheduler.model.plan import PlanSpec, TaskSpec
from scheduler.planfile.checks import written_checks
from scheduler.planfile.overlap import Overlap, overlaps
from scheduler.planfile.references import MANY
from scheduler.planfile.report import Report, clip
from scheduler.planfile.shelltext import cannot_fail, programs, unchecked_lines, writes
from scheduler.planfile.source import Path

_READS = re.compile(r"outputs(?:\.([A-Za-z_][A-Za-z0-9_]*)|\[\s*['\"]([A-Za-z0-9_-]+)['\"]\s*\])", re.ASCII)

Which = Callable[[str], object]
"""Whether a program is found: `shutil.which` or the like."""


@dataclass
class Lint:
    """Adds its warnings to the report of a file."""

    report: Report
    which: Which = shutil.which
    _missing: dict[str, bool] = field(default_factory=dict)

    def check(self, value: dict[str, object], spec: PlanSpec) -> None:
        """Every rule. `value` is the file as written, `spec` the same in normal form."""
        for path, check in written_checks(value):
            self._check(path, check)
        self._check_agents(value)
        self._check_outputs(value, spec)
        if spec.repo is not None:
            self._check_overlaps(spec)
            if not spec.acceptance:
                message = "no acceptance: nothing is checked on the results put together"
                self.report.warn(("tasks",), message, 'add acceptance: [{run: "..."}]')

    def _check(self, path: Path, check: dict[str, object]) -> None:
        text = check.get("run")
        if not isinstance(text, str):
            return
        where = (*path, "run")
        self._check_programs(text, where, check.get("env"))
        reason = cannot_fail(text)
        if reason is not None and "junit" not in check:
            self.report.warn(where, f"this check cannot fail: {reason}", "let the exit code say what was found")
        elif unchecked_lines(text):
            self.report.warn(
                where, "only the exit code of the last line counts", "begin with `set -e`, or join with &&"
            )
        for found in dict.fromkeys(writes(text)):
            message = f"`{clip(found)}` may change tracked files, and a check that does fails its task"
            self.report.warn(where, message, "only look; let the agent change files")

    def _check_agents(self, value: dict[str, object]) -> None:
        tasks = value.get("tasks")
        owners: list[tuple[Path, object]] = [(("defaults",), value.get("defaults"))]
        owners += [(("tasks", at), task) for at, task in enumerate(tasks if isinstance(tasks, list) else ())]
        for path, owner in owners:
            agent = owner.get("agent") if isinstance(owner, dict) else None
            if isinstance(owner, dict) and isinstance(agent, dict) and isinstance(agent.get("run"), str):
                env = owner.get("env")
                self._check_programs(
                    agent["run"], (*path, "agent", "run"), env.get("set") if isinstance(env, dict) else None
                )

    def _check_programs(self, text: str, where: Path, env: object) -> None:
        if isinstance(env, dict) and "PATH" in env:
            return
        for name in dict.fromkeys(programs(text)):
            if name not in self._missing:
                self._missing[name] = self.which(name) is None
            if self._missing[name]:
                self.report.warn(where, f'"{name}" is not on PATH here', "install it where the workers run")

    def _check_outputs(self, value: dict[str, object], spec: PlanSpec) -> None:
        checked = {task.id for task in spec.tasks if any(map(_looks_at_outputs, task.verify))}
        unchecked = {task.id for task in spec.tasks} - checked
        tasks = value.get("tasks")
        for at, task in enumerate(tasks if isinstance(tasks, list) else ()):
            for key, name in _reads(task) if isinstance(task, dict) else ():
                if name in unchecked:
                    message = f'this reads outputs of "{name}", which no check looks at'
                    self.report.warn(("tasks", at, key), message, f"add an outputs check to {name}")

    def _check_overlaps(self, spec: PlanSpec) -> None:
        place = {task.id: at for at, task in enumerate(spec.tasks)}
        own = [task for task in spec.tasks if task.scope.write != spec.scope.write]
        free = [task.id for task in spec.tasks if task.scope.write == spec.scope.write]
        graph = from_spec(spec)
        called = {(task.id, task.fallback) for task in spec.tasks}
        met = overlaps(graph, {task.id: task.scope.write for task in own}, 2 * MANY)
        # A fallback runs only after the task that it stands in for has failed.
        found = [each for each in met if not {(each.one, each.two), (each.two, each.one)} & called]
        for each in found[:MANY]:
            self._warn_overlap(each, place)
        if len(found) > MANY:
            self.report.warn(
                ("tasks",), f"more than {MANY} pairs of tasks may write the same files", "narrow scope.write"
            )
        for task in own:
            self._warn_template(task, place)
        self._warn_unscoped(list(overlaps(graph, dict.fromkeys(free, spec.scope.write), 1)), place)

    def _warn_overlap(self, each: Overlap, place: Mapping[str, int]) -> None:
        message = f"no edge orders {each.one} and {each.two}, and both may write {each.pattern}"
        path: Path = ("tasks", place[each.two], "scope", "write")
        self.report.warn(path, message, "narrow one of them, or order them with blocked_by")

    def _warn_template(self, task: TaskSpec, place: Mapping[str, int]) -> None:
        shared = next((each for each in task.scope.write if "{{" not in each), None)
        if task.for_each is not None and shared is not None:
            message = f"all instances of {task.id} may write {shared}"
            path: Path = ("tasks", place[task.id], "scope", "write")
            self.report.warn(path, message, "name {{ item }} in it")

    def _warn_unscoped(self, found: Sequence[Overlap], place: Mapping[str, int]) -> None:
        if found:
            first = found[0]
            message = f"no edge orders {first.one} and {first.two}, and neither has a scope.write of its own"
            self.report.warn(("tasks", place[first.two]), message, "add scope: {write: [...]} to tasks without an edge")


def _reads(task: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Field and task for all outputs that a task is made from, each once."""
    source = task.get("for_each")
    if isinstance(source, str):
        yield "for_each", source.partition(".")[0]
    for key in ("prompt", "if"):
        text = task.get(key)
        for name in sorted({one or two for one, two in _READS.findall(text)} if isinstance(text, str) else ()):
            yield key, name


def _looks_at_outputs(check: Check) -> bool:
    """A schema, or a function that is given the outputs."""
    return isinstance(check, OutputsCheck | PythonCheck)
