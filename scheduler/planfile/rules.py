"""What must hold between the values of a file beyond its shape and its edges: pools, commands, environment, scope.

Works on plain values, so it also answers for a file whose shape is wrong elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from scheduler.planfile.checks import check_bases, check_checks
from scheduler.planfile.durations import BadDuration, parse_duration
from scheduler.planfile.patterns import check_patterns
from scheduler.planfile.references import MANY, Tasks
from scheduler.planfile.report import Report, near
from scheduler.planfile.shape import check_nulls
from scheduler.planfile.source import Path
from scheduler.planfile.values import check_names, check_run
from scheduler.plans import SYSTEM_POOL, first_uncovered


@dataclass(frozen=True, slots=True)
class Rules:
    """Checks a file against the pools that exist here."""

    report: Report
    pools: Collection[str]

    def check_plan(self, value: dict[str, object], tasks: Tasks) -> None:
        """Everything but ids, edges, parameters and prompts."""
        check_nulls(value, (), "plan", self.report)
        self._check_repo(value)
        self._check_scope(value.get("scope"), ("scope",), None)
        check_checks(value.get("acceptance"), ("acceptance",), self.report)
        check_bases(value, self.report)
        defaults = value.get("defaults")
        shared = defaults if isinstance(defaults, dict) else {}
        self._check_common(shared, ("defaults",), "defaults")
        outer = _written_scope(value)
        for at, task in tasks.written:
            self._check_common(task, ("tasks", at), "task")
            if "agent" not in task and "agent" not in shared:
                remedy = 'add agent: {use: command, run: "..."}, here or in defaults'
                self.report.error(("tasks", at, "agent"), 'required field "agent" is missing', remedy)
            if "scope" in task:
                self._check_scope(task["scope"], ("tasks", at, "scope"), outer, item="for_each" in task)
        self._warn_unchecked(shared, tasks)

    def _check_common(self, mapping: dict[str, object], path: Path, kind: str) -> None:
        check_nulls(mapping, path, kind, self.report)
        if "pool" in mapping:
            self._check_pool(mapping["pool"], (*path, "pool"))
        agent = mapping.get("agent")
        if isinstance(agent, dict):
            check_run(agent.get("run"), (*path, "agent", "run"), self.report)
        if "env" in mapping:
            self._check_env(mapping["env"], (*path, "env"))
        if "retries" in mapping:
            self._check_retries(mapping["retries"], (*path, "retries"))
        if "verify" in mapping:
            check_checks(mapping["verify"], (*path, "verify"), self.report)

    def _check_pool(self, pool: object, path: Path) -> None:
        if not isinstance(pool, str):
            return
        known = sorted(set(self.pools) - {SYSTEM_POOL})
        if pool == SYSTEM_POOL:
            self.report.error(path, f'the pool "{pool}" is for dagward\'s own work', f"known pools: {', '.join(known)}")
        elif pool not in self.pools:
            self.report.error(path, f'unknown pool "{pool}"', near(pool, known, "pools"))

    def _check_env(self, env: object, path: Path) -> None:
        if not isinstance(env, dict):
            return
        values = env.get("set")
        names = values if isinstance(values, dict) else {}
        check_names(names, (*path, "set"), self.report)
        owner = dict.fromkeys(names, "set")
        for part in ("pass", "secrets"):
            listed = env.get(part)
            for place, name in enumerate(listed if isinstance(listed, list) else ()):
                where = (*path, part, place)
                check_names([name] if isinstance(name, str) else [], where, self.report, listed=True)
                if isinstance(name, str) and owner.setdefault(name, part) != part:
                    message = f'"{name}" stands in env.{owner[name]} and in env.{part}'
                    self.report.error(where, message, "keep one of the two")

    def _check_retries(self, retries: object, path: Path) -> None:
        if not isinstance(retries, dict) or not {"backoff", "max_backoff"} <= retries.keys():
            return
        try:
            first, most = (parse_duration(retries[name], zero=True) for name in ("backoff", "max_backoff"))
        except BadDuration:
            return  # said by the shape
        if most < first:
            message = f"{retries['max_backoff']} is shorter than backoff, {retries['backoff']}"
            self.report.error((*path, "max_backoff"), message, "write at least as much")

    def _check_repo(self, value: dict[str, object]) -> None:
        for name in ("repo", "base"):
            text = value.get(name)
            if isinstance(text, str) and (text.startswith("-") or re.search(r"[\0\n\r]", text)):
                self.report.error(
                    (name,), f'"{text}" is not a valid {name}', "git would read it as an option or not at all"
                )
        if "base" in value and "repo" not in value:
            self.report.error(("base",), "base needs a repo", "add repo, or remove base", key=True)

    def _check_scope(self, scope: object, path: Path, outer: Sequence[str] | None, *, item: bool = False) -> None:
        if not isinstance(scope, dict):
            return
        check_nulls(scope, path, "scope", self.report)
        for part in ("write", "protect"):
            check_patterns(scope.get(part), (*path, part), self.report, item=item)
        listed = scope.get("write")
        if outer is None or not isinstance(listed, list):
            return
        for place, pattern in enumerate(listed):
            if isinstance(pattern, str) and first_uncovered(outer, [pattern]):
                message = f'"{pattern}" is wider than the scope of the plan'
                self.report.error((*path, "write", place), message, f"stay within {', '.join(outer) or 'nothing'}")

    def _warn_unchecked(self, shared: dict[str, object], tasks: Tasks) -> None:
        unchecked = [at for at, task in tasks.written if _is_unchecked(task.get("verify", shared.get("verify")))]
        message, remedy = "nothing but the exit code is checked", 'add verify: [{run: "..."}]'
        if len(unchecked) <= MANY:
            for at in unchecked:
                self.report.warn(("tasks", at), message, remedy)
        else:
            self.report.warn(("tasks", unchecked[0]), f"{message}, of {len(unchecked):,} tasks", remedy)


def _written_scope(value: dict[str, object]) -> Sequence[str]:
    scope = value.get("scope")
    write = scope.get("write") if isinstance(scope, dict) else None
    return [each for each in write if isinstance(each, str)] if isinstance(write, list) else ["**"]


def _is_unchecked(verify: object) -> bool:
    if verify is None:
        return True
    if not isinstance(verify, list):
        return False
    return all(check == "exit" or (isinstance(check, dict) and list(check) == ["exit"]) for check in verify)
