"""`dagward run FILE`: submit or resume, serve it with an own daemon and workers, follow it to its end."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from scheduler import errors
from scheduler.cli.context import App, json_option, pass_app, refuse_inside_attempt, say, who

if TYPE_CHECKING:
    from scheduler.cli.follow import Follower
    from scheduler.planfile import Loaded
    from scheduler.store import Store, Views
    from scheduler.submission import Draft
    from scheduler.supervisor import Crew

_DURATION = re.compile(r"^(\d+)(ms|s|m|h|d)$")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(_: click.Context, __: click.Parameter, value: str | None) -> float:
    """`90s 20m 2h` as seconds; nothing is zero."""
    if value is None:
        return 0.0
    found = _DURATION.match(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a duration; write 90s, 20m or 2h")
    return int(found[1]) * _UNITS[found[2]]


def parse_params(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """`--param name=value`, repeated."""
    params: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not name=value")
        params[name] = text
    return params


def load_file(app: App, file: str, params: Mapping[str, str], base: str | None) -> Loaded:
    """The plan file in normal form, its warnings said."""
    from scheduler.planfile import load

    loaded = load(Path(file), params=params, pools=tuple(app.settings.limits))
    for warning in loaded.warnings:
        say(f"warning: {warning.render(loaded.file)}")
    if base is None:
        return loaded
    if loaded.spec.repo is None:
        raise errors.Refusal("--base needs a plan with a repository", hint="Add `repo` to the plan, or leave it out.")
    from dataclasses import replace

    return replace(loaded, spec=loaded.spec.model_copy(update={"base": base}))


def make_draft(loaded: Loaded) -> Draft:
    """The version to submit, with the repository's warnings said."""
    from scheduler.submission import draft

    made = draft(loaded.spec, Path(loaded.file).absolute().parent)
    for warning in made.warnings:
        say(f"warning: {warning}")
    return made


@click.command()
@click.argument("file", type=click.Path())
@click.option("--resume", is_flag=True, help="Go on with the newest unfinished plan of that name.")
@click.option("--param", "params", multiple=True, callback=parse_params, metavar="K=V", help="Set a parameter.")
@click.option("--key", default="", help="Idempotency key: the same key and content is the same plan.")
@click.option("--base", help="Start from this commit or ref instead of the plan's `base`.")
@click.option(
    "--wait", callback=parse_duration, metavar="D", help="How long to wait for a person before ending with 3."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress lines.")
@json_option
@pass_app
def run(
    app: App,
    file: str,
    resume: bool,
    params: dict[str, str],
    key: str,
    base: str | None,
    wait: float,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run a plan file to its end and exit by its outcome.

    \b
    dagward run plan.yaml
    dagward run plan.yaml --param module=billing --key "$COMMIT"
    dagward run plan.yaml --resume
    """
    refuse_inside_attempt("run a plan")
    loaded = load_file(app, file, params, base)
    made = make_draft(loaded)
    crew_size = workers_for(app, made)
    from scheduler.cli.follow import Follower
    from scheduler.supervisor import Crew, check_memory, memory_needed

    check_memory(crew_size)
    with app.server() as embedded:
        store, views = app.open()
        plan = _resume(store, views, loaded) if resume else _submit(store, made, key)
        agents = sorted({task.agent.use for task in made.tasks if task.agent.use != "system"})
        say(
            f"plan {plan}: {len(made.version.spec.tasks)} tasks by {', '.join(agents)}; "
            f"{sum(crew_size.values())} workers, about {memory_needed(crew_size) // 2**20} MB"
        )
        crew = Crew(app.settings, crew_size, plan=plan, embedded=embedded)
        follower = Follower(views, plan, quiet=quiet)
        if resume:
            follower.skip_history()
        return _serve(app, crew, store, follower, file, wait=wait, as_json=as_json)


def _submit(store: Store, made: Draft, key: str) -> str:
    from scheduler.submission import submit

    plan, new = submit(store, made, who=who(), key=key, tick=_staging(len(made.tasks)))
    if not new:
        say(f"key {key} is known: going on with plan {plan}")
    return plan


def _staging(total: int) -> Callable[[int], None]:
    def tick(done: int) -> None:
        if total > 5000 and sys.stderr.isatty():
            click.echo(f"\rstoring tasks {done}/{total}", err=True, nl=done == total)

    return tick


def _resume(store: Store, views: Views, loaded: Loaded) -> str:
    from scheduler.submission import reawaken, to_resume

    plan = to_resume(views, loaded.spec)
    say(f"resuming plan {plan}: {reawaken(store, views, plan, who())}")
    return plan


def workers_for(app: App, made: Draft) -> dict[str, int]:
    """Workers for each pool of the plan: as many as may run at once, and never more than it has tasks."""
    limits = app.settings.limits
    tasks: dict[str, int] = {}
    for task in made.tasks:
        tasks[task.pool] = tasks.get(task.pool, 0) + 1
    wanted = made.version.spec.concurrency
    return {
        pool: 1 if pool == "system" else max(1, min(wanted, limits.get(pool, 1), count))
        for pool, count in tasks.items()
    }


class _Signalled(Exception):
    """INT or TERM reached `run`."""


def _serve(app: App, crew: Crew, store: Store, follower: Follower, file: str, *, wait: float, as_json: bool) -> int:
    from scheduler.cli.outcome import finish
    from scheduler.report.outcome import needs_person

    seen: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        seen.append(number)
        if len(seen) > 1:
            crew.kill()
            raise SystemExit(errors.EXIT_INTERRUPTED)

    def care() -> None:
        if seen:
            raise _Signalled
        crew.check()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    views = follower.views
    view = views.plan(crew.plan)
    if needs_person(view) and not wait:
        return finish(views, view, app.settings.state_dir, as_json_=as_json, file=file)
    crew.start()
    try:
        view = follower.until_settled(wait, care)
    except _Signalled:
        return _interrupted(app, crew, store, file)
    except BaseException:
        crew.stop(signal.SIGINT, _patience(app))
        raise
    crew.stop(signal.SIGTERM, _patience(app))
    return finish(views, view, app.settings.state_dir, as_json_=as_json, file=file)


def _patience(app: App) -> float:
    return app.settings.grace / 1000 + app.settings.drain / 1000 + 20.0


def _interrupted(app: App, crew: Crew, store: Store, file: str) -> int:
    import redis

    say("stopping agents and handing their work back; once more kills")
    state = "paused"
    try:
        store.interrupt(crew.plan, who())
    except errors.Conflict as error:
        state = str(error.facts.get("state") or "as it was")
    except (errors.DagwardError, redis.RedisError) as error:  # the agents have to be stopped all the same
        say(f"note: the plan could not be paused: {error}")
        state = "as it was"
    killed = crew.stop(signal.SIGINT, _patience(app))
    if killed:
        say(
            f"warning: had to kill {', '.join(killed)}; what they left is swept by "
            f"`dagward run {shlex.quote(file)} --resume`"
        )
    say(f"plan {crew.plan} is {state}; go on with: dagward run {shlex.quote(file)} --resume")
    return errors.EXIT_INTERRUPTED
