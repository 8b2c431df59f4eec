"""`logs`, `evidence`, `why`: one attempt's output, what was verified by what, and why a task waits. Writes nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from scheduler.cli.context import App, json_option, pass_app, put_json, say, suggest
from scheduler.cli.paint import put_table

if TYPE_CHECKING:
    from scheduler.cli.logfile import Where
    from scheduler.model import Evidence
    from scheduler.report.causes import Explanation
    from scheduler.store import Views

ROWS = 200


@click.command()
@click.argument("plan")
@click.argument("task")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Not the newest attempt.")
@click.option("--check", type=click.IntRange(0), metavar="N", help="The output of a check, counted from 0.")
@click.option("-f", "--follow", is_flag=True, help="Go on while the attempt runs; wait for its start.")
@click.option("--path", is_flag=True, help="Where the log lies, instead of what is in it.")
@json_option
@pass_app
def logs(
    app: App, plan: str, task: str, attempt: int | None, check: int | None, follow: bool, path: bool, as_json: bool
) -> None:
    """Print the output of an attempt's agent, or of one of its checks, as it was stored.

    \b
    dagward logs modernise survey -f
    dagward logs modernise survey --attempt 1 --check 0
    """
    from scheduler.cli import logfile

    with app.store() as (_, views):
        found = views.find(plan)
        name = views.task_id(found, task)
        number = logfile.newest(views, found, name, attempt, wait=follow)
        where = logfile.locate(views, app.settings.state_dir, found, name, number, check)
        if follow:
            where = logfile.appear(views, app.settings.state_dir, where)
        if path:
            _put_path(where, as_json)
        elif as_json:
            put_json(logfile.as_json(where))
        elif where.here:
            logfile.put(where, (lambda: logfile.runs(views, where)) if follow else None)
        else:
            _elsewhere(views, where)


def _put_path(where: Where, as_json: bool) -> None:
    if not where.here:
        say(f"the log is not on this host: it is on {where.host or 'the host of its worker'}")
    if as_json:
        put_json(
            {"schema": "dagward/log-path/1", "host": where.host or None, "path": str(where.file), "here": where.here}
        )
        return
    click.echo(str(where.file))


def _elsewhere(views: Views, where: Where) -> None:
    """What the store keeps of an attempt whose log is not here: why it failed, the ends of its checks' output."""
    from scheduler.report.lists import refused_lines
    from scheduler.report.plain import visible

    say(f"{where.what} has no log on this host; {where.hint}")
    failure = views.failure(where.plan, where.task, where.attempt)
    if failure is not None:
        click.echo(visible(f"{failure.kind}: {failure.reason}"))
    for record in views.evidence(where.plan, where.task, where.attempt):
        if where.check is None and not record.accepted:
            click.echo(visible("\n".join(refused_lines(where.task, record))))
        elif where.check == record.check:
            click.echo(visible(record.output), nl=False)


@click.command()
@click.argument("plan")
@click.argument("task", required=False)
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Not the newest attempt. Needs a task.")
@click.option("-a", "--all", "every", is_flag=True, help=f"Every record, not only {ROWS}.")
@json_option
@pass_app
def evidence(app: App, plan: str, task: str | None, attempt: int | None, every: bool, as_json: bool) -> None:
    """Show what was verified by what: each check with its verdict, the result it was taken on, and who ran it.

    TREE says whether the check left the tracked files of the result as they were.

    \b
    dagward evidence modernise
    dagward evidence modernise survey --attempt 1
    """
    from scheduler.report.lists import EVIDENCE, evidence_json, evidence_row

    if attempt is not None and task is None:
        raise click.UsageError("--attempt needs a task")
    with app.store() as (_, views):
        found = views.find(plan)
        records = _records(views, found, task, attempt)
    if as_json:
        listed = [evidence_json(name, record) for name, record in records]
        put_json({"schema": "dagward/evidence/1", "plan": found, "evidence": listed})
        return
    if not records:
        say("no check has been recorded yet" + (f" for {task}" if task else ""))
        return
    shown = records if every else records[:ROWS]
    put_table(EVIDENCE, [evidence_row(name, record) for name, record in shown], 4)
    if len(shown) < len(records):
        say(f"{len(records) - len(shown)} more: dagward evidence {found} --all")
    _put_refused(shown)


def _records(views: Views, plan: str, task: str | None, attempt: int | None) -> list[tuple[str, Evidence]]:
    from scheduler import errors
    from scheduler.store import bulk

    tasks = bulk.glances(views, plan, [views.task_id(plan, task)] if task is not None else None)
    if attempt is not None and attempt > tasks[0].attempt:
        last = tasks[0].attempt
        hint = f"Its newest attempt is {last}." if last else "No attempt of it has begun."
        raise errors.NotFound(f"{tasks[0].task} has no attempt {attempt}", hint=hint)
    wanted = [(each.task, attempt or each.attempt) for each in tasks if each.attempt]
    found = bulk.evidence(views, plan, wanted)
    return [(name, record) for (name, _), records in zip(wanted, found, strict=True) for record in records]


def _put_refused(records: list[tuple[str, Evidence]]) -> None:
    from scheduler.report.lists import refused_lines
    from scheduler.report.plain import visible

    for name, record in records:
        if not record.accepted:
            say("")
            click.echo(visible("\n".join(refused_lines(name, record))), err=True)


@click.command()
@click.argument("plan")
@click.argument("task", required=False)
@json_option
@pass_app
def why(app: App, plan: str, task: str | None, as_json: bool) -> None:
    """Say why a task waits: what holds it, since when, when that is expected to end, and the next step.

    Without a task: the few causes that hold most of the plan.

    \b
    dagward why modernise note
    dagward why modernise
    """
    from scheduler.cli.reasons import why_plan, why_task

    with app.store() as (_, views):
        found = views.find(plan)
        told = why_plan(views, found) if task is None else why_task(views, found, views.task_id(found, task))
    if as_json:
        put_json(told.as_json())
        return
    _tell(told)


def _tell(told: Explanation) -> None:
    click.echo(told.line)
    if not told.task:
        for cause in told.causes:
            click.echo(f"  {cause.text}")
            if cause.next and sys.stdout.isatty():
                click.echo(click.style(suggest(f"    {cause.next}"), dim=True))
    if told.next:
        click.echo(suggest(f"next: {told.next}"))
