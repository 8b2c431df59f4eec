"""`validate`, `schema`, `init`: plan files. No server, and the state folder is not touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scheduler.cli.context import App, json_option, pass_app, put_json, say
from scheduler.cli.run import parse_params

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.errors import Problem


@click.command()
@click.argument("file", type=click.Path())
@click.option("--param", "params", multiple=True, callback=parse_params, metavar="K=V", help="Set a parameter.")
@click.option("--lint", is_flag=True, help="Also warn of what will most likely go wrong or prove nothing.")
@json_option
@pass_app
def validate(app: App, file: str, params: dict[str, str], lint: bool, as_json: bool) -> int:
    """Check a plan file: all its errors at once, each with line, column and what to write instead.

    \b
    dagward validate plan.yaml --lint
    dagward validate plan.yaml --json | jq -r .hash
    """
    import shutil

    from scheduler import errors
    from scheduler.graph import from_spec
    from scheduler.planfile import load
    from scheduler.plans import version_hash
    from scheduler.report.plain import plural

    try:
        loaded = load(Path(file), params=params, pools=tuple(app.settings.limits), lint=shutil.which if lint else None)
    except errors.InvalidPlan as error:
        if not as_json:
            for warning in error.problems.warnings:
                say(f"warning: {warning.render(file)}")
            raise
        put_json(_answer(file, error.problems.errors, error.problems.warnings))
        return error.exit_code
    spec, hash_ = loaded.spec, version_hash(loaded.spec)
    edges = sum(len(task.blocked_by) for task in spec.tasks)
    layers = len(from_spec(spec).layers())
    if as_json:
        facts = {"name": spec.name, "hash": hash_, "tasks": len(spec.tasks), "edges": edges, "layers": layers}
        put_json(_answer(file, (), loaded.warnings) | facts)
        return 0
    for warning in loaded.warnings:
        say(f"warning: {warning.render(file)}")
    sizes = f"{plural(len(spec.tasks), 'task')}, {plural(edges, 'edge')}, {plural(layers, 'layer')}"
    found = f", {plural(len(loaded.warnings), 'warning')}" if loaded.warnings else ""
    click.echo(f"{file}: valid, {sizes}{found}, hash {hash_[:12]}")
    return 0


def _answer(file: str, found: Sequence[Problem], warnings: Sequence[Problem]) -> dict[str, object]:
    return {
        "schema": "dagward/validate/1",
        "file": file,
        "valid": not found,
        "hash": None,
        "errors": [_problem(file, each) for each in found],
        "warnings": [_problem(file, each) for each in warnings],
    }


def _problem(file: str, problem: Problem) -> dict[str, object]:
    return {
        "file": file,
        "line": problem.line or None,
        "column": problem.column or None,
        "field": problem.field or None,
        "message": problem.message,
        "remedy": problem.remedy or None,
    }


@click.command()
@json_option
def schema(as_json: bool) -> None:
    """Print the JSON Schema of plan files, for editors. It is JSON with and without --json.

    \b
    dagward schema > plan.schema.json
    """
    from scheduler.planfile import json_schema

    del as_json
    say("use it: put this line at the top of a plan file, beside plan.schema.json")
    say("# yaml-language-server: $schema=plan.schema.json")
    click.echo(json.dumps(json_schema(), ensure_ascii=False, indent=2))


@click.command()
@click.argument("file", type=click.Path(), default="plan.yaml")
@json_option
def init(file: str, as_json: bool) -> None:
    """Write a first plan file; in a git repository a plan for it, else a scratch plan. Never overwrites.

    \b
    dagward init
    dagward init nightly.yaml
    """
    from scheduler import errors
    from scheduler.report.first import plan_text

    path = Path(file)
    repo = _repository(path)
    text = plan_text(path.absolute().parent.name if repo is not None else "first", repo, file)
    try:
        with path.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        hint = f"Name another file, or look at it: dagward validate {file}"
        raise errors.Refusal(f"{file} exists already; nothing was written", hint=hint) from None
    except OSError as error:
        raise errors.Refusal(
            f"cannot write {file}: {error.strerror}", hint="Name a file in a folder of yours."
        ) from None
    if as_json:
        put_json({"schema": "dagward/init/1", "file": file, "kind": "repo" if repo is not None else "scratch"})
        return
    say(f"wrote {file}: {'a plan for this git repository' if repo is not None else 'a scratch plan'}")
    say(f"next: dagward run {file}")


def _repository(file: Path) -> str | None:
    """Path from the plan file's folder to the top of its git repository; None when there is none."""
    folder = file.absolute().parent
    for depth, above in enumerate((folder, *folder.parents)):
        if (above / ".git").exists():
            return "/".join([".."] * depth) or "."
    return None
