"""`submit` and `wait`: store a plan for others to run, and follow it."""

from __future__ import annotations

import time

import click

from scheduler import errors
from scheduler.cli.context import App, json_option, pass_app, put_json, refuse_inside_attempt, say, who
from scheduler.cli.run import load_file, make_draft, parse_duration, parse_params


@click.command()
@click.argument("file", type=click.Path())
@click.option("--param", "params", multiple=True, callback=parse_params, metavar="K=V", help="Set a parameter.")
@click.option("--key", default="", help="Idempotency key: the same key and content is the same plan.")
@click.option("--base", help="Start from this commit or ref instead of the plan's `base`.")
@json_option
@pass_app
def submit(app: App, file: str, params: dict[str, str], key: str, base: str | None, as_json: bool) -> None:
    """Store a plan; `dagward up` (or scheduler and workers) runs it. Prints the plan's id.

    \b
    dagward submit plan.yaml --key nightly-2026-11-30
    """
    from scheduler.submission import submit as store_plan

    refuse_inside_attempt("submit a plan")
    made = make_draft(load_file(app, file, params, base))
    with app.store() as (store, views):
        plan, new = store_plan(store, made, who=who(), key=key)
        view = views.plan(plan)
    if as_json:
        put_json({"schema": "dagward/submit/1", "plan": plan, "new": new, "state": view.state, "hash": view.hash})
        return
    if not new:
        say(f"key {key} is known: nothing new was stored")
    click.echo(plan)


@click.command()
@click.argument("plan")
@click.option("--timeout", callback=parse_duration, metavar="D", help="Give up after this long (exit 5).")
@click.option("--wait", "patience", callback=parse_duration, metavar="D", help="How long to wait for a person.")
@click.option("-q", "--quiet", is_flag=True, help="No progress lines.")
@json_option
@pass_app
def wait(app: App, plan: str, timeout: float, patience: float, quiet: bool, as_json: bool) -> int:
    """Wait for a plan's end and exit by its outcome.

    \b
    dagward wait modernise --timeout 2h
    """
    from scheduler.cli.follow import Follower
    from scheduler.cli.outcome import finish

    end = time.monotonic() + timeout

    def care() -> None:
        if timeout and time.monotonic() > end:
            raise errors.Infrastructure(f"{plan} has not ended in time", hint=f"Look: dagward show {plan}")

    with app.store() as (_, views):
        follower = Follower(views, views.find(plan), quiet=quiet)
        follower.skip_history()
        return finish(views, follower.until_settled(patience, care), app.settings.state_dir, as_json_=as_json)
