"""`approve` and `cancel`: what a person decides about a plan. Cancel means gone: it says what still lives."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from scheduler import errors
from scheduler.cli.context import App, json_option, pass_app, put_json, refuse_inside_attempt, say, who
from scheduler.cli.run import parse_duration

if TYPE_CHECKING:
    from scheduler.model import PlanView
    from scheduler.store import Store, Views

SHORTEST_HASH = 8
LOOK = 0.1
NAMED = 5


@click.command()
@click.argument("plan")
@click.option("--version", type=click.IntRange(1), metavar="N", help="The version that you have read.")
@click.option("--hash", "hash_", metavar="H", help=f"Its hash, or at least the first {SHORTEST_HASH} characters.")
@json_option
@pass_app
def approve(app: App, plan: str, version: int | None, hash_: str | None, as_json: bool) -> None:
    """Approve one version of a plan by its hash; without both, a terminal shows what it may do and asks.

    \b
    dagward approve modernise --version 1 --hash 3f2a91c07b5e
    """
    refuse_inside_attempt("approve a plan")
    with app.store() as (store, views):
        view = views.plan(views.find(plan))
        if version is None or hash_ is None:
            _ask(views, view)
            version, hash_ = view.version, view.hash
        new = store.approve(view.plan, version, _whole(view, version, hash_), who())
        view = views.plan(view.plan)
    if as_json:
        put_json(
            {"schema": "dagward/approve/1", "plan": view.plan, "version": view.version, "hash": view.hash, "new": new,
             "state": view.state}
        )  # fmt: skip
        return
    say(
        f"version {view.version} of plan {view.plan} {'is' if new else 'was'} approved"
        f"{'' if new else ' before'}: the plan is {view.state}"
    )
    say("it runs under `dagward up`, or go on with: dagward run FILE --resume")


def _whole(view: PlanView, version: int, hash_: str) -> str:
    """The whole hash that a prefix means. Anything else is left to the store, which refuses it with the facts."""
    if len(hash_) < SHORTEST_HASH:
        raise errors.Refusal(
            f"{hash_} is too short for a hash", hint=f"Give at least {SHORTEST_HASH} characters of it."
        )
    same = version == view.version and view.hash.startswith(hash_.lower())
    return view.hash if same else hash_


def _ask(views: Views, view: PlanView) -> None:
    command = f"dagward approve {view.plan} --version {view.version} --hash {view.hash}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise errors.Refusal("an approval names version and hash", hint=f"Read the plan, then: {command}")
    from scheduler.model import PlanState
    from scheduler.report.approval import summary

    if view.state is not PlanState.AWAITING_APPROVAL:
        raise errors.Conflict(f"plan {view.plan} is {view.state}: there is nothing to approve")
    for line in summary(view, views.version(view.plan, view.version).spec):
        say(line)
    say(f"hash:    {view.hash}")
    if not click.confirm("Approve it?", err=True):
        raise errors.Refusal("nothing was approved", hint=f"Later: {command}")


@click.command()
@click.argument("plan")
@click.argument("task", required=False)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", "patience", callback=parse_duration, metavar="D", help="Wait until nothing of it lives.")
@json_option
@pass_app
def cancel(app: App, plan: str, task: str | None, yes: bool, patience: float, as_json: bool) -> None:
    """Cancel a plan, or one task of it. Its agents are stopped and proven gone before anything is released.

    \b
    dagward cancel modernise --wait 1m
    dagward cancel modernise survey --yes
    """
    refuse_inside_attempt("cancel a plan")
    with app.store() as (store, views):
        found = views.find(plan)
        name = views.task_id(found, task) if task is not None else ""
        target = f"task {name} of plan {found}" if name else f"plan {found}"
        if not yes and sys.stdin.isatty() and sys.stderr.isatty():
            _confirm(views, found, name, target)
        store.cancel(found, who(), name)
        _settle(store, found)
        held = _until_gone(views, found, name, patience)
        _settle(store, found)  # what has ended meanwhile is what the plan still waits for
        state = views.task(found, name).state.value if name else views.plan(found).state.value
    if as_json:
        put_json({"schema": "dagward/cancel/1", "plan": found, "task": name or None, "state": state, "stopping": held})
    elif held:
        say(f"{target} is being cancelled: {_agents(len(held))} being stopped")
        for line in held[:NAMED]:
            say(f"  {line}")
    else:
        say(f"{target} is {state}: nothing of it lives")
    if held and patience:
        raise errors.Infrastructure(
            f"{target} is not gone yet", hint=f"What holds it: dagward why {found}{f' {name}' if name else ''}"
        )


def _settle(store: Store, plan: str) -> None:
    """What follows from the cancel, as a daemon does it: `run` may have ended, so there may be none."""
    while store.settle(plan):
        continue


def _agents(count: int) -> str:
    return "1 agent is" if count == 1 else f"{count} agents are"


def _confirm(views: Views, plan: str, task: str, target: str) -> None:
    live = len(_live(views, plan, task))
    stops = f"; {_agents(live)} stopped and their work of this attempt is lost" if live else ""
    if not click.confirm(f"Cancel {target}{stops}?", err=True):
        raise errors.Refusal("nothing was cancelled", hint="")


def _live(views: Views, plan: str, task: str) -> list[str]:
    from scheduler.model import LIVE
    from scheduler.store import bulk

    seen = bulk.glances(views, plan, [task] if task else sorted(views.live(plan)))
    return [each.task for each in seen if each.state in LIVE]


def _until_gone(views: Views, plan: str, task: str, patience: float) -> list[str]:
    """What still lives, each with who stops it; empty as soon as it is proven gone."""
    from scheduler.cli.reasons import why_task

    end = time.monotonic() + patience
    while (live := _live(views, plan, task)) and time.monotonic() < end:
        time.sleep(LOOK)
    return [why_task(views, plan, each).line for each in live]
