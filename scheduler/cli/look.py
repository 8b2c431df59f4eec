"""`ps`, `show`, `graph`, `events`: reading a plan. Writes nothing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scheduler.cli.context import App, json_option, pass_app, put_json, say, terminal_width
from scheduler.cli.paint import put_table
from scheduler.cli.run import parse_params

if TYPE_CHECKING:
    from scheduler.model import EventView
    from scheduler.report.graph import Drawing
    from scheduler.store import Views

DAY = 86_400_000
PLANS = 50
ROWS = 200
BEAT = 0.5


@click.command()
@click.option("-a", "--all", "every", is_flag=True, help="All plans, not only active ones and those of the last day.")
@click.option("-q", "--quiet", is_flag=True, help="Ids only.")
@json_option
@pass_app
def ps(app: App, every: bool, quiet: bool, as_json: bool) -> None:
    """List plans, the newest first: active ones and those of the last day, at most 50.

    \b
    dagward ps
    dagward ps --all --json
    """
    from scheduler.report.lists import PLANS as HEADER
    from scheduler.report.lists import plan_row
    from scheduler.store import bulk

    with app.store() as (_, views):
        now = views.now()
        ids = views.plan_ids()
        if not every:
            wanted = bulk.active_plans(views) | set(bulk.plans_since(views, now - DAY))
            shown = [plan for plan in ids if plan in wanted][:PLANS]
        else:
            shown = ids
        plans = [] if quiet else views.plans(shown)
    more = len(ids) - len(shown)
    if as_json:
        listed: object = shown if quiet else [plan.model_dump(mode="json") for plan in plans]
        put_json({"schema": "dagward/ps/1", "plans": listed, "more": more})
        return
    if quiet:
        for plan in shown:
            click.echo(plan)
    elif shown:
        put_table(HEADER, [plan_row(plan, now) for plan in plans], 1)
    else:
        say("no plan" + (" of the last day" if more else " yet: dagward init writes a first one"))
    if more:
        say(f"{more} more: dagward ps --all")


@click.command()
@click.argument("plan")
@click.option("-a", "--all", "every", is_flag=True, help=f"Every task, not only {ROWS}.")
@json_option
@pass_app
def show(app: App, plan: str, every: bool, as_json: bool) -> None:
    """Show a plan and its tasks. When they are many, those that failed and run come first.

    \b
    dagward show modernise
    """
    from scheduler.report.lists import TASKS, plan_lines, task_row, urgent_first
    from scheduler.store import bulk

    with app.store() as (_, views):
        view = views.plan(views.find(plan))
        now = views.now()
        seen = bulk.glances(views, view.plan)
        wanted = seen if every or as_json else urgent_first(seen, ROWS)
        shown = views.tasks(view.plan, [each.task for each in wanted])
    if as_json:
        listed = [task.model_dump(mode="json", exclude={"session"}) for task in shown]
        put_json({"schema": "dagward/show/1", "plan": view.model_dump(mode="json"), "tasks": listed})
        return
    click.echo("\n".join(plan_lines(view, now)) + "\n")
    put_table(TASKS, [task_row(task, now) for task in shown], 1)
    if len(shown) < len(seen):
        say(f"{len(seen) - len(shown)} more: dagward show {view.plan} --all")


@click.command()
@click.argument("plan", metavar="PLAN|FILE")
@click.option(
    "--format", "form", type=click.Choice(["text", "dot", "mermaid"]), default="text", show_default=True, help="How."
)
@click.option("--param", "params", multiple=True, callback=parse_params, metavar="K=V", help="For a plan file.")
@json_option
@pass_app
def graph(app: App, plan: str, form: str, params: dict[str, str], as_json: bool) -> None:
    """Draw the tasks and edges of a plan with their states, or of a plan file (without a server).

    \b
    dagward graph modernise
    dagward graph plan.yaml --format mermaid >> README.md
    """
    from scheduler.report import graph as report

    drawing = _of_file(app, plan, params) if _is_file(plan) else _of_plan(app, plan)
    if as_json:
        put_json(report.as_json(drawing))
    elif form == "dot":
        click.echo(report.dot(drawing))
    elif form == "mermaid":
        click.echo(report.mermaid(drawing))
    else:
        signs = report.UNICODE if _utf8() else report.ASCII
        click.echo(report.text(drawing, signs, terminal_width() or report.WIDTH))


def _utf8() -> bool:
    """Whether stdout takes lines and marks. Python writes UTF-8 even in the C locale, whose terminal may not."""
    plain = os.environ.get("LC_ALL") in ("C", "POSIX")
    return not plain and (sys.stdout.encoding or "").lower().startswith("utf")


def _is_file(word: str) -> bool:
    return word.endswith((".yaml", ".yml", ".json")) or Path(word).is_file()


def _of_file(app: App, file: str, params: dict[str, str]) -> Drawing:
    from scheduler.graph import from_spec
    from scheduler.planfile import load
    from scheduler.report.graph import Drawing, Node

    spec = load(Path(file), params=params, pools=tuple(app.settings.limits)).spec
    nodes = {t.id: Node(t.id, t.title, "", tuple(edge.task for edge in t.blocked_by)) for t in spec.tasks}
    return Drawing(spec.name, nodes, from_spec(spec).layers())


def _of_plan(app: App, word: str) -> Drawing:
    from scheduler.graph import from_tasks
    from scheduler.report.graph import Drawing, Node
    from scheduler.store import bulk

    with app.store() as (_, views):
        plan = views.find(word)
        specs = views.specs(plan)
        states = {each.task: each.state for each in bulk.glances(views, plan)}
    nodes = {t.id: Node(t.id, t.title, states[t.id], tuple(edge.task for edge in t.blocked_by)) for t in specs}
    return Drawing(plan, nodes, from_tasks(specs).layers())


@click.command()
@click.argument("plan")
@click.option("-f", "--follow", is_flag=True, help="Go on until the plan has ended.")
@click.option("--since", default="-", metavar="ID", help="Only what came after this event.")
@json_option
@pass_app
def events(app: App, plan: str, follow: bool, since: str, as_json: bool) -> None:
    """Print a plan's history: time, event, task, attempt, move, actor, detail. With --json one object a line.

    \b
    dagward events modernise -f
    dagward events modernise --json | jq -c 'select(.event == "fail")'
    """
    _check_position(since)
    with app.store() as (_, views):
        found = views.find(plan)
        position = since
        for event in views.events(found, position):
            position = event.id
            _print(found, event, as_json)
        if follow:
            _follow(views, found, "0-0" if position == "-" else position, as_json)


def _check_position(since: str) -> None:
    time, _, number = since.partition("-")
    if since != "-" and not (time.isdecimal() and (number.isdecimal() or not number)):
        raise click.BadParameter(f"{since!r} is not an event's id, such as 1796030000000-0", param_hint="--since")


def _follow(views: Views, plan: str, position: str, as_json: bool) -> None:
    from scheduler.model import PLAN_ENDED

    while True:
        # The state first: what ended the plan is then among the events that are read after it.
        ended = views.plan(plan).state in PLAN_ENDED
        for event in views.events(plan, position) if ended else views.follow(plan, position, BEAT):
            position = event.id
            _print(plan, event, as_json)
        if ended:
            return


def _print(plan: str, event: EventView, as_json: bool) -> None:
    from scheduler.report.lists import event_json, event_line

    click.echo(json.dumps(event_json(plan, event), ensure_ascii=False) if as_json else event_line(event))
