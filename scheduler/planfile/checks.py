"""Rules for the entries of `verify` and `acceptance` beyond their shape.

Must not know which task they belong to. The only import of jsonschema in the scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache

from scheduler.model.base import Json
from scheduler.planfile.patterns import check_path, check_patterns
from scheduler.planfile.report import Report, clip
from scheduler.planfile.shape import check_nulls
from scheduler.planfile.source import Path
from scheduler.planfile.values import check_names, check_run
from scheduler.plans import canonical

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def check_checks(checks: object, path: Path, report: Report) -> None:
    """Every entry of a list of checks; what has no readable shape is said elsewhere."""
    for place, check in enumerate(checks if isinstance(checks, list) else ()):
        if isinstance(check, dict):
            _check_one(check, (*path, place), report)


def check_bases(value: dict[str, object], report: Report) -> None:
    """A check that compares with the result's base makes no sense in a plan without a repository."""
    if "repo" in value:
        return
    for path, check in written_checks(value):
        if "weakening" in check:
            report.error(
                (*path, "weakening"),
                "weakening compares with the base, and this plan has no repo",
                "add repo, or remove it",
            )


def written_checks(value: dict[str, object]) -> Iterator[tuple[Path, dict[str, object]]]:
    """Place and mapping of every check of a file: of `acceptance`, of `defaults`, of each task."""
    tasks = value.get("tasks")
    owners: list[tuple[Path, object]] = [(("acceptance",), value.get("acceptance"))]
    defaults = value.get("defaults")
    if isinstance(defaults, dict):
        owners.append((("defaults", "verify"), defaults.get("verify")))
    for at, task in enumerate(tasks if isinstance(tasks, list) else ()):
        if isinstance(task, dict) and "verify" in task:
            owners.append((("tasks", at, "verify"), task["verify"]))
    for path, checks in owners:
        for place, check in enumerate(checks if isinstance(checks, list) else ()):
            if isinstance(check, dict):
                yield (*path, place), check


def _check_one(check: dict[str, object], path: Path, report: Report) -> None:
    if not {"run", "junit", "python"}.isdisjoint(check):
        check_nulls(check, path, "check run", report)
        check_run(check.get("run"), (*path, "run"), report)
        env = check.get("env")
        check_names(env if isinstance(env, dict) else (), (*path, "env"), report)
    if isinstance(check.get("junit"), str) and check["junit"]:
        check_path(str(check["junit"]), (*path, "junit"), report)
    if "with" in check:
        _check_json(check["with"], (*path, "with"), report)
    outputs, file, diff = check.get("outputs"), check.get("file"), check.get("diff")
    if isinstance(outputs, dict):
        _check_schema(outputs.get("schema"), (*path, "outputs", "schema"), report)
    if isinstance(file, dict):
        check_nulls(file, (*path, "file"), "file", report)
        if isinstance(file.get("path"), str) and file["path"]:
            check_path(file["path"], (*path, "file", "path"), report)
    weakening = check.get("weakening")
    if isinstance(weakening, dict):
        _check_weakening(weakening, (*path, "weakening"), report)
    if isinstance(diff, dict):
        _check_diff(diff, (*path, "diff"), report)


def _check_weakening(weakening: dict[str, object], path: Path, report: Report) -> None:
    check_nulls(weakening, path, "weakening", report)
    check_patterns(weakening.get("paths"), (*path, "paths"), report)
    if weakening.get("paths") == []:
        report.error((*path, "paths"), "an empty list looks at nothing", "leave paths out, or write a pattern")


def _check_json(value: object, path: Path, report: Report) -> None:
    if not isinstance(value, dict):
        return
    try:
        canonical(value)
    except ValueError as error:
        report.error(path, f"cannot be kept as JSON: {error}", "use whole numbers up to 2^53 and valid text")


def _check_diff(diff: dict[str, object], path: Path, report: Report) -> None:
    check_nulls(diff, path, "diff", report)
    check_patterns(diff.get("only"), (*path, "only"), report)
    if not diff.get("nonempty") and "only" not in diff:
        report.error(path, "this diff check accepts everything", "write nonempty: true, or only: [...]")


def _check_schema(schema: object, path: Path, report: Report) -> None:
    if not isinstance(schema, dict):
        return
    try:
        text = canonical(schema)
    except ValueError as error:
        report.error(path, f"cannot be kept as JSON: {error}", "use whole numbers up to 2^53 and valid text")
        return
    for below, message, remedy in _wrong_in_schema(text):
        report.error((*path, *below), message, remedy)


@lru_cache(maxsize=256)
def _wrong_in_schema(text: bytes) -> list[tuple[Path, str, str]]:
    """Place, message and remedy of what is wrong; remembered, because thousands of tasks may share one schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    schema: dict[str, Json] = json.loads(text)
    if schema.get("$schema", DRAFT) != DRAFT:
        return [(("$schema",), "another draft of JSON Schema", f"remove it; the draft is {DRAFT}")]
    wrong = best_match(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema))
    if wrong is not None:
        message = f"not a JSON Schema: {clip(wrong.message, 120)}"
        return [(tuple(wrong.absolute_path), message, "correct the schema")]
    remedy = 'refer to a part of the same schema, "#/$defs/NAME"'
    return [
        (where, f'the schema has nothing at $ref "{clip(target)}"', remedy)
        for where, target in _references(schema, ())
        if not _resolves(schema, target)
    ]


def _references(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("$ref", "$dynamicRef") and isinstance(item, str):
                yield (*path, key), item
            elif key not in ("const", "enum", "default", "examples"):
                yield from _references(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _references(item, (*path, place))


def _resolves(schema: dict[str, Json], target: str) -> bool:
    # A verifier never fetches anything, so a reference has to stay within the schema.
    if not target.startswith("#"):
        return False
    if target != "#" and not target.startswith("#/"):
        return True  # an anchor; the verifier looks it up
    at: Json = schema
    for part in target[2:].split("/") if target != "#" else ():
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict) and name in at:
            at = at[name]
        elif isinstance(at, list) and name.isdecimal() and int(name) < len(at):
            at = at[int(name)]
        else:
            return False
    return True
