"""`up`, `scheduler`, `worker`: processes that stay until they are signalled."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

import click

from scheduler import logs
from scheduler.cli.context import App, pass_app, refuse_inside_attempt, say


@click.command()
@click.option("--workers", "count", type=click.IntRange(1, 1000), help="Workers of the pool `default`. Default: 2.")
@click.option("--pool", "pools", multiple=True, metavar="NAME=N", help="Workers of another pool; may be repeated.")
@pass_app
def up(app: App, count: int | None, pools: tuple[str, ...]) -> int:
    """Serve all plans of this installation until signalled.

    \b
    dagward up
    dagward up --workers 4 --pool llm=2
    """
    from scheduler.supervisor import Crew, check_memory

    refuse_inside_attempt("start workers")
    workers = {"default": count or 2, "system": 1, **_pools(app, pools)}
    check_memory(workers)
    stopping: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        stopping.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    with app.server() as embedded:
        app.open()
        crew = Crew(app.settings, workers, embedded=embedded)
        crew.start()
        say(f"serving {app.settings.store_config().public_url} with {sum(workers.values())} workers; Ctrl-C ends")
        try:
            while not stopping:
                crew.check()
                time.sleep(0.2)
        finally:
            patience = (app.settings.grace + app.settings.drain) / 1000 + 20.0
            crew.stop(signal.SIGTERM if stopping == [signal.SIGTERM] else signal.SIGINT, patience)
    return 0


def _pools(app: App, pools: tuple[str, ...]) -> dict[str, int]:
    out: dict[str, int] = {}
    for text in pools:
        name, _, number = text.partition("=")
        if name not in app.settings.limits or not number.isdecimal() or int(number) < 1:
            known = ", ".join(sorted(app.settings.limits))
            raise click.BadParameter(f"{text!r} is not POOL=N with a pool of: {known}", param_hint="--pool")
        out[name] = int(number)
    return out


@click.command()
@pass_app
def scheduler(app: App) -> int:
    """Run one daemon in this process; several side by side need no leader.

    \b
    REDIS_URL=redis://localhost:6379 dagward scheduler
    """
    from scheduler.daemon import serve

    refuse_inside_attempt("start a daemon")
    logs.set_up(app.settings.log_level)
    with app.server():
        serve(app.settings)
    return 0


@click.command()
@click.option("--pool", default="default", show_default=True, help="The pool that this worker serves.")
@click.option("--name", help="Its name in `dagward workers`. Default: the pool and the process id.")
@pass_app
def worker(app: App, pool: str, name: str | None) -> int:
    """Run one worker in this process. TERM: finish the attempt, then end; INT or again: hand it back now.

    \b
    dagward worker --pool llm
    """
    refuse_inside_attempt("start a worker")
    if pool not in app.settings.limits:
        known = ", ".join(sorted(app.settings.limits))
        raise click.BadParameter(f"{pool!r} is not one of: {known}", param_hint="--pool")
    with app.server():
        from scheduler.supervisor import child_environment

        env = child_environment(app.settings)
        arguments = ["-P", "-m", "workers", "--pool", pool, "--name", name or f"{pool}-{os.getpid()}"]
        return _become(arguments, env, app)


def _become(arguments: list[str], env: dict[str, str], app: App) -> int:
    """A worker is its own process, because this room must not import theirs; signals are passed on."""
    import subprocess
    import sys

    process = subprocess.Popen([sys.executable, *arguments, "--parent", str(os.getpid())], env=env, cwd=os.getcwd())  # noqa: PTH109 -- the same folder
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: process.send_signal(n))
    del app
    while True:
        try:
            return process.wait()
        except InterruptedError:
            continue
